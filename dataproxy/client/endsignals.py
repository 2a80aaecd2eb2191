"""Signals that end a process before any handler of atexit runs: producers that ask for it are closed first."""

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
_before: dict[int, Any] = {}  # what was installed when ours was


def checked_signals(names: Iterable[str]) -> list[int]:
    """Return the numbers of signals.  Raises ConfigError for what is none that ends a process."""
    found = []
    for name in names:
        if name not in _ALLOWED:
            raise ConfigError(f"close_on names {name!r}", hint=f"allowed are {', '.join(_ALLOWED)}")
        found.append(int(getattr(signal, name)))
    return found


def install(names: Iterable[str], close: Callable[[str], None]) -> None:
    """Have ``close(name)`` called when one of these signals comes, and then what was installed before.

    Where that is the default the process ends by the signal.  A handler that the application installs later takes the
    place of this one, and has to call it.  Raises ConfigError for other signals, and outside of the main thread.
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
