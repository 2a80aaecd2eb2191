"""Slots for pages of records: they bound how many are read and written at a time, also if peers do not read."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

__all__ = ["PageSlots", "Reader"]

_HASTE: Final = 10  # divisor of the wait for a peer that reads its pages


class Reader(Protocol):
    """The connection that a page is written to."""

    @property
    def address(self) -> str:
        """Return the peer's address."""
        ...

    @property
    def stalled_since(self) -> float | None:
        """Return since when (loop time, s) the peer has taken nothing of its answer, None while it takes all."""
        ...

    @property
    def reads(self) -> bool:
        """Return whether the peer has taken all of the last page that it got."""
        ...

    def drop(self) -> None:
        """End the connection."""
        ...


class PageSlots:
    """Count the pages in progress.  On the server's loop only.

    If all slots are taken, a peer that does not read its page loses its slot and its connection: of the address with
    most slots, the peer that has read nothing for the longest time.  This happens at once if the new peer's address has
    fewer slots, after a tenth of ``patience`` seconds if the new peer has read its last page, else after ``patience``.
    """

    def __init__(self, most: int, patience: float) -> None:
        self._most = most
        self._patience = patience
        self._taken: dict[Reader, None] = {}

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, reader: Reader, now: float) -> bool:
        """Take a slot for a connection until ``give_back``; False: none is free.  ``now`` is the loop's time in s."""
        if len(self._taken) >= self._most:
            payer = self._payer(reader, now)
            if payer is None:
                return False
            del self._taken[payer]
            payer.drop()
        self._taken[reader] = None
        return True

    def give_back(self, reader: Reader) -> None:
        """Give the slot of a connection back, unless it has lost the slot."""
        self._taken.pop(reader, None)

    def _payer(self, reader: Reader, now: float) -> Reader | None:
        held = Counter(one.address for one in self._taken)
        stalled = [
            (held[one.address], now - since, one) for one in self._taken if (since := one.stalled_since) is not None
        ]
        if not stalled:
            return None
        most, seconds, payer = max(stalled, key=lambda row: row[:2])
        patience = self._patience / _HASTE if reader.reads else self._patience
        return payer if most > held[reader.address] + 1 or seconds >= patience else None
