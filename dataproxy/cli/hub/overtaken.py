"""What a hub's store has dropped before a command that follows it could read it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Log", "Overtaken"]

_SAID_S: Final = 10.0


class Log(NamedTuple):
    """Name the requests of one partition of a group that are stored: offsets from ``first`` up to, without, ``end``."""

    partition: int
    first: int
    end: int


class Overtaken:
    """Tell how many requests of a group were dropped unread, in a line at most each ten seconds.

    The streams of a group share the offsets, and nobody knows whose a request was that is gone: the number is the most
    that it can be.
    """

    def __init__(self, group: str, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._group, self._tell, self._clock = group, tell, clock
        self._begun = False
        self._seen: dict[int, int] = {}  # by partition: what is before was read, is others', or was told
        self._ends: dict[int, int] = {}  # as they were behind the page before
        self._missing = 0  # that nobody was told of
        self._say_at = 0.0

    def look(self, logs: Iterable[Log], read: Iterable[tuple[int, int]]) -> None:
        """Look at logs, as they are behind a page; ``read``: partitions and offsets of its records."""
        pairs = frozenset(read)
        for partition, first, end in logs:
            offsets = [offset for its, offset in pairs if its == partition]
            seen = self._seen.get(partition, 0 if self._begun else first)
            self._missing += max(0, first - seen - sum(seen <= offset < first for offset in offsets))
            if offsets:
                seen = max(seen, max(offsets) + 1)
            elif not pairs:  # the page has seen all that was there before it
                seen = max(seen, self._ends.get(partition, 0))
            self._seen[partition] = max(seen, first)
            self._ends[partition] = end
        self._begun = True
        now = self._clock()
        if self._missing and now >= self._say_at:
            what = "1 request" if self._missing == 1 else f"{self._missing:,} requests"
            verb = "is" if self._missing == 1 else "are"
            self._tell(f"up to {what} of group {self._group!r} {verb} missing here: the store dropped them unread")
            self._missing, self._say_at = 0, now + _SAID_S
