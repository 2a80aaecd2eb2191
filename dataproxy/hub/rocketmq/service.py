"""The thread that answers calls of control of RocketMQ's clients, and moves the messages that are for later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.clients import Clients
from dataproxy.hub.idling import nobody
from dataproxy.hub.rocketmq.clients import actions
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.delays import Delays
from dataproxy.hub.rocketmq.groups.configs import GroupConfigs
from dataproxy.hub.rocketmq.membership import Membership
from dataproxy.hub.rocketmq.offsets import Offsets, StoredOffsets
from dataproxy.hub.rocketmq.pulls import Pulls
from dataproxy.hub.rocketmq.push.positions import Positions
from dataproxy.hub.rocketmq.pushes import Pushes
from dataproxy.hub.rocketmq.queries import Queries
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.replies import Replies
from dataproxy.hub.rocketmq.retries import Retries
from dataproxy.hub.rocketmq.sends import Sends
from dataproxy.hub.rocketmq.topics.kept import Kept, KeptResets
from dataproxy.hub.rocketmq.topics.remoting import (
    ANSWER,
    CLOSED,
    REQUEST,
    STORED,
    Answer,
    Appends,
    Call,
    Remoting,
    Request,
)
from dataproxy.hub.rocketmq.topics.routes import BROKER, Routes
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.hub.rocketmq.transactions import Transactions
from dataproxy.hub.tasks import Tasks
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.codes import Answer as Status
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import REQUESTS, Header, Pull, header_fields, read_header

__all__ = ["Service", "Settings"]

T = TypeVar("T")
_log: Final = logger("hub.rocketmq")
_US: Final = 1_000_000
_BATCH: Final = 64  # calls that are answered before time passes
_LONGEST_S: Final = 1.0  # of a sleep
_IDLE_S: Final = 10.0  # between two looks for members that do not pull
_ONE_WAY: Final = 2
_OWN_GROUPS: Final = "RMQ_SYS_"
_INT: Final = 1 << 31
_HEADERS: Final[Mapping[int, type[Header]]] = {**REQUESTS, Code.PULL_MESSAGE: Pull}


class Clock(Protocol):
    """The hub's clock."""

    def clock_us(self) -> int:
        """Return the time of a monotonic clock in us."""


class Settings(NamedTuple):
    """How a hub is RocketMQ.

    ``address``: host:port that routes name; empty: where a client has reached the hub.  ``allowed`` and ``partitions``
    as in `Topics`.
    """

    address: str = ""
    allowed: tuple[str, ...] = ()
    partitions: int = 1
    limits: Limits = Limits()


_PLAIN: Final = Settings()


class Service:
    """Name server and broker of a hub, on a thread of their own (`serve`).

    Every attribute belongs to the thread; others reach it by `run`, from any thread.  ``wall_ms``: the time of day.
    ``told`` hears of events.
    """

    def __init__(
        self,
        clock: Clock,
        remoting: Remoting,
        view: StoreView,
        settings: Settings = _PLAIN,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        told: Callable[..., None] = nobody,
    ) -> None:
        self._clock, self._remoting, self._wall_ms = clock, remoting, wall_ms
        now = self.now
        self._tasks = Tasks(remoting.wake, "the thread of RocketMQ's clients")
        self.appends = Appends(remoting)
        self.kept = Kept(remoting, self.appends)
        self.topics = Topics(remoting, view, self.kept, settings.allowed, settings.partitions, now)
        self.clients = Clients()
        self.registry = Registry(
            self.clients, BROKER, StoredOffsets(remoting, self.topics), GroupConfigs(_KeptGroups(self.kept)), now,
            limits=_after_a_start(settings.limits, remoting), epochs=KeptResets(self.kept, now, wall_ms()),
            told=told,
        )  # fmt: skip
        positions = Positions(remoting, BROKER)
        self.pushes = Pushes(
            remoting, self.topics, self.registry, positions, settings.limits, self._tell, wall_ms() * 1000, told
        )
        self.offsets = Offsets(remoting, self.topics, self.registry, self.pushes.acknowledged)
        self.delays = Delays(remoting, self.appends, self.topics, now)
        self.transactions = Transactions(
            remoting, self.appends, self.topics, self.registry, self.delays, self._tell, now, wall_ms()
        )
        self.sends = Sends(self.appends, self.topics, self.registry, self.delays, self.transactions)
        self.membership = Membership(remoting, self.topics, self.kept, self.registry, self.offsets, self.pushes)
        self.pulls = Pulls(remoting, self.topics, self.registry, self.offsets)
        self.queries = Queries(remoting, self.topics, self.offsets.stored)
        self._opaque = 0
        self._idle_s, self._idle_at = settings.limits.idle, now + _IDLE_S
        self._has_failed = False  # something of the last tick; it is tried again later
        self._work = self._works(settings)
        for config in self.registry.configs.all():
            self.membership.govern(config)
        self.kept.renew()

    def _works(self, settings: Settings) -> dict[int, Callable[[Request, Any], Answer | None]]:
        routes = Routes(self.topics, self.kept, settings.address)
        retries = Retries(self.offsets.find, self.appends, self.topics, self.registry, self.delays)
        members, offsets, replies = self.membership, self.offsets, Replies(self.registry)
        return {
            Code.SEND_MESSAGE: self.sends.send, Code.SEND_MESSAGE_V2: self.sends.send,
            Code.SEND_BATCH_MESSAGE: self.sends.send, Code.PULL_MESSAGE: self.pulls.pull,
            Code.SEND_REPLY_MESSAGE: replies.reply, Code.SEND_REPLY_MESSAGE_V2: replies.reply,
            Code.QUERY_MESSAGE: self.queries.query,
            Code.QUERY_CONSUMER_OFFSET: offsets.committed, Code.UPDATE_CONSUMER_OFFSET: offsets.commit,
            Code.UPDATE_AND_CREATE_TOPIC: routes.create, Code.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search,
            Code.GET_MAX_OFFSET: offsets.latest, Code.GET_MIN_OFFSET: offsets.earliest,
            Code.GET_EARLIEST_MSG_STORETIME: offsets.earliest_time, Code.VIEW_MESSAGE_BY_ID: offsets.message,
            Code.HEART_BEAT: members.heartbeat, Code.UNREGISTER_CLIENT: members.unregister,
            Code.CONSUMER_SEND_MSG_BACK: retries.send_back, Code.END_TRANSACTION: self.transactions.end,
            Code.GET_CONSUMER_LIST_BY_GROUP: members.members, Code.LOCK_BATCH_MQ: members.lock,
            Code.UNLOCK_BATCH_MQ: members.unlock, Code.CHECK_CLIENT_CONFIG: members.check,
            Code.GET_ROUTEINFO_BY_TOPIC: routes.route, Code.GET_BROKER_CLUSTER_INFO: routes.cluster,
            Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: members.configure,
            Code.GET_CONSUMER_CONNECTION_LIST: members.consumers, Code.GET_PRODUCER_CONNECTION_LIST: members.producers,
            Code.GET_CONSUME_STATS: offsets.progress, Code.INVOKE_BROKER_TO_RESET_OFFSET: members.reset,
            Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: members.status,
            Code.REGISTER_FILTER_SERVER: members.filter_server, Code.GET_CONSUMER_RUNNING_INFO: members.running,
            Code.CONSUME_MESSAGE_DIRECTLY: members.consume, Code.GET_ALL_PRODUCER_INFO: members.all_producers,
            Code.PUSH_STATE: self.pushes.state,
        }  # fmt: skip

    @property
    def now(self) -> float:
        """Return the hub's time: seconds of a monotonic clock."""
        return self._clock.clock_us() / _US

    def serve(self) -> None:
        """Answer calls until `stop`.  To be called once, on the thread that is to own everything."""
        self._tasks.begin()
        try:
            while self.round():
                pass
        finally:
            self._tasks.end()

    def stop(self) -> None:
        """Let the thread end when it has answered what waits.  Any thread."""
        self._remoting.stop()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the thread that owns everything, and return its result, as `Tasks.run` does."""
        return self._tasks.run(function)

    def stats(self) -> dict[str, int]:
        """Return how many calls of control came, and how many were refused, and counts of pushes.  Any thread."""
        counts = {f"push_{name}": value for name, value in self.pushes.counts()._asdict().items()}
        return {**self._remoting.stats(), **counts}

    def round(self) -> bool:
        """Wait for calls and answer some; False when it is over."""
        call = self._remoting.take(time.monotonic_ns() // 1000 + int(self._sleep_s() * _US))
        over = call is None and self._remoting.stopped
        taken = 0
        while call is not None:
            self._take(call)
            taken += 1
            call = self._remoting.take(0) if taken < _BATCH else None
        self._tasks.work_off()
        self._tick()
        return not over

    def _sleep_s(self) -> float:
        now = self.now
        if self._has_failed:
            return _LONGEST_S
        waits = [
            _LONGEST_S, self.topics.next_look - now, self.registry.next_tick - now, self.pushes.next_tick - now,
            self.queries.next_tick - now,
        ]  # fmt: skip
        if self.delays.next_tick is not None:
            waits.append(self.delays.next_tick - now)
        return max(min(waits), 0.0)

    def _take(self, call: Call) -> None:
        """Answer a call, or take what another kind of news brings.  What fails is said, and nobody else suffers."""
        now = self.now
        try:
            if call.kind == REQUEST:
                self._answer(Request(call, now, self._wall_ms()))
            elif call.kind == STORED:
                self.appends.stored(call.token, call.places)
            elif call.kind == CLOSED:
                self._close(call.connection, now)
            elif call.kind == ANSWER:
                self.registry.answered(call.connection, call.opaque, call.code, call.remark, call.body)
        except Exception:  # noqa: BLE001 - the thread serves others
            _log.exception("news of connection %d could not be worked off", call.connection)
        self._act()

    def _answer(self, request: Request) -> None:
        call = request.call
        try:
            work = self._work.get(call.code)
            if work is None:
                text = f" request type {call.code} not supported"
                answer: Answer | None = Answer(Status.REQUEST_CODE_NOT_SUPPORTED, remark=text)
            else:
                kind = _HEADERS.get(call.code)
                answer = work(request, None if kind is None else read_header(kind, call.fields))
        except (actions.RefusedError, RemoteProtocolError) as error:
            code = error.code if isinstance(error, actions.RefusedError) else Status.SYSTEM_ERROR
            answer = Answer(code, None, str(error))
        except Exception:  # noqa: BLE001 - the client needs an answer
            _log.exception("request %d of %s was not answered", call.code, call.peer)
            answer = Answer(Status.SYSTEM_ERROR, None, "the hub failed; its log says how")
        if answer is not None and not call.flag & _ONE_WAY:
            self._act()  # whoever has an answer to its heartbeat may pull at once
            call.answer(*answer)

    def _close(self, connection: int, now: float) -> None:
        self.pulls.closed(connection)
        self.queries.closed(connection)
        try:
            self.offsets.settle_at(now)
        finally:
            self.membership.closed(connection, now)

    def _act(self) -> None:
        """Do what the registry has decided."""
        for action in self.registry.drain():
            try:
                self._do(action)
            except Exception:  # noqa: BLE001 - the other actions are others'
                _log.exception("what the registry has decided could not be done: %s", type(action).__name__)

    def _do(self, action: actions.Action) -> None:
        if isinstance(action, actions.Send):
            fields = {} if action.header is None else header_fields(action.header)
            self._tell(action.connection, action.code, fields, action.body)
        elif isinstance(action, actions.Ask):
            found = action.header
            fields = header_fields(found) if isinstance(found, Header) else dict(found)
            self._remoting.send(action.connection, action.code, action.number, False, fields, action.body)
        elif isinstance(action, actions.Reply):
            if not action.call.flag & _ONE_WAY:
                action.call.answer(action.code, dict(action.fields or {}), action.remark, action.body)
        elif isinstance(action, actions.Close):
            _log.info("connection %d is closed: %s", action.connection, action.why)
            self._remoting.close(action.connection)
        elif isinstance(action, actions.Check):
            self.transactions.ask(action.connection, action.half)
        elif isinstance(action, actions.Subscribed):
            self.membership.subscribed(action.connection, action.group, action.subscriptions, self.now)
        else:
            self.transactions.discard(action.half, self.now, self._wall_ms())

    def _tell(self, connection: int, code: int, fields: dict[str, str], body: bytes) -> None:
        self._remoting.send(connection, code, self._next_opaque(), True, fields, body)

    def _next_opaque(self) -> int:
        self._opaque = (self._opaque + 1) % _INT
        return self._opaque

    def _tick(self) -> None:
        """Let time pass.  What fails is said, and does not end the thread."""
        now, wall_ms = self.now, self._wall_ms()
        works: dict[str, Callable[[], None]] = {
            "the registry of clients": lambda: self.registry.tick(now),
            "offsets that pulls have committed": lambda: self.offsets.settle_at(now),
            "messages that are pushed": lambda: self.pushes.tick(now),
            "queries for messages": lambda: self.queries.tick(now),
            "messages for later": lambda: self.delays.tick(now, wall_ms),
            "the topics of the store": lambda: self._look(now),
            "members that do not pull": lambda: self._look_for_idle(now),
        }
        self._has_failed = False
        for what, work in works.items():
            try:
                work()
            except Exception:  # noqa: BLE001 - whatever it is, clients go on to call
                self._has_failed = True
                _log.exception("%s could not be looked after; the hub tries again", what)
        self._act()

    def _look(self, now: float) -> None:
        if now >= self.topics.next_look:
            self.topics.next_look = now + _LONGEST_S
            self.topics.look(now)

    def _look_for_idle(self, now: float) -> None:
        if now >= self._idle_at:
            self._idle_at = now + _IDLE_S
            self.registry.look_for_idle(self._remoting.silent(int((now - self._idle_s) * _US)), now)


def _after_a_start(limits: Limits, remoting: Remoting) -> Limits:
    """Return the limits of a hub: members of groups that were here before may believe that they have locks."""
    before = any(not group.startswith(_OWN_GROUPS) for group, *_ in remoting.offsets())
    return replace(limits, quiet=max(limits.quiet, limits.belief)) if before else limits


class _KeptGroups:
    """The configuration of groups, where that of topics is kept, too."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def load(self) -> bytes | None:
        """Return what was saved last."""
        found = self._kept.all("groups").get("all")
        return None if found is None else str(found).encode()

    def save(self, data: bytes) -> None:
        """Keep it."""
        self._kept.put("groups", "all", data.decode())
