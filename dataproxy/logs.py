"""Loggers of the package, below ``dataproxy``: quiet until the application configures logging."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable

__all__ = ["Log", "Repeats", "SparingLog", "left_out", "logger", "lost_records"]

_REPEAT_SECONDS = 10.0
_REMEMBERED = 1000  # kinds of records

# Without this, warnings would go to stderr through logging's handler of last resort.
logging.getLogger("dataproxy").addHandler(logging.NullHandler())

_lock = threading.Lock()
_lost = 0
_told = -_REPEAT_SECONDS


def lost_records() -> int:
    """Return how many log records were lost since this process began, because a handler or a filter raised."""
    return _lost


class Log:
    """Write to a logger of ``logging``, safe against exceptions of its handlers and filters.

    Handlers, filters and factories are the application's code.  Their exceptions must not end a thread of this package
    or interrupt a ``close``.  They are counted, and a record reports them at most once in ten seconds.  An exception
    that is not an ``Exception`` (Ctrl-C) is raised again in the main thread.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - as logging's own
        """Return whether a record of this level would be written.  Any thread."""
        return self._logger.isEnabledFor(level)

    def log(self, level: int, text: str, *args: object, exc_info: bool = False, stacklevel: int = 1) -> None:
        """Write a record.  Any thread."""
        try:
            self._logger.log(level, text, *args, exc_info=exc_info or None, stacklevel=stacklevel + 1)
        except BaseException as error:
            if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
                raise
            _note(error)

    def debug(self, text: str, *args: object) -> None:
        """Write a record of this level.  Any thread."""
        self.log(logging.DEBUG, text, *args, stacklevel=2)

    def info(self, text: str, *args: object) -> None:
        """Write a record of this level.  Any thread."""
        self.log(logging.INFO, text, *args, stacklevel=2)

    def warning(self, text: str, *args: object) -> None:
        """Write a record of this level.  Any thread."""
        self.log(logging.WARNING, text, *args, stacklevel=2)

    def error(self, text: str, *args: object) -> None:
        """Write a record of this level.  Any thread."""
        self.log(logging.ERROR, text, *args, stacklevel=2)

    def exception(self, text: str, *args: object) -> None:
        """Write an error with the exception that is being handled.  Any thread."""
        self.log(logging.ERROR, text, *args, exc_info=True, stacklevel=2)


class Repeats:
    """Say which records come too often: equal ones are written at most once in ten seconds.  Any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._last: dict[Hashable, float] = {}
        self._left_out: dict[Hashable, int] = {}

    def count(self, key: Hashable) -> int | None:
        """Return how many records of this kind were left out since the last one, None: this one is to be, too."""
        now = time.monotonic()
        with self._lock:
            if now - self._last.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
                self._left_out[key] = self._left_out.get(key, 0) + 1
                return None
            if len(self._last) >= _REMEMBERED:  # servers may say any number of different things
                self._last.clear()
                self._left_out.clear()
            self._last[key] = now
            return self._left_out.pop(key, 0)


class SparingLog:
    """Write warnings to a logger: equal ones at most once in ten seconds, with how many were left out.  Any thread."""

    def __init__(self, log: Log) -> None:
        self._log, self._repeats = log, Repeats()

    def warning(self, text: str, *args: object) -> None:
        """Write a warning, unless an equal one was written a moment ago."""
        if not self._log.isEnabledFor(logging.WARNING):
            return
        again = self._repeats.count(text % args)
        if again is not None:
            self._log.log(logging.WARNING, text + left_out(again), *args, stacklevel=2)


def left_out(again: int) -> str:
    """Return what a record says of so many equal ones that were left out; empty without any."""
    return f" ({again} more like this were not logged)" if again else ""


def _note(error: BaseException) -> None:
    """Count a lost record, and try to log that records were lost."""
    global _lost, _told
    with _lock:
        _lost += 1
        now = time.monotonic()
        if now - _told < _REPEAT_SECONDS:
            return
        _told = now
    try:
        kind = type(error).__name__
        logging.getLogger("dataproxy").error("a logging handler or filter raised %s: %d records were lost", kind, _lost)
    except BaseException:  # noqa: BLE001 - the same handler, most likely
        return


def logger(area: str = "") -> Log:
    """Return the logger of an area of the package: ``conn``, ``route``, ``ack``, ``callback``, ``hub`` ..."""
    return Log(f"dataproxy.{area}" if area else "dataproxy")
