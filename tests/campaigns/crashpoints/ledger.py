"""What was acknowledged, what is in the store, and whether both agree; read from the store's files alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dataproxy.errors import StoreError
from dataproxy.hub import LogInfo, StoreReader, open_store

__all__ = ["Ledger"]


@dataclass
class Ledger:
    """Follow one store over the lives of its hubs.

    Every message is a number of its own.  Retention drops the front of a log, so entries are read after every life,
    before a later one can drop them.
    """

    path: Path
    acknowledged: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    read: int = 0
    _next: dict[str, int] = field(default_factory=dict)

    def check(self, acknowledged: set[int]) -> None:
        """Read what is new and compare; ``acknowledged`` were answered before the hub died."""
        self.acknowledged |= acknowledged
        try:
            with open_store(self.path) as store:
                for log in store.logs():
                    self._read_log(store, log)
                self._check_counts(store)
        except StoreError as error:
            if acknowledged:  # else it may have died before it had made the store
                self.problems.append(str(error))
        lost = self.acknowledged - self.seen
        if lost:
            self.problems.append(f"{len(lost)} acknowledged messages are not in the store: {sorted(lost)[:5]}")
            self.seen |= lost  # told once

    def _read_log(self, store: StoreReader, log: LogInfo) -> None:
        known = self._next.get(log.topic, 0)
        if log.first_offset > known:
            self.problems.append(
                f"{log.topic}: entries {known} to {log.first_offset} were dropped before they were read"
            )
        if log.next_offset < known:
            self.problems.append(f"{log.topic}: the log ends at {log.next_offset}, it did at {known}")
        offsets: list[int] = []
        for record in store.records(log.topic, start=known):
            number = int(record.body.split(b".", 1)[0])
            if number in self.seen:
                self.problems.append(f"message {number} is stored twice ({record.message_id}, offset {record.offset})")
            self.seen.add(number)
            self.read += 1
            if not offsets or offsets[-1] != record.offset:
                offsets.append(record.offset)
        if offsets != list(range(max(known, log.first_offset), log.next_offset)):
            self.problems.append(f"{log.topic}: offsets have holes")
        self._next[log.topic] = log.next_offset

    def _check_counts(self, store: StoreReader) -> None:
        logs, streams = store.logs(), store.counts()
        for which in ("entries", "records", "bytes"):
            of_logs = sum(getattr(log, which) for log in logs)
            of_streams = sum(getattr(count, which) for count in streams.values())
            if of_logs != of_streams:
                self.problems.append(f"{which}: {of_logs} by logs, {of_streams} by streams")
        kept = sum(log.next_offset - log.first_offset for log in logs)
        if kept != sum(log.entries for log in logs):
            self.problems.append(f"{kept} offsets are kept, but another number of entries is counted")
