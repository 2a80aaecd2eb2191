"""Live producers: closed at exit, marked dead in a forked child."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol

from dataproxy.logs import logger

__all__ = ["register", "unregister"]

_LOG = logger()


class _Closable(Protocol):
    def close(self) -> object: ...

    def mark_forked(self) -> None: ...


_live: weakref.WeakSet[_Closable] = weakref.WeakSet()


def register(producer: _Closable) -> None:
    """Have ``producer`` closed at interpreter exit and marked in forked children.  Any thread."""
    _live.add(producer)


def unregister(producer: _Closable) -> None:
    """Forget a closed producer.  Any thread."""
    _live.discard(producer)


def _close_all() -> None:
    for producer in list(_live):
        report = producer.close()
        if not getattr(report, "ok", True):
            _LOG.error("a producer was not closed before exit and has undelivered messages: %s", report)


def _mark_all() -> None:
    for producer in list(_live):
        producer.mark_forked()
    _live.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_mark_all)
