"""The thread that answers calls of control: master, broker, and the topics of the store."""

from __future__ import annotations

import hashlib
import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.store.core import StoreCore
from dataproxy._core.server.tubemq.callcore import CallsCore, PendingCall
from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy._version import __version__
from dataproxy.errors import HubError
from dataproxy.hub.clients import Clients
from dataproxy.hub.idling import nobody
from dataproxy.hub.leader.cluster import Cluster
from dataproxy.hub.leader.seat import NotLeaderError
from dataproxy.hub.tasks import Tasks
from dataproxy.hub.tubemq.admin.parts import Parts
from dataproxy.hub.tubemq.broker import Broker
from dataproxy.hub.tubemq.brokers.enrolment import Enrolment
from dataproxy.hub.tubemq.brokers.joining import Joining, JoiningTimes
from dataproxy.hub.tubemq.calls import SUCCESS, Calls, Outcome, Work
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.rules import Tokens
from dataproxy.hub.tubemq.idle import Idling
from dataproxy.hub.tubemq.leading import Leading, admitted
from dataproxy.hub.tubemq.master import Master
from dataproxy.hub.tubemq.topics import Topics
from dataproxy.logs import logger
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.flow import FlowRules
from dataproxy.wire.tubemq.texts import Broker as Address

__all__ = ["BROKER_ID", "REGISTRATION_S", "Service"]

T = TypeVar("T")
BROKER_ID: Final = 1
REGISTRATION_S: Final = 35.0  #: without a call, until a consumer loses a partition; what TubeMQ ships
#: So long a request for messages waits for one, at most: TubeMQ's clients give a call 3 s at least, and 10 s as a rule.
LONG_POLL_S: Final = 2.0
_REGISTRATION_BYTES: Final = 128 << 20  # an address may have half of them, if it is alone
_US: Final = 1_000_000
_BATCH: Final = 64  # calls that are answered together
_LONGEST_S: Final = 1.0  # of a sleep
#: For groups that have offsets: a Java member hears at its next heartbeat, within 13 s, that this is another master.
_COME_BACK_S: Final = 15.0
_MASTER_METHODS: Final = (1, 2, 3, 4, 5, 6, 20, 21, 22)
_CLUSTER_METHODS: Final = (7, 8, 9)
_BROKER_METHODS: Final = (15, 16)
_JOINING: Final = JoiningTimes(period_s=2.0)
_LEAVE_S: Final = 2.0  # to tell the leader that this broker goes
_log: Final = logger("hub.tubemq")


class Service:
    """Master and broker of a hub, on a thread of their own (`serve`).

    ``address``: where clients reach them.  ``users``: names and passwords; empty: nobody is asked.  ``allowed`` and
    ``partitions`` as in `Topics`.  ``max_body``: bytes of the largest message.  With a ``cluster`` the master answers
    while this hub leads it, and the hub is one of its brokers, with an id of its own.  Every attribute belongs to the
    thread; others reach it by `run`, from any thread.  ``parts``: what administration works on, in a function for
    `run`.  ``told`` hears of events.
    """

    def __init__(
        self,
        core: HubCore,
        calls: CallsCore,
        store: StoreCore,
        address: tuple[str, int],
        *,
        users: Mapping[str, str],
        allowed: tuple[str, ...] = (),
        partitions: int = 1,
        max_body: int = 1 << 20,
        limits: MasterLimits | None = None,
        broker_id: int = BROKER_ID,
        cluster: Cluster | None = None,
        told: Callable[..., None] = nobody,
    ) -> None:
        self._core, self._calls = core, calls
        version = time.time_ns() // 1_000_000
        now = self.now
        limits = limits if limits is not None else MasterLimits(alone_s=0.0, first_balance_s=_COME_BACK_S)
        self.clients = Clients()
        self.layout = Layout(version)
        self.access = Access(users or None, brokers=users.keys())
        self.registrations = RegistrationsCore(secrets.token_bytes(16), int(REGISTRATION_S * _US), _REGISTRATION_BYTES)
        self.registrations.attach(store, int(LONG_POLL_S * _US))
        core.serve_data(self.registrations)
        me = Address(broker_id, *address)
        layout = self.layout if cluster is None else Layout(version)
        self.topics = Topics(self.layout, me, store, allowed, partitions, now, core.let_name)
        self.master = Master(
            layout, self.clients, random.Random(), now, access=self.access, limits=limits, max_body=max_body,
            version=version, first_token=secrets.randbits(62), wanted=self._name,
            tokens=None if cluster is None else _common_tokens(users, limits.token_s, now),
            admit=lambda broker: cluster is not None and admitted(cluster, broker_id, broker),
            returning=None if cluster is not None else {group.decode() for group, *_ in self.registrations.found()},
            follow=self._limit,
        )  # fmt: skip
        self.broker = Broker(
            me, self.layout, self.registrations, self.topics.extent, self.access, self.master.tokens,
            limits.clocks_apart_s, _REGISTRATION_BYTES,
        )  # fmt: skip
        self.parts = Parts(
            broker_id, layout, self.layout, self.master.consumers, self.master.choosers, self.master.rules, self.access,
            self.registrations, self.topics.extents, self._name, partitions,
        )  # fmt: skip
        self.idling = Idling(self.registrations, self.topics.extents, told)
        self._cluster, self._enrolment, self._leading = cluster, None, None
        work: dict[int, Work] = dict.fromkeys(_MASTER_METHODS, self.master.answer)
        if cluster is not None:
            self._enrolment = Enrolment(Joining(me, (), __version__, _JOINING, _signer(users)))
            self._leading = Leading(cluster, self.master, self._enrolment, me, self.layout, layout, self.access)
            work = dict.fromkeys((*_MASTER_METHODS, *_CLUSTER_METHODS), self._leading.answer)
        work |= dict.fromkeys(_BROKER_METHODS, self.broker.answer)
        self._work = Calls(work)
        self._tasks = Tasks(calls.wake, "the thread of the master")
        self._tell_tokens(now)

    @property
    def now(self) -> float:
        """Return the hub's time: seconds of a monotonic clock."""
        return self._core.clock_us() / _US

    def serve(self) -> None:
        """Answer calls until `stop`.  To be called once, on the thread that is to own everything."""
        self._tasks.begin()
        if self._enrolment is not None:
            self._enrolment.start()
        try:
            while self._round():
                pass
        finally:
            if self._enrolment is not None:
                self._enrolment.stop(_LEAVE_S)
            self._tasks.end()

    def stop(self) -> None:
        """Let the thread end when it has answered what waits.  Any thread."""
        self._calls.stop()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the thread that owns master and broker, and return its result, as `Tasks.run` does."""
        return self._tasks.run(function)

    def wake(self) -> None:
        """Let the thread look at the cluster now.  Any thread."""
        if self._leading is not None:
            self._leading.next_look = 0.0
        self._calls.wake()

    def administer(self, function: Callable[[], T]) -> T:
        """Do what `run` does; in a cluster, what has changed of rules and rights is at ZooKeeper before it returns.

        Raises HubError if this hub does not lead the cluster: then nothing has changed; if it ceases to before that,
        or ZooKeeper does not answer in time, the error says that the change may count or not.
        """
        leading, cluster = self._leading, self._cluster
        if leading is None or cluster is None:
            return self.run(function)
        result, ticket = self.run(lambda: leading.administer(function, self.now, time.time_ns() // 1_000_000))
        if ticket is not None:
            try:
                cluster.wait(ticket)
            except NotLeaderError as error:
                self.run(leading.restore)
                raise HubError(str(error), hint="look at the hub that leads, and try again there") from None
        return result

    def _name(self, topics: Iterable[str], peer: str = "") -> None:
        """Let topics exist; the master of a cluster knows them before it goes on."""
        self.topics.name(topics, peer)
        if self._leading is not None:
            self._leading.know_own()

    def _limit(self, group: str | None, rules: FlowRules) -> None:
        """Let the broker keep a group, or all of them, to the volumes of flow rules."""
        self.registrations.set_rules(None if group is None else group.encode(), rules.volume)

    def stats(self) -> dict[str, int]:
        """Return how many calls of control came, and how many were refused.  Any thread."""
        return self._calls.stats()

    def _round(self) -> bool:
        """Wait for calls and answer some; False when it is over."""
        now = self.now
        sleep = min(self.master.next_tick - now, self.topics.next_look - now, _LONGEST_S)
        call = self._calls.take(time.monotonic_ns() // 1000 + int(max(sleep, 0.0) * _US))
        over = call is None and self._calls.stopped
        answered: list[tuple[PendingCall, Outcome]] = []
        while call is not None:
            answered.append((call, self._answer(call)))
            call = self._calls.take(0) if len(answered) < _BATCH else None
        failed = self.registrations.flush() if answered else 0  # offsets that these calls have moved are on disk
        if failed:
            _log.warning("the store could not keep %d offsets of consumers; they count until the hub ends", failed)
        for one, outcome in answered:
            if outcome.status == SUCCESS:
                one.give(outcome.data)
            else:
                one.fail(outcome.status, outcome.exception.encode(), outcome.trace.encode())
        self._tasks.work_off()
        self._tick()
        return not over

    def _answer(self, call: PendingCall) -> Outcome:
        return self._work.answer(
            call.version, call.service, call.method, call.request, call.peer, self.now, time.time_ns() // 1_000_000
        )

    def _tick(self) -> None:
        """Let time pass.  What fails is said, and does not end the thread."""
        now = self.now
        try:
            if now >= self.master.next_tick:
                self.broker.tick(now)
            self.master.tick(now)
            self._tell_tokens(now)
        except Exception:  # noqa: BLE001 - whatever it is, clients go on to call
            _log.exception("the periodic work of TubeMQ's master and broker failed")
        try:
            if self._leading is not None and now >= min(self._leading.next_look, self.topics.next_look):
                self._leading.tick(now, time.time_ns() // 1_000_000)
        except Exception:  # noqa: BLE001 - the topics of the store are looked for all the same
            _log.exception("this hub could not follow its cluster; it tries again")
        try:
            if now >= self.topics.next_look:
                self.topics.look(now)
            self.idling.look(now)
        except Exception:  # noqa: BLE001
            self.topics.next_look = now + _LONGEST_S
            _log.exception("the topics of the store could not be looked for; the hub tries again")

    def _tell_tokens(self, now: float) -> None:
        if self.access.is_asked:
            known = self.master.tokens.known(now)
            self._core.set_tokens(known.start, known.stop - 1)


def _signer(users: Mapping[str, str]) -> Callable[[], Signature] | None:
    """Return what proves to the leader that this hub is one of the cluster: all have the same user."""
    for user, password in users.items():
        return lambda: Signature.make(user, password, time.time_ns() // 1_000_000, secrets.randbits(31))
    return None


def _common_tokens(users: Mapping[str, str], period_s: float, now: float) -> Tokens:
    """Return the numbers that all hubs of a cluster have alike: by their user's secret, and by the time of day."""
    digest = hashlib.sha256("\n".join(f"{user}\n{password}" for user, password in users.items()).encode()).digest()
    return Tokens(int.from_bytes(digest[:7]), period_s, now - time.time(), ahead=1)
