"""TubeMQ's Java client 1.5.0 at a hub, which is its master and its broker."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Consumer, Producer
from dataproxy.hub import Hub
from tests.support.consumers import next_pack
from tests.support.javaclients import JAVA_SECONDS, LEFT_OUT_OF_COUNT, Java, bodies_of
from tests.support.tubekit import link_jars
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.timeout(400)
FAST = "heartbeat=1000"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "store", tubemq_port=0, partitions=3) as hub:
        yield hub


@pytest.fixture
def java(hub: Hub, tmp_path: Path) -> Iterator[Java]:
    link_jars(tmp_path)
    with Java(tmp_path, hub.tubemq_port, "1.5.0") as java:
        yield java


def wait_for(what: Callable[[], object]) -> None:
    """Wait until something holds that Java processes do."""
    deadline = time.monotonic() + JAVA_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_it_is_that_client(java: Java, tmp_path: Path) -> None:
    java.told(java.begin("produce", "three", "1"))
    assert {one.name for one in (tmp_path / "lib" / "tubemq-1.5.0").glob("tubemq-c*")} == {
        "tubemq-client-1.5.0.jar", "tubemq-core-1.5.0.jar",
    }  # fmt: skip


@pytest.mark.parametrize("way", ["async=false", "async=true"])
def test_what_it_sends_is_stored_and_reaches_our_consumer(hub: Hub, java: Java, way: str) -> None:
    java.told(java.begin("produce", "three", "60", "filters=a,b", "attr.k=v", way))
    stored = list(hub.records("three"))
    assert len({one.body for one in stored}) == len(stored) == 60
    assert {one.partition for one in stored} == {0, 1, 2}
    found: dict[bytes, dict[str, str]] = {}
    with Consumer(hub.tubemq_target, group="ours", topics={"three": ["a"]}) as consumer:
        while len(found) < 30:
            pack = next_pack(consumer)
            found |= {one.body: one.attributes for one in pack}
            pack.confirm()
    assert {(one["$msgType$"], one["k"]) for one in found.values()} == {("a", "v")}


@pytest.mark.parametrize("way", ["pull", "push"])
def test_it_gets_every_message_once(hub: Hub, java: Java, way: str) -> None:
    with Producer(hub.tubemq_target) as producer:
        for i in range(2000):
            producer.send_nowait("three", b"m%d" % i)
        assert producer.flush(SECONDS).delivered == 2000
    lines = java.told(java.begin(way, "three", "readers", "2000", FAST))
    assert sorted(bodies_of(lines)) == sorted(f"m{i}" for i in range(2000))


def test_it_gets_what_its_filters_ask_for(hub: Hub, java: Java) -> None:
    java.told(java.begin("produce", "three", "90", "filters=a,b,c"))
    found = bodies_of(java.told(java.begin("pull", "three", "readers", "60", FAST, "filters=a,c")))
    assert sorted(found) == sorted(f"m-{i}" for i in range(90) if i % 3 != 1)


def test_a_bound_group_begins_where_it_says(hub: Hub, java: Java) -> None:
    java.told(java.begin("produce", "three", "30"))
    ends = {p: sum(one.partition == p for one in hub.records("three")) for p in range(3)}
    wanted = [one.body.decode() for one in hub.records("three") if one.partition == 1 and one.offset >= 4]
    offsets = ",".join(f"1:three:{p}@{28 * (4 if p == 1 else ends[p])}" for p in range(3))
    lines = java.told(java.begin("pull", "three", "readers", str(len(wanted)), FAST, f"offsets={offsets}"))
    assert sorted(bodies_of(lines)) == sorted(wanted)


def test_a_dataproxys_group_reaches_it_as_inlong_has_it(
    hub: Hub, java: Java, body_driver: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    bodies = [b"%d" % i * 50 for i in range(40)]
    with Producer(hub.target, group_id="clicks") as producer:
        producer.send_batch("view", bodies).result(SECONDS)
    lines = java.told(java.begin("pull", "clicks", "readers", "1", FAST, "filters=view", "raw=true"))
    (message,) = [line for line in lines if line["event"] == "received"]
    (tmp_path / "message").write_bytes(base64.b64decode(message["base64"]))
    _, *records = body_driver("message", tmp_path / "message")
    assert [one["body"] for one in records] == bodies


def test_it_shares_a_group_with_the_new_one(hub: Hub, java: Java, tmp_path: Path) -> None:
    """Both get a part of the partitions; what one confirmed does not come to the other when it is gone."""
    service = hub._tubemq
    assert service is not None
    with Java(tmp_path, hub.tubemq_port) as newer:
        old = java.begin("pull", "three", "readers", str(LEFT_OUT_OF_COUNT), FAST, "seconds=600")
        new = newer.begin("pull", "three", "readers", str(LEFT_OUT_OF_COUNT), FAST, "seconds=600")
        wait_for(lambda: len({row[3] for row in service.registrations.found() if row[3]}) == 2)
        with Producer(hub.tubemq_target) as producer:
            for i in range(300):
                producer.send_nowait("three", b"m%d" % i)
            assert producer.flush(SECONDS).delivered == 300
        wait_for(lambda: sum(row[4] for row in service.registrations.found()) == 300 * 28)
        for one in (old, new):
            one.terminate()
        received = [body for one in (old, new) for body in bodies_of(java.told(one, one.wait()))]
    assert sorted(received) == sorted(f"m{i}" for i in range(300))
