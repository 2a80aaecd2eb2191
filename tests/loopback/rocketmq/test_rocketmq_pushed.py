"""Consumers to which a hub pushes: messages, members that share, retries, ends of connections, and brokers without."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer, PushConsumer, ReceivedMessage, RetryLater
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually


class Seen:
    """A listener that keeps what it got."""

    def __init__(self, then: Callable[[ReceivedMessage], object] = lambda _message: None) -> None:
        self.bodies: list[bytes] = []
        self._then, self._changed = then, threading.Condition()

    def __call__(self, messages: list[ReceivedMessage]) -> None:
        with self._changed:
            self.bodies += [one.body for one in messages]
            self._changed.notify_all()
        for one in messages:
            self._then(one)

    def has(self, wanted: set[bytes]) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: wanted <= set(self.bodies), SECONDS)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def consume(hub: Hub, listener: Seen, **options: Any) -> PushConsumer:
    return PushConsumer(hub.rocketmq_target, "g", "T", listener, **{"push": True, "begin": "first", **options})


def send(hub: Hub, *bodies: bytes, **options: Any) -> set[bytes]:
    with Producer(hub.rocketmq_target, "p") as producer:
        for one in [producer.send("T", body, **options) for body in bodies]:
            one.result(SECONDS)
    return set(bodies)


def numbers(begin: int, end: int) -> list[bytes]:
    return [b"%d" % n for n in range(begin, end)]


def committed(hub: Hub, group: str = "g") -> int:
    service = hub._rocketmq
    assert service is not None
    return service.run(lambda: sum(at for of, topic, _, at in service.offsets._remoting.offsets()
                                   if (of, topic) == (group, "T")))  # fmt: skip


def queues(consumer: PushConsumer) -> int:
    return sum(one.topic == "T" for one in consumer.assignment)


def test_messages_come_and_are_acknowledged_and_none_is_asked_for(hub: Hub) -> None:
    wanted = send(hub, *numbers(0, 500))
    seen = Seen()
    with consume(hub, seen) as consumer:
        assert seen.has(wanted)
        wanted |= send(hub, *numbers(500, 700))
        assert seen.has(wanted)
        assert eventually(lambda: committed(hub) == 700)
        assert consumer.trouble == "" and queues(consumer) == 4
        assert eventually(lambda: consumer.counts().done == 700 and consumer.counts().held == 0)
    stats = hub.stats()["rocketmq"]
    assert stats["pulls"] == 0 and stats["push_messages"] == 700 and stats["push_sessions"] == 0
    assert Counter(seen.bodies) == Counter(wanted)


def test_members_share_and_take_over_without_a_loss(hub: Hub) -> None:
    send(hub, *numbers(0, 10))
    one, two = Seen(), Seen()
    with consume(hub, one) as first:
        assert one.has(set(numbers(0, 10)))
        with consume(hub, two) as second:
            assert eventually(lambda: queues(first) == queues(second) == 2)
            wanted = send(hub, *numbers(10, 200))
            assert eventually(lambda: wanted <= {*one.bodies, *two.bodies})
            assert two.bodies
        assert eventually(lambda: queues(first) == 4)
        last = send(hub, *numbers(200, 240))
        assert one.has(last)
    assert committed(hub) == 240


def test_what_fails_comes_again_by_push(hub: Hub) -> None:
    def fail(message: ReceivedMessage) -> None:
        if message.body == b"bad" and message.attempts == 0:
            raise RetryLater(1)

    send(hub, b"bad", b"good")
    seen = Seen(fail)
    with consume(hub, seen) as consumer:
        assert eventually(lambda: seen.bodies.count(b"bad") == 2)
        assert eventually(lambda: consumer.counts().done == 2)
    assert hub.stats()["rocketmq"]["pulls"] == 0


def test_each_member_of_a_broadcasting_group_gets_everything(hub: Hub, tmp_path: Any) -> None:
    wanted = send(hub, *numbers(0, 50))
    one, two = Seen(), Seen()
    kept = tmp_path / "offsets.json"
    with consume(hub, one, broadcasting=True, offsets_path=kept), consume(hub, two, broadcasting=True):
        assert one.has(wanted) and two.has(wanted)
        assert eventually(lambda: all(not of.messages for of in sessions(hub)))
    assert committed(hub) == 0
    more = send(hub, *numbers(50, 60))
    again = Seen()
    with consume(hub, again, broadcasting=True, offsets_path=kept):
        assert again.has(more)
    assert set(again.bodies) == more


def sessions(hub: Hub) -> tuple[Any, ...]:
    service = hub._rocketmq
    assert service is not None
    return service.run(service.pushes._sessions.find)


def test_a_connection_that_ends_costs_nothing_but_copies(hub: Hub) -> None:
    gate = threading.Event()
    seen = Seen(lambda _message: gate.wait(SECONDS))
    listener = hub.rocketmq_listener
    assert listener is not None
    wanted = send(hub, *numbers(0, 100))
    with consume(hub, seen, threads=2) as consumer:
        assert eventually(lambda: seen.bodies)
        listener.kill()
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 0)
        listener.restart()
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] > 0)
        gate.set()
        assert seen.has(wanted)
        wanted |= send(hub, *numbers(100, 150))
        assert seen.has(wanted)
        assert eventually(lambda: committed(hub) == 150)
        assert consumer.trouble == ""


def test_orderly_queues_keep_their_order(hub: Hub) -> None:
    with Producer(hub.rocketmq_target, "p") as producer:
        for body in numbers(0, 60):
            producer.send("T", body, queue=2).result(SECONDS)
    seen = Seen()
    with consume(hub, seen, orderly=True, batch=5):
        assert seen.has(set(numbers(0, 60)))
    assert seen.bodies == numbers(0, 60)


def test_a_broker_that_does_not_push_is_named() -> None:
    with RocketServer({"T": 2}) as server:
        server.put("T", 0, b"there")
        with PushConsumer(server.target, "g", "T", Seen(), push=True, begin="first") as consumer:
            assert eventually(lambda: "does not push: it does not know the code 353" in consumer.trouble)
            assert "leave push=True out" in consumer.trouble and consumer.assignment == ()
        assert not any(fields.get("consumerGroup") for fields, _ in server.requests(11))
        assert all(b"CONSUME_PUSH" not in body for _, body in server.requests(34))
