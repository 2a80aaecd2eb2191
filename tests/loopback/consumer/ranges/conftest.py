"""A server with a topic whose partition has its store for itself, and one whose three partitions share theirs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from dataproxy.config import ConsumerConfig, load_consumer_config
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.places import Place, find_places
from tests.support.tubeserver import TubeServer

INDEX = 28
COUNT = 150


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer({"one": 1, "three": 3}, pack_bytes=1500) as running:
        yield running


@pytest.fixture
def config(server: TubeServer) -> ConsumerConfig:
    return load_consumer_config(server.target, "g", ["one", "three"], env={})


@pytest.fixture
def calls(config: ConsumerConfig) -> Iterator[Calls]:
    with Calls(config) as running:
        yield running


@pytest.fixture
def places(config: ConsumerConfig) -> dict[str, Place]:
    return find_places(config)


class Filled:
    """Messages of a topic: (offset, partition, body), in their order."""

    def __init__(self, server: TubeServer) -> None:
        self._server, self._source = server, random.Random(7)
        self.topics: dict[str, list[tuple[int, int, bytes]]] = {"one": [], "three": []}

    def add(self, topic: str, count: int) -> None:
        """Store messages in partitions by chance."""
        for _ in range(count):
            partition = self._source.randrange(self._server.settings.topics[topic])
            body = b"%d " % len(self.topics[topic]) + self._source.randbytes(self._source.choice([3, 400]))
            at = self._server.put(topic, body, partition, f"$msgType$=t{len(self.topics[topic]) % 3}")
            self.topics[topic].append((at, partition, body))

    def between(self, place: Place, begin: int, end: int) -> list[bytes]:
        """Return what a range of a partition has."""
        return [body for at, where, body in self.topics[place.topic] if begin <= at < end and where == place.partition]


@pytest.fixture
def filled(server: TubeServer) -> Filled:
    found = Filled(server)
    found.add("one", COUNT)
    found.add("three", COUNT)
    return found
