"""Signals that end a process without running handlers of ``atexit``: producers with ``close_on`` are closed first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final

from dataproxy.errors import ConfigError

__all__ = ["checked_signals", "install"]

_ALLOWED: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
_before: dict[int, Any] = {}  # the handlers that ours replaced, by signal number


def checked_signals(names: Iterable[str]) -> list[int]:
    """Return the numbers of signals.  Raises ConfigError for a name that is not a signal that ends a process."""
    found = []
    for name in names:
        if name not in _ALLOWED:
            raise ConfigError(f"close_on names {name!r}", hint=f"allowed are {', '.join(_ALLOWED)}")
        found.append(int(getattr(signal, name)))
    return found


def install(names: Iterable[str], close: Callable[[str], None]) -> None:
    """Install handlers that call ``close(name)`` for these signals, and then the handler that was installed before.

    If that is the default handler, the signal ends the process.  A handler that the application installs later replaces
    this one, and has to call it.  Raises ConfigError for other signals, and outside of the main thread.
    """
    for number in checked_signals(names):
        if number in _before:
            continue
        if threading.current_thread() is not threading.main_thread():
            raise ConfigError(
                "close_on needs the main thread: Python installs handlers of signals nowhere else",
                hint="open the producer there, or use dataproxy.integrations",
            )
        _before[number] = signal.getsignal(number)
        signal.signal(number, _handler(close))


def _handler(close: Callable[[str], None]) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        close(signal.Signals(number).name)
        before = _before.get(number)
        if callable(before):
            before(number, frame)
        elif before is not signal.SIG_IGN:
            _before.pop(number, None)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    return handle
