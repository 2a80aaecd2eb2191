"""Filter servers (301): a table of addresses.  No process is ever started for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.rocketmq.clients.actions import Peer
from dataproxy.wire.rocketmq.codes import shown_version

__all__ = ["FilterServers"]

KIND: Final = "rocketmq filter server"  #: in the registry of clients


class FilterServers:
    """The filter servers that are registered.  One thread; times are seconds of a monotonic clock.

    ``gone`` is called with a connection whose entry has ended, and why.
    """

    def __init__(self, clients: Clients, limit_s: float, gone: Callable[[int, End], None]) -> None:
        self._clients, self._gone = clients, gone
        clients.add_kind(KIND, limit_s, self._ended, _identity)

    def register(self, peer: Peer, address: str, now: float) -> None:
        """Take a filter server, or its new address."""
        self._clients.register(KIND, peer.connection, (peer, address), now, peer.connection)

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses, each once, in order."""
        return tuple(sorted({address for _, _, (_, address) in self._clients.each(KIND)}))

    def _ended(self, connection: int, value: tuple[Peer, str], now: float, why: End) -> None:
        self._gone(connection, why)


def _identity(connection: int, value: tuple[Peer, str]) -> Identity:
    peer, address = value
    return Identity("rocketmq", "filter server", address, "", peer.address, peer.language, shown_version(peer.version))
