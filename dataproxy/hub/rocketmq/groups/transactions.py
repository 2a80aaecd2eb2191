"""Transactions: half messages wait for their end (37), and producers are asked for it (39).

The store has the messages; here is when to ask whom, and which end counts.  A half message is known by its handle, and
an end that comes twice, late or for another message does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from dataproxy.hub.rocketmq.clients.actions import Check, Discard, Half, Outbox, RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.producers import Producers
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.headers import EndTransaction

__all__ = ["COMMIT", "ROLL_BACK", "Transactions"]

COMMIT: Final = 8  #: of ``commitOrRollback``
ROLL_BACK: Final = 12
_UNKNOWN: Final = 0
_AT_ONCE: Final = 256  # questions of one tick: each is a message that the store has to read
_NEVER: Final = float("inf")


@dataclass(slots=True)
class _Open:
    half: Half
    due: float
    is_ending: bool = False


class Transactions:
    """The half messages that wait for their end.  One thread; times are seconds of a monotonic clock."""

    def __init__(self, producers: Producers, limits: Limits, outbox: Outbox) -> None:
        self._producers, self._limits, self._outbox = producers, limits, outbox
        self._open: dict[int, _Open] = {}
        self._due: list[tuple[float, int]] = []  # a heap; an entry that is not the message's `due` is an old one
        self._alone: dict[str, dict[int, None]] = {}  # messages for whose group no producer is there

    def check_room(self) -> None:
        """Refuse one more half message if there are too many.  Raises RefusedError."""
        if len(self._open) >= self._limits.halves:
            raise RefusedError(
                Answer.SYSTEM_BUSY, f"{len(self._open)} transactions have not ended; the hub has room for no more"
            )

    def add(self, half: Half) -> None:
        """Take a half message that is stored."""
        one = self._open[half.handle] = _Open(half, _NEVER)
        self._plan(one, half.stored_s + (half.immunity_s if half.immunity_s > 0 else self._limits.young))

    def end(self, header: EndTransaction) -> Half | None:
        """Return the half message that a producer ends, to be worked off by ``commit_or_rollback``.

        Then `done` has to be called, or `failed`.  None: there is nothing to do, as the end is not known or has come
        before.  Raises RefusedError.
        """
        if header.commit_or_rollback not in (_UNKNOWN, COMMIT, ROLL_BACK):
            text = f"commitOrRollback is {header.commit_or_rollback}; expected 8 (commit), 12 (roll back), 0 (unknown)"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        one = self._open.get(header.commit_log_offset)
        if one is None or one.is_ending or header.commit_or_rollback == _UNKNOWN:
            return None
        if header.producer_group != one.half.group:
            text = f"the transaction is one of the group {shown(one.half.group)}, not of {shown(header.producer_group)}"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        if header.tran_state_table_offset != one.half.half_offset:
            text = f"tranStateTableOffset is {header.tran_state_table_offset}; the message has {one.half.half_offset}"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        self._take_up(one)
        return one.half

    def done(self, handle: int) -> None:
        """Forget a half message whose end is stored."""
        one = self._open.pop(handle, None)
        if one is not None:
            self._take_up(one)

    def failed(self, handle: int, now: float) -> None:
        """Let a half message wait again whose end could not be stored: its producer is asked later."""
        one = self._open.get(handle)
        if one is not None:
            one.is_ending = False
            self._plan(one, now + self._limits.check)

    def came(self, group: str, now: float) -> None:
        """Ask at once for what waits for a producer of a group, as one is there now."""
        for handle in self._alone.pop(group, ()):
            self._plan(self._open[handle], now)

    def tick(self, now: float) -> None:
        """Ask for the ends that are due, some at a time, and put aside what nobody has ended."""
        asked = 0
        while self._due and self._due[0][0] <= now and asked < _AT_ONCE:
            due, handle = heappop(self._due)
            one = self._open.get(handle)
            if one is None or one.due != due:
                continue
            asked += 1
            self._check(one, now)

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next; infinity if nothing waits."""
        return self._due[0][0] if self._due else _NEVER

    def waiting(self) -> tuple[Half, ...]:
        """Return the half messages that have not ended, each with the number of checks that were made."""
        return tuple(one.half for one in self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def _check(self, one: _Open, now: float) -> None:
        half = one.half
        self._alone.get(half.group, {}).pop(half.handle, None)
        if half.checks >= self._limits.checks or now - half.stored_s > self._limits.abandoned:
            self._take_up(one)
            self._outbox.append(Discard(half))
            return
        chosen = self._producers.choose(half.group, half.connection, half.client_id)
        if chosen is None:  # nobody was asked, so this was no check
            self._alone.setdefault(half.group, {})[half.handle] = None
        else:
            one.half = half = half._replace(checks=half.checks + 1)
            self._outbox.append(Check(chosen, half))
        self._plan(one, now + self._limits.check)

    def _plan(self, one: _Open, due: float) -> None:
        one.due = due
        heappush(self._due, (due, one.half.handle))

    def _take_up(self, one: _Open) -> None:
        """Let nothing more happen to a half message until it is known what became of its end."""
        one.is_ending, one.due = True, _NEVER
        alone = self._alone.get(one.half.group)
        if alone is not None:
            alone.pop(one.half.handle, None)
            if not alone:
                del self._alone[one.half.group]
