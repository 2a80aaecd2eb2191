"""What a producer says to TubeMQ's masters, and learns from them.  No thread, and no time but what calls take."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dataproxy._version import __version__
from dataproxy.errors import DataProxyError, DiscoveryError, RemoteProtocolError
from dataproxy.masters.connection import MasterConnection, ServerFault, fault_text
from dataproxy.masters.target import Address, Target
from dataproxy.producer.tubemq.layout import Places
from dataproxy.shown import foreign
from dataproxy.types import Endpoint
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import BROKER_PORT, BROKER_TLS_PORT, Broker, Topic

if TYPE_CHECKING:
    import ssl

    from dataproxy.config import ProducerConfig

__all__ = ["LARGEST_MESSAGE", "MasterSession", "client_name", "proof_size"]

#: Most bytes of a message where a master names no other limit.
LARGEST_MESSAGE: Final = 1 << 20

_OK: Final = 200
_UNKNOWN: Final = 411
_CREDENTIALS: Final = 415
_NONE: Final = -2  # of a token or of settings: not known yet
_ALL: Final = -1  # of the list of brokers: send the whole one
_WHOLE_LIST_SECONDS: Final = 7200.0
_NONCES: Final = (1_000_000_000, 2**31)  # of ten digits each
_SIGNATURE: Final = 30  # characters of a signature in which nothing but its last character is escaped
_STAMP: Final = 13  # digits of a time in ms, until the year 2286
_WEB: Final = "48545450"  # "HTTP"

_numbers = itertools.count(1)


def client_name(target: Target) -> str:
    """Return a name that no other producer has: address, process, time, and a number."""
    ms = time.time_ns() // 1_000_000
    return f"{_own_address(target.masters[0])}-{os.getpid()}-{ms}-{next(_numbers)}-Python-{__version__}"


def _own_address(master: Address) -> str:
    """Return the address by which this machine reaches a master; no packet is sent, and no name is looked up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            socket.inet_pton(family, master.host)
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((master.host, master.port))
                return str(probe.getsockname()[0]).replace(":", "_").partition("%")[0]
    return "127.0.0.1"


def proof_size(user: str) -> int:
    """Return the bytes of what proves to a broker who ``user`` is, 0 without a user; each such text has as many."""
    return len(user.encode()) + 1 + _STAMP + 1 + 10 + 1 + _SIGNATURE if user else 0


class MasterSession:
    """A producer as the masters know it.  One thread at a time.

    ``context``: for TLS, None for plain connections.
    """

    def __init__(
        self,
        config: ProducerConfig,
        target: Target,
        name: str,
        context: Callable[[], ssl.SSLContext] | None,
    ) -> None:
        self._config, self._target, self._name, self._context = config, target, name, context
        self._masters = list(target.masters)
        self._connection: MasterConnection | None = None
        self._registered = False
        self._list_version = _ALL
        self._list_since = 0.0
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, Topic] = {}
        self._settings_version = _NONE
        self._largest = LARGEST_MESSAGE
        self._token = _NONE
        self._random = random.SystemRandom()
        self._answer: Any = None  # of the newest call

    @property
    def registered(self) -> bool:
        """Tell whether a master knows this producer."""
        return self._registered

    @property
    def places(self) -> Places:
        """Return the brokers, and what they have of each topic."""
        return Places(dict(self._brokers), dict(self._topics))

    @property
    def largest(self) -> int:
        """Return the most bytes of a message that all topics in use take, its attributes included."""
        return min((one.largest for one in self._topics.values() if one.largest), default=self._largest)

    @property
    def admission(self) -> tuple[int, bytes]:
        """Return what brokers are shown: the masters' token, and a new proof of the user."""
        signature = self._signature()
        return self._token, b"" if signature is None else signature.token.encode()

    def refresh(self, topics: Sequence[str]) -> None:
        """Register if need be, and ask about ``topics``.  Raises DiscoveryError.

        Topics that the answer does not have take no messages now, or are not known.
        """
        if not self._registered:
            self._register(topics)
        answer = self._heartbeat(topics)
        if answer.errCode == _UNKNOWN:  # the master has forgotten it, or is another one
            self._register(topics)
            answer = self._heartbeat(topics)
        self._check(answer)
        self._learn(answer)
        self._topics = self._read_topics(answer)
        if any(part.broker not in self._brokers for topic in self._topics.values() for part in topic.parts):
            self._list_version = _ALL

    def leave(self) -> None:
        """Tell the master that this producer ends, if one answers at once; end the connection."""
        if self._registered and self._connection is not None:
            with contextlib.suppress(OSError, ServerFault, RemoteProtocolError):
                self._connection.ask("CloseRequestP2M", self._message("CloseRequestP2M"), 1.0)
        self._registered = False
        self._drop()

    def _register(self, topics: Sequence[str]) -> None:
        self._list_version, self._settings_version = _ALL, _NONE
        answer = self._ask("RegisterRequestP2M", topicList=topics, jdkVersion="", **self._known())
        self._check(answer)
        self._learn(answer)
        self._registered = True
        self._list_version = _ALL  # the next answer has the whole list, whatever happened in between

    def _heartbeat(self, topics: Sequence[str]) -> Any:
        if time.monotonic() - self._list_since > _WHOLE_LIST_SECONDS:
            self._list_version = _ALL
        return self._ask("HeartRequestP2M", topicList=topics, **self._known())

    def _known(self) -> dict[str, Any]:
        """Return what every call but the last one tells."""
        return {
            "brokerCheckSum": self._list_version,
            "hostName": "",  # this machine's address, once there is a connection
            "appdConfig": messages.ApprovedClientConfig(configId=self._settings_version),
        }

    def _learn(self, answer: Any) -> None:
        """Take the brokers, the token and the settings of an answer.  Raises DiscoveryError."""
        try:
            usual = BROKER_TLS_PORT if self._target.tls else BROKER_PORT
            brokers = [Broker.read(text, usual) for text in answer.brokerInfos]
        except ValueError as error:
            raise self._unreadable(error) from None
        if brokers:
            self._brokers = {one.id: one for one in brokers}
            self._list_version, self._list_since = answer.brokerCheckSum, time.monotonic()
        if answer.HasField("authorizedInfo"):
            self._token = answer.authorizedInfo.visitAuthorizedToken
        if answer.HasField("appdConfig"):
            self._settings_version = answer.appdConfig.configId
            if answer.appdConfig.HasField("maxMsgSize"):
                self._largest = answer.appdConfig.maxMsgSize

    def _read_topics(self, answer: Any) -> dict[str, Topic]:
        try:
            found = [Topic.read(text) for text in answer.topicInfos]
        except ValueError as error:
            raise self._unreadable(error) from None
        return {topic.name: topic for topic in found}

    def _unreadable(self, error: ValueError) -> DiscoveryError:
        return DiscoveryError(f"the master at {self._where(self._masters[0])} answers what cannot be read: {error}")

    def _check(self, answer: Any) -> None:
        if answer.errCode == _OK:
            return
        said = foreign(answer.errMsg)
        hint = "give the options user and password" if answer.errCode == _CREDENTIALS and not self._config.user else ""
        raise DiscoveryError(
            f"the master at {self._where(self._masters[0])} refuses a producer with code {answer.errCode}: '{said}'",
            hint=hint,
            details={"code": answer.errCode, "text": said},
        )

    def _ask(self, name: str, **fields: Any) -> Any:
        """Make a call to the master in use, or to the next one that answers.  Raises DiscoveryError."""
        faults: list[str] = []
        for _ in range(len(self._masters)):
            for kept in (self._connection is not None, False):  # a connection that was kept may have ended unseen
                fault = self._tried(name, fields, faults)
                if fault is None or not kept:
                    break
                faults.pop()
            if fault is None:
                return self._answer
            self._masters.append(self._masters.pop(0))
        web = any(_WEB in fault for fault in faults)
        raise DiscoveryError(
            f"no master of {self._config.target} answers: {'; '.join(faults)}",
            hint="this is the port of a web server; a master's port for clients is 8715 unless configured"
            if web
            else "check the addresses, and that a master runs",
            details={"masters": faults},
        )

    def _tried(self, name: str, fields: dict[str, Any], faults: list[str]) -> str | None:
        """Make a call to the first master; return what was wrong, which is also added to ``faults``."""
        where = self._where(self._masters[0])
        try:
            connection = self._connected()
            if "hostName" in fields:
                fields["hostName"] = connection.own_host
            self._answer = connection.ask(name, self._message(name, **fields), self._config.manager_timeout)
        except ServerFault as error:
            fault = str(error)
        except DataProxyError as error:  # it speaks another protocol
            fault = error.message
        except OSError as error:
            fault = fault_text(error)
        else:
            return None
        self._drop()
        faults.append(f"{where}: {fault}")
        return fault

    def _message(self, name: str, **fields: Any) -> Any:
        signature = self._signature()
        if signature is not None:
            info = messages.AuthenticateInfo(
                userName=signature.user,
                timestamp=signature.time_ms,
                nonce=signature.nonce,
                othParams="",
                signature=signature.signature,
            )
            fields["authInfo"] = messages.MasterCertificateInfo(authInfo=info)
        kind: Any = getattr(messages, name)
        return kind(clientId=self._name, **fields)

    def _signature(self) -> Signature | None:
        """Return a new signature, always of the same length, so that it fits into requests that were framed before."""
        user, password = self._config.user, self._config.password.reveal()
        while user:
            found = Signature.make(user, password, time.time_ns() // 1_000_000, self._random.randrange(*_NONCES))
            if len(found.signature) == _SIGNATURE:
                return found
        return None

    def _connected(self) -> MasterConnection:
        """Return the connection to the master in use.  Raises OSError."""
        if self._connection is None:
            host, port = self._masters[0]
            context = self._context() if self._context is not None else None
            name = self._config.tls_server_name or host
            self._connection = MasterConnection(host, port, context, name, self._config.connect_timeout)
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @staticmethod
    def _where(address: Address) -> str:
        return str(Endpoint(*address))
