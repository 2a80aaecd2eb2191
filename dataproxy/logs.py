"""Loggers of the package, below ``dataproxy``: quiet until the application configures logging."""

from __future__ import annotations

import logging
import threading
import time

__all__ = ["Log", "logger", "lost_records"]

_REPEAT_SECONDS = 10.0

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
