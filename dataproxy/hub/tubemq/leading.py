"""The master of a cluster of hubs: it answers while this hub leads, else clients are to go on to the next hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from dataproxy.errors import HubError
from dataproxy.hub.leader.seat import Hub, NotLeaderError, Ticket
from dataproxy.hub.tubemq.brokers.enrolment import Enrolment
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import ServerError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.metadata import take, told
from dataproxy.hub.tubemq.master import Master
from dataproxy.logs import logger
from dataproxy.masters.target import Address
from dataproxy.wire.tubemq.texts import Broker

__all__ = ["Leading", "Membership", "admitted", "brokers_in"]

_log: Final = logger("hub.tubemq")
T = TypeVar("T")
_LOOK_S: Final = 1.0  # between two looks at the cluster, if it says nothing


class Membership(Protocol):
    """What this needs of a `Cluster`."""

    def leads(self) -> bool:
        """Tell whether this hub is the leader at this moment."""
        ...

    @property
    def epoch(self) -> int:
        """Return the number of this hub's leadership."""
        ...

    @property
    def leader(self) -> Hub | None:
        """Return who leads."""
        ...

    @property
    def hubs(self) -> Mapping[int, Hub]:
        """Return the hubs that are connected."""
        ...

    def document(self) -> tuple[dict[str, Any], bool]:
        """Return what all hubs know."""
        ...

    def begin(self, change: Callable[[dict[str, Any]], None]) -> Ticket:
        """Begin to change it."""
        ...


class Leading:
    """Stands before a master.  One thread, the master's; times are seconds of a monotonic clock.

    ``me``: this hub as a broker, whose topics are in the layout ``own``; the master has the layout ``all_``.
    """

    def __init__(
        self,
        membership: Membership,
        master: Master,
        enrolment: Enrolment,
        me: Broker,
        own: Layout,
        all_: Layout,
        access: Access,
    ) -> None:
        self._access = access
        self._membership, self._master, self._enrolment = membership, master, enrolment
        self._me, self._own, self._all = me, own, all_
        self._stored_version = -1  # of the layout of all
        self._epoch = 0  # under which the master began last; 0: it does not lead
        self._told = -1  # version of the own layout that the leader knows
        self._masters: tuple[Address, ...] = ()
        self._stored: dict[str, Any] | None = None  # the brokers of the document
        self.next_look = 0.0

    def answer(self, request: Any, peer: str, now: float, wall_ms: int) -> Any:
        """Return the master's answer to a request.  Raises ServerError where this hub does not lead."""
        if not self._membership.leads():
            client = request.brokerId if "brokerId" in request.DESCRIPTOR.fields_by_name else request.clientId
            text = f"{self._me.host}:{self._me.port} is not master now. the connecting client id is {client}"
            raise ServerError("StandbyException", text)
        self._follow(now, wall_ms)
        answer = self._master.answer(request, peer, now, wall_ms)
        self._store()
        return answer

    def tick(self, now: float, wall_ms: int) -> None:
        """Follow what has become of the cluster."""
        self.next_look = now + _LOOK_S
        if self._membership.leads():
            self._follow(now, wall_ms)
            self._store()
            self._go_to(())
            return
        self._epoch = 0
        document, is_fresh = self._membership.document()
        if is_fresh:
            take(document, self._master.rules, self._access)
        leader = self._membership.leader
        if leader is not None and leader.id != self._me.id:
            self._go_to((Address(leader.host, leader.port),))
        if self._own.version != self._told:
            self._told = self._own.version
            self._enrolment.set_topics(self._own.at(self._me.id))

    def know_own(self) -> None:
        """Let the master that leads have at once what this hub has now: it goes on with a topic that was just named."""
        if self._epoch and self._epoch == self._membership.epoch and self._membership.leads():
            self._keep_own()

    def administer(self, function: Callable[[], T], now: float, wall_ms: int) -> tuple[T, Ticket | None]:
        """Call a function; return its result, and the write of the metadata that it has changed, None if it has not.

        The write begins here, on the master's thread: writes have the order in which their changes were made.  Raises
        HubError, and changes nothing, where this hub does not lead, or where the document cannot be that large.
        """
        if self._membership.leads():  # from the document's rules on, even in the first moment of an epoch
            self._follow(now, wall_ms)
        before = told(self._master.rules, self._access)
        result = function()
        after = told(self._master.rules, self._access)
        if after == before:
            return result, None
        try:
            return result, self._membership.begin(lambda document: document.update(metadata=after))
        except NotLeaderError:
            take({"metadata": before}, self._master.rules, self._access)
            leader = self._membership.leader
            where = "no hub" if leader is None else f"hub {leader.id} at {leader.host}:{leader.port}"
            raise HubError(
                f"{where} leads the cluster, not this one", hint="make changes at the hub that leads"
            ) from None
        except HubError:
            take({"metadata": before}, self._master.rules, self._access)
            raise

    def restore(self) -> None:
        """Let rules and rights be those of the document again: this hub has ceased to lead before it was written."""
        if not self._membership.leads():
            take(self._membership.document()[0], self._master.rules, self._access)

    def _go_to(self, masters: tuple[Address, ...]) -> None:
        if masters != self._masters:
            self._masters = masters
            self._enrolment.set_masters(masters)

    def _follow(self, now: float, wall_ms: int) -> None:
        """Begin to lead, if this epoch is a new one, and let the master know what this hub has."""
        epoch = self._membership.epoch
        if epoch != self._epoch:
            self._epoch, self._told = 0, -1  # if what follows fails, the next call begins anew
            self._master.begin_again(now, wall_ms)
            document, _ = self._membership.document()
            take(document, self._master.rules, self._access)
            self._stored = document.get("brokers", {})
            for broker, topics in brokers_in(document):
                if broker.id != self._me.id:
                    self._master.brokers.expect(broker, topics, now)
            self._epoch = epoch
        self._keep_own()

    def _keep_own(self) -> None:
        if self._own.version != self._told:
            self._told = self._own.version
            self._enrolment.set_topics(self._own.at(self._me.id))
            self._master.brokers.keep(self._me, self._own.at(self._me.id))

    def _store(self) -> None:
        """Let the document have the brokers that are on line; it is written behind the answer."""
        if self._all.version == self._stored_version:
            return
        self._stored_version = self._all.version
        brokers = {
            str(broker.id): {"host": broker.host, "port": broker.port, "topics": {k: list(v) for k, v in at.items()}}
            for broker, at in self._master.brokers.online()
        }
        if brokers == self._stored:
            return
        try:
            self._membership.begin(lambda document: document.update(brokers=brokers))
        except (NotLeaderError, HubError) as error:
            _log.warning("the brokers of the cluster were not written: %s", error)
        self._stored = brokers


def admitted(membership: Membership, me: int, broker: Broker) -> bool:
    """Tell whether a hub may register as a broker at the hub ``me``: it is connected, and this is its address."""
    found = membership.hubs.get(broker.id)
    return broker.id != me and found is not None and (found.host, found.port) == broker[1:]


def brokers_in(document: Mapping[str, Any]) -> list[tuple[Broker, dict[str, TopicAt]]]:
    """Return the brokers of a document with what they have; what is none is told in the log, and left out."""
    found = []
    for number, one in document.get("brokers", {}).items():
        try:
            topics = {name: TopicAt(*fields) for name, fields in one["topics"].items()}
            found.append((Broker(int(number), str(one["host"]), int(one["port"])), topics))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("broker %r in the cluster's document is none: %r", number, error)
    return found
