"""Producer at TubeMQ's own master and broker: read by their Java client, and by the consumer of this package."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dataproxy import Consumer, Producer
from tests.support.tubekit import Servers

SECONDS = 90
MANY = 20_000


def target(tubemq: Servers) -> str:
    return f"tubemq://127.0.0.1:{tubemq.master}"


def consumed(tubemq: Servers, topics: Any, n: int, group: str = "") -> list[tuple[str, bytes, dict[str, str]]]:
    """Return (partition, body, attributes) of so many messages, which a new group reads from the newest ones on."""
    found: list[tuple[str, bytes, dict[str, str]]] = []
    name = group or f"ours_{time.time_ns()}"
    with Consumer(target(tubemq), group=name, topics=topics, heartbeat_interval=1) as consumer:
        deadline = time.monotonic() + SECONDS
        while len(found) < n:
            assert time.monotonic() < deadline, (len(found), consumer.stats())
            pack = consumer.poll(1.0)
            if pack is not None:
                found += [(one.partition, one.body, one.attributes) for one in pack]
                pack.confirm()
    return found


def test_many_messages_and_none_is_missing(tubemq: Servers) -> None:
    mark = b"%d" % time.time_ns()
    with Producer(target(tubemq)) as producer:
        for i in range(MANY):
            producer.send_nowait("three", b"%s-%d" % (mark, i), attrs={"$msgType$": mark.decode(), "n": str(i)})
        report = producer.flush(SECONDS)
    assert (report.accepted, report.delivered) == (MANY, MANY)
    found = consumed(tubemq, {"three": [mark.decode()]}, MANY)
    assert sorted(body for _, body, _ in found) == sorted(b"%s-%d" % (mark, i) for i in range(MANY))
    assert all(
        attrs == {"$msgType$": mark.decode(), "n": body.rpartition(b"-")[2].decode()} for _, body, attrs in found
    )
    counts = [sum(place == name for place, _, _ in found) for name in ("1:three:0", "1:three:1", "1:three:2")]
    assert min(counts) > MANY // 3 - 10


def test_the_java_client_reads_and_filters(tubemq: Servers) -> None:
    mark = f"j{time.time_ns()}"
    with Producer(target(tubemq)) as producer:
        for i in range(600):
            attrs = {"$msgType$": mark if i % 2 else "other", "$msgTime$": "202601011200", "k": str(i)}
            producer.send_nowait("three", f"{mark}-{i}".encode(), attrs=attrs)
    printed = tubemq.run(
        "drive", "tubemq", "TubeDriver", "pull", f"127.0.0.1:{tubemq.master}", "three", f"java_{mark}", "300",
        f"filters={mark}", "position=first",
    )  # fmt: skip
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    bodies = {event["body"] for event in events if event["event"] == "received"}
    assert bodies == {f"{mark}-{i}" for i in range(1, 600, 2)}


def test_keys_stay_in_one_partition_in_order(tubemq: Servers) -> None:
    mark = f"k{time.time_ns()}"
    with Producer(target(tubemq), ordering="key") as producer:
        for i in range(3_000):
            producer.send_nowait("three", b"%d:%d" % (i % 50, i), attrs={"$msgType$": mark}, key=b"%d" % (i % 50))
    places: dict[bytes, set[str]] = {}
    order: dict[bytes, list[int]] = {}
    for partition, body, _ in consumed(tubemq, {"three": [mark]}, 3_000):
        key, _, number = body.partition(b":")
        places.setdefault(key, set()).add(partition)
        order.setdefault(key, []).append(int(number))
    assert len(places) == 50
    assert {len(found) for found in places.values()} == {1}
    assert len({next(iter(found)) for found in places.values()}) == 3
    assert all(found == sorted(found) for found in order.values())


@pytest.mark.parametrize("size", [1, 8_192, 100_000, 1 << 20])
def test_bodies_of_all_sizes(tubemq: Servers, size: int) -> None:
    mark = f"s{time.time_ns()}"
    body = bytes(i * 7 % 251 for i in range(size))
    with Producer(target(tubemq)) as producer:
        assert producer.send("one", body, attrs={"$msgType$": mark}).result(SECONDS).attempts == 1
    ((_, found, attrs),) = consumed(tubemq, {"one": [mark]}, 1)
    assert found == body
    assert attrs == {"$msgType$": mark}
