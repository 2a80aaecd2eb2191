"""Producers: which connections produce for which group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.rocketmq.clients.actions import Peer
from dataproxy.wire.rocketmq.codes import shown_version

__all__ = ["KIND", "Producer", "Producers"]

KIND: Final = "rocketmq producer"  #: in the registry of clients


class Producer(NamedTuple):
    """A connection that produces for a group; it is a record of this group alone."""

    peer: Peer
    client_id: str


class Producers:
    """Groups of producers.  One thread; times are seconds of a monotonic clock.

    ``came`` is called with a group that a connection has joined; ``gone`` with the connection whose last time in a
    group is over, and why.
    """

    def __init__(
        self,
        clients: Clients,
        limit_s: float,
        came: Callable[[str], None],
        gone: Callable[[int, End], None],
    ) -> None:
        self._clients, self._came, self._gone = clients, came, gone
        self._groups: dict[str, dict[int, Producer]] = {}
        self._ids: dict[str, dict[int, int]] = {}  # by client: in how many groups each of its connections is
        clients.add_kind(KIND, limit_s, self._ended, _identity)

    def register(self, group: str, peer: Peer, client_id: str, now: float) -> None:
        """Take a producer into a group, which is there with its first producer or not at all."""
        members = self._groups.setdefault(group, {})
        before = members.get(peer.connection)
        if before is not None:
            self._forget(before)
        members[peer.connection] = producer = Producer(peer, client_id)
        own = self._ids.setdefault(client_id, {})
        own[peer.connection] = own.get(peer.connection, 0) + 1
        self._clients.register(KIND, (group, peer.connection), producer, now, peer.connection)
        if before is None:
            self._came(group)

    def unregister(self, group: str, connection: int, now: float) -> bool:
        """Let a producer leave a group; False if it is not there."""
        return self._clients.end(KIND, (group, connection), now)

    def of(self, group: str) -> tuple[Producer, ...]:
        """Return the producers of a group."""
        return tuple(self._groups.get(group, {}).values())

    def groups(self) -> dict[str, tuple[Producer, ...]]:
        """Return all groups with their producers."""
        return {group: tuple(members.values()) for group, members in self._groups.items()}

    def heard(self, group: str, connection: int) -> float:
        """Return when a producer that is there had its last heartbeat for the group."""
        return self._clients.heard(KIND, (group, connection))

    def find(self, client_id: str) -> int | None:
        """Return the connection of a client that produces for whatever group, of several the one that came last."""
        found = self._ids.get(client_id)
        return next(reversed(found)) if found else None

    def choose(self, group: str, connection: int, client_id: str) -> int | None:
        """Return the connection of a group's producer for a question: the one that sent, or else the next in turn.

        None: the group has no producer.  A client that sent and has another connection now is found by its id.
        """
        members = self._groups.get(group)
        if not members:
            return None
        if connection in members:
            return connection
        if client_id:
            same = [one.peer.connection for one in members.values() if one.client_id == client_id]
            if same:
                return same[-1]
        chosen = next(iter(members))
        members[chosen] = members.pop(chosen)  # the others are before it the next time
        return chosen

    def _ended(self, name: tuple[str, int], producer: Producer, now: float, why: End) -> None:
        group, connection = name
        members = self._groups[group]
        self._forget(members.pop(connection))
        if not members:
            del self._groups[group]
        self._gone(connection, why)

    def _forget(self, producer: Producer) -> None:
        """Take a producer of one group out of the table of clients."""
        own, connection = self._ids[producer.client_id], producer.peer.connection
        own[connection] -= 1
        if not own[connection]:
            del own[connection]
            if not own:
                del self._ids[producer.client_id]


def _identity(name: tuple[str, int], producer: Producer) -> Identity:
    peer = producer.peer
    return Identity(
        "rocketmq", "producer", producer.client_id, name[0], peer.address, peer.language, shown_version(peer.version)
    )
