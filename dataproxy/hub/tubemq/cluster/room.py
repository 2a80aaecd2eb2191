"""What clients may take of the hub, divided so that no address can take it from all others."""

from __future__ import annotations

from dataproxy.hub.tubemq.cluster.answers import NO_ROOM, RefusedError

__all__ = ["Room"]


class Room:
    """Bytes, or other things, by address: each may have at most half of what the others leave.  One thread.

    ``what`` they are, for the text of a refusal.
    """

    def __init__(self, most: int, what: str = "bytes of the master's memory for clients") -> None:
        self._most, self._what = most, what
        self._used = 0
        self._by_peer: dict[str, int] = {}

    @property
    def used(self) -> int:
        """Return how many are taken."""
        return self._used

    def take(self, peer: str, n: int) -> None:
        """Charge ``n`` to an address.  Raises RefusedError, and charges nothing, if they are too many."""
        own = self._by_peer.get(peer, 0)
        free = self._most - (self._used - own)
        if 2 * (own + n) > free:
            raise RefusedError(NO_ROOM, f"{peer} has {own} {self._what} and may have {free // 2}; {n} do not fit")
        self._used += n
        self._by_peer[peer] = own + n

    def give(self, peer: str, n: int) -> None:
        """Take ``n`` off an address's account."""
        self._used -= n
        left = self._by_peer[peer] - n
        if left:
            self._by_peer[peer] = left
        else:
            del self._by_peer[peer]
