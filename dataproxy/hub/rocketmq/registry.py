"""The registry of a hub's RocketMQ port: who is connected, and what that means for others.

It decides, and does nothing by itself: calls and the time come in, actions come out (`drain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from dataproxy.hub.clients import Clients, End
from dataproxy.hub.idling import Idle, nobody
from dataproxy.hub.rocketmq.clients.actions import Action, Close, Holder, Outbox, Peer, RefusedError, Subscribed
from dataproxy.hub.rocketmq.clients.filterservers import FilterServers
from dataproxy.hub.rocketmq.clients.heartbeats import Heartbeats, check_name
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.locks import OVERLAP_S, Locked, Locks
from dataproxy.hub.rocketmq.clients.members import Member, Members
from dataproxy.hub.rocketmq.clients.notices import Notices
from dataproxy.hub.rocketmq.clients.producers import Producers
from dataproxy.hub.rocketmq.groups.configs import GroupConfigs
from dataproxy.hub.rocketmq.groups.holdings import Holdings, holdings
from dataproxy.hub.rocketmq.groups.idling import Idling, Silent
from dataproxy.hub.rocketmq.groups.questions import Answered, Questions
from dataproxy.hub.rocketmq.groups.resets import Epochs, Queues, Resets
from dataproxy.hub.rocketmq.groups.transactions import Transactions
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.bodies import (
    Connection,
    ConsumerConnections,
    ProducerConnections,
    ProducerInfo,
    ProducerTable,
    Subscription,
)
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.headers import PushedReply, ResetOffset, StatusOf, Unregister
from dataproxy.wire.rocketmq.queues import LockRequest, Queue

__all__ = ["GroupView", "Registry", "View"]

_log: Final = logger("hub.rocketmq")
_RESETS_S: Final = 10.0  # between two looks at old resets


class GroupView(NamedTuple):
    """A group of consumers at one moment, for readers."""

    name: str
    members: tuple[str, ...]  #: their ids
    is_broadcasting: bool
    twins: tuple[str, ...]  #: ids that two processes have
    disagreements: tuple[str, ...]  #: topics that not all members want alike


class View(NamedTuple):
    """The registry at one moment: nothing of it changes, and any thread may read it."""

    groups: tuple[GroupView, ...]
    locks: tuple[Locked, ...]
    filter_servers: tuple[str, ...]
    transactions: int
    questions: int
    resets: int
    notices: int  #: that were sent since the start
    refused_commits: int  #: since the start
    resets_done: int = 0  #: since the start


class Registry:
    """Clients, groups, locks, resets and transactions of one broker.

    One thread.  ``now`` is in seconds of a monotonic clock, and a connection is a number that is never used again.
    ``broker``: the name that queues bear.  ``queues``: the store.  ``clients``: shared with other protocols.  ``moved``
    hears of offsets that were set: group, topic, offsets by queue, and the time.  ``epochs``: where resets are kept;
    None: they end with the registry.  ``told``: hears of events, which are a kind and fields by name.
    """

    def __init__(
        self,
        clients: Clients,
        broker: str,
        queues: Queues,
        configs: GroupConfigs,
        now: float,
        *,
        limits: Limits | None = None,
        epochs: Epochs | None = None,
        told: Callable[..., None] = nobody,
    ) -> None:
        limits = limits if limits is not None else Limits()
        self.told = told
        self.moved: Callable[[str, str, Mapping[int, int], float], None] = lambda *_: None
        self._clients, self._broker, self._queues, self._now = clients, broker, queues, now
        self._outbox: Outbox = []
        self._closing: set[int] = set()
        self._evicted: set[int] = set()
        self.configs = configs
        self._notices = Notices(limits.notice, self._told, self._outbox)
        self.members = Members(
            clients, limits.client, limits.tombstone, self._notices.changed, self._member_came, self._member_gone
        )
        self.producers = Producers(clients, limits.client, self._producer_came, self._producer_gone)
        self._heartbeats = Heartbeats(clients, self.members, self.producers, limits)
        self._filter_servers = FilterServers(clients, limits.filter_server, self._closed_by_silence)
        self._locks = Locks(limits, now)
        self._resets = Resets(self.members, broker, queues, limits, self._outbox, now, epochs)
        self._questions = Questions(self.members, limits, self._outbox)
        self.checks = Transactions(self.producers, limits, self._outbox)
        self._look_at_resets = now + _RESETS_S
        self._idling = Idling(self.members, queues, self.holdings, self._locks.has, limits.idle, told)

    # --- comings and goings

    def heartbeat(
        self, peer: Peer, body: bytes, now: float, admit: Callable[[str], None] = lambda _group: None
    ) -> tuple[str, ...]:
        """Take a heartbeat (34) and return the consumer groups that are new here, each of which ``admit`` may refuse.

        Raises RefusedError, and RemoteProtocolError for a body that cannot be read; then nothing has changed.
        """
        self._now = now
        if peer.connection in self._evicted:
            raise RefusedError(Answer.SYSTEM_ERROR, "this connection was evicted, and ends: come by another one")
        return self._heartbeats.take(peer, body, now, admit)

    def unregister(self, connection: int, header: Unregister, now: float) -> None:
        """Let a client leave a group of each kind (35); from another connection than its heartbeats it leaves none."""
        self._now = now
        if header.producer_group:
            self.producers.unregister(header.producer_group, connection, now)
        if header.consumer_group:
            self.members.unregister(header.consumer_group, connection, now)

    def closed(self, connection: int, now: float) -> None:
        """End all that belongs to a connection that has ended; it may be told more than once."""
        self._now = now
        self._questions.closed(connection)
        self._clients.close(connection, now)
        self._heartbeats.forget(connection)
        self._resets.closed(connection)
        self._closing.discard(connection)
        self._evicted.discard(connection)

    def evict(self, connection: int, now: float, why: str) -> None:
        """Take a client out of all its groups, whose other members are told, and close its connection.

        Nothing that comes by this connection makes it a member again.
        """
        self._now = now
        if connection in self._evicted:
            return
        self._evicted.add(connection)
        self._clients.close(connection, now, End.EVICTED)
        self._heartbeats.forget(connection)
        self._outbox.append(Close(connection, why))

    def tick(self, now: float) -> None:
        """Let time pass."""
        self._now = now
        self._clients.scan(now)
        self.members.tick(now)
        for group in self._locks.tick(now):
            if self.members.has(group):
                self._notices.changed(group, now)  # who was refused asks again now, and not at its next turn
        self._notices.tick(now)
        self._questions.tick(now)
        self.checks.tick(now)
        if now >= self._look_at_resets:
            self._look_at_resets = now + _RESETS_S
            self._resets.tick(now)
        self._resets.save(now)

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next."""
        return min(
            self._clients.next_scan, self._locks.next_tick, self._notices.next_tick, self._questions.next_tick,
            self.checks.next_tick, self._look_at_resets, self._resets.next_save,
        )  # fmt: skip

    def drain(self) -> list[Action]:
        """Return what is to be done since the last call, in order."""
        found = list(self._outbox)
        self._outbox.clear()
        return found

    # --- who is there

    def member_ids(self, group: str) -> tuple[str, ...]:
        """Return the clients of a group, each once (38).

        Raises RefusedError if there is none: a client that gets an empty list gives up all its queues.
        """
        found = self.members.ids(group)
        if not found:
            raise RefusedError(Answer.SYSTEM_ERROR, f"the group {shown(group)} has no member")
        return found

    def consumer_connections(self, group: str) -> ConsumerConnections:
        """Return who is connected for a consumer group (203).  Raises RefusedError."""
        members = self.members.records(group)
        if not members:
            raise RefusedError(Answer.CONSUMER_NOT_ONLINE, f"the group {shown(group)} has no member that is connected")
        last = members[-1].data
        connections = tuple(_connection(one.peer, one.client_id) for one in members)
        return ConsumerConnections(
            connections, self.members.table(group), last.consume_type, last.message_model, last.consume_from_where
        )

    def producer_connections(self, group: str) -> ProducerConnections:
        """Return who is connected for a producer group (204).  Raises RefusedError."""
        found = self.producers.of(group)
        if not found:
            raise RefusedError(Answer.SYSTEM_ERROR, f"the producer group {shown(group)} has no connection")
        return ProducerConnections(tuple(_connection(one.peer, one.client_id) for one in found))

    def all_producers(self, now: float, wall_ms: int) -> ProducerTable:
        """Return all producers (328); their last heartbeats as ms of the time of day."""
        return ProducerTable({
            group: tuple(
                ProducerInfo(
                    one.client_id, one.peer.address, one.peer.language, one.peer.version,
                    wall_ms - int(1000 * (now - self.producers.heard(group, one.peer.connection))),
                )
                for one in found
            )
            for group, found in self.producers.groups().items()
        })  # fmt: skip

    def subscription(self, connection: int, group: str, topic: str, version: int = 0) -> Subscription:
        """Return what a member wants of a topic, for a pull without an expression.  Raises RefusedError (24, 25)."""
        found = self.members.subscription(group, connection, topic)
        if found is None:
            what = f"does not want the topic {shown(topic)}" if self.members.has(group) else "has no member"
            raise RefusedError(Answer.SUBSCRIPTION_NOT_EXIST, f"the group {shown(group)} {what}")
        if found.sub_version < version:
            raise RefusedError(
                Answer.SUBSCRIPTION_NOT_LATEST,
                f"the subscription of the group {shown(group)} has the version {found.sub_version}, not yet {version}",
            )
        return found

    def register_filter_server(self, peer: Peer, address: str, now: float) -> None:
        """Take a filter server (301).  Raises RefusedError."""
        check_name("filterServerAddr", address)
        self._filter_servers.register(peer, address, now)

    def filter_servers(self) -> tuple[str, ...]:
        """Return the addresses of filter servers, each once."""
        return self._filter_servers.addresses()

    def snapshot(self, now: float) -> View:
        """Return the registry as it is now; any thread may read the result."""
        groups = []
        for name in self.members.names():
            found = self.members.of(name)
            groups.append(
                GroupView(
                    name, tuple(one.client_id for one in found), all(one.is_broadcasting for one in found),
                    self.members.twins(name), self.members.disagreements(name),
                )
            )  # fmt: skip
        return View(
            tuple(groups), self._locks.snapshot(now), self.filter_servers(), len(self.checks), len(self._questions),
            len(self._resets), self._notices.sent, self._resets.refused, self._resets.done,
        )  # fmt: skip

    # --- locks

    def lock(self, connection: int, request: LockRequest, now: float) -> tuple[Queue, ...]:
        """Give queues to a member, and return those that it has now (41).

        The connection may be another one of the same client: the lock belongs to the one by which it is a member.
        Members of a broadcasting group have all queues each.  Raises RefusedError if there are too many locks.
        """
        member = self._member_of(connection, request)
        if member is None:
            return ()
        group, holder = request.consumer_group, _holder(member)
        wanted = [one for one in dict.fromkeys(request.mq_set) if self._is_there(one)]
        if member.is_broadcasting:
            return tuple(wanted)
        return tuple(one for one in wanted if self._locks.lock(group, one, holder, now))

    def unlock(self, connection: int, request: LockRequest, now: float) -> None:
        """Take queues back from a member (42); what it does not have is left as it is.

        Only from the connection by which it is a member: all clients send this there, and by any other connection one
        client could free the queues of another one.
        """
        member = self.members.at(request.consumer_group, connection)
        if member is not None and member.client_id == request.client_id:
            for one in dict.fromkeys(request.mq_set):
                self._locks.unlock(request.consumer_group, one, _holder(member))

    def lock_owner(self, group: str, queue: Queue, now: float) -> tuple[str, int] | None:
        """Return the client and the connection that have a queue."""
        return self._locks.owner(group, queue, now)

    def locks(self, now: float) -> tuple[Locked, ...]:
        """Return all locks as they are now."""
        return self._locks.snapshot(now)

    def holdings(self, group: str) -> Holdings:
        """Return which queues the members of a group hold, as far as the hub can know it."""
        members, locks = self.members.of(group), self._locks.of(group, self._now)
        return holdings(members, locks, self._broker, self._queues.read_queues)

    def look_for_idle(self, silent: Iterable[Silent], now: float) -> None:
        """Raise the alarm for members that hold queues and do not pull, and end it for those that do again."""
        self._now = now
        self._idling.look(silent, now)

    def idle(self) -> tuple[Idle, ...]:
        """Return the members for which there is such an alarm."""
        return self._idling.now()

    # --- offsets

    def reset(self, header: ResetOffset, now: float) -> dict[Queue, int]:
        """Set the offsets of a group to a time, and return all of them (222).  Raises RefusedError."""
        found = self._resets.reset(header, now)
        self.moved(header.group, header.topic, {queue.queue_id: offset for queue, offset in found.items()}, now)
        self.told("reset", protocol="rocketmq", group=header.group, topic=header.topic, queues=len(found))
        return found

    def check_move(self, group: str, topic: str) -> None:
        """Raise RefusedError if `move` would, for a reason that is known before."""
        self._resets.check(group, topic)

    def move(self, header: ResetOffset, offsets: Mapping[int, int], now: float) -> None:
        """Set the offsets of a group in some queues, and tell its members, if there are any.  Raises RefusedError."""
        self._resets.move(header, offsets, now)
        self.moved(header.group, header.topic, offsets, now)
        self.told("reset", protocol="rocketmq", group=header.group, topic=header.topic, queues=len(offsets))

    def admits_commit(self, connection: int, group: str, topic: str, queue: int, offset: int, now: float) -> bool:
        """Tell whether a commit counts (15, and pulls that commit)."""
        if offset < 0:
            return False
        owner = self._locks.owner(group, Queue(self._broker, queue, topic), now)
        member = self.members.at(group, connection)
        if owner is not None and member is not None and member.client_id != owner[0]:
            _log.warning("a commit of %r in the group %r was refused: the queue %d of %r is %r's", member.client_id,
                         group, queue, topic, owner[0])  # fmt: skip
            return False
        return self._resets.admits(group, connection, topic, queue, offset, now)

    def offset_asked(self, connection: int, group: str, topic: str, queue: int) -> None:
        """Note that a client has asked where to begin in a queue (14)."""
        self._resets.asked(group, connection, topic, queue)

    # --- questions to clients

    def ask_status(self, call: Any, header: StatusOf, now: float) -> None:
        """Ask members for their offsets (223); the answer comes as a Reply.  Raises RefusedError."""
        self._questions.ask_status(call, header, now)

    def relay(
        self, call: Any, code: int, group: str, client_id: str, fields: Mapping[str, str], body: bytes, now: float
    ) -> None:
        """Pass a request on to a client (307, 309); its answer comes as a Reply.  Raises RefusedError."""
        self._questions.relay(call, code, group, client_id, fields, body, now)

    def pass_reply(
        self, call: Any, client_id: str, header: PushedReply, body: bytes, place: Mapping[str, str], now: float
    ) -> None:
        """Give a reply to a client that produces (326); its answer comes as a Reply.  Raises RefusedError."""
        connection = self.producers.find(client_id)
        if connection is None:
            text = f"push reply message fail, channel of <{shown(client_id)}> not found."
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        self._questions.pass_reply(call, client_id, connection, header, body, place, now)

    def answered(self, connection: int, number: int, code: int, remark: str, body: bytes) -> bool:
        """Take a client's answer to an Ask; False if nobody waits for it."""
        return self._questions.answered(number, connection, Answered(code, remark, body))

    # --- inside

    def _told(self, group: str) -> tuple[int, ...]:
        return tuple(self.members.told(group)) if self.configs.tells(group) else ()

    def _is_there(self, queue: Queue) -> bool:
        if queue.broker_name != self._broker:
            return False
        n = self._queues.read_queues(queue.topic)
        return n is not None and 0 <= queue.queue_id < n

    def _member_of(self, connection: int, request: LockRequest) -> Member | None:
        """Return by which record a client asks for locks; None: it is no member, or it cannot be told which one."""
        group, client = request.consumer_group, request.client_id
        member = self.members.at(group, connection)
        if member is not None:
            return member if member.client_id == client else None
        return None if client in self.members.twins(group) else self.members.find(group, client)

    def _member_came(self, member: Member, before: Member | None) -> None:
        self._outbox.append(Subscribed(member.peer.connection, member.group, member.subscriptions))
        if before is None:
            self._resets.came(member)

    def _member_gone(self, member: Member, now: float, why: End) -> None:
        group, connection = member.group, member.peer.connection
        self._heartbeats.changed(connection)
        self._resets.ended(member, now, lost=why is not End.LEFT)
        if why is End.LEFT:
            self._locks.left(group, connection)
        else:
            other = self.members.find(group, member.client_id)
            if other is not None and now - other.since <= OVERLAP_S:
                self._locks.moved(group, connection, other.peer.connection)
            else:
                self._locks.lost(group, connection, now)
        if why is not End.CLOSED:
            self._outbox.append(Subscribed(connection, group, {}))
        self._closed_by_silence(connection, why)

    def _producer_came(self, group: str) -> None:
        self.checks.came(group, self._now)

    def _producer_gone(self, connection: int, why: End) -> None:
        self._heartbeats.changed(connection)
        self._closed_by_silence(connection, why)

    def _closed_by_silence(self, connection: int, why: End) -> None:
        """Close the connection of a client that has no group any more because it was silent."""
        if why is End.SILENT and not self._clients.has_connection(connection) and connection not in self._closing:
            self._closing.add(connection)
            self._outbox.append(Close(connection, "no heartbeat came in time"))


def _holder(member: Member) -> Holder:
    return Holder(member.client_id, member.peer.connection, member.since)


def _connection(peer: Peer, client_id: str) -> Connection:
    return Connection(peer.address, client_id, peer.language, peer.version)
