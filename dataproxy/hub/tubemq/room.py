"""Memory that clients may take, divided so that no address can take it from all others."""

from __future__ import annotations

from dataproxy.hub.tubemq.answers import NO_ROOM, RefusedError

__all__ = ["Room"]


class Room:
    """Bytes by address: each may have at most half of what the others leave.  One thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._by_peer: dict[str, int] = {}

    @property
    def used(self) -> int:
        """Return the bytes that are taken."""
        return self._used

    def take(self, peer: str, n: int) -> None:
        """Charge ``n`` bytes to an address.  Raises RefusedError, and charges nothing, if they are too many."""
        own = self._by_peer.get(peer, 0)
        free = self._most - (self._used - own)
        if 2 * (own + n) > free:
            text = f"{peer} has {own} bytes of the master's memory for clients and may have {free // 2}; {n} do not fit"
            raise RefusedError(NO_ROOM, text)
        self._used += n
        self._by_peer[peer] = own + n

    def give(self, peer: str, n: int) -> None:
        """Take ``n`` bytes off an address's account."""
        self._used -= n
        left = self._by_peer[peer] - n
        if left:
            self._by_peer[peer] = left
        else:
            del self._by_peer[peer]
