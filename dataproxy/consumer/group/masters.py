"""Which master is asked, and when.

A master that does not answer, or is on standby, hands over to the next one of the list; each is asked at most once in
a round.  A whole round without an answer makes the next one wait, longer each time, up to a limit.  Any answer ends
that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from dataproxy.consumer.group.asking import Address

__all__ = ["Masters"]

_FIRST_WAIT_S = 1.0
_JITTER = 0.2


class Masters:
    """The list of masters, with the one in use."""

    def __init__(self, addresses: Sequence[Address], slow_s: float, source: random.Random) -> None:
        self._addresses = list(addresses)
        self._at = source.randrange(len(self._addresses))
        self._tried = 0
        self._rounds = 0
        self._slow_s = slow_s
        self._random = source

    @property
    def current(self) -> Address:
        """Return the master in use."""
        return self._addresses[self._at]

    def answered(self) -> None:
        """Stay with the master in use."""
        self._tried = self._rounds = 0

    def move(self) -> float:
        """Go to the next master; return how long to wait before it is asked."""
        self._at = (self._at + 1) % len(self._addresses)
        self._tried += 1
        if self._tried < len(self._addresses):
            return 0.0
        self._tried = 0
        self._rounds += 1
        wait: float = min(_FIRST_WAIT_S * 2.0 ** (self._rounds - 1), self._slow_s)
        return wait * self._random.uniform(1 - _JITTER, 1)
