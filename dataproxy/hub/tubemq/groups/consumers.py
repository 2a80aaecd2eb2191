"""Groups whose partitions the master divides: registrations, heartbeats and ends of their members (4 to 6)."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable
from typing import Any, Final

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import BAD_REQUEST, NONE, UNKNOWN, RefusedError, success
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.groups.group import Event, Group, Member
from dataproxy.hub.tubemq.groups.wishes import Wishes, named_offsets, read_topics, read_wishes, required_text
from dataproxy.logs import logger
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Partition, Subscription

__all__ = ["Consumers"]

_log: Final = logger("hub.tubemq")
KIND: Final = "consumer"  #: in the registry of clients
_NOT_DEPLOYED: Final = 431
_OTHER_BALANCE: Final = 424
_GROUP_BYTES, _MEMBER_BYTES, _HELD_BYTES, _EVENT_BYTES = 2048, 1024, 64, 128  # about
_MOST_FOREIGN: Final = 4096  # partitions of a report beyond those that are there


class Consumers:
    """All such groups.  One thread; times are seconds of a monotonic clock.

    ``elsewhere`` tells whether a group is known as one whose members choose their partitions.  ``returning``: groups
    that had members before this master began, which may come back with what they hold; None: any group.
    """

    def __init__(
        self,
        clients: Clients,
        layout: Layout,
        access: Access,
        limits: MasterLimits,
        room: Room,
        source: random.Random,
        now: float,
        elsewhere: Callable[[str], bool] = lambda group: False,
        returning: Container[str] | None = None,
    ) -> None:
        self._clients, self._layout, self._access, self._limits = clients, layout, access, limits
        self._room, self._random, self._elsewhere, self._returning = room, source, elsewhere, returning
        self._groups: dict[str, Group] = {}
        self._due: dict[str, float] = {}  # groups to balance, and when
        self._first_balance = now + limits.first_balance_s
        self._next_period = max(now + limits.balance_s, self._first_balance)
        self._version = layout.version
        clients.add_kind(KIND, limits.consumer_s, self._ended, self._identity)

    def begin_again(self, now: float) -> None:
        """Forget all members, who may come back with what they hold: nothing is divided in the first seconds."""
        self._clients.end_all(KIND, now)
        self._first_balance = now + self._limits.first_balance_s

    def group(self, name: str) -> Group | None:
        """Return a group, None if it has no members."""
        return self._groups.get(name)

    def groups(self) -> list[Group]:
        """Return all groups."""
        return list(self._groups.values())

    # --- calls

    def register(self, request: Any, peer: str, now: float) -> Any:
        """Take a member into its group.  Raises RefusedError."""
        client, host, name = (required_text(request, field) for field in ("clientId", "hostName", "groupName"))
        topics = read_topics(request.topicList)
        if missing := self._layout.missing(topics):
            raise RefusedError(_NOT_DEPLOYED, f"Requested topic [[{', '.join(missing[:10])}]] not deployed!")
        wishes = read_wishes(request, topics)
        named = {}
        if wishes.bound:
            keys = (one.key for one in self._layout.partitions(topics))
            named = named_offsets(request.requiredPartition, keys)
        self._access.check_rights(name, topics, wishes.filters)
        if self._elsewhere(name):
            raise RefusedError(_OTHER_BALANCE, f"[Inconsistency subscribe] the members of {name} choose partitions")
        group = self._groups.get(name)
        if group is not None:
            group.wishes.check(wishes, name)
        self._check_resources(wishes)
        member = Member(client, host, peer, 0, self._held(request, wishes), named)
        group = self._join(group, name, wishes, member, self._layout.count(topics), now)
        if request.HasField("notAllocated") and not request.notAllocated:
            group.allocated = True
        self._clients.register(KIND, f"{client}@{name}", (name, client), now)
        self._look_soon(group, now)
        return success(request.DESCRIPTOR.name, notAllocated=not group.allocated, ssdStoreId=NONE)

    def heartbeat(self, request: Any, now: float) -> Any:
        """Take what a member says, and tell it the next event.  Raises RefusedError."""
        client, name = (required_text(request, field) for field in ("clientId", "groupName"))
        group = self._groups.get(name)
        if group is None:
            raise RefusedError(UNKNOWN, f"Not found groupName {name} in holder!")
        member = group.members.get(client)
        if member is None or not self._clients.update(KIND, f"{client}@{name}", now):
            raise RefusedError(UNKNOWN, f"Not found client {client} in consumer group {name}!")
        if request.HasField("event") and request.event.rebalanceId > 0:
            group.finished(member)
            self._look_soon(group, now)
        if request.reportSubscribeInfo:
            held = self._held(request, group.wishes)
            self._charge(member, member.charged + _HELD_BYTES * (len(held) - len(member.held)))
            if group.report(member, held):
                self._look_soon(group, now)
        answer = success(request.DESCRIPTOR.name, notAllocated=not group.allocated, ssdStoreId=NONE)
        if member.events and not member.out:
            event = group.event_for(member, self._is_there)
            if event is not None:
                answer.event.CopyFrom(_written(event, client, name))
            elif group.settled:
                self._look_soon(group, now)
        return answer

    def close(self, request: Any, now: float) -> Any:
        """Let a member go; one that is not known has gone already.  Raises RefusedError."""
        client, name = (required_text(request, field) for field in ("clientId", "groupName"))
        self._clients.end(KIND, f"{client}@{name}", now)
        return success(request.DESCRIPTOR.name)

    def move(self, group: str, topic: str, key: str, client: str, now: float) -> None:
        """Give a partition, by its key, to a member with the next balance, whoever holds it.  Raises RefusedError."""
        found, partition = self._groups.get(group), self._layout.find(topic, key)
        if found is None or client not in found.members:
            raise RefusedError(UNKNOWN, f"Not found client {client} in consumer group {group}!")
        if partition is None or topic not in found.wishes.topics:
            raise RefusedError(BAD_REQUEST, f"group {group} reads no partition {key}")
        found.move(partition, client)
        self._look_soon(found, now)

    # --- members

    def _join(
        self, group: Group | None, name: str, wishes: Wishes, member: Member, partitions: int, now: float
    ) -> Group:
        """Take a member into a group, which is made if it is not there, if there is room for both."""
        before = group.members.get(member.client) if group is not None else None
        if before is not None:
            self._room.give(before.peer, before.charged)
            if before.host != member.host:
                _log.warning(
                    "the member %r of group %r registers from %s, and was on %s: two clients with one id take"
                    " each other's partitions", member.client, name, member.host, before.host,
                )  # fmt: skip
        bytes_of_member = _MEMBER_BYTES + _HELD_BYTES * len(member.held) + 200 * len(member.named)
        bytes_of_group = _GROUP_BYTES + wishes.size + _EVENT_BYTES * partitions if group is None else 0
        try:
            self._room.take(member.peer, bytes_of_member + bytes_of_group)
        except RefusedError:
            if before is not None:
                before.charged = 0
                self._clients.unregister(KIND, f"{member.client}@{name}")
                self._leave(name, member.client, now)
            raise
        member.charged = bytes_of_member
        if group is None:
            group = self._groups[name] = Group(name, wishes, random.Random(self._random.random()))
            group.charged, group.peer = bytes_of_group, member.peer
        group.join(member)
        return group

    def _charge(self, member: Member, wanted: int) -> None:
        if wanted > member.charged:
            self._room.take(member.peer, wanted - member.charged)
        elif wanted < member.charged:
            self._room.give(member.peer, member.charged - wanted)
        member.charged = wanted

    def _leave(self, name: str, client: str, now: float) -> None:
        group = self._groups.get(name)
        member = group.leave(client) if group is not None else None
        if group is None or member is None:
            return
        if member.charged:
            self._room.give(member.peer, member.charged)
        if group.members:
            self._look_soon(group, now)
        else:
            del self._groups[name]
            self._due.pop(name, None)
            self._room.give(group.peer, group.charged)

    def _ended(self, node: str, value: tuple[str, str], now: float, why: End) -> None:
        name, client = value
        if why is End.SILENT:
            _log.info("the member %r of group %r was silent for %g s", client, name, self._limits.consumer_s)
        self._leave(name, client, now)

    def _identity(self, node: str, value: tuple[str, str]) -> Identity:
        name, client = value
        return Identity("tubemq", "consumer", client, name, self._groups[name].members[client].peer)

    def _check_resources(self, wishes: Wishes) -> None:
        """Refuse a bound group that can never have members enough for its brokers."""
        most, brokers = self._limits.brokers_a_member, len(self._layout.brokers())
        if wishes.bound is not None and brokers > most * wishes.bound.members:
            least = -(-brokers // most)
            text = (
                f"[Parameter error] {wishes.bound.members} members for {brokers} brokers: at least {least} are needed"
            )
            raise RefusedError(BAD_REQUEST, text)

    def _held(self, request: Any, wishes: Wishes) -> frozenset[Partition]:
        """Return the partitions of a report; those that are not there belong to it, and are taken back."""
        if not request.subscribeInfo:
            return frozenset()
        n = self._layout.count(wishes.topics)
        if len(request.subscribeInfo) > n + _MOST_FOREIGN:
            text = f"subscribeInfo has {len(request.subscribeInfo)} partitions, and the topics have {n}"
            raise RefusedError(BAD_REQUEST, text)
        held = set()
        for text in request.subscribeInfo:
            try:
                partition = Subscription.read(text).partition
            except ValueError as error:
                raise RefusedError(BAD_REQUEST, str(error)) from None
            known = self._layout.find(partition.topic, partition.key) if partition.topic in wishes.topics else None
            held.add(partition if known is None else known)
        return frozenset(held)

    def _is_there(self, partition: Partition) -> bool:
        return self._layout.find(partition.topic, partition.key) == partition

    # --- balance

    def _look_soon(self, group: Group, now: float) -> None:
        soon = self._limits.soon_s
        if self._limits.alone_s is not None and len(group.members) == 1:
            soon = self._limits.alone_s
        if soon is not None:
            waits = self._returning is None or group.name in self._returning
            self._due.setdefault(group.name, max(now + soon, self._first_balance) if waits else now + soon)
        else:
            self._due.setdefault(group.name, self._next_period)

    def tick(self, now: float) -> None:
        """Balance the groups that are due."""
        if self._layout.version != self._version:
            self._version = self._layout.version
            for group in self._groups.values():
                self._look_soon(group, now)
        if now >= self._next_period:
            self._next_period = now + self._limits.balance_s
            for group in self._groups.values():
                if group.count_cycle(self._limits.event_cycles):
                    _log.warning("events of group %r were dropped: a member has not answered its own", group.name)
                    self._look_soon(group, now)
        brokers = -1
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            group_due = self._groups[name]
            if brokers < 0:
                brokers = len(self._layout.brokers())
            if group_due.is_ready(brokers, self._limits.brokers_a_member):
                group_due.balance(self._layout.partitions(group_due.wishes.topics))

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next."""
        return min(self._next_period, min(self._due.values(), default=self._next_period))


def _written(event: Event, client: str, group: str) -> Any:
    texts: Iterable[str] = (str(Subscription(client, group, one)) for one in event.partitions)
    return messages.EventProto(rebalanceId=event.number, opType=event.kind, status=0, subscribeInfo=texts)
