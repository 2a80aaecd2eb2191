"""Consumers: the members of groups, each with its own subscriptions.

There is one record for each group of each connection, with a time of its own: a connection that names one group in its
heartbeats keeps no other alive.  A client with several connections is one member, and its newest connection is the
one that counts; what others see of a group (`ids`, notifications) changes only if a member does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.rocketmq.clients.actions import Peer
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.bodies import ConsumerData, ConsumeType, MessageModel, Subscription
from dataproxy.wire.rocketmq.codes import shown_version

__all__ = ["KIND", "Member", "Members"]

_log: Final = logger("hub.rocketmq")
KIND: Final = "rocketmq consumer"  #: in the registry of clients
_OVERLAP_S: Final = 5.0  # what an old connection still had under way has come by then
_Face = tuple[ConsumeType | int, MessageModel | int, dict[str, tuple[str, str | None, bool]]]


class Member(NamedTuple):
    """A connection that consumes for a group; it is a record of this group alone."""

    group: str
    peer: Peer
    client_id: str
    data: ConsumerData
    subscriptions: dict[str, Subscription]  #: by topic; never changed
    since: float  #: by the monotonic clock

    @property
    def is_broadcasting(self) -> bool:
        """Tell whether it gets all messages, so that it shares nothing with other members."""
        return self.data.message_model is MessageModel.BROADCASTING

    @property
    def version(self) -> int:
        """Return the highest version of its subscriptions, which is higher for each consumer that a client starts."""
        return max((one.sub_version for one in self.subscriptions.values()), default=-1)


@dataclass(slots=True)
class _Group:
    members: dict[int, Member] = field(default_factory=dict)
    clients: dict[str, dict[int, None]] = field(default_factory=dict)  #: the connections of each; the newest is last
    twins: set[str] = field(default_factory=set)  #: ids that two processes have

    def newest(self, client_id: str) -> Member | None:
        connections = self.clients.get(client_id)
        return self.members[next(reversed(connections))] if connections else None

    def face(self, client_id: str) -> _Face | None:
        """Return what others see of a client."""
        one = self.newest(client_id)
        if one is None:
            return None
        wanted = {topic: (of.sub_string, of.expression_type, of.class_filter_mode)
                  for topic, of in one.subscriptions.items()}  # fmt: skip
        return one.data.consume_type, one.data.message_model, wanted

    def put(self, member: Member) -> None:
        self.members[member.peer.connection] = member
        self.clients.setdefault(member.client_id, {})[member.peer.connection] = None

    def take(self, member: Member) -> None:
        connections = self.clients[member.client_id]
        del self.members[member.peer.connection], connections[member.peer.connection]
        if len(connections) < 2:
            self.twins.discard(member.client_id)
        if not connections:
            del self.clients[member.client_id]


class Members:
    """Groups of consumers.  One thread; times are seconds of a monotonic clock.

    ``changed`` is called with (group, now) when others have to hear of a change.  ``came`` is called with a record
    that is new, or whose subscriptions are, or its way to get messages, and with the record before it; ``gone`` with
    (member, now, why) when a record has ended.
    """

    def __init__(
        self,
        clients: Clients,
        limit_s: float,
        tombstone_s: float,
        changed: Callable[[str, float], None],
        came: Callable[[Member, Member | None], None],
        gone: Callable[[Member, float, End], None],
    ) -> None:
        self._clients, self._tombstone_s = clients, tombstone_s
        self._changed, self._came, self._gone = changed, came, gone
        self._groups: dict[str, _Group] = {}
        self._tombstones: dict[tuple[str, int], tuple[float, int]] = {}  # (until, version), the first ends first
        clients.add_kind(KIND, limit_s, self._ended, _identity)

    # --- comings and goings

    def register(self, peer: Peer, client_id: str, data: ConsumerData, now: float) -> bool:
        """Take what a heartbeat says of a group; False if the group was left behind it.

        A group is there with its first member or not at all.
        """
        name, connection = data.group_name, peer.connection
        group = self._groups.get(name)
        before = group.members.get(connection) if group is not None else None
        wanted = _newer(before.subscriptions if before is not None else {}, data)
        if self._is_buried(name, connection, wanted, now):
            return False
        if group is None:
            group = self._groups[name] = _Group()
        affected = {client_id} if before is None else {client_id, before.client_id}
        faces = {one: group.face(one) for one in affected}
        if before is not None and before.client_id != client_id:
            _log.warning("the client %r of %s is now %r in the group %r", before.client_id, peer.address, client_id,
                         name)  # fmt: skip
            group.take(before)
        is_same = before is not None and before.client_id == client_id
        member = Member(name, peer, client_id, data, wanted, before.since if before is not None and is_same else now)
        group.put(member)
        self._clients.register(KIND, (name, connection), member, now, connection)
        self._look_for_twins(group, member, now)
        if before is None or not is_same or before.subscriptions != wanted or _way(before) != _way(member):
            self._came(member, before)
        if any(group.face(one) != face for one, face in faces.items()):
            self._changed(name, now)
        return True

    def refresh(self, group: str, connection: int, now: float) -> bool:
        """Let a member's time begin anew, as nothing of it has changed; False if it is not there."""
        if not self._clients.update(KIND, (group, connection), now):
            return False
        found = self._groups[group]
        self._look_for_twins(found, found.members[connection], now)
        return True

    def unregister(self, group: str, connection: int, now: float) -> bool:
        """Let a member leave; a heartbeat that it had sent before does not bring it back.  False if it is not there."""
        found = self._groups.get(group)
        member = found.members.get(connection) if found is not None else None
        if member is None:
            return False
        self._tombstones.pop((group, connection), None)
        self._tombstones[group, connection] = (now + self._tombstone_s, member.version)
        return self._clients.end(KIND, (group, connection), now)

    def tick(self, now: float) -> None:
        """Forget who has left long ago."""
        while self._tombstones:
            key = next(iter(self._tombstones))
            if self._tombstones[key][0] > now:
                break
            del self._tombstones[key]

    # --- what there is

    def ids(self, group: str) -> tuple[str, ...]:
        """Return the clients of a group, each once; they sort them for themselves."""
        found = self._groups.get(group)
        return tuple(found.clients) if found is not None else ()

    def names(self) -> tuple[str, ...]:
        """Return the groups that have members."""
        return tuple(self._groups)

    def has(self, group: str) -> bool:
        """Tell whether a group has members."""
        return group in self._groups

    def of(self, group: str) -> tuple[Member, ...]:
        """Return the records of a group, the newest connection of each client alone."""
        found = self._groups.get(group)
        if found is None:
            return ()
        return tuple(found.members[next(reversed(connections))] for connections in found.clients.values())

    def records(self, group: str) -> tuple[Member, ...]:
        """Return all records of a group, those of older connections too."""
        found = self._groups.get(group)
        return tuple(found.members.values()) if found is not None else ()

    def at(self, group: str, connection: int) -> Member | None:
        """Return the record of a connection in a group."""
        found = self._groups.get(group)
        return found.members.get(connection) if found is not None else None

    def find(self, group: str, client_id: str) -> Member | None:
        """Return the newest record of a client in a group."""
        found = self._groups.get(group)
        return found.newest(client_id) if found is not None else None

    def twins(self, group: str) -> tuple[str, ...]:
        """Return the ids that two living connections of a group have, which are two processes."""
        found = self._groups.get(group)
        return tuple(sorted(found.twins)) if found is not None else ()

    def told(self, group: str) -> Iterator[int]:
        """Yield the connections that hear of changes: those of members that share queues."""
        for one in self.records(group):
            if not one.is_broadcasting:
                yield one.peer.connection

    def subscription(self, group: str, connection: int, topic: str) -> Subscription | None:
        """Return what a member wants of a topic; for a connection that is no member, what the group's newest wants."""
        found = self._groups.get(group)
        if found is None:
            return None
        member = found.members.get(connection)
        if member is not None:
            return member.subscriptions.get(topic)
        every = [one.subscriptions[topic] for one in found.members.values() if topic in one.subscriptions]
        return max(every, key=lambda one: one.sub_version, default=None)

    def table(self, group: str) -> dict[str, Subscription]:
        """Return what the members of a group want together: of each topic the newest word."""
        found: dict[str, Subscription] = {}
        for member in self.of(group):
            for topic, one in member.subscriptions.items():
                if topic not in found or one.sub_version > found[topic].sub_version:
                    found[topic] = one
        return found

    def disagreements(self, group: str) -> tuple[str, ...]:
        """Return the topics that not all members of a group want, or not alike."""
        wishes = [
            {topic: (one.sub_string, one.expression_type) for topic, one in member.subscriptions.items()}
            for member in self.of(group)
        ]
        topics = {topic for wish in wishes for topic in wish}
        return tuple(sorted(topic for topic in topics if len({wish.get(topic) for wish in wishes}) > 1))

    def groups_of(self, topic: str) -> tuple[str, ...]:
        """Return the groups with a member that wants a topic."""
        return tuple(
            name for name, group in self._groups.items()
            if any(topic in one.subscriptions for one in group.members.values())
        )  # fmt: skip

    def heard(self, member: Member) -> float:
        """Return when a record that is there had its last heartbeat."""
        return self._clients.heard(KIND, (member.group, member.peer.connection))

    # --- inside

    def _is_buried(self, group: str, connection: int, wanted: dict[str, Subscription], now: float) -> bool:
        until, version = self._tombstones.get((group, connection), (now, -1))
        return now < until and max((one.sub_version for one in wanted.values()), default=-1) <= version

    def _look_for_twins(self, group: _Group, member: Member, now: float) -> None:
        """See whether an older connection of a client still sends heartbeats: a client that reconnects does not."""
        connections = group.clients[member.client_id]
        if len(connections) < 2 or member.client_id in group.twins:
            return
        newest = group.members[next(reversed(connections))]
        if newest is member or now - newest.since < _OVERLAP_S:
            return
        group.twins.add(member.client_id)
        _log.warning(
            "the id %r of the group %r has two clients, at %s and at %s: each takes the other's queues for its own."
            " Give them instance names of their own", member.client_id, member.group, member.peer.address,
            newest.peer.address,
        )  # fmt: skip

    def _ended(self, name: tuple[str, int], member: Member, now: float, why: End) -> None:
        group = self._groups[member.group]
        face = group.face(member.client_id)
        group.take(member)
        if not group.members:
            del self._groups[member.group]
        elif group.face(member.client_id) != face:
            self._changed(member.group, now)
        self._gone(member, now, why)


def _way(member: Member) -> tuple[ConsumeType | int, MessageModel | int]:
    """Return by which way a member gets messages, and whether all of them."""
    return member.data.consume_type, member.data.message_model


def _newer(before: dict[str, Subscription], data: ConsumerData) -> dict[str, Subscription]:
    """Return the subscriptions of a heartbeat, of each topic the newer word; topics that it does not name are gone."""
    found: dict[str, Subscription] = {}
    for one in data.subscription_data_set or ():
        known = found.get(one.topic, before.get(one.topic))
        found[one.topic] = one if known is None or one.sub_version >= known.sub_version else known
    return found


def _identity(name: tuple[str, int], member: Member) -> Identity:
    peer = member.peer
    return Identity(
        "rocketmq", "consumer", member.client_id, member.group, peer.address, peer.language, shown_version(peer.version)
    )
