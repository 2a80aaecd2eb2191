"""Brokers, and the topics that they have."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from dataproxy.wire.tubemq.texts import Broker, Partition, Topic, TopicPart, partition_ids

__all__ = ["Layout", "TopicAt"]

_SEPARATORS: Final = frozenset("#:,@= \t\r\n")


class TopicAt(NamedTuple):
    """A topic at a broker: so many partitions in each of its stores, and what the broker takes and gives of it."""

    partitions: int
    stores: int = 1
    publish: bool = True
    subscribe: bool = True


@dataclass
class _At:
    broker: Broker
    topics: dict[str, TopicAt]
    online: bool


class Layout:
    """What brokers have.  One thread.  ``version`` grows with every change, from the number that it is made with."""

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self._brokers: dict[int, _At] = {}
        self._deployed: set[str] = set()
        self._readable: dict[str, dict[str, Partition]] = {}  # by topic and key, in order, made when asked for

    def put(self, broker: Broker, topics: Mapping[str, TopicAt], *, online: bool = True) -> None:
        """Add a broker, or say what one has now, and whether it can be reached.

        Topics whose names have a separator of TubeMQ's texts cannot be named there, and are left out.
        """
        named = {name: at for name, at in topics.items() if name and not _SEPARATORS & set(name)}
        if self._brokers.get(broker.id) != (found := _At(broker, named, online)):
            self._brokers[broker.id] = found
            self._changed()

    def set_online(self, broker: int, *, online: bool) -> None:
        """Say whether a broker can be reached; what it has stays deployed."""
        found = self._brokers.get(broker)
        if found is not None and found.online != online:
            found.online = online
            self._changed()

    def at(self, broker: int) -> Mapping[str, TopicAt]:
        """Return what a broker has."""
        found = self._brokers.get(broker)
        return found.topics if found is not None else {}

    def raise_version(self, least: int) -> None:
        """Go on from a version that is higher than the present one, and not below ``least``."""
        self.version = max(self.version + 1, least)

    def remove(self, broker: int) -> None:
        """Remove a broker with all that it has."""
        if self._brokers.pop(broker, None) is not None:
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._deployed = {name for one in self._brokers.values() for name in one.topics}
        self._readable.clear()

    def missing(self, topics: AbstractSet[str]) -> list[str]:
        """Return the topics that no broker has, whether on line or not."""
        return sorted(topics - self._deployed)

    def topics(self) -> list[str]:
        """Return all topics that a broker has, whether on line or not, by name."""
        return sorted(self._deployed)

    def places(self, topic: str) -> list[tuple[Broker, TopicAt, bool]]:
        """Return the brokers that have a topic, by their ids, with what they have and whether they are on line."""
        return [
            (one.broker, one.topics[topic], one.online)
            for _, one in sorted(self._brokers.items())
            if topic in one.topics
        ]

    def brokers(self) -> list[Broker]:
        """Return the brokers that are on line, by their ids."""
        return [one.broker for _, one in sorted(self._brokers.items()) if one.online]

    def published(self, topic: str) -> Topic | None:
        """Return where a topic takes messages; None if nowhere."""
        parts = tuple(
            TopicPart(one.broker.id, at.partitions, at.stores)
            for _, one in sorted(self._brokers.items())
            if one.online and (at := one.topics.get(topic)) is not None and at.publish
        )
        return Topic(topic, parts, None) if parts else None

    def metadata(self, topic: str) -> str:
        """Return what can be read of a topic, for who chooses partitions: ``topic#broker:stores:partitions:status``."""
        parts = (
            f"{one.broker.id}:{at.stores}:{at.partitions}:{int(at.subscribe)}"
            for _, one in sorted(self._brokers.items())
            if one.online and (at := one.topics.get(topic)) is not None
        )
        return f"{topic}#{','.join(parts)}"

    def partitions(self, topics: AbstractSet[str]) -> list[Partition]:
        """Return all partitions of some topics that can be read now, by topic, broker and number."""
        return [one for name in sorted(topics) for one in self._of_topic(name).values()]

    def count(self, topics: AbstractSet[str]) -> int:
        """Return how many partitions of some topics can be read now."""
        return sum(len(self._of_topic(name)) for name in topics)

    def find(self, topic: str, key: str) -> Partition | None:
        """Return a partition that can be read now by its topic and key; None if there is none."""
        return self._of_topic(topic).get(key)

    def _of_topic(self, name: str) -> dict[str, Partition]:
        found = self._readable.get(name)
        if found is None:
            there = (
                Partition(one.broker, name, number)
                for _, one in sorted(self._brokers.items())
                if one.online and (at := one.topics.get(name)) is not None and at.subscribe
                for number in partition_ids(at.partitions, at.stores)
            )
            found = {one.key: one for one in there}
            if name in self._deployed:  # names that nobody has are not kept
                self._readable[name] = found
        return found
