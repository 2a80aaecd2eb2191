"""Our producer at RocketMQ's own servers, and Java's consumer behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dataproxy.errors import DeliveryFailed, DiscoveryError, InvalidMessageError
from dataproxy.rocketmq import DELAY_LEVELS, Message, Producer, PullConsumer
from tests.support.tubekit import RocketServers

pytestmark = pytest.mark.timeout(600)  # Java's client takes its time to start


@pytest.fixture(scope="module")
def target(rocketmq: RocketServers) -> str:
    return f"rocketmq://{rocketmq.names}"


@pytest.fixture(scope="module")
def producer(target: str) -> Iterator[Producer]:
    made = Producer(target, "sends", delivery_timeout=20)
    yield made
    made.close()


def read_all(target: str, topic: str, n: int, group: str = "readers") -> list:
    """Return the first messages of a topic."""
    with PullConsumer(target, group) as consumer:
        consumer.assign(dict.fromkeys(consumer.queues(topic), 0))
        found: list = []
        until = time.monotonic() + 20
        while len(found) < n and time.monotonic() < until:
            found += consumer.poll(1)
        return found


def test_java_gets_what_was_sent(rocketmq: RocketServers, producer: Producer) -> None:
    producer.create_topic("tojava", 2)
    small = producer.send(
        "tojava", b"small", tag="a", keys=("k1", "k2"), properties={"color": "r\u00f6t"}, flag=7
    ).result(20)
    large = producer.send("tojava", b"L" * 9000, tag="b").result(20)
    batch = producer.send_batch("tojava", [Message(b"one", "a"), b"two"]).result(20)
    producer.send_oneway("tojava", b"oneway", tag="a")
    got = rocketmq.drive("push", "tojava", "java_readers", 5, "hold=3")
    by_body = {line["body"]: line for line in got if line["event"] == "received"}
    assert set(by_body) == {"small", "L" * 9000, "one", "two", "oneway"}
    line = by_body["small"]
    assert (line["id"], line["queue"], line["offset"], line["tags"]) == (small.id, small.queue, small.offset, "a")
    assert line["properties"]["color"] == "r\u00f6t" and line["properties"]["KEYS"] == "k1 k2"
    assert by_body["L" * 9000]["id"] == large.id and by_body["one"]["offset"] == batch.offset
    assert len(batch.offset_ids) == 2 and by_body["two"]["offset"] == batch.offset + 1


def test_what_was_sent_is_read_as_it_was(target: str, producer: Producer) -> None:
    producer.create_topic("asis", 1)
    sent = producer.send("asis", b"x" * 5000, tag="t", keys=("k",), properties={"n": "1"}, flag=-5).result(20)
    [one] = read_all(target, "asis", 1)
    assert (one.body, one.tag, one.keys, one.flag, one.id) == (b"x" * 5000, "t", ("k",), -5, sent.id)
    assert len(one.packed_body) < 5000 and one.properties["n"] == "1"
    assert (one.topic, one.queue, one.offset, one.offset_id) == ("asis", 0, 0, sent.offset_ids[0])
    assert abs(one.stored_ms - time.time() * 1000) < 60_000 and one.attempts == 0


def test_a_topic_is_made_by_the_first_message(target: str, producer: Producer) -> None:
    assert producer.send("madebysend", b"x").result(20).status == "OK"
    assert {queue.queue_id for queue in producer.queues("madebysend")} == {0, 1, 2, 3}


def test_keys_choose_queues(target: str, producer: Producer) -> None:
    producer.create_topic("keyed", 4)
    results = {
        key: {producer.send("keyed", b"x", key=key).result(20).queue for _ in range(5)} for key in ("a", "b", "c", "d")
    }
    assert all(len(queues) == 1 for queues in results.values()) and len(set.union(*results.values())) > 1
    assert producer.send("keyed", b"x", queue=3).result(20).queue == 3


def test_a_delay_is_kept(target: str, producer: Producer) -> None:
    producer.create_topic("delayed", 1)
    producer.send("delayed", b"later", delay_level=2).result(20)
    [one] = read_all(target, "delayed", 1)
    assert one.stored_ms - one.born_ms >= 1000 * DELAY_LEVELS[1] - 200


def test_what_a_broker_refuses_is_an_error_with_its_reason(producer: Producer) -> None:
    with pytest.raises(DeliveryFailed, match="NO_PERMISSION") as caught:
        producer.send("SCHEDULE_TOPIC_XXXX", b"x").result(20)
    assert caught.value.details["code"] == 16 and caught.value.details["attempts"] == 3
    producer.create_topic("short", 1)
    with pytest.raises(DeliveryFailed, match="no queue 1"):
        producer.send("short", b"x", queue=1).result(20)
    with pytest.raises(InvalidMessageError, match="topic 'no good'"):
        producer.send("no good", b"x")


def test_many_messages_are_all_stored(target: str, producer: Producer) -> None:
    producer.create_topic("many", 4)
    deliveries = [producer.send("many", b"%d" % n) for n in range(3000)]
    before = producer.flush(60)
    assert before.pending == 0 and all(one.result(0).status == "OK" for one in deliveries)
    assert {int(one.body) for one in read_all(target, "many", 3000)} == set(range(3000))


def test_no_name_server(rocketmq: RocketServers) -> None:
    with (
        Producer(f"rocketmq://{rocketmq.broker}", delivery_timeout=1, request_timeout=0.5) as alone,
        pytest.raises(DiscoveryError, match="is the target the address of a name server"),
    ):
        alone.queues("x")
