"""A master of TubeMQ: brokers, producers, groups of consumers, and who may read what.

It decides, and does nothing by itself: a call and the time come in, an answer goes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable
from typing import Any, Final

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.brokers.registry import Brokers
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import RefusedError, failure
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.cluster.rules import Rules, Tokens
from dataproxy.hub.tubemq.groups.choosers import Choosers
from dataproxy.hub.tubemq.groups.consumers import Consumers
from dataproxy.hub.tubemq.producers import Producers
from dataproxy.wire.tubemq.flow import FlowRules
from dataproxy.wire.tubemq.texts import Broker

__all__ = ["Master"]

_LARGEST_BODY: Final = 1 << 20


class Master:
    """The only master.  One thread; ``now`` is in seconds of a monotonic clock.

    ``layout``: the brokers and topics, which may change at any time between calls.  ``clients``: the registry, shared
    with other protocols; this master adds its kinds to it.  ``version`` is higher than all numbers that an earlier
    master has given to flow rules: the time of day in ms will do.  ``first_token``: the lowest number that clients get
    to show at brokers, if ``tokens`` are not given.  ``admit``: which hubs may be brokers of this cluster, besides
    those that were declared.  ``wanted`` is called with the topics that a client names and its address, before it is
    answered.  ``returning``: the groups that wait for the first balance; None: all.  ``follow``: who keeps groups to
    their flow rules besides themselves.
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
        tokens: Tokens | None = None,
        admit: Callable[[Broker], bool] = lambda broker: False,
        wanted: Callable[[Iterable[str], str], None] | None = None,
        returning: Container[str] | None = None,
        follow: Callable[[str | None, FlowRules], None] = lambda group, rules: None,
    ) -> None:
        limits = limits if limits is not None else MasterLimits()
        self._clients, self._layout, self._limits, self._wanted = clients, layout, limits, wanted
        self._access = access if access is not None else Access()
        self._room = Room(limits.memory_bytes)
        self.rules = Rules(version, follow)
        self.tokens = tokens if tokens is not None else Tokens(first_token, limits.token_s, now)
        self.brokers = Brokers(clients, layout, limits, self._room, self.rules, self.tokens, max_body, version, admit)
        self._producers = Producers(clients, layout, limits, self._room, max_body)
        self.consumers = Consumers(
            clients,
            layout,
            self._access,
            limits,
            self._room,
            source,
            now,
            elsewhere=self._is_chosen,
            returning=returning,
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
            "RegisterRequestB2M": self.brokers.register,
            "HeartRequestB2M": lambda request, _, now: self.brokers.heartbeat(request, now),
            "CloseRequestB2M": lambda request, _, now: self.brokers.close(request, now),
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
            if self._wanted is not None and "topicList" in request.DESCRIPTOR.fields_by_name:
                self._wanted(request.topicList, peer)
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

    def begin_again(self, now: float, least: int) -> None:
        """Forget all clients and brokers, as a master does that begins to lead; what rules say stays.

        Versions go on from ``least``: clients take an equal number for the same text, whichever master it is of.
        """
        for one in (self.consumers, self.choosers, self._producers):
            one.begin_again(now)
        self.brokers.forget()
        self._layout.raise_version(least)
        self.rules.raise_numbers(least)

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
