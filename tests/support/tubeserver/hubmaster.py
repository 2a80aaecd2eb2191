"""The hub's own master in the place of this folder's, before the same brokers."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import RefusedError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.master import Master
from dataproxy.wire.tubemq.texts import Broker
from tests.support.tubeserver.settings import Settings

__all__ = ["HubMaster"]


class _Rights(Access):
    """Rights as the settings have them at the time of a call."""

    def __init__(self, settings: Settings, users: Mapping[str, str] | None) -> None:
        super().__init__(users)
        self._settings = settings

    def check_rights(self, group: str, topics: AbstractSet[str], filters: Mapping[str, AbstractSet[str]]) -> None:
        """Refuse groups that may not register."""
        if self._settings.groups is not None and group not in self._settings.groups:
            raise RefusedError(450, f"{group} is not allowed")


class HubMaster:
    """Called as `master.Master` is.  One thread.

    ``settings`` mean the same, but for ``closed``, and for ``require_auth``, which ``users`` takes the place of.
    """

    def __init__(self, settings: Settings, brokers: list[Broker], users: Mapping[str, str] | None) -> None:
        self._settings, self._brokers, self._users = settings, brokers, users
        self._layout = Layout(time.time_ns() // 1_000_000)
        self.restart()

    def restart(self) -> None:
        """Forget producers and groups."""
        settings = self._settings
        limits = MasterLimits(
            producer_s=settings.producer_limit_s, consumer_s=settings.member_limit_s, balance_s=5.0,
            soon_s=settings.balance_s,
        )  # fmt: skip
        self._clients = Clients()
        self._master = Master(
            self._layout, self._clients, random.Random(settings.seed), time.monotonic(),
            access=_Rights(settings, self._users), limits=limits, max_body=settings.max_body_bytes or 0,
            version=time.time_ns() // 1_000_000, first_token=1_700_000_000_000,
        )  # fmt: skip
        self._set_rules(None, settings.cluster_rules)

    def _set_rules(self, group: str | None, text: str) -> None:
        """Set the rules of the cluster (None), or of a group."""
        if text:
            self._master.rules.set(text, group)

    def work(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        topics = {topic: TopicAt(n) for topic, n in self._settings.topics.items()}
        for broker in self._brokers:
            self._layout.put(broker, topics)
        return self._master.answer(request, "127.0.0.1", now, time.time_ns() // 1_000_000)

    def declare(self, broker: Broker, topics: Mapping[str, int]) -> None:
        """Let a broker of another process come."""
        self._master.brokers.declare(broker, {topic: TopicAt(n) for topic, n in topics.items()})

    def at_brokers(self, topic: str, now: float) -> set[int]:
        """Return the brokers at which a topic can be read now."""
        self._master.tick(now)
        return {one.broker.id for one in self._layout.partitions({topic})}

    @property
    def producers(self) -> list[str]:
        """Return the clients that are registered as producers."""
        return [name for name, _, _ in self._clients.each("producer")]

    def members(self, group: str, now: float) -> list[str]:
        """Return the clients of a group, in the order of their registration."""
        self._master.tick(now)
        found = self._master.consumers.group(group)
        if found is not None:
            return list(found.members)
        return [name.partition("@")[0] for name, _, value in self._clients.each("chooser") if value[0] == group]

    def held(self, group: str, client: str) -> tuple[str, ...]:
        """Return the partitions that a client which chooses has reported."""
        return self._master.choosers.held(group, client)
