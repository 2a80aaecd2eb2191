"""Partitions of topics, and the brokers that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataproxy.consumer.group.asking import Address
from dataproxy.consumer.listing.topics import TopicPlace, list_topics
from dataproxy.errors import ConfigError, TransportError
from dataproxy.wire.tubemq.texts import partition_ids

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig

__all__ = ["Place", "find_places"]


class Place(NamedTuple):
    """A partition and its broker; ``alone``: it has its store for itself, so that its offsets have no gaps."""

    broker: int
    topic: str
    partition: int
    address: Address
    alone: bool

    @property
    def key(self) -> str:
        """Return what it is known by: ``broker:topic:partition``."""
        return f"{self.broker}:{self.topic}:{self.partition}"

    @property
    def text(self) -> str:
        """Return it as heartbeats to its broker name it: ``broker:host:port#topic:partition``."""
        return f"{self.broker}:{self.address.host}:{self.address.port}#{self.topic}:{self.partition}"


def find_places(config: ConsumerConfig) -> dict[str, Place]:
    """Return the partitions of the topics of ``config`` by their keys, as a master tells them.

    A master tells the partitions that take messages.  Raises ConfigError for a topic that it does not tell, and what
    `list_topics` raises.
    """
    listing = list_topics(config)
    if listing.missing:
        raise ConfigError(
            f"master {listing.master} does not know topics {', '.join(listing.missing)}, or no broker takes their"
            " messages now",
            hint="check their names: 'dataproxy topics NAME' says what a master knows",
            details={"topics": listing.missing},
        )
    found = [place for topic in listing.topics for one in topic.places for place in _places(topic.name, one)]
    return {place.key: place for place in sorted(found)}


def _places(topic: str, one: TopicPlace) -> list[Place]:
    if not one.host:
        raise TransportError(
            f"broker {one.broker} has partitions of {topic}, and the master does not say where it is",
            code="NO_BROKER",
            hint="the broker may be starting: try again",
            details={"broker": one.broker, "topic": topic},
        )
    address, alone = Address(one.host, one.port), one.partitions_per_store == 1
    ids = partition_ids(one.partitions_per_store, one.stores)
    return [Place(one.broker, topic, number, address, alone) for number in ids]
