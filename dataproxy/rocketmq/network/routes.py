"""Which brokers have a topic: name servers are asked, and their answers kept."""

from __future__ import annotations

import threading
import time
from typing import Final, NamedTuple

from dataproxy.errors import DataProxyError, DiscoveryError, RemoteProtocolError
from dataproxy.rocketmq.network.connections import Connections, answer_fault
from dataproxy.rocketmq.network.target import Address, parse_address
from dataproxy.wire.rocketmq.bodies import Route
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import RouteOf, header_fields
from dataproxy.wire.rocketmq.names import TEMPLATE
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Routes", "TopicRoute"]

_READ, _WRITE = 4, 2
_TEMPLATE_QUEUES: Final = 4


class TopicRoute(NamedTuple):
    """Queues of a topic that can be written and read, in order, and where their brokers are."""

    writable: tuple[Queue, ...]
    readable: tuple[Queue, ...]
    brokers: dict[str, dict[int, Address]]
    masters: dict[str, Address]

    @classmethod
    def of(cls, topic: str, route: Route, *, template: bool) -> TopicRoute:
        """Read the answer of a name server.  ``template``: it is that of the topic after which this one is made."""
        brokers: dict[str, dict[int, Address]] = {}
        for data in route.broker_datas:
            found = {number: parse_address(text) for number, text in data.broker_addrs.items()}
            brokers[data.broker_name] = {number: one for number, one in found.items() if one is not None}
        writable: list[Queue] = []
        readable: list[Queue] = []
        for part in sorted(route.queue_datas, key=lambda one: one.broker_name):
            most = _TEMPLATE_QUEUES if template else 1 << 16
            if part.perm & _WRITE and 0 in brokers.get(part.broker_name, {}):  # masters alone take messages
                writable += [Queue(part.broker_name, at, topic) for at in range(min(part.write_queue_nums, most))]
            if part.perm & _READ and brokers.get(part.broker_name):
                readable += [Queue(part.broker_name, at, topic) for at in range(min(part.read_queue_nums, most))]
        masters = {name: places[0] for name, places in brokers.items() if 0 in places}
        return cls(tuple(writable), tuple(readable), brokers, masters)


class Routes:
    """Ask name servers, one after the other.  Any thread."""

    def __init__(self, names: tuple[Address, ...], connections: Connections) -> None:
        self._names, self._connections = names, connections
        self._at = 0
        self._known: dict[str, TopicRoute] = {}
        self.known: Final = self._known.get  #: what is known of a topic, None if nothing
        self._made_up: set[str] = set()  # topics that do not exist yet
        self._asked: dict[str, float] = {}
        self._brokers: dict[str, dict[int, Address]] = {}
        self._lock = threading.RLock()  # a signal handler may close the client in the middle

    def topics(self) -> list[str]:
        """Return the topics that are known."""
        return list(self._known)

    def brokers(self) -> dict[str, dict[int, Address]]:
        """Return all brokers that were ever named, by their names and numbers; 0 is the master."""
        with self._lock:
            return dict(self._brokers)

    def address(self, broker: str) -> Address | None:
        """Return where a broker takes calls: its master, or if that is away its first replica."""
        found = self._brokers.get(broker)
        return found[min(found)] if found else None

    def ask(self, topic: str, *, template: bool = False) -> TopicRoute | None:
        """Ask for a topic, and return what is known now: None, it does not exist.

        ``template``: a topic that does not exist yet has the queues that it would get.  Raises DiscoveryError: no name
        server gives an answer; LocalProtocolError on the thread that reads.
        """
        self._connections.check_may_wait()
        route = self._call(topic)
        made_up = route is None and template and topic != TEMPLATE
        if made_up:
            route = self._call(TEMPLATE)
        if route is None:
            self._known.pop(topic, None)
            return None
        found = TopicRoute.of(topic, route, template=made_up)
        with self._lock:
            self._known[topic] = found
            self._brokers |= {name: places for name, places in found.brokers.items() if places}
            (self._made_up.add if made_up else self._made_up.discard)(topic)
        return found

    def refresh(self) -> list[str]:
        """Ask for all topics again, and return those that changed.  Raises DiscoveryError."""
        changed = []
        for topic in list(self._known):
            before = self._known.get(topic)
            if self.ask(topic, template=topic in self._made_up) != before:
                changed.append(topic)
        return changed

    def _call(self, topic: str) -> Route | None:
        """Return a name server's answer, None: there is no such topic."""
        said = hint = ""
        for step in range(len(self._names)):
            address = self._names[(self._at + step) % len(self._names)]
            try:
                answer = self._connections.call(
                    address, Code.GET_ROUTEINFO_BY_TOPIC, header_fields(RouteOf(topic, accept_standard_json_only=True))
                )
                if answer.code not in (Answer.SUCCESS, Answer.TOPIC_NOT_EXIST):
                    raise answer_fault(address, f"the route of {topic!r}", answer)
                route = Route.read(answer.body) if answer.code == Answer.SUCCESS else None
            except DataProxyError as error:
                if error.fatal:
                    raise
                if isinstance(error, RemoteProtocolError) and error.code != "CALL_REFUSED":
                    self._connections.drop(address, error)
                said, hint = error.message, error.hint
                continue
            self._at = (self._at + step) % len(self._names)
            self._asked[topic] = time.monotonic()
            return route
        raise DiscoveryError(
            f"no name server says where topic {topic!r} is: {said}",
            hint=hint or "is the target the address of a name server, and not of a broker?",
        )
