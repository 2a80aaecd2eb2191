"""Our consumers at RocketMQ's own servers: groups, retries, dead letters, filters, order, broadcasting, tools."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dataproxy
from dataproxy.errors import GroupRefusedError
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, ReceivedMessage, RetryLater, Sql
from tests.support.tubekit import RocketServers

pytestmark = pytest.mark.timeout(600)  # Java's client takes its time to start


@pytest.fixture(scope="module")
def target(rocketmq: RocketServers) -> str:
    return f"rocketmq://{rocketmq.names}"


@pytest.fixture(scope="module")
def producer(target: str) -> Iterator[Producer]:
    made = Producer(target, "consumer_tests", delivery_timeout=20)
    yield made
    made.close()


class Seen:
    """A listener that keeps what it got."""

    def __init__(self, then: Callable[[ReceivedMessage], object] | None = None) -> None:
        self.messages: list[ReceivedMessage] = []
        self._then = then
        self._changed = threading.Condition()

    def __call__(self, messages: list[ReceivedMessage]) -> None:
        with self._changed:
            self.messages += messages
            self._changed.notify_all()
        if self._then is not None:
            for one in messages:
                self._then(one)

    def wait(self, n: int, seconds: float = 40) -> list[ReceivedMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= n, seconds), f"{len(self.messages)} of {n}"
            return list(self.messages)


def until(check: Callable[[], Any], seconds: float = 40) -> Any:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, "it did not become so"
        time.sleep(0.05)
    return found


def send(producer: Producer, topic: str, n: int, **more: Any) -> None:
    for i in range(n):
        producer.send(topic, b"%d" % i, **more).result(20)


def test_two_members_share_the_queues_and_one_takes_all(target: str, producer: Producer) -> None:
    producer.create_topic("shared", 4)
    first, second = Seen(), Seen()
    with PushConsumer(target, "sharing", "shared", first, begin="first") as one:
        until(lambda: sum(q.topic == "shared" for q in one.assignment) == 4)
        with PushConsumer(target, "sharing", "shared", second, begin="first") as two:
            until(lambda: sum(q.topic == "shared" for q in two.assignment) == 2)
            until(lambda: sum(q.topic == "shared" for q in one.assignment) == 2)
            assert not set(one.assignment) & set(two.assignment)
            send(producer, "shared", 40)
            until(lambda: len(first.messages) + len(second.messages) >= 40)
            assert first.messages and second.messages
        until(lambda: sum(q.topic == "shared" for q in one.assignment) == 4)
        send(producer, "shared", 8)
        until(lambda: len(first.messages) + len(second.messages) >= 48)
    bodies = [m.body for m in first.messages + second.messages]
    assert len(bodies) == 48


def test_offsets_are_kept_and_java_goes_on_from_there(rocketmq: RocketServers, target: str, producer: Producer) -> None:
    producer.create_topic("handover", 2)
    send(producer, "handover", 10)
    seen = Seen()
    with PushConsumer(target, "handing", "handover", seen, begin="first"):
        seen.wait(10)
    producer.send("handover", b"new").result(20)
    got = rocketmq.drive("push", "handover", "handing", 1, "hold=3")
    assert [line["body"] for line in got if line["event"] == "received"] == ["new"]
    again = Seen()
    with PushConsumer(target, "handing", "handover", again, begin="first"):
        producer.send("handover", b"newer").result(20)
        again.wait(1)
        assert {m.body for m in again.messages} <= {b"new", b"newer"}


def test_a_message_whose_listener_fails_comes_again(target: str, producer: Producer) -> None:
    producer.create_topic("failing", 1)

    def fail(message: ReceivedMessage) -> None:
        if message.attempts == 0 and message.body == b"1":
            raise RetryLater(1)

    seen = Seen(fail)
    with PushConsumer(target, "failing_group", "failing", seen, begin="first") as consumer:
        send(producer, "failing", 3)
        found = seen.wait(4)
        assert sorted((m.body, m.attempts) for m in found) == [(b"0", 0), (b"1", 0), (b"1", 1), (b"2", 0)]
        assert {m.topic for m in found} == {"failing"} and len({m.id for m in found if m.body == b"1"}) == 1
        assert consumer.counts().again == 1


def test_after_its_last_attempt_a_message_is_a_dead_letter(target: str, producer: Producer) -> None:
    producer.create_topic("dying", 1)

    def fail(message: ReceivedMessage) -> None:
        if message.attempts == 0:
            raise RetryLater(1)
        raise RetryLater(-1)

    seen = Seen(fail)
    with PushConsumer(target, "dying_group", "dying", seen, begin="first"):
        producer.send("dying", b"dead").result(20)
        seen.wait(2)
    with PullConsumer(target, "undertakers") as consumer:
        queues = until(lambda: consumer.queues("%DLQ%dying_group"))
        consumer.assign(dict.fromkeys(queues, 0))
        [one] = consumer.poll(20)
        assert one.body == b"dead" and one.attempts == 2


def test_tags_and_sql(target: str, producer: Producer) -> None:
    producer.create_topic("filtered", 2)
    tags, sql = Seen(), Seen()
    for n in range(6):
        producer.send("filtered", b"%d" % n, tag="abc"[n % 3], properties={"number": str(n)}).result(20)
    with (
        PushConsumer(target, "by_tags", {"filtered": "a || c"}, tags, begin="first"),
        PushConsumer(target, "by_sql", {"filtered": Sql("number >= 4 OR TAGS = 'b'")}, sql, begin="first"),
    ):
        assert sorted(m.body for m in tags.wait(4)) == [b"0", b"2", b"3", b"5"]
        assert sorted(m.body for m in sql.wait(3)) == [b"1", b"4", b"5"]


def test_orderly_one_after_the_other_and_again_before_the_next(target: str, producer: Producer) -> None:
    producer.create_topic("orderly", 2)
    failures = {b"3": 2}

    def fail(message: ReceivedMessage) -> None:
        if failures.get(message.body, 0):
            failures[message.body] -= 1
            raise ValueError("not now")

    seen = Seen(fail)
    with PushConsumer(target, "in_order", "orderly", seen, orderly=True, begin="first") as consumer:
        send(producer, "orderly", 8, queue=0)
        found = seen.wait(10)
        assert [m.body for m in found if m.queue == 0] == [b"0", b"1", b"2", b"3", b"3", b"3", b"4", b"5", b"6", b"7"]
        assert [m.attempts for m in found[3:6]] == [2, 2, 2]  # one object, which counts its attempts
        other = Seen()
        with PushConsumer(target, "in_order", "orderly", other, orderly=True, begin="first") as second:
            until(lambda: sum(q.topic == "orderly" for q in second.assignment) == 1)
            until(lambda: sum(q.topic == "orderly" for q in consumer.assignment) == 1)


def test_broadcasting_with_offsets_in_a_file(target: str, producer: Producer, tmp_path: Path) -> None:
    producer.create_topic("broadcast", 2)
    send(producer, "broadcast", 4)
    one, two, again = Seen(), Seen(), Seen()
    options: dict[str, Any] = {"broadcasting": True, "begin": "first"}
    with (
        PushConsumer(target, "everybody", "broadcast", one, offsets_path=tmp_path / "one", **options),
        PushConsumer(target, "everybody", "broadcast", two, **options),
    ):
        assert len(one.wait(4)) == len(two.wait(4)) == 4
    producer.send("broadcast", b"new").result(20)
    with PushConsumer(target, "everybody", "broadcast", again, offsets_path=tmp_path / "one", **options):
        assert [m.body for m in again.wait(1)] == [b"new"]


def test_tools_see_and_steer_a_consumer(rocketmq: RocketServers, target: str, producer: Producer) -> None:
    producer.create_topic("steered", 2)
    send(producer, "steered", 6)
    seen = Seen()
    with PushConsumer(target, "steered_group", "steered", seen, begin="first") as consumer:
        seen.wait(6)
        [members] = rocketmq.drive("admin", "steered", "steered_group", "consumers", "rpc=20000")
        [member] = members["answer"]["connectionSet"]
        assert member["clientId"] == consumer.client_id and member["language"] == "PYTHON"
        [status] = rocketmq.drive("admin", "steered", "steered_group", "status", "rpc=20000")
        assert sum(status["answer"][consumer.client_id].values()) == 6
        [running] = rocketmq.drive("admin", "steered", "steered_group", "running", "rpc=20000")
        assert {sub["topic"] for sub in running["answer"]["subscriptions"]} == {"steered", "%RETRY%steered_group"}
        assert any(key.startswith("steered:") for key in running["answer"]["queues"])
        [direct] = rocketmq.drive(
            "admin", "steered", "steered_group", "direct", "rpc=20000", f"id={seen.messages[0].offset_id}"
        )
        assert direct["answer"]["consumeResult"] == "CR_SUCCESS"
        seen.wait(7)
        words = ("admin", "steered", "steered_group", "reset", "rpc=20000")
        # A broker knows a group when its first offsets are written, up to five seconds after the messages.
        until(lambda: all(line["event"] != "error" for line in rocketmq.drive(*words, codes=(0, 1, 2, 3))))
        assert len(seen.wait(13)) == 13


def test_a_broker_that_was_killed(rocketmq: RocketServers, target: str, producer: Producer) -> None:
    producer.create_topic("outage", 2)
    seen = Seen()
    with PushConsumer(target, "outlasting", "outage", seen, begin="first") as consumer:
        send(producer, "outage", 5)
        seen.wait(5)
        rocketmq.run("kill", "rocketmq-broker")
        late = [producer.send("outage", b"late %d" % n) for n in range(5)]
        rocketmq.run("start", "rocketmq-broker")
        with Producer(target, "afterwards", delivery_timeout=60) as other:
            assert other.send("outage", b"after").result(60).status == "OK"
        outcomes = [one.exception(60) for one in late]
        delivered = sum(outcome is None for outcome in outcomes)
        until(lambda: {b"after"} <= {m.body for m in seen.messages})
        until(lambda: len({m.body for m in seen.messages}) >= 6 + delivered)
        assert not consumer.trouble


def test_own_brokers_do_not_push_and_the_error_names_what_reads_them(target: str, producer: Producer) -> None:
    producer.send("unpushed", b"x").result(40)
    with dataproxy.Consumer(target, group="packs", topics=["unpushed"]) as consumer:
        with pytest.raises(GroupRefusedError, match="does not push") as caught:
            consumer.wait_ready(40)
        assert caught.value.code == "NO_PUSH" and "dataproxy.rocketmq.PushConsumer" in str(caught.value.hint)
        with pytest.raises(GroupRefusedError):
            consumer.poll()
    seen = Seen()
    with PushConsumer(target, "packs", "unpushed", seen, begin="first"):
        assert [one.body for one in seen.wait(1)] == [b"x"]
