"""Texts inside of TubeMQ's messages: brokers, partitions, topics, subscriptions, filters, offsets.

Segments are joined by ``#``, attributes by ``:``, lists by ``,``; each class reads one kind of text and writes it.
A text from a peer that is none of its kind raises ValueError, which says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

__all__ = [
    "BROKER_PORT",
    "BROKER_TLS_PORT",
    "STORE_BASE",
    "Broker",
    "Condition",
    "Failure",
    "Partition",
    "Subscription",
    "Topic",
    "TopicPart",
    "join_held",
    "join_offsets",
    "partition_ids",
    "read_meta",
    "read_offset",
    "write_offset",
]

BROKER_PORT = 8123
BROKER_TLS_PORT = 8124
STORE_BASE = 10000
_MOST_PARTS = 1 << 16  # partitions of one broker's entry: a text of a few bytes must not make a list of millions
_MOST_OF_TOPIC = 1 << 20  # the same of all brokers' entries together
_SHOWN = 200
_OFFSET = re.compile(r"(?:(-?[0-9]{1,20})-)?(-?[0-9]{1,20})")


def _bad(kind: str, text: str, why: str) -> ValueError:
    shown = repr(text[:_SHOWN]) + ("..." if len(text) > _SHOWN else "")
    return ValueError(f"{shown} is no {kind}: {why}")


def _number(text: str, kind: str, whole: str, what: str, most: int = 2**31 - 1) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) < 20 and int(stripped) <= most):
        raise _bad(kind, whole, f"its {what} is {text[:_SHOWN]!r}, expected a number from 0 to {most}")
    return int(stripped)


class Broker(NamedTuple):
    """A broker, ``id:host:port``."""

    id: int
    host: str
    port: int

    @classmethod
    def read(cls, text: str, default_port: int = BROKER_PORT) -> Self:
        """Read a broker; a master writes a blank in the place of a default port."""
        number, _, rest = text.partition(":")
        host, colon, port = rest.rpartition(":")
        host = host.strip()
        if not colon or not host:
            raise _bad("broker", text, "expected 'id:host:port'")
        id_ = _number(number, "broker", text, "id")
        return cls(id_, host, _number(port, "broker", text, "port", 65535) if port.strip() else default_port)

    def __str__(self) -> str:
        return f"{self.id}:{self.host}:{self.port}"


class Partition(NamedTuple):
    """A partition of a topic at a broker, ``id:host:port#topic:partition``."""

    broker: Broker
    topic: str
    id: int

    @classmethod
    def read(cls, text: str, default_port: int = BROKER_PORT) -> Self:
        """Read a partition."""
        broker, hash_, rest = text.partition("#")
        topic, colon, number = rest.partition(":")
        if not hash_ or not colon or not topic.strip():
            raise _bad("partition", text, "expected 'id:host:port#topic:partition'")
        return cls(Broker.read(broker, default_port), topic.strip(), _number(number, "partition", text, "partition"))

    @property
    def key(self) -> str:
        """Return what it is known by at every address of its broker: ``id:topic:partition``."""
        return f"{self.broker.id}:{self.topic}:{self.id}"

    def __str__(self) -> str:
        return f"{self.broker}#{self.topic}:{self.id}"


class Subscription(NamedTuple):
    """A partition that a consumer holds, or shall hold: ``consumer@group#partition``."""

    consumer: str
    group: str
    partition: Partition

    @classmethod
    def read(cls, text: str, default_port: int = BROKER_PORT) -> Self:
        """Read a subscription."""
        who, hash_, rest = text.partition("#")
        consumer, at, group = who.partition("@")
        if not hash_ or not at or not consumer.strip() or not group.strip():
            raise _bad("subscription", text, "expected 'consumer@group#id:host:port#topic:partition'")
        return cls(consumer.strip(), group.strip(), Partition.read(rest, default_port))

    def __str__(self) -> str:
        return f"{self.consumer}@{self.group}#{self.partition}"


class Failure(NamedTuple):
    """A partition that a broker's heartbeat answer refuses: ``code:partition``."""

    code: int
    partition: Partition

    @classmethod
    def read(cls, text: str, default_port: int = BROKER_PORT) -> Self:
        """Read a failure."""
        code, colon, rest = text.partition(":")
        if not colon:
            raise _bad("failure", text, "expected 'code:id:host:port#topic:partition'")
        return cls(_number(code, "failure", text, "code"), Partition.read(rest, default_port))

    def __str__(self) -> str:
        return f"{self.code}:{self.partition}"


def partition_ids(partitions: int, stores: int) -> list[int]:
    """Return the ids of all partitions of ``stores`` stores with ``partitions`` each."""
    return [store * STORE_BASE + i for store in range(stores) for i in range(partitions)]


class TopicPart(NamedTuple):
    """What one broker has of a topic."""

    broker: int
    partitions: int
    stores: int

    @property
    def ids(self) -> list[int]:
        """Return the ids of its partitions."""
        return partition_ids(self.partitions, self.stores)


class Topic(NamedTuple):
    """Where a topic takes messages: ``topic#broker:partitions:stores,...#largest``; the last part may be missing."""

    name: str
    parts: tuple[TopicPart, ...]
    largest: int | None  #: bytes of a message, where the topic has a limit of its own

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a topic."""
        name, *segments = (segment.strip() for segment in text.split("#"))
        if not name or not 1 <= len(segments) <= 2:
            raise _bad("topic", text, "expected 'topic#broker:partitions:stores,...'")
        parts = []
        for item in filter(None, segments[0].split(",")):
            fields = item.split(":")
            if len(fields) != 3:
                raise _bad("topic", text, f"{item[:_SHOWN]!r} is not 'broker:partitions:stores'")
            part = TopicPart(*(_number(field, "topic", text, "part") for field in fields))
            if part.partitions * part.stores > _MOST_PARTS:
                raise _bad("topic", text, f"{item!r} are more than {_MOST_PARTS} partitions")
            parts.append(part)
        if sum(part.partitions * part.stores for part in parts) > _MOST_OF_TOPIC:
            raise _bad("topic", text, f"its brokers have more than {_MOST_OF_TOPIC} partitions")
        largest = segments[1] if len(segments) == 2 else ""
        return cls(name, tuple(parts), _number(largest, "topic", text, "largest message") if largest else None)

    def __str__(self) -> str:
        parts = ",".join(f"{part.broker}:{part.partitions}:{part.stores}" for part in self.parts)
        return f"{self.name}#{parts}#{'' if self.largest is None else self.largest}"


class Condition(NamedTuple):
    """The filter items of a topic: ``topic#item,item``.  Without items it is not written: a master fails on it."""

    topic: str
    items: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a condition; one without items, as a client of Go sends it, asks for all messages."""
        topic, hash_, rest = text.partition("#")
        if not hash_ or not topic.strip():
            raise _bad("filter", text, "expected 'topic#item,item'")
        return cls(topic.strip(), tuple(item.strip() for item in rest.split(",") if item.strip()))

    def __str__(self) -> str:
        return f"{self.topic}#{','.join(self.items)}"


def join_offsets(offsets: Mapping[str, int]) -> str:
    """Return the offsets that a bound group begins at, by the keys of partitions: ``key=offset,key=offset``."""
    return ",".join(f"{key}={offset}" for key, offset in offsets.items())


def join_held(topic: str, held: Iterable[tuple[int, int]]) -> str:
    """Return what a client that chooses its partitions holds, (broker, partition): ``topic#id:partition,...``."""
    return f"{topic}#{','.join(f'{broker}:{partition}' for broker, partition in held)}"


def read_meta(text: str) -> tuple[str, tuple[tuple[TopicPart, bool], ...]]:
    """Read what can be subscribed of a topic: ``topic#broker:stores:partitions:status,...``.

    Stores stand before partitions here.  Each part comes with whether it can be subscribed now.
    """
    topic, hash_, rest = text.partition("#")
    if not hash_ or not topic.strip():
        raise _bad("topic", text, "expected 'topic#broker:stores:partitions:status,...'")
    parts = []
    for item in filter(None, rest.split(",")):
        fields = item.split(":")
        if len(fields) != 4:
            raise _bad("topic", text, f"{item[:_SHOWN]!r} is not 'broker:stores:partitions:status'")
        broker, stores, partitions, status = (_number(field, "topic", text, "part") for field in fields)
        if partitions * stores > _MOST_PARTS:
            raise _bad("topic", text, f"{item!r} are more than {_MOST_PARTS} partitions")
        parts.append((TopicPart(broker, partitions, stores), status == 1))
    return topic.strip(), tuple(parts)


def read_offset(text: str) -> tuple[int, int]:
    """Read (message id, offset) of a node in ZooKeeper: ``id-offset``, or the offset alone."""
    found = _OFFSET.fullmatch(text.strip())
    if found is None or not -(2**63) <= int(found[2]) < 2**63:
        raise _bad("stored offset", text, "expected 'id-offset'")
    return int(found[1] or 0), int(found[2])


def write_offset(message: int, offset: int) -> str:
    """Return the text of a node in ZooKeeper."""
    return f"{message}-{offset}"
