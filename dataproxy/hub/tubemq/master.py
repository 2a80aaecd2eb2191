"""A master of TubeMQ: producers, groups of consumers, and who may read what.

It decides, and does nothing by itself: a call and the time come in, an answer goes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.access import Access
from dataproxy.hub.tubemq.answers import RefusedError, failure
from dataproxy.hub.tubemq.choosers import Choosers
from dataproxy.hub.tubemq.consumers import Consumers
from dataproxy.hub.tubemq.layout import Layout
from dataproxy.hub.tubemq.limits import MasterLimits
from dataproxy.hub.tubemq.producers import Producers
from dataproxy.hub.tubemq.room import Room
from dataproxy.hub.tubemq.rules import Rules, Tokens

__all__ = ["Master"]

_LARGEST_BODY: Final = 1 << 20


class Master:
    """The only master.  One thread; ``now`` is in seconds of a monotonic clock.

    ``layout``: the brokers and topics, which may change at any time between calls.  ``clients``: the registry, shared
    with other protocols; this master adds its kinds to it.  ``version`` is higher than all numbers that an earlier
    master has given to flow rules: the time of day in ms will do.  ``first_token``: the lowest number that clients get
    to show at brokers.
    """

    def __init__(
        self,
        layout: Layout,
        clients: Clients,
        source: random.Random,
        now: float,
        *,
        access: Access | None = None,
        limits: MasterLimits | None = None,
        max_body: int = _LARGEST_BODY,
        version: int,
        first_token: int = 1,
    ) -> None:
        limits = limits if limits is not None else MasterLimits()
        self._clients, self._limits = clients, limits
        self._access = access if access is not None else Access()
        self._room = Room(limits.memory_bytes)
        self.rules = Rules(version)
        self.tokens = Tokens(first_token, limits.token_s, now)
        self._producers = Producers(clients, layout, limits, self._room, max_body)
        self.consumers = Consumers(
            clients, layout, self._access, limits, self._room, source, now, elsewhere=self._is_chosen
        )
        self.choosers = Choosers(clients, layout, self._access, limits, self._room, elsewhere=self._is_divided)
        self._calls: dict[str, Callable[[Any, str, float], Any]] = {
            "RegisterRequestP2M": self._producers.register,
            "HeartRequestP2M": lambda request, _, now: self._producers.heartbeat(request, now),
            "CloseRequestP2M": lambda request, _, now: self._producers.close(request, now),
            "RegisterRequestC2M": self.consumers.register,
            "HeartRequestC2M": lambda request, _, now: self.consumers.heartbeat(request, now),
            "CloseRequestC2M": lambda request, _, now: self._close(request, now),
            "RegisterRequestC2MV2": self.choosers.register,
            "HeartRequestC2MV2": lambda request, _, now: self.choosers.heartbeat(request, now),
            "GetPartMetaRequestC2M": lambda request, _, now: self.choosers.metadata(request, now),
        }

    def answer(self, request: Any, peer: str, now: float, wall_ms: int) -> Any:
        """Return the answer to a request, which is a message of the schema.

        ``peer`` is the address it came from.  ``wall_ms`` is the time of day, which signatures are compared with.
        """
        self.tick(now)
        name = request.DESCRIPTOR.name
        try:
            token = self._access.check_proof(request, wall_ms, self._limits.clocks_apart_s)
            answer = self._calls[name](request, peer, now)
        except RefusedError as error:
            return failure(name, error)
        fields = answer.DESCRIPTOR.fields_by_name
        if "authorizedInfo" in fields:
            answer.authorizedInfo.visitAuthorizedToken = self.tokens.newest(now)
            if token:
                answer.authorizedInfo.authAuthorizedToken = token
        if "requireAuth" in fields and self._access.is_asked:
            answer.requireAuth = True
        if "defFlowCheckId" in fields:
            self.rules.tell(answer, request, request.groupName)
        elif "opsTaskInfo" in fields:
            self.rules.tell(answer.opsTaskInfo, request.opsTaskInfo, request.groupName)
            if self._access.is_asked:
                answer.opsTaskInfo.requireAuth = True
        return answer

    def tick(self, now: float) -> None:
        """Let time pass: clients that were silent for too long are gone, and groups are balanced."""
        self._clients.scan(now)
        self.consumers.tick(now)

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next."""
        return min(self._clients.next_scan, self.consumers.next_tick)

    @property
    def used_bytes(self) -> int:
        """Return the memory that clients have taken."""
        return self._room.used

    def _close(self, request: Any, now: float) -> Any:
        answer = self.consumers.close(request, now)
        self.choosers.close(request.groupName.strip(), request.clientId.strip())
        return answer

    def _is_divided(self, group: str) -> bool:
        return self.consumers.group(group) is not None

    def _is_chosen(self, group: str) -> bool:
        return self.choosers.has(group)
