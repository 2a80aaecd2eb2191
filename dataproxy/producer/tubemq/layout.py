"""Topics become clusters of brokers with partitions: without threads, calls or time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dataproxy.producer.discovery.clusters import Cluster, Picture
from dataproxy.types import ResolvedEndpoint
from dataproxy.wire.tubemq.texts import Broker, Topic

__all__ = ["Layout", "Places"]

_NOWHERE = -1
_ANY = -1


class Places(NamedTuple):
    """What masters say: where brokers are, and what they have of each topic."""

    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]

    def parts(self, topic: str) -> list[tuple[Broker, int, int]]:
        """Return (broker, stores, partitions in each) of a topic, in the order of the brokers' ids."""
        found = self.topics.get(topic)
        parts = () if found is None else found.parts
        return [
            (self.brokers[part.broker], part.stores, part.partitions)
            for part in sorted(parts)
            if part.broker in self.brokers and part.stores * part.partitions > 0
        ]

    def partitions(self, topic: str) -> list[tuple[Broker, int]]:
        """Return (broker, id of the partition) of all partitions of a topic, always in the same order."""
        topics = self.topics.get(topic)
        return [
            (self.brokers[part.broker], number)
            for part in sorted(() if topics is None else topics.parts)
            if part.broker in self.brokers
            for number in part.ids
        ]


class Layout:
    """Number clusters, and draw the picture of them.

    Topics that the same brokers have with the same partitions share a cluster.  Where messages have keys, each bucket
    of a topic's keys belongs to one partition, in turn, and goes to the cluster of its broker alone.  A number is never
    used again: so a broker whose partitions have changed gets new connections, which know them.
    """

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._numbers: dict[object, int] = {}
        self._last = 0

    @property
    def step(self) -> int:
        """Return how many numbers a topic has: its own, and one for each bucket of its keys."""
        return 1 + self._buckets

    def draw(
        self,
        topics: Sequence[str],
        places: Places,
        addresses: Callable[[Broker], Sequence[ResolvedEndpoint]],
        admission: tuple[int, bytes],
    ) -> Picture:
        """Return the clusters of ``topics``, which are in the order of their numbers.

        Messages for brokers without an address wait, as those of topics that no broker has.
        """
        clusters: dict[object, Cluster] = {}
        groups: list[int] = []
        fixed: list[int] = []

        def number_of(key: object, parts: Sequence[tuple[Broker, int, int]]) -> int:
            if key not in clusters:
                layouts: dict[str, tuple[int, int]] = {}
                proxies: list[ResolvedEndpoint] = []
                for broker, stores, partitions in parts:
                    found = [one._replace(node=str(broker.id)) for one in addresses(broker)]
                    proxies += found
                    layouts.update((one.label, (stores, partitions)) for one in found)
                if not proxies:
                    return _NOWHERE
                if key not in self._numbers:
                    self._last += 1
                    self._numbers[key] = self._last
                clusters[key] = Cluster(self._numbers[key], tuple(proxies), layouts)
            return clusters[key].number

        for topic in topics:
            parts = places.parts(topic)
            groups.append(number_of(tuple(parts), parts) if parts else _NOWHERE)
            fixed.append(_ANY)
            partitions = places.partitions(topic)
            for bucket in range(self._buckets):
                if not partitions:
                    groups.append(_NOWHERE)
                    fixed.append(_ANY)
                    continue
                broker, number = partitions[bucket % len(partitions)]
                groups.append(number_of(broker, [(broker, 0, 0)]))
                fixed.append(number)
        self._numbers = {key: self._numbers[key] for key in clusters}
        return Picture(tuple(clusters.values()), tuple(groups), tuple(fixed), admission)
