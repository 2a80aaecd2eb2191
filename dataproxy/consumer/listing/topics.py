"""What topics a TubeMQ cluster has for producers.

A master describes topics to producers only, and only those that a producer's heartbeat names: so a producer is
registered, says which topics it would send to, and leaves again.  Nothing is sent to a topic.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataproxy._version import __version__
from dataproxy.errors import ConfigError, DataProxyError, RemoteProtocolError, TransportError
from dataproxy.masters.connection import MasterConnection, ServerFault, fault_text
from dataproxy.masters.target import parse_target
from dataproxy.shown import foreign
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import BROKER_PORT, BROKER_TLS_PORT, Broker, Topic

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig

__all__ = ["Listing", "TopicPlace", "TopicRow", "list_topics"]

_OK, _UNKNOWN, _CREDENTIALS = 200, 411, 415
_NONE: Final = -2  # of a setting that is not known
_ALL: Final = -1  # of the list of brokers: send the whole one
_NONCES: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """What one broker has of a topic; ``host`` is "" and ``port`` 0 if the master did not name the broker."""

    broker: int
    host: str
    port: int
    stores: int
    partitions_per_store: int

    @property
    def partitions(self) -> int:
        """Return how many partitions the broker has of the topic."""
        return self.stores * self.partitions_per_store


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic that takes messages; ``largest``: most bytes of a message where the topic has a limit of its own."""

    name: str
    places: tuple[TopicPlace, ...]
    largest: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a master said.

    ``missing``: topics that were asked for and not described: the master does not know them, or no broker takes
    messages of them now.  ``largest``: most bytes of a message in this cluster, None if the master has no limit of its
    own.
    """

    master: str
    topics: tuple[TopicRow, ...]
    missing: tuple[str, ...]
    largest: int | None


def list_topics(config: ConsumerConfig) -> Listing:
    """Ask the masters of ``config`` about its topics, in their order, until one answers.

    Each step is bounded by ``connect_timeout`` or ``call_timeout``.  Raises ConfigError, TransportError (code
    NO_MASTER) if no master could be asked, RemoteProtocolError if one answered what is none of TubeMQ's protocol and no
    other one could be asked, DataProxyError if a master refuses a producer.
    """
    names = [name for name, _ in config.topics]
    if not names:
        raise ConfigError("no topic was named", hint="a master describes only topics that are named")
    target = parse_target(config.target, config.tls)
    context = None
    if target.tls:
        from dataproxy.trust.context import ssl_context
        from dataproxy.trust.files import proxy_files

        context = ssl_context(proxy_files(config))
    faults = []
    broken: RemoteProtocolError | None = None
    for address in target.masters:
        where = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        try:
            name = config.tls_server_name or address.host
            with MasterConnection(*address, context, name, config.connect_timeout) as connection:
                port = BROKER_TLS_PORT if target.tls else BROKER_PORT
                return _Producer(connection, config, where, port).listing(names)
        except RemoteProtocolError as error:
            broken = broken or RemoteProtocolError(f"master {where}: {error.message}", details=error.details)
            faults.append(f"{where}: {error.message}")
        except ServerFault as error:
            faults.append(f"{where}: {error}")
        except OSError as error:
            faults.append(f"{where}: {fault_text(error)}")
    if broken is not None:
        raise broken
    raise TransportError(
        f"no master of {config.target} could be asked: {'; '.join(faults)}",
        code="NO_MASTER",
        hint="check the addresses, and that the master runs",
    )


class _Producer:
    """A producer that sends nothing."""

    def __init__(self, connection: MasterConnection, config: ConsumerConfig, where: str, broker_port: int) -> None:
        self._connection, self._config, self._where, self._broker_port = connection, config, where, broker_port
        self._host = connection.own_host
        place = self._host.replace(":", "_").partition("%")[0]
        self._client = f"{place}-{os.getpid()}-{time.time_ns() // 1000000}-topics-Python-{__version__}"
        self._brokers: dict[int, Broker] = {}
        self._largest: int | None = None

    def listing(self, names: list[str]) -> Listing:
        """Register, ask, and leave."""
        self._register(names)
        try:
            answer = self._ask("HeartRequestP2M", topicList=names, brokerCheckSum=_ALL, **self._settings())
            if answer.errCode == _UNKNOWN:  # the master has been restarted in between
                self._register(names)
                answer = self._ask("HeartRequestP2M", topicList=names, brokerCheckSum=_ALL, **self._settings())
            self._check(answer)
            self._learn(answer)
            found = self._topics(answer)
        finally:
            with contextlib.suppress(OSError, ServerFault, RemoteProtocolError):  # the master will miss its heartbeats
                self._ask("CloseRequestP2M")
        missing = tuple(name for name in names if name not in found)
        return Listing(self._where, tuple(found[name] for name in names if name in found), missing, self._largest)

    def _register(self, names: list[str]) -> None:
        answer = self._ask(
            "RegisterRequestP2M", topicList=names, brokerCheckSum=_ALL, jdkVersion="", **self._settings()
        )
        self._check(answer)
        self._learn(answer)

    def _settings(self) -> dict[str, Any]:
        return {"hostName": self._host, "appdConfig": messages.ApprovedClientConfig(configId=_NONE)}

    def _ask(self, name: str, **fields: Any) -> Any:
        user, password = self._config.user, self._config.password.reveal()
        if user:
            now_ms = time.time_ns() // 1000000
            proof = Signature.make(user, password, now_ms, random.randrange(_NONCES))
            info = messages.AuthenticateInfo(
                userName=proof.user, timestamp=proof.time_ms, nonce=proof.nonce, othParams="", signature=proof.signature
            )
            fields["authInfo"] = messages.MasterCertificateInfo(authInfo=info)
        kind: Any = getattr(messages, name)
        return self._connection.ask(name, kind(clientId=self._client, **fields), self._config.call_timeout)

    def _check(self, answer: Any) -> None:
        if answer.errCode == _OK:
            return
        text = foreign(answer.errMsg)
        hint = "give the options user and password" if answer.errCode == _CREDENTIALS and not self._config.user else ""
        raise DataProxyError(
            f"master {self._where} refuses a producer with code {answer.errCode}: {text!r}",
            hint=hint,
            details={"code": answer.errCode, "text": text},
        )

    def _learn(self, answer: Any) -> None:
        """Take the brokers, and the largest message of the cluster."""
        try:
            brokers = [Broker.read(text, self._broker_port) for text in answer.brokerInfos]
        except ValueError as error:
            raise RemoteProtocolError(str(error)) from None
        self._brokers.update((broker.id, broker) for broker in brokers)
        if answer.HasField("appdConfig") and answer.appdConfig.HasField("maxMsgSize"):
            self._largest = answer.appdConfig.maxMsgSize

    def _topics(self, answer: Any) -> dict[str, TopicRow]:
        found = {}
        for text in answer.topicInfos:
            try:
                topic = Topic.read(text)
            except ValueError as error:
                raise RemoteProtocolError(str(error)) from None
            places = []
            for part in topic.parts:
                broker = self._brokers.get(part.broker)
                host, port = (broker.host, broker.port) if broker is not None else ("", 0)
                places.append(TopicPlace(part.broker, host, port, part.stores, part.partitions))
            found[topic.name] = TopicRow(topic.name, tuple(places), topic.largest)
        return found
