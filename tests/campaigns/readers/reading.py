"""What the members of consumer groups were given and told, and what must hold of it.

R1 everything that is stored is seen.  R2 what is confirmed does not come again.  R3 a hub keeps what it has told to be
confirmed, and nothing that nobody has confirmed.  R4 what is seen was sent, byte by byte.  R5 nothing is passed over.
R6 a partition has one owner.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from dataproxy import inlong_records
from tests.campaigns.histories.bodies import read_body

__all__ = ["INDEX", "Log", "Name", "Reading"]

INDEX: Final = 28  # of an offset, for each stored entry
Name = tuple[str, int]  # producer, sequence


class Log(NamedTuple):
    """One partition at a hub."""

    hub: str
    topic: str
    partition: int


class Reading:
    """All members of one group at some hubs; any thread.  ``raw``: topics whose messages are no InLong containers."""

    def __init__(self, raw: Iterable[str] = ()) -> None:
        self._raw = frozenset(raw)
        self._lock = threading.Lock()
        self.problems: list[str] = []
        self.seen: Counter[Name] = Counter()
        self.packs = 0
        self.outcomes: Counter[str] = Counter()
        self._read: dict[Log, int] = {}  # the largest offset behind a pack that came
        self._asked: dict[Log, int] = {}  # the largest one whose confirm was asked for
        self.confirmed: dict[Log, int] = {}  #: the largest one that was told to be confirmed
        self._owners: dict[Log, str] = {}
        self.confirmed_at = 0.0  #: when a member was told so last

    def _wrong(self, law: str, text: str) -> None:
        self.problems.append(f"{law} {text}")

    def assigned(self, member: str, log: Log) -> None:
        """Take the news of a partition."""
        with self._lock:
            owner = self._owners.get(log)
            if owner is not None and owner != member:
                self._wrong("R6", f"{log} is {member}'s and {owner}'s")
            self._owners[log] = member

    def revoked(self, member: str, log: Log) -> None:
        """Take the end of a partition."""
        with self._lock:
            if self._owners.get(log) == member:
                del self._owners[log]

    def taken(self, hub: str, pack: Any) -> tuple[Log, int]:
        """Take a pack that an application got; return its log, and the offset behind it."""
        log = Log(hub, pack.topic, int(pack.partition.rpartition(":")[2]))
        bodies = pack.bodies() if pack.topic in self._raw else [one.body for one in inlong_records(pack)]
        said = [(line, read_body(line)) for body in bodies for line in body.split(b"\n")]  # some are joined
        end = pack.offset + INDEX * len(pack)
        with self._lock:
            self.packs += 1
            if bad := [line for line, one in said if one is None or not one.intact]:
                self._wrong("R4", f"{log} at {pack.offset}: {bad[0][:60]!r} is not what was sent")
            self.seen.update((one.producer, one.sequence) for _, one in said if one is not None)
            if pack.offset > self._read.get(log, 0):
                self._wrong("R5", f"{log} goes on at {pack.offset}, the pack before ended at {self._read.get(log, 0)}")
            if pack.offset < self.confirmed.get(log, 0):
                self._wrong("R2", f"{log} at {pack.offset} comes again, {self.confirmed[log]} was confirmed")
            self._read[log] = max(self._read.get(log, 0), end)
        return log, end

    def asks(self, log: Log, end: int) -> None:
        """Take the wish to confirm a pack, before it is sent."""
        with self._lock:
            self._asked[log] = max(self._asked.get(log, 0), end)

    def ended(self, log: Log, end: int, outcome: str) -> None:
        """Take what became of a pack."""
        with self._lock:
            self.outcomes[outcome] += 1
            if outcome == "confirmed":
                self.confirmed_at = time.monotonic()
                self.confirmed[log] = max(self.confirmed.get(log, 0), end)

    def compare(self, stored: Mapping[Log, int]) -> None:
        """Compare the offsets that a dead hub has on disk (R3) with what members were told."""
        with self._lock:
            for log, end in self.confirmed.items():
                if stored.get(log, 0) < end:
                    self._wrong("R3", f"{log}: {end} was confirmed, {stored.get(log, 0)} is stored")
            for log, at in stored.items():
                if at > self._asked.get(log, 0):
                    self._wrong("R3", f"{log}: {at} is stored, and nobody has confirmed that: {self._asked.get(log)}")

    def left_over(self, ends: Mapping[Log, int]) -> str:
        """Return which log is not confirmed up to its end, empty when all are."""
        with self._lock:
            for log, end in ends.items():
                if self.confirmed.get(log, 0) < end:
                    return f"{log} is confirmed up to {self.confirmed.get(log, 0)} of {end}"
        return ""

    def judge(self, stored: set[Name]) -> list[str]:
        """Compare with all that hubs have stored; return what is wrong."""
        with self._lock:
            if missing := stored - self.seen.keys():
                self._wrong("R1", f"{len(missing)} messages are stored and were never seen, such as {min(missing)}")
            if foreign := self.seen.keys() - stored:
                self._wrong("R4", f"{len(foreign)} messages were seen and are not stored, such as {min(foreign)}")
            return list(self.problems)

    @property
    def again(self) -> int:
        """Return how many messages came more than once, counted each time."""
        return sum(self.seen.values()) - len(self.seen)
