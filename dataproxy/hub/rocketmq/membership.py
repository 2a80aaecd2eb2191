"""What clients and administrators ask about clients and groups: the registry decides, here it is read and answered."""

from __future__ import annotations

from collections.abc import Mapping

from dataproxy.hub.rocketmq.clients.actions import Peer, RefusedError
from dataproxy.hub.rocketmq.offsets import Offsets
from dataproxy.hub.rocketmq.pulls import check_expression
from dataproxy.hub.rocketmq.pushes import Pushes
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.kept import Kept
from dataproxy.hub.rocketmq.topics.remoting import Answer, Remoting, Request
from dataproxy.hub.rocketmq.topics.routes import BROKER, answer_when_kept
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.wire.rocketmq.bodies import ClientCheck, ConsumerIds, Subscription, SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import (
    BrokerNamed,
    ConsumeDirectly,
    ConsumerOf,
    FilterServer,
    Header,
    ProducerOf,
    ResetOffset,
    RunningInfoOf,
    StatusOf,
    Unregister,
)  # fmt: skip
from dataproxy.wire.rocketmq.names import MessageId
from dataproxy.wire.rocketmq.queues import LockRequest, write_locked, write_offset_list, write_offsets

__all__ = ["Membership"]

_MASTER = 0


class Membership:
    """The calls about clients and groups.  One thread."""

    def __init__(
        self, remoting: Remoting, topics: Topics, kept: Kept, registry: Registry, offsets: Offsets, pushes: Pushes
    ) -> None:
        self._remoting, self._topics, self._registry, self._offsets = remoting, topics, registry, offsets
        self._kept, self._pushes = kept, pushes
        self._subscribed: dict[int, dict[str, Mapping[str, Subscription]]] = {}  # by connection and group

    def heartbeat(self, request: Request, _: None) -> Answer:
        """34: take a client with its groups and subscriptions."""
        call = request.call
        self._pushes.met(call.connection, call.local)

        def admit(group: str) -> None:  # before it has a member: who is refused is none
            config = self._registry.configs.get(group)
            if config is not None and config.retry_queue_nums > 0:
                self._topics.retry(group, config.retry_queue_nums, request.now)

        self._registry.heartbeat(_peer(request), call.body, request.now, admit)
        return Answer()

    def subscribed(self, connection: int, group: str, found: Mapping[str, Subscription], now: float) -> None:
        """Tell the listener by which subscriptions pulls of a connection go in a group, and push what it wants."""
        self._pushes.subscribed(connection, group, found, now)
        groups = self._subscribed.setdefault(connection, {})
        before = groups.get(group, {})
        for topic, subscription in found.items():
            if before.get(topic) != subscription:
                is_sql = subscription.expression_type == "SQL92"
                tags = None if is_sql else _tags(subscription.sub_string)
                self._remoting.subscribe(connection, group, topic, subscription.sub_version, tags, is_sql)
        for topic in before.keys() - found.keys():
            self._remoting.unsubscribe(connection, group, topic)
        if found:
            groups[group] = found
        else:
            groups.pop(group, None)
            if not groups:
                del self._subscribed[connection]

    def unregister(self, request: Request, header: Unregister) -> Answer:
        """35: take a client out of a group."""
        self._registry.unregister(request.call.connection, header, request.now)
        return Answer(fields={})

    def closed(self, connection: int, now: float) -> None:
        """Take out what a connection brought."""
        self._remoting.unsubscribe(connection)
        self._subscribed.pop(connection, None)
        self._registry.closed(connection, now)
        self._pushes.closed(connection, now)

    def members(self, request: Request, header: ConsumerOf) -> Answer:
        """38: answer with the ids of a group's members."""
        return Answer(body=ConsumerIds(self._registry.member_ids(header.consumer_group)).write())

    def lock(self, request: Request, _: None) -> Answer:
        """41: give queues to a member alone."""
        wanted = LockRequest.read(request.call.body)
        return Answer(body=write_locked(self._registry.lock(request.call.connection, wanted, request.now)))

    def unlock(self, request: Request, _: None) -> Answer:
        """42: take queues back."""
        self._registry.unlock(request.call.connection, LockRequest.read(request.call.body), request.now)
        return Answer()

    def check(self, request: Request, _: None) -> Answer:
        """46: tell whether a subscription can be made."""
        wanted = ClientCheck.read(request.call.body).subscription_data
        check_expression(wanted.sub_string, wanted.expression_type or "")
        return Answer()

    def configure(self, request: Request, _: None) -> None:
        """200: keep the configuration of a group."""
        wanted = SubscriptionGroup.read(request.call.body)
        self._registry.configs.update(wanted, request.wall_ms)
        self.govern(wanted)
        answer_when_kept(self._kept, request.call)

    def govern(self, config: SubscriptionGroup) -> None:
        """Let pulls of a group that may not all they want come to the thread."""
        self._remoting.hand_over(config.group_name, not (config.consume_enable and config.consume_broadcast_enable))

    def consumers(self, request: Request, header: ConsumerOf) -> Answer:
        """203: answer with a group's members and what they subscribe to."""
        return Answer(body=self._registry.consumer_connections(header.consumer_group).write())

    def producers(self, request: Request, header: ProducerOf) -> Answer:
        """204: answer with a group's producers."""
        return Answer(body=self._registry.producer_connections(header.producer_group).write())

    def all_producers(self, request: Request, _: None) -> Answer:
        """328: answer with all producers."""
        return Answer(body=self._registry.all_producers(request.now, request.wall_ms).write())

    def reset(self, request: Request, header: ResetOffset) -> None:
        """222: let a group go on at another time, and tell its members; answered when it outlives this hub."""
        self._offsets.settle(request)
        found, call = self._registry.reset(header, request.now), request.call
        body = write_offset_list(found) if call.language == "CPP" else write_offsets(found, objects=True)

        def done(whole: bool) -> None:
            text = "the offsets are set, but the store could not keep that they were: late commits may undo it"
            call.answer(Code.SUCCESS if whole else Code.SYSTEM_ERROR, None, "" if whole else text, body)

        self._kept.after(done)

    def status(self, request: Request, header: StatusOf) -> None:
        """223: ask members where they are; the answer comes once they have told."""
        self._registry.ask_status(request.call, header, request.now)

    def running(self, request: Request, header: RunningInfoOf) -> None:
        """307: ask a member what it does."""
        self._relay(request, header, header.consumer_group, header.client_id, request.call.body)

    def consume(self, request: Request, header: ConsumeDirectly) -> None:
        """309: let a member consume one message, and answer with what it says."""
        body = request.call.body
        if header.msg_id:
            found = self._offsets.find(_offset_of(header.msg_id), request.call.local)
            if found is None:
                raise RefusedError(Code.SYSTEM_ERROR, f"no message has the id {header.msg_id[:80]}")
            body = found
        self._relay(request, header, header.consumer_group, header.client_id, body)

    def _relay(self, request: Request, header: Header, group: str, client: str, body: bytes) -> None:
        call = request.call
        self._registry.relay(call, call.code, group, client, call.fields, body, request.now)

    def filter_server(self, request: Request, header: FilterServer) -> Answer:
        """301: take the address of a filter server; no such server is ever started here."""
        self._registry.register_filter_server(_peer(request), header.filter_server_addr, request.now)
        return Answer.of(BrokerNamed(BROKER, _MASTER))


def _peer(request: Request) -> Peer:
    call = request.call
    return Peer(call.connection, call.peer, call.language, call.version)


def _tags(expression: str) -> tuple[str, ...] | None:
    """Return the tags that an expression names, None for all."""
    tags = {one.strip() for one in expression.split("||")} - {""}
    return None if not tags or "*" in tags else tuple(sorted(tags))


def _offset_of(text: str) -> int:
    try:
        return MessageId.read(text).offset
    except ValueError as error:
        raise RefusedError(Code.SYSTEM_ERROR, str(error)) from None
