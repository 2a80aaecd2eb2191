"""All open consumers: closed together when the process ends normally."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from typing import Final, Protocol

from dataproxy.logs import logger
from dataproxy.process.threads import at_childs_end

__all__ = ["register", "unregister", "wait_end"]

_LOG: Final = logger("consumer")
_GRACE_S: Final = 1.0
_LONGEST_S: Final = 86_400.0


class _Closable(Protocol):
    def _begin_close(self) -> None: ...

    def _close_now(self, limit: float) -> None: ...

    @property
    def _close_timeout(self) -> float: ...


_live: weakref.WeakSet[_Closable] = weakref.WeakSet()
_begun = threading.Event()
_ended = threading.Event()


def wait_end() -> None:
    """If the process is ending, wait until its consumers are closed, and a second longer.  Any thread."""
    if _begun.is_set():
        _ended.wait(_LONGEST_S)
        time.sleep(_GRACE_S)


def register(consumer: _Closable) -> None:
    """Close a consumer when this process ends.  Any thread."""
    _live.add(consumer)


def unregister(consumer: _Closable) -> None:
    """Forget a closed consumer.  Any thread."""
    _live.discard(consumer)


def _close_all() -> None:
    """Close all consumers side by side: the longest ``close_timeout`` bounds the total time; Ctrl-C ends the wait."""
    began = time.monotonic()
    _begun.set()
    todo = list(_live)
    for consumer in todo:
        consumer._begin_close()
    patient = True
    for consumer in todo:
        left = began + consumer._close_timeout - time.monotonic()
        try:
            consumer._close_now(max(left, 0.0) if patient else 0.0)
        except BaseException as error:  # noqa: BLE001 - of a signal handler: the process is ending already
            patient = False
            if isinstance(error, Exception):
                _LOG.log(logging.ERROR, "%r was not closed in order as the process ended", consumer, exc_info=True)
            with contextlib.suppress(BaseException):
                consumer._close_now(0.0)
    _ended.set()


atexit.register(_close_all)
at_childs_end(_close_all)
os.register_at_fork(after_in_child=_live.clear)
