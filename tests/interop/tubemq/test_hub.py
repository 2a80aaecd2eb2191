"""TubeMQ's Java client at a hub, which is its master and its broker."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Consumer, Producer
from dataproxy.hub import Hub
from tests.support.consumers import next_pack
from tests.support.javaclients import Java
from tests.support.tubekit import link_jars
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(tubemq_port=0, partitions=3) as hub:
        yield hub


@pytest.fixture
def java(hub: Hub, tmp_path: Path) -> Iterator[Java]:
    link_jars(tmp_path)
    with Java(tmp_path, hub.tubemq_port) as java:
        yield java


def test_it_produces(hub: Hub, java: Java) -> None:
    java.told(java.begin("produce", "three", "30"))
    stored = list(hub.records("three"))
    assert len(stored) == 30
    assert {one.partition for one in stored} == {0, 1, 2}
    assert len({one.body for one in stored}) == 30


def test_what_it_sends_reaches_our_consumer(hub: Hub, java: Java) -> None:
    java.told(java.begin("produce", "three", "30", "filters=a,b", "attr.k=v"))
    found: dict[bytes, dict[str, str]] = {}
    with Consumer(hub.tubemq_target, group="ours", topics={"three": ["a"]}) as consumer:
        while len(found) < 15:
            pack = next_pack(consumer)
            found |= {one.body: one.attributes for one in pack}
            pack.confirm()
    assert {one["$msgType$"] for one in found.values()} == {"a"}
    assert {one["k"] for one in found.values()} == {"v"}


def test_what_a_dataproxy_takes_reaches_it_as_inlong_has_it(
    hub: Hub, java: Java, body_driver: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    """InLong's own classes read the container that TubeMQ's own client got."""
    bodies = [b"%d" % i * 50 for i in range(40)]
    with Producer(hub.target, group_id="clicks") as producer:
        producer.send_batch("view", bodies).result(SECONDS)
    lines = java.told(java.begin("pull", "clicks", "readers", "1", "heartbeat=1000", "filters=view", "raw=true"))
    (message,) = [line for line in lines if line["event"] == "received"]
    assert message["filter"] == "view"
    (tmp_path / "message").write_bytes(base64.b64decode(message["base64"]))
    head, *records = body_driver("message", tmp_path / "message")
    assert [one["body"] for one in records] == bodies
    assert {"groupId=clicks", "streamId=view"} <= set(records[0]["attributes"].split("&"))
    assert head["version"] in (1, 4)


def test_a_dataproxys_group_is_read_from_several_partitions(hub: Hub, java: Java) -> None:
    with Producer(hub.target, group_id="clicks") as producer:
        for i in range(30):
            producer.send_nowait(f"s{i}", b"x")
        assert producer.flush(SECONDS).delivered == 30
    entries = sum(one.entries for one in hub.counts().values())
    lines = java.told(java.begin("push", "clicks", "readers", str(entries), "heartbeat=1000"))
    received = [line for line in lines if line["event"] == "received"]
    assert sorted({line["filter"] for line in received}) == sorted(f"s{i}" for i in range(30))
