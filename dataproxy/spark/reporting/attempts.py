"""The files that each attempt of a task leaves, however it ends, and how the driver reads them.

Spark gives the driver the accounting of the attempts that it commits, and nothing from all others.  So each attempt
writes into the room of its write that it has begun, and later how it ended, with its counts.  The second file is
missing if the attempt was killed.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dataproxy.logs import logger
from dataproxy.spark.reporting.room import Room
from dataproxy.spark.wording import code_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from dataproxy.spark.reporting.reports import PartitionReport
    from dataproxy.spark.writing.producers import Accounting

__all__ = ["LAST_WORDS", "Attempt", "AttemptRecord", "RoomReader", "Uncommitted", "of_batch"]

LAST_WORDS: Final = 1.0
"""Seconds that attempts get for their last word when a write is aborted."""

_BEGUN: Final = "begun"
_ENDED: Final = "ended"
_LOOK: Final = 0.05  # seconds between two looks for last words
_NAME: Final = re.compile(r"(.+)@(\d+)-(\d+)-([0-9a-f]{16})\.(begun|ended)(?:-(\d+)-(\d+))?")
_log = logger("spark.attempts")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as the driver sees it: without counts if it has not written how it ended.

    Of the `acked` messages, servers did not store `filtered` ones again, since they had them.  `possibly_stored`
    messages were not acknowledged but may be stored; `failed` counts all that were not acknowledged, by code.
    """

    run: str
    partition: int
    attempt: int
    token: str
    ended: bool = False
    acked: int = 0
    possibly_stored: int = 0
    failed: tuple[tuple[str | int, int], ...] = ()
    filtered: int = 0


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """The counts of attempts that Spark has not committed: they failed, or a copy of them was faster.

    `attempts` is the number of those with counts: `acked`, `possibly_stored`, and `failed` by code in words.  `silent`
    attempts existed but left no counts: killed, still running, or on a machine that does not see the room.
    """

    attempts: int = 0
    acked: int = 0
    possibly_stored: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    silent: int = 0

    @classmethod
    def of(cls, found: Iterable[Attempt], committed: Sequence[PartitionReport] = ()) -> Uncommitted:
        """Sum up the attempts of a write without those that were committed."""
        known = {part.record for part in committed if part.record}
        numbers: dict[int, set[int]] = {}
        for part in committed:
            numbers.setdefault(part.partition, set()).add(part.attempt)
        others = [attempt for attempt in found if attempt.token not in known]
        for attempt in others:
            numbers.setdefault(attempt.partition, set()).add(attempt.attempt)
        missing = sum(max(seen) + 1 - len(seen) for seen in numbers.values())  # Spark counts attempts from 0
        failed: Counter[str] = Counter()
        for attempt in others:
            for code, count in attempt.failed:
                failed[code_in_words(code)] += count
        return cls(
            attempts=sum(attempt.ended for attempt in others),
            acked=sum(attempt.acked for attempt in others),
            possibly_stored=sum(attempt.possibly_stored for attempt in others),
            failed=dict(failed),
            silent=missing + sum(not attempt.ended for attempt in others),
        )

    def line(self) -> str:
        """Return the counts as text; empty where there is nothing to tell."""
        words = []
        if self.attempts:
            failed = ", ".join(f"{count} by code {code}" for code, count in self.failed.items()) or "none"
            words.append(
                f"{self.attempts} attempts that were not committed: {self.acked} acknowledged, "
                f"{self.possibly_stored} possibly stored, failed: {failed}"
            )
        if self.silent:
            words.append(f"{self.silent} attempts ended without a report; what they sent is unknown")
        return "; ".join(words)


class AttemptRecord:
    """The words of one attempt: that it has begun, and its counts at the end.

    Nothing is written where the room is not seen.  Thread rule: the worker's one task thread.
    """

    def __init__(self, room: str, *, run: str, partition: int, attempt: int) -> None:
        self.token = ""
        self._room = Room(room)
        token = secrets.token_hex(8)
        self._name = f"{run}@{partition}-{attempt}-{token}"
        if room and self._leave(_BEGUN):
            self.token = token

    def end(self, accounting: Accounting) -> None:
        """Say how the attempt ended; its last word counts.

        Where all was acknowledged, the name of the file holds both counts: nothing is written, and nothing read at the
        commit.
        """
        if not self.token:
            return
        possible = accounting.maybe_delivered + accounting.pending + accounting.sent
        if not (accounting.errors or possible):
            self._leave(f"{_ENDED}-{accounting.delivered}-{accounting.duplicates_filtered}", instead_of=_BEGUN)
        else:
            counts = {
                "acked": accounting.delivered,
                "filtered": accounting.duplicates_filtered,
                "possibly_stored": possible,
                "failed": list(accounting.errors.items()),
            }
            self._leave(_ENDED, json.dumps(counts).encode())

    def so_far(self) -> str:
        """Return in words what all attempts of this write have done until now; empty where the room is not near."""
        if not self.token or not self._room.is_local:
            return ""
        run = self._name.partition("@")[0]
        found = RoomReader(self._room.where, lambda other: other == run).attempts
        ended = [attempt for attempt in found if attempt.ended]
        return (
            f"all {len(ended)} attempts of this write that have ended so far: "
            f"{sum(attempt.acked for attempt in ended)} rows acknowledged, "
            f"{sum(attempt.possibly_stored for attempt in ended)} possibly stored"
        )

    def _leave(self, kind: str, text: bytes = b"", *, instead_of: str = "") -> bool:
        """Leave a file, in place of another one where that is named; tell whether the room took it."""
        try:
            if instead_of:
                self._room.rename(f"{self._name}.{instead_of}", f"{self._name}.{kind}")
            else:
                self._room.write(f"{self._name}.{kind}", text)
        except OSError as error:
            _log.debug("the report folder of the write cannot be read here: %s", error)
            return False
        return True


def of_batch(number: int) -> Callable[[str], bool]:
    """Return what tells whether a run is the micro-batch of that number."""
    return lambda run: run.rpartition(".")[2] == str(number)


class RoomReader:
    """The attempts of a write that left a word; none where the room is missing.

    ``chosen`` tells which runs are those of the write.  With ``patience`` attempts that have begun get so many seconds
    for their last word: Spark ends the tasks of a write that failed at the time of its abort.  Thread rule: one thread.
    """

    def __init__(self, room: str, chosen: Callable[[str], bool], *, patience: float = 0.0) -> None:
        self._room = Room(room)
        self._chosen = chosen
        self.attempts = self._read()
        end = time.monotonic() + patience
        while not all(attempt.ended for attempt in self.attempts) and time.monotonic() < end:
            time.sleep(_LOOK)
            self.attempts = self._read()

    def _names(self) -> list[str]:
        """Return the names of the files that attempts of the write have left."""
        if not self._room.where:
            return []
        try:
            names = self._room.names()
        except OSError as error:
            _log.debug("the write has no report folder: %s", error)
            return []
        return [name for name in names if _NAME.fullmatch(name) and self._chosen(name.partition("@")[0])]

    def _read(self) -> list[Attempt]:
        """Return the attempts in the order of partitions."""
        found: dict[str, Attempt] = {}
        for name in sorted(self._names()):  # what has begun comes before what has ended
            parts = _NAME.fullmatch(name)
            assert parts is not None  # others were left out
            run, partition, attempt, token, kind, acked, filtered = parts.groups()
            begun = Attempt(run, int(partition), int(attempt), token)
            if acked is not None:
                found[token] = replace(begun, ended=True, acked=int(acked), filtered=int(filtered))
            else:
                found[token] = self._ended(name, begun) if kind == _ENDED else begun
        return sorted(found.values(), key=lambda one: (one.partition, one.attempt))

    def _ended(self, name: str, begun: Attempt) -> Attempt:
        """Return the attempt with its counts; without where they were not written to their end."""
        try:
            counts = json.loads(self._room.read(name))
        except (OSError, ValueError) as error:
            _log.debug("the counts %r cannot be read: %s", name, error)
            return begun
        failed = tuple((code, count) for code, count in counts["failed"])
        return replace(
            begun,
            ended=True,
            acked=counts["acked"],
            possibly_stored=counts["possibly_stored"],
            failed=failed,
            filtered=counts["filtered"],
        )

    def of_one_run(self, runs: Collection[str]) -> list[Attempt]:
        """Return the attempts of the run named by its commit messages, or of the only one that is there.

        Two queries without a checkpoint of their own in their options may share a room; where nothing tells which one
        is meant, none is.
        """
        named = set(runs) or {attempt.run for attempt in self.attempts}
        return [attempt for attempt in self.attempts if attempt.run in named] if len(named) == 1 else []

    def clear(self, runs: Collection[str] | None = None) -> None:
        """Remove what attempts have left, and the room when it is empty; with ``runs`` what is theirs alone.

        The room of a stream stays: another query with the same options may write its counts there.
        """
        if self._room.where:
            mine = [name for name in self._names() if runs is None or name.partition("@")[0] in runs]
            self._room.clear(mine, keep=runs is not None)
