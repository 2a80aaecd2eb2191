"""TubeMQ's Java client at the hub's own master, with a broker in plain Python behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.javaclients import JAVA_SECONDS, LEFT_OUT_OF_COUNT, Java
from tests.support.javaclients import bodies_of as bodies
from tests.support.tubekit import link_jars
from tests.support.tubeserver import TubeServer

pytestmark = pytest.mark.timeout(400)

TOPICS = {"one": 1, "three": 3}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[TubeServer]:
    with TubeServer(topics=TOPICS, hub_master=True, users=getattr(request, "param", None)) as server:
        yield server


@pytest.fixture
def java(server: TubeServer, tmp_path: Path) -> Iterator[Java]:
    link_jars(tmp_path)
    with Java(tmp_path, server.master_port) as java:
        yield java


def wait_for(what: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + JAVA_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def owners(server: TubeServer) -> list[str | None]:
    """Return who has the partitions of topic three."""
    return [server.owner("readers", "three", i) for i in range(3)]


def test_it_produces(server: TubeServer, java: Java) -> None:
    java.told(java.begin("produce", "three", "30"))
    stored = server.stored("three")
    assert len(stored) == 30
    assert {one.partition for one in stored} == {0, 1, 2}
    assert server.producers == []


@pytest.mark.parametrize("way", ["pull", "push"])
def test_members_come_and_go(server: TubeServer, java: Java, way: str) -> None:
    first = java.begin(way, "three", "readers", str(LEFT_OUT_OF_COUNT), "heartbeat=1000", "seconds=600")
    wait_for(lambda: None not in owners(server))
    (alone,) = set(owners(server))
    second = java.begin(way, "three", "readers", "10", "heartbeat=1000", "seconds=300")  # as many as a partition gets
    wait_for(lambda: None not in owners(server) and len(set(owners(server))) == 2)
    assert sorted(owners(server).count(one) for one in set(owners(server))) == [1, 2]
    for i in range(30):
        server.put("three", b"m%d" % i, i % 3)
    assert len(bodies(java.told(second))) >= 10  # it has left in order
    wait_for(lambda: owners(server) == [alone] * 3)
    assert server.members("readers") == [alone]
    server.stop_master()  # it forgets its members, and they come back with what they hold
    server.start_master()
    wait_for(lambda: server.members("readers") == [alone])
    assert owners(server) == [alone] * 3
    wait_for(
        lambda: all((server.confirmed("readers", "three", i) or 0) >= server.end("three") - 2 * 28 for i in range(3))
    )
    first.terminate()


@pytest.mark.parametrize("server", [{"u": "p"}], indirect=True)
def test_it_signs(server: TubeServer, java: Java) -> None:
    java.told(java.begin("produce", "one", "3", "user=u", "password=p"))
    assert len(server.stored("one")) == 3
    java.told(java.begin("produce", "one", "3", "user=u", "password=wrong", "seconds=5"), 1)
    assert len(server.stored("one")) == 3


def test_a_bound_group_begins_where_it_says(server: TubeServer, java: Java) -> None:
    for i in range(6):
        server.put("one", b"b%d" % i)
    lines = java.told(java.begin("pull", "one", "readers", "4", "heartbeat=1000", "offsets=1:one:0@56"))
    assert bodies(lines) == ["b2", "b3", "b4", "b5"]


def test_filters_of_a_group(server: TubeServer, java: Java) -> None:
    for i in range(6):
        server.put("one", b"f%d" % i, attribute=f"$msgType$={'ab'[i % 2]}")
    lines = java.told(java.begin("pull", "one", "readers", "3", "heartbeat=1000", "filters=b"))
    assert bodies(lines) == ["f1", "f3", "f5"]
    java.told(java.begin("pull", "one", "others", "6", "heartbeat=1000"))
