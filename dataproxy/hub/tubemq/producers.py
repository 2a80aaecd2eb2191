"""Producers at the master: registrations, heartbeats and ends (1 to 3)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.tubemq.cluster.answers import NONE, UNKNOWN, RefusedError, success
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.groups.wishes import required_text

__all__ = ["Producers"]

KIND: Final = "producer"  #: in the registry of clients
_BYTES: Final = 512  # about
_CONFIG: Final = 1  # version of the settings that producers are told


class _Producer(NamedTuple):
    host: str
    peer: str


class Producers:
    """The producers that are registered.  One thread; times are seconds of a monotonic clock."""

    def __init__(self, clients: Clients, layout: Layout, limits: MasterLimits, room: Room, max_body: int) -> None:
        self._clients, self._layout, self._room, self._max_body = clients, layout, room, max_body
        clients.add_kind(KIND, limits.producer_s, self._ended, _identity)

    def begin_again(self, now: float) -> None:
        """Forget all producers."""
        self._clients.end_all(KIND, now)

    def register(self, request: Any, peer: str, now: float) -> Any:
        """Take a producer.  Raises RefusedError."""
        client, host = (required_text(request, field) for field in ("clientId", "hostName"))
        self._leave(client)
        self._room.take(peer, _BYTES)
        self._clients.register(KIND, client, _Producer(host, peer), now)
        return self._with_settings(request, brokerInfos=self._brokers())

    def heartbeat(self, request: Any, now: float) -> Any:
        """Tell a producer where its topics take messages.  Raises RefusedError."""
        client = required_text(request, "clientId")
        required_text(request, "hostName")
        if not self._clients.update(KIND, client, now):
            raise RefusedError(UNKNOWN, f"Invalid node id {client} the client may be timeout")
        parts = map(self._layout.published, sorted({topic.strip() for topic in request.topicList}))
        return self._with_settings(
            request,
            topicInfos=[str(one) for one in parts if one is not None],
            brokerInfos=[] if request.brokerCheckSum == self._layout.version else self._brokers(),
        )

    def close(self, request: Any, now: float) -> Any:
        """Let a producer go; one that is not known has gone already.  Raises RefusedError."""
        self._leave(required_text(request, "clientId"))
        return success(request.DESCRIPTOR.name)

    def _with_settings(self, request: Any, **fields: Any) -> Any:
        """Return an answer with the version of the brokers, and with the largest body for who does not know it."""
        answer = success(request.DESCRIPTOR.name, brokerCheckSum=self._layout.version, **fields)
        if request.HasField("appdConfig"):
            answer.appdConfig.configId = _CONFIG if self._max_body else NONE
            if self._max_body and request.appdConfig.configId != _CONFIG:
                answer.appdConfig.maxMsgSize = self._max_body
        return answer

    def _brokers(self) -> list[str]:
        return list(map(str, self._layout.brokers()))

    def _leave(self, client: str) -> None:
        self._clients.end(KIND, client, 0.0)

    def _ended(self, client: str, producer: _Producer, now: float, why: End) -> None:
        self._room.give(producer.peer, _BYTES)


def _identity(client: str, producer: _Producer) -> Identity:
    return Identity("tubemq", "producer", client, address=producer.peer)
