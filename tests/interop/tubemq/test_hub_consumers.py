"""TubeMQ's Java consumers at a hub, which is their master and their broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy import Producer
from dataproxy.hub import Hub
from dataproxy.hub.tubemq.admin.changes import set_rules
from tests.support.javaclients import JAVA_SECONDS, LEFT_OUT_OF_COUNT, Java, bodies_of
from tests.support.tubekit import link_jars
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.timeout(400)
FAST = "heartbeat=1000"


@pytest.fixture(params=["memory", "disk"])
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hub]:
    with Hub(*([tmp_path / "store"] if request.param == "disk" else []), tubemq_port=0, partitions=3) as hub:
        yield hub


@pytest.fixture
def java(hub: Hub, tmp_path: Path) -> Iterator[Java]:
    link_jars(tmp_path)
    with Java(tmp_path, hub.tubemq_port) as java:
        yield java


def sent(hub: Hub, count: int, items: str = "a", size: int = 0) -> list[str]:
    """Send messages to topic three with filter items in turn."""
    wanted = [f"m{i}".ljust(size, ".") for i in range(count)]
    with Producer(hub.tubemq_target) as producer:
        for i, body in enumerate(wanted):
            producer.send_nowait("three", body.encode(), attrs={"$msgType$": items[i % len(items)]})
        assert producer.flush(SECONDS).delivered == count
    return wanted


def eventually(what: Callable[[], object]) -> bool:
    """Wait until something holds that Java processes do."""
    deadline = time.monotonic() + JAVA_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return True


def limit(hub: Hub, mib: int, wait_ms: int, group: str | None = None) -> None:
    """Let a group, or all, read so many MiB a minute from a partition."""
    service = hub._tubemq
    assert service is not None
    rule = {"start": "00:00", "end": "24:00", "dltInM": 21, "limitInM": mib, "freqInMs": wait_ms}
    service.administer(lambda: set_rules(service.parts, group, [{"type": 0, "rule": [rule]}]))


def confirmed(hub: Hub) -> int:
    """Return how many messages the groups of a hub have confirmed, of all partitions."""
    service = hub._tubemq
    assert service is not None
    return sum(row[4] for row in service.registrations.found()) // 28


@pytest.mark.parametrize("way", ["pull", "push"])
def test_they_get_every_message_once(hub: Hub, java: Java, way: str) -> None:
    wanted = sent(hub, 3000)
    lines = java.told(java.begin(way, "three", "readers", "3000", FAST))
    assert sorted(bodies_of(lines)) == sorted(wanted)
    assert {line["filter"] for line in lines if line["event"] == "received"} == {"a"}
    if way == "pull":
        assert confirmed(hub) == 3000


def test_they_get_what_their_filters_ask_for(hub: Hub, java: Java) -> None:
    wanted = sent(hub, 300, "abc")
    lines = java.told(java.begin("pull", "three", "readers", "200", FAST, "filters=a,c"))
    assert sorted(bodies_of(lines)) == sorted(body for body in wanted if int(body[1:]) % 3 != 1)


def test_a_push_consumer_hears_of_a_message_that_comes_later(hub: Hub, java: Java) -> None:
    sent(hub, 1)
    reading = java.begin("push", "three", "readers", "4", FAST)
    assert eventually(lambda: confirmed(hub) >= 0 and hub._tubemq is not None and hub._tubemq.registrations.found())
    sent(hub, 3)
    assert sorted(bodies_of(java.told(reading))) == ["m0", "m0", "m1", "m2"]


def test_a_bound_group_begins_where_it_says(hub: Hub, java: Java) -> None:
    sent(hub, 30)
    wanted = [record.body.decode() for record in hub.records("three") if record.partition == 1 and record.offset >= 4]
    offsets = f"offsets=1:three:0@{28 * 10},1:three:1@{28 * 4},1:three:2@{28 * 10}"
    lines = java.told(java.begin("pull", "three", "readers", str(len(wanted)), FAST, offsets))
    assert sorted(bodies_of(lines)) == sorted(wanted)


def test_what_is_confirmed_does_not_come_again(hub: Hub, java: Java) -> None:
    wanted = sent(hub, 600)
    first = bodies_of(java.told(java.begin("pull", "three", "readers", "200", FAST)))
    rest = bodies_of(java.told(java.begin("pull", "three", "readers", str(600 - confirmed(hub)), FAST)))
    assert sorted(set(first) | set(rest)) == sorted(wanted)


def test_a_consumer_that_the_broker_limits_waits_and_goes_on(hub: Hub, java: Java) -> None:
    """It says that no rules of its own group hold, so the broker keeps it to the cluster's."""
    wanted = sent(hub, 300, size=40_000)
    limit(hub, 12, 400)
    lines = java.told(java.begin("pull", "three", "readers", "300", FAST))
    assert sorted(bodies_of(lines)) == sorted(wanted)
    assert 452 in {line["code"] for line in lines if line["event"] == "empty"}
    assert 3 <= hub.stats()["refused"][452] < 200, "it waits as it is told"


def test_a_consumer_whose_group_has_rules_keeps_to_them_itself(hub: Hub, java: Java) -> None:
    """It says so with its requests, and the broker leaves it to that."""
    wanted = sent(hub, 300, size=40_000)
    limit(hub, 12, 400, "readers")
    lines = java.told(java.begin("pull", "three", "readers", "300", FAST))
    assert sorted(bodies_of(lines)) == sorted(wanted)
    assert hub.stats()["refused"].get(452, 0) == 0


def test_members_share_and_take_over(hub: Hub, java: Java) -> None:
    members = [java.begin("pull", "three", "readers", str(LEFT_OUT_OF_COUNT), FAST, "seconds=600") for _ in range(2)]
    registrations = hub._tubemq.registrations if hub._tubemq is not None else None
    assert registrations is not None
    assert eventually(lambda: len({row[3] for row in registrations.found() if row[3]}) == 2)
    sent(hub, 300)
    assert eventually(lambda: confirmed(hub) == 300)
    members[0].terminate()
    hub._core.advance_clock(60.0)  # who was silent for so long is gone; the other one comes back
    sent(hub, 30)
    assert eventually(lambda: confirmed(hub) == 330)
    members[1].terminate()
