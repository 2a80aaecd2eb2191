"""Parts of a master for tests of its administration: groups by calls of clients, and offsets in a dictionary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.tubemq.admin.parts import Parts, Positions, read_positions
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from tests.support.mastercalls import BROKER, Cluster

__all__ = ["Administered"]


class Administered(Cluster):
    """A master over topics; ``stored`` are the first and next offsets of partitions by topic."""

    def __init__(self, topics: dict[str, int] | None = None, *, most_bytes: int = 1 << 24, **more: Any) -> None:
        access = Access()
        super().__init__(topics, access=access, **more)
        self.topics = dict(topics or {"t": 4})
        self.full = False
        self.stored: dict[str, dict[int, tuple[int, int]]] = {}
        self.registrations = RegistrationsCore(b"0123456789abcdef", 30_000_000, most_bytes)
        self.parts = Parts(
            BROKER.id, self.layout, self.layout, self.master.consumers, self.master.choosers, self.master.rules, access,
            self.registrations, lambda topic: self.stored.get(topic, {}), self.name, 4,
        )  # fmt: skip

    @property
    def positions(self) -> Positions:
        """Where all groups are."""
        return read_positions(self.registrations)

    def name(self, topics: Iterable[str]) -> None:
        """Let topics exist, while the hub takes further ones."""
        if not self.full:
            self.topics |= dict.fromkeys(topics, 4)
            self.layout.put(BROKER, {name: TopicAt(n) for name, n in self.topics.items()})

    def read(
        self, group: str, partition: int, position: int, *, topic: str = "t", client: str = "", more: int = 0
    ) -> None:
        """Let a group be somewhere, with a member that reads there and has ``more`` bytes unconfirmed."""
        key = (group.encode(), topic.encode(), partition)
        if client:
            assert self.registrations.take(*key, client.encode(), b"", 0)[0] == 200
        self.registrations.restore(*key, position)
        if more:
            self.registrations.book(*key, more, matched=True, manual=False)
