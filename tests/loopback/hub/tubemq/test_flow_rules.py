"""Flow rules at a hub's broker: a group that reads too fast is told to wait, and others are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataproxy import Consumer
from dataproxy.hub import Hub
from dataproxy.hub.tubemq.admin.changes import delete_rules, set_rules
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies
from tests.support.waiting import SECONDS, eventually

Raw = Callable[[Hub], Connection]
GET = "GetMessageRequestC2B"
KB = 1000


@pytest.fixture
def sender(hub: Hub, raw: Raw) -> Sender:
    connection = raw(hub)
    return Sender(connection, connection, "demo")


def limit(hub: Hub, mib: int, group: str | None = None, wait_ms: int = 750) -> None:
    """Let a group, or all, read so many MiB a minute, whatever the time and the backlog are."""
    service = hub._tubemq
    rule = {"start": "00:00", "end": "24:00", "dltInM": 21, "limitInM": mib, "freqInMs": wait_ms}
    service.administer(lambda: set_rules(service.parts, group, [{"type": 0, "rule": [rule]}]))


def reading(raw: Raw, hub: Hub, group: str = "g", partition: int = 0, **more: Any) -> Reader:
    one = Reader(raw(hub), "demo", group, partition)
    assert one.register(0, **more).errCode == 200
    return one


def test_a_group_that_reads_too_fast_is_told_to_wait(hub: Hub, raw: Raw, sender: Sender) -> None:
    limit(hub, 1)
    for i in range(20):
        sender.send(0, b"%d" % i + b"." * 40 * KB)
    one, other = reading(raw, hub), reading(raw, hub, "h")
    assert len(bodies(one.get(consumed=True))) == 9, "a pack as always: nothing was read before"
    answer = one.get(consumed=True)
    assert (answer["errCode"], len(bodies(answer))) == (200, 2), "no pack is larger than a slice of the minute"
    assert bodies(one.get(consumed=True))[0].startswith(b"11.")
    refused = one.get(consumed=True)
    assert (refused["errCode"], refused["success"], refused["minLimitTime"]) == (452, False, 750)
    assert (refused["currOffset"], refused["currDataDlt"], refused["escFlowCtrl"]) == (-1, -1, False)
    assert refused["messages"] == []
    assert one.commit()["currOffset"] == 13 * INDEX, "what was confirmed with the refused request is"
    assert len(bodies(other.get())) == 9, "each group has its own"
    hub._core.advance_clock(5.1)
    assert bodies(one.get())[0].startswith(b"13.")


def test_who_keeps_to_the_rules_itself_is_not_bound_twice(hub: Hub, raw: Raw, sender: Sender) -> None:
    limit(hub, 0)
    for i in range(3):
        sender.send(0, b"%d" % i)
    one = reading(raw, hub)
    assert len(bodies(one.get())) == 3
    assert one.get()["errCode"] == 452
    fields = {**one.fields(), "escFlowCtrl": True}
    connection = raw(hub)
    answer = connection.answer_data(connection.post_data(GET, **fields), GET)
    assert len(bodies(answer)) == 3


def test_at_the_end_there_is_nothing_to_limit(hub: Hub, raw: Raw, sender: Sender) -> None:
    limit(hub, 0)
    sender.send(0, b"x")
    one = reading(raw, hub)
    assert len(bodies(one.get())) == 1
    answer = one.get(consumed=True)
    assert (answer["errCode"], answer["minLimitTime"]) == (404, 0)


def test_a_request_that_waits_is_limited_when_a_message_comes(hub: Hub, raw: Raw, sender: Sender) -> None:
    limit(hub, 0, "g")
    sender.send(0, b"x")
    connection = raw(hub)
    one = Reader(connection, "demo", "g")
    assert one.register(0).errCode == 200
    assert len(bodies(one.get())) == 1
    assert one.get(consumed=True)["errCode"] == 404
    serial = connection.post_data(GET, **one.fields())
    assert eventually(lambda: hub._tubemq.registrations.counts()["waiting"] == 1)
    sender.send(0, b"y" * 100)
    answer = connection.answer_data(serial, GET)
    assert (answer["errCode"], answer["minLimitTime"]) == (452, 750)


def test_a_limited_partition_ends_no_wait_for_another(hub: Hub, raw: Raw, sender: Sender) -> None:
    """The client was told to leave it alone, so it has a thread for the other one."""
    limit(hub, 0)
    for i in range(2):
        sender.send(0, b"%d" % i)
    connection = raw(hub)
    one, other = (Reader(connection, "demo", "g", partition) for partition in (0, 1))
    assert one.register(0).errCode == other.register(0).errCode == 200
    assert len(bodies(one.get())) == 2
    assert other.get()["errCode"] == 404
    assert one.get()["errCode"] == 452
    serial = connection.post_data(GET, **other.fields())
    assert eventually(lambda: hub._tubemq.registrations.counts()["waiting"] == 1)
    hub._core.advance_clock(0.5)
    sender.send(0, b"more")
    hub._core.advance_clock(0.5)
    assert one.commit()["errCode"] == 200
    assert hub._tubemq.registrations.counts()["waiting"] == 1
    sender.send(1, b"now")
    assert bodies(connection.answer_data(serial, GET)) == [b"now"]


def test_rules_that_are_taken_back_hold_until_the_minute_is_over(hub: Hub, raw: Raw, sender: Sender) -> None:
    limit(hub, 0)
    sender.send(0, b"x")
    one = reading(raw, hub)
    assert len(bodies(one.get())) == 1
    assert one.get()["errCode"] == 452
    service = hub._tubemq
    service.administer(lambda: delete_rules(service.parts, None))
    assert one.get()["errCode"] == 452
    for _ in range(3):  # a request refused for its speed keeps the partition
        hub._core.advance_clock(25)
        answer = one.get()
    assert len(bodies(answer)) == 1


@pytest.mark.parametrize("priority", [-2, 0, 1, 2, 3, 101, 301, 2**31 - 1])
def test_every_priority_reads_what_is_stored(hub: Hub, raw: Raw, sender: Sender, priority: int) -> None:
    """Nothing is visible here before it is stored: there is no memory that some may see and others not."""
    connection = raw(hub)
    one = Reader(connection, "demo", "g")
    who = {**one._who, "opType": 31, "readStatus": 0, "filterCondStr": ["a"], "qryPriorityId": priority}
    assert connection.ask("RegisterRequestC2B", **who).errCode == 200
    beat = {**one.heartbeat(), "qryPriorityId": priority}
    assert not connection.ask("HeartBeatRequestC2B", readStatus=0, **beat).hasPartFailure
    sender.send(0, b"x", attribute=b"$msgType$=a", msgType=b"a")
    assert bodies(one.get()) == [b"x"]


def test_our_consumer_waits_as_it_is_told(hub: Hub, sender: Sender) -> None:
    """It does not know the cluster's rules yet, as they come with a heartbeat, and is limited all the same."""
    for i in range(3):
        sender.send(0, b"%d" % i)
    with Consumer(hub.tubemq_target, group="g", topics="demo", heartbeat_interval=60) as consumer:
        assert eventually(lambda: len(consumer.assignment()) == 3)
        pack = consumer.poll(SECONDS)
        limit(hub, 0)
        consumer.confirm(pack)
        sender.send(0, b"x" * 100)
        assert eventually(lambda: hub.stats()["refused"].get(452, 0) >= 2)
        assert consumer.poll(0) is None
