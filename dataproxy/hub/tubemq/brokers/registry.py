"""Brokers at the master: registrations, heartbeats and ends (7 to 9); what they have is the layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.tubemq.cluster.answers import BAD_REQUEST, NONE, UNKNOWN, RefusedError, success
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.cluster.rules import Rules, Tokens
from dataproxy.logs import logger
from dataproxy.wire.tubemq.deployed import BrokerClient, Defaults, TopicText, checksum
from dataproxy.wire.tubemq.texts import Broker

__all__ = ["Brokers"]

_log: Final = logger("hub.tubemq")
KIND: Final = "broker"  #: in the registry of clients
_BROKER_BYTES, _TOPIC_BYTES = 1024, 256  # about
_TOKENS: Final = 6  # that a broker of TubeMQ keeps
_CONFIG: Final = 1  # version of the settings of the cluster
_DEFAULTS: Final = str(Defaults())


@dataclass(slots=True)
class _Known:
    """A broker that may register, or has registered."""

    address: Broker
    topics: dict[str, TopicText] | None  #: that the master has declared; None: the broker says what it has
    number: int = NONE  #: of the configuration that was declared, or that the broker told last
    there: dict[str, TopicAt] = field(default_factory=dict)  #: by its own report
    registered: bool = False
    present: bool = False  #: on line: it is registered, or a master before this one had it
    is_told: bool = False  #: its report belongs to ``number``
    peer: str = ""
    charged: int = 0  #: bytes, to that address

    @property
    def texts(self) -> list[str]:
        """Return the topics that it shall have."""
        return [str(one) for _, one in sorted((self.topics or {}).items())]


class Brokers:
    """The brokers that may register.  One thread; times are seconds of a monotonic clock.

    A broker of TubeMQ is declared with its topics, which it is told, and it has them when it reports them.  A hub says
    by itself what it has, if ``admit`` lets it, which is asked with its id and address.  ``last``: higher than all
    numbers that an earlier master has given to configurations.
    """

    def __init__(
        self,
        clients: Clients,
        layout: Layout,
        limits: MasterLimits,
        room: Room,
        rules: Rules,
        tokens: Tokens,
        max_body: int,
        last: int,
        admit: Callable[[Broker], bool] = lambda broker: False,
    ) -> None:
        self._clients, self._layout, self._limits, self._room = clients, layout, limits, room
        self._rules, self._tokens, self._max_body, self._last, self._admit = rules, tokens, max_body, last, admit
        self._known: dict[int, _Known] = {}
        clients.add_kind(KIND, limits.broker_s, self._ended, self._identity)

    # --- what the cluster says

    def declare(self, broker: Broker, topics: Mapping[str, TopicAt]) -> None:
        """Say where a broker is and which topics it shall have; one that is on line is told with its next heartbeat."""
        texts = {
            name: TopicText(name, at.partitions, at.stores, at.publish, at.subscribe) for name, at in topics.items()
        }
        self._last += 1
        known = self._known.get(broker.id)
        if known is None or known.address != broker:
            self.withdraw(broker.id)
            known = self._known[broker.id] = _Known(broker, texts)
            self._layout.put(broker, topics, online=False)
        known.topics, known.number, known.is_told = texts, self._last, False

    def expect(self, broker: Broker, topics: Mapping[str, TopicAt], now: float) -> None:
        """Take a hub that an earlier master had on line as if it were, until its time is over or it registers.

        So what groups hold is there from the first moment of a new master.
        """
        known = self._known[broker.id] = _Known(broker, None, there=dict(topics), present=True)
        self._layout.put(broker, known.there)
        self._clients.register(KIND, str(broker.id), broker.id, now)

    def keep(self, broker: Broker, topics: Mapping[str, TopicAt]) -> None:
        """Say what the broker in this process has; it is always on line, and nobody registers in its place."""
        self._known[broker.id] = _Known(broker, None, there=dict(topics), present=True)
        self._layout.put(broker, topics)

    def withdraw(self, broker: int) -> None:
        """Forget a broker with all that it has."""
        known = self._known.pop(broker, None)
        if known is not None:
            self._give(known)
            self._clients.unregister(KIND, str(broker))
            self._layout.remove(broker)

    def online(self) -> list[tuple[Broker, Mapping[str, TopicAt]]]:
        """Return the brokers that are on line, with what they have."""
        return [(one.address, one.there) for _, one in sorted(self._known.items()) if one.present]

    def forget(self) -> None:
        """Forget all brokers."""
        for number in list(self._known):
            self.withdraw(number)

    # --- calls

    def register(self, request: Any, peer: str, now: float) -> Any:
        """Take a broker.  Raises RefusedError."""
        try:
            broker = BrokerClient.read(request.clientId).broker
        except ValueError as error:
            raise RefusedError(BAD_REQUEST, str(error)) from None
        known = self._allowed(broker)
        told = _read_topics(request.brokerDefaultConfInfo, request.brokerTopicSetConfInfo)
        self._charge(known, peer, _BROKER_BYTES + _TOPIC_BYTES * len(told))
        self._known[broker.id] = known
        if not known.registered:
            _log.info("the broker %s has registered from %s", broker, peer)
        known.registered = known.present = True
        self._clients.register(KIND, str(broker.id), broker.id, now)
        self._take(known, request.curBrokerConfId, told)
        answer = success(request.DESCRIPTOR.name, stopRead=False, stopWrite=False, takeConfInfo=False, ssdStoreId=NONE)
        for one in answer.enableBrokerInfo.DESCRIPTOR.fields:  # brokers look at their own users alone
            setattr(answer.enableBrokerInfo, one.name, False)
        self._tell(answer, request, known, now)
        return answer

    def heartbeat(self, request: Any, now: float) -> Any:
        """Let a broker's time begin anew, and exchange what has changed.  Raises RefusedError."""
        known = self._registered(request.brokerId)
        if known is None or not self._clients.update(KIND, str(known.address.id), now):
            raise RefusedError(UNKNOWN, f"Invalid node id {request.brokerId[:100]} the client may be timeout")
        if request.takeConfInfo:
            told = _read_topics(request.brokerDefaultConfInfo, request.brokerTopicSetConfInfo)
            self._charge(known, known.peer, _BROKER_BYTES + _TOPIC_BYTES * len(told))
            self._take(known, request.curBrokerConfId, told)
        elif known.topics is None and request.curBrokerConfId != known.number:
            known.is_told = False
        answer = success(
            request.DESCRIPTOR.name, stopRead=False, stopWrite=False, takeConfInfo=False, takeRemoveTopicInfo=False,
            ssdStoreId=NONE, curBrokerConfId=known.number, confCheckSumId=NONE, needReportData=False,
        )  # fmt: skip
        self._tell(answer, request, known, now)
        answer.needReportData = not known.is_told and not answer.takeConfInfo
        return answer

    def close(self, request: Any, now: float) -> Any:
        """Let a broker go off line; one that is not known has gone already."""
        known = self._registered(request.brokerId)
        if known is not None:
            self._clients.end(KIND, str(known.address.id), now)
        return success(request.DESCRIPTOR.name)

    # --- inside

    def _allowed(self, broker: Broker) -> _Known:
        known = self._known.get(broker.id)
        if known is not None and known.topics is not None:
            if known.address != broker:
                text = f"broker {broker.id} is declared at {known.address.host}:{known.address.port}, not at"
                raise RefusedError(BAD_REQUEST, f"{text} {broker.host}:{broker.port}")
            return known
        if not self._admit(broker):
            text = "Not found broker configure info, please create first! the connecting client id is"
            raise RefusedError(BAD_REQUEST, f"{text}:{broker}")
        if known is not None and known.address == broker:
            return known
        if known is not None:  # the same hub at another address
            self._give(known)
        return _Known(broker, None)

    def _registered(self, text: str) -> _Known | None:
        number = text.strip()
        known = self._known.get(int(number)) if number.isascii() and number.isdigit() and len(number) < 11 else None
        return known if known is not None and known.registered else None

    def _take(self, known: _Known, number: int, told: dict[str, TopicText]) -> None:
        """Take a report, unless it belongs to a configuration that was changed meanwhile."""
        if known.topics is None:
            known.number = number
        known.is_told = number == known.number
        valid = {name: one for name, one in told.items() if one.valid}
        wanted = known.topics if known.topics is not None else valid
        known.there = {
            name: TopicAt(
                one.partitions, one.stores, one.publish and wanted[name].publish,
                one.subscribe and wanted[name].subscribe,
            )
            for name, one in valid.items() if name in wanted
        }  # fmt: skip
        self._layout.put(known.address, {**_closed(known), **known.there})

    def _tell(self, answer: Any, request: Any, known: _Known, now: float) -> None:
        """Put what has changed into an answer: topics, flow rules, tokens, the largest body."""
        if known.topics is not None:
            answer.curBrokerConfId, answer.confCheckSumId = known.number, checksum(_DEFAULTS, known.texts)
            if request.curBrokerConfId != known.number:
                answer.takeConfInfo = True
                answer.brokerDefaultConfInfo = _DEFAULTS
                answer.brokerTopicSetConfInfo.extend(known.texts)
        self._rules.tell_broker(answer, request.flowCheckId)
        tokens = self._tokens.known(now)[-_TOKENS:]
        answer.brokerAuthorizedInfo.visitAuthorizedToken = ",".join(map(str, tokens[::-1]))
        if request.HasField("clsConfig"):
            answer.clsConfig.configId = _CONFIG if self._max_body else NONE
            if self._max_body and request.clsConfig.configId != _CONFIG:
                answer.clsConfig.maxMsgSize = self._max_body

    def _charge(self, known: _Known, peer: str, wanted: int) -> None:
        before, at = known.charged, known.peer
        self._give(known)
        try:
            self._room.take(peer, wanted)
        except RefusedError:
            if before:
                self._room.take(at, before)
                known.peer, known.charged = at, before
            raise
        known.peer, known.charged = peer, wanted

    def _give(self, known: _Known) -> None:
        if known.charged:
            self._room.give(known.peer, known.charged)
        known.charged = 0

    def _leave(self, known: _Known) -> None:
        known.registered = known.is_told = known.present = False
        self._give(known)
        self._layout.set_online(known.address.id, online=False)

    def _ended(self, name: str, number: int, now: float, why: End) -> None:
        known = self._known.get(number)
        if known is not None:
            if why is End.SILENT:
                _log.warning("the broker %s was silent for %g s", known.address, self._limits.broker_s)
            self._leave(known)

    def _identity(self, name: str, number: int) -> Identity:
        address = self._known[number].address
        return Identity("tubemq", "broker", name, address=f"{address.host}:{address.port}")


def _closed(known: _Known) -> dict[str, TopicAt]:
    """Return what a broker shall have and has not reported: deployed, but neither written nor read."""
    return {
        name: TopicAt(one.partitions, one.stores, publish=False, subscribe=False)
        for name, one in (known.topics or {}).items()
    }


def _read_topics(defaults: str, texts: Iterable[str]) -> dict[str, TopicText]:
    try:
        usual = Defaults.read(defaults)
        return {one.topic: one for one in (TopicText.read(text, usual) for text in texts if text.strip())}
    except ValueError as error:
        raise RefusedError(BAD_REQUEST, str(error)) from None
