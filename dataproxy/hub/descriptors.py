"""File descriptors: raising the limit of this process, and a warning in the log when there are none left."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Final

from dataproxy.logs import logger

__all__ = ["Shortage", "raise_limit"]

_log: Final = logger("hub")
_SPARE: Final = 64
_PAUSE_S: Final = 60.0


def raise_limit(wanted: int) -> int:
    """Raise this process's limit of open files to the hard limit and return it; log if it is below ``wanted``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:
            _log.warning("the limit of open files stays at %d: %s", soft, error)
    if soft != resource.RLIM_INFINITY and wanted + _SPARE > soft:
        _log.info(
            "%d connections are allowed and %d open files: raise the limit (ulimit -Hn, LimitNOFILE=)", wanted, soft
        )
    return soft


class Shortage:
    """Log that connections cannot be accepted, at most once a minute.  One thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._pauses = 0
        self._quiet_until = float("-inf")

    def look(self, pauses: int) -> None:
        """Log if ``pauses``, the number of times that server loops could not accept a connection, has grown."""
        grown, self._pauses = pauses > self._pauses, pauses
        if grown:
            self.tell("the producers' port")

    def tell(self, where: str) -> None:
        """Log that connections cannot be accepted; ``where`` names the port."""
        if self._now() < self._quiet_until:
            return
        self._quiet_until = self._now() + _PAUSE_S
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        _log.error(
            "%s cannot accept connections: the process has no file descriptors or no memory left (%d open files are"
            " allowed)",
            where,
            limit,
        )
