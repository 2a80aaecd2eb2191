"""The hub's master in a simulated run, in the place of the model: it is called in the same way."""

from __future__ import annotations

import random
from typing import Any, Final

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.master import Master
from dataproxy.wire.tubemq.texts import Partition
from tests.simgroup.plan import Plan

__all__ = ["HUB_TICK_S", "HubMaster", "token_at"]

HUB_TICK_S: Final = 0.25
_TOKEN_S: Final = 20.0  # how long a master gives the same token; brokers know the last six


def token_at(now: float) -> int:
    """Return the newest token."""
    return 1_000_000 + int(now / _TOKEN_S)


class _Offline:
    """The brokers whose partitions nobody gets."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def add(self, broker: int) -> None:
        self._layout.set_online(broker, online=False)

    def discard(self, broker: int) -> None:
        self._layout.set_online(broker, online=True)


class HubMaster:
    """The leader of the masters; ``lead`` makes a new one, which knows brokers and topics and nothing else.

    Every second run has TubeMQ's own timing: changes wait for the period of the balance.
    """

    def __init__(self, plan: Plan, partitions: list[Partition], group: str, source: random.Random) -> None:
        self._group, self._random, self._auth = group, source, plan.auth
        self._limits = MasterLimits(
            consumer_s=plan.times.member_limit, balance_s=plan.times.balance, token_s=_TOKEN_S,
            soon_s=None if plan.seed % 2 else 0.2, first_balance_s=plan.times.balance,
        )  # fmt: skip
        self._layout = Layout()
        for broker in {one.broker for one in partitions}:
            topics = {topic: TopicAt(n) for topic, n in plan.topics.items()}
            self._layout.put(broker, topics)
        self.offline = _Offline(self._layout)
        self._rules: tuple[str, int] = ("", 0)
        self.lead(0.0)

    def lead(self, now: float) -> None:
        """Begin to lead."""
        access = Access({"u": "p"}) if self._auth else None
        self.clients = Clients()
        self.master = Master(
            self._layout, self.clients, self._random, now, access=access, limits=self._limits,
            version=int(now * 1000), first_token=token_at(now),
        )  # fmt: skip
        self._rules = ("", 0)

    @property
    def members(self) -> list[str]:
        """Return who is registered."""
        group = self.master.consumers.group(self._group)
        return list(group.members) if group is not None else []

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call, with the wall clock of the time since the run began."""
        return self.master.answer(request, request.clientId, now, int(now * 1000))

    def call_with_rules(self, request: Any, rules: tuple[str, int], now: float, wall_ms: int) -> Any:
        """Answer a call while these are the rules of the group."""
        if rules != self._rules:
            self._rules = rules
            self.master.rules.set(rules[0], self._group)
        return self.master.answer(request, request.clientId, now, wall_ms)

    def tick(self, now: float) -> None:
        """Let time pass."""
        self.master.tick(now)
