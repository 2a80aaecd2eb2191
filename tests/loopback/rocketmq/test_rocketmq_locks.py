"""Locks of orderly queues that a member may have: a broker has not answered yet, or answers late, or the queue goes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer, PushConsumer
from tests.support.rocketserver import Client, RocketServer
from tests.support.waiting import SECONDS, eventually

_LOCK: Final = 41
_UNLOCK: Final = 42
_BOUND_S: Final = 4.0  # of a close: less than a lease
Taken = Callable[[Client, dict[str, str], bytes], Any]


@pytest.fixture
def server() -> Iterator[RocketServer]:
    with RocketServer({"t": 2}) as server:
        yield server


def orderly(target: str, listener: Callable[[Any], object] = lambda _messages: None, **options: Any) -> PushConsumer:
    return PushConsumer(target, "g", "t", listener, begin="first", orderly=True, **options)


def unlocked(server: RocketServer) -> list[tuple[str, int]]:
    """Return the queues that were given back, of the topic of messages."""
    bodies = [json.loads(body) for _, body in server.requests(_UNLOCK)]
    return [(one["topic"], one["queueId"]) for body in bodies for one in body["mqSet"] if one["topic"] == "t"]


def test_a_close_unlocks_what_a_broker_has_locked_and_not_said(server: RocketServer) -> None:
    real: Taken = server._code_41
    asked = threading.Event()

    def lock(client: Client, fields: dict[str, str], body: bytes) -> None:
        real(client, fields, body)
        asked.set()

    server.on[_LOCK] = lock
    consumer = orderly(server.target)
    assert asked.wait(SECONDS)
    begun = time.monotonic()
    consumer.close()
    assert time.monotonic() - begun < _BOUND_S
    server.wait(lambda: not server.locks)


def test_a_close_unlocks_what_a_broker_locks_later(server: RocketServer) -> None:
    real: Taken = server._code_41
    asked, go_on = threading.Event(), threading.Event()

    def lock(client: Client, fields: dict[str, str], body: bytes) -> Any:
        asked.set()
        assert go_on.wait(SECONDS)  # what else comes by this connection waits behind it
        return real(client, fields, body)

    server.on[_LOCK] = lock
    consumer = orderly(server.target)
    assert asked.wait(SECONDS)
    consumer.close()
    go_on.set()
    server.wait(lambda: server.requests(35))
    assert server.requests(_UNLOCK) and not server.locks


def test_a_queue_that_goes_to_another_member_before_it_was_read_is_unlocked(server: RocketServer) -> None:
    real: Taken = server._code_41

    def lock(client: Client, fields: dict[str, str], body: bytes) -> Any:
        answer = real(client, fields, body)
        return None if b"RETRY" not in body else answer

    server.on[_LOCK] = lock
    with orderly(server.target) as consumer:
        server.wait(lambda: ("g", "t", 1) in server.locks)
        ids = json.dumps({"consumerIdList": [consumer.client_id, "~"]}).encode()
        server.on[38] = lambda *_: (0, {}, ids)  # the second queue is another one's now
        server.wait(lambda: unlocked(server) == [("t", 1)])
        assert ("g", "t", 0) in server.locks and ("g", "t", 1) not in server.locks
        del server.on[_LOCK]
        assert eventually(lambda: [one.queue_id for one in consumer.assignment if one.topic == "t"] == [0])


def test_what_another_member_has_is_not_unlocked(server: RocketServer) -> None:
    server.locks["g", "t", 1] = "somebody"
    with orderly(server.target) as consumer:
        assert eventually(lambda: any(one.topic == "t" for one in consumer.assignment))
    server.wait(lambda: unlocked(server) == [("t", 0)])


def test_a_hub_that_gives_a_lock_behind_a_close_has_its_queue_free(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on = threading.Event(), threading.Event()
    given: list[int] = []
    with Hub(rocketmq_port=0, topics=["t"], partitions=1) as hub:
        service = hub._rocketmq
        assert service is not None
        real = service.registry.lock

        def lock(*asks: Any) -> Any:
            asked.set()
            assert go_on.wait(SECONDS)  # the hub's thread: whatever comes waits behind it
            found = real(*asks)
            given.append(len(found))
            return found

        monkeypatch.setattr(service.registry, "lock", lock)
        consumer = orderly(hub.rocketmq_target)
        assert asked.wait(SECONDS)
        consumer.close()
        go_on.set()
        assert eventually(lambda: given and not service.run(lambda: service.registry.locks(service.now)))
        assert given[0] == 1


def test_a_hub_keeps_a_queue_locked_whose_listener_works_behind_a_close() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def listener(_messages: object) -> None:
        inside.set()
        go_on.wait(SECONDS)

    with Hub(rocketmq_port=0, topics=["t"], partitions=1) as hub:
        service = hub._rocketmq
        assert service is not None
        with Producer(hub.rocketmq_target, "p") as producer:
            producer.send("t", b"x").result(SECONDS)
        consumer = orderly(hub.rocketmq_target, listener)
        assert inside.wait(SECONDS)
        consumer.close(0)
        assert eventually(lambda: not service.run(lambda: service.registry.members.has("g")))
        locked = service.run(lambda: service.registry.locks(service.now))
        go_on.set()
        assert [(one.queue.topic, one.client_id) for one in locked] == [("t", consumer.client_id)]
