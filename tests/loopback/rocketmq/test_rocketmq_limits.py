"""Limits and arguments of RocketMQ's clients, and what they do in a forked child."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dataproxy.errors import (
    ConfigError,
    DataProxyError,
    DeliveryFailed,
    DiscoveryError,
    ForkedError,
    InvalidMessageError,
)
from dataproxy.rocketmq import Message, Producer, PullConsumer, PushConsumer, Queue, TransactionProducer
from tests.support.rocketserver import RocketServer

NO_LIMITS = [math.inf, timedelta.max, 1e300]
NO_TIMES = [math.nan, -1, -math.inf, "1", True, timedelta(-1)]


@pytest.mark.parametrize("limit", NO_LIMITS, ids=str)
def test_infinity_is_no_limit(limit: Any) -> None:
    options: dict[str, Any] = {"request_timeout": limit, "connect_timeout": limit}
    with RocketServer({"t": 1}) as server:
        producer = Producer(server.target, "p", delivery_timeout=limit, max_block=limit, buffer_bytes=1000, **options)
        sent = producer.send("t", b"x" * 900)
        producer.send("t", b"y" * 900)  # waits for room
        assert sent.result(limit).offset == 0 and sent.exception(limit) is None
        assert producer.flush(limit).delivered == 2
        with PullConsumer(server.target, "g", "t", begin="first", **options) as consumer:
            assert len(consumer.poll(limit)) == 2
        seen = threading.Event()
        pushes = PushConsumer(server.target, "h", "t", lambda _: seen.set(), begin="first", **options)
        assert seen.wait(20)
        pushes.close(limit)
        assert producer.close(limit).delivered == 2


@pytest.mark.parametrize("value", NO_TIMES, ids=str)
def test_what_is_no_time_is_refused_and_nothing_has_happened(value: Any) -> None:
    with RocketServer({"t": 1}) as server:
        producer = TransactionProducer(server.target, "p", lambda _message: "commit")
        pulls = PullConsumer(server.target, "g", "t")
        pushes = PushConsumer(server.target, "h", "t", print)
        sent = producer.send("t", b"x")
        sent.result(20)
        for call in (
            producer.close, producer.flush, sent.result, sent.exception, pulls.poll, pushes.close,
            lambda value: producer.send_in_transaction("t", b"x", lambda _: "commit", timeout=value),
        ):  # fmt: skip
            with pytest.raises(ConfigError, match="a timeout is a number of seconds from 0 on"):
                call(value)
        assert not (producer.closed or pulls.closed or pushes.closed)
        assert producer.send("t", b"y").result(20) and producer.close().accepted == 2
        pulls.close()
        pushes.close()
        assert pushes.closed


@pytest.mark.parametrize("value", [*NO_TIMES, 0], ids=str)
@pytest.mark.parametrize("option", ["request_timeout", "connect_timeout", "delivery_timeout", "max_block"])
def test_options_that_are_no_times_are_named(option: str, value: Any) -> None:
    target = "rocketmq://127.0.0.1:1"
    if (option, value) != ("max_block", 0):
        with pytest.raises(ConfigError, match=f"{option}=.* is no time"):
            Producer(target, "p", **{option: value})
    if option in ("request_timeout", "connect_timeout"):
        with pytest.raises(ConfigError, match=f"{option}=.* is no time"):
            PullConsumer(target, "g", "t", **{option: value})
        with pytest.raises(ConfigError, match=f"{option}=.* is no time"):
            PushConsumer(target, "g", "t", print, **{option: value})


@pytest.mark.parametrize("properties", [["a"], [], (), "", 0, "text", 7], ids=repr)
def test_properties_that_are_no_mapping_are_named(properties: Any) -> None:
    producer = TransactionProducer("rocketmq://127.0.0.1:1", "p", lambda _message: "commit")
    for call in (
        lambda: producer.send("t", b"x", properties=properties),
        lambda: producer.send_batch("t", [Message(b"x", properties=properties)]),
        lambda: producer.send_in_transaction("t", b"x", lambda _: "commit", properties=properties),
    ):
        with pytest.raises(InvalidMessageError, match=r"properties .* is no mapping"):
            call()
    assert producer.close().accepted == 0


@pytest.mark.parametrize("value", [0, -1, "3", True, 1.5], ids=repr)
def test_numbers_of_attempts_are_checked(value: Any) -> None:
    for orderly in (False, True):
        with pytest.raises(ConfigError, match="max_attempts="):
            PushConsumer("rocketmq://127.0.0.1:1", "g", "t", print, max_attempts=value, orderly=orderly)


@pytest.mark.parametrize("value", [0, -1, "3", None], ids=repr)
def test_a_topic_without_queues_is_not_made(value: Any) -> None:
    with RocketServer({"t": 1}) as server, Producer(server.target, "p") as producer:
        with pytest.raises(ConfigError, match="queues="):
            producer.create_topic("new", value)
        assert not server.requests(17)


def test_a_topic_is_not_made_where_no_broker_is_known() -> None:
    with RocketServer() as server, Producer(server.target, "p") as producer:
        del server.queues["TBW102"]
        with pytest.raises(DiscoveryError, match="no broker is known that could have topic 'new'"):
            producer.create_topic("new", 4)
        server.queues["TBW102"] = 8
        server.on[17] = lambda *_: (0, {}, b"")
        producer.create_topic("new", 4)
        [(fields, _)] = server.requests(17)
        assert (fields["topic"], fields["writeQueueNums"]) == ("new", "4")


def test_queues_that_are_not_there_cannot_be_assigned() -> None:
    with RocketServer({"t": 2}) as server, PullConsumer(server.target, "g") as consumer:
        server.put("t", 1, b"x")
        there = Queue("b", 1, "t")
        consumer.assign({there: 0})
        for queue in (Queue("other", 0, "t"), Queue("b", 2, "t"), Queue("b", 0, "none")):
            with pytest.raises(DiscoveryError, match=f"topic '{queue.topic}' has no queue {queue.queue_id}") as caught:
                consumer.assign({Queue("b", 0, "t"): 0, queue: 0})
            assert caught.value.details["broker"] == queue.broker_name
        server.on[14] = lambda *_: (1, {"remark": "no"}, b"")
        with pytest.raises(DataProxyError, match="refused an offset"):
            consumer.assign({Queue("b", 0, "t"): None})
        assert consumer.assignment == (there,)  # as before
        assert [one.body for one in consumer.poll(20)] == [b"x"]


def in_child(call: Callable[[], int]) -> int:
    """Return what a function returns in a forked child, which has twenty seconds for it."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            code = call()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_in_a_forked_child_nothing_waits_for_the_parent_s_threads() -> None:
    with RocketServer({"t": 1}) as server:
        send = server._code_310
        server.on[310] = lambda client, fields, body: None if body == b"open" else send(client, fields, body)
        producer = Producer(server.target, "p")
        consumer = PushConsumer(server.target, "g", "t", print)
        pulls = PullConsumer(server.target, "h", "t")
        settled, waiting = producer.send("t", b"x"), producer.send("t", b"open")
        settled.result(20)
        locks = [producer._dispatcher._lock]
        locks += [consumer._lock, pulls._changes.lock]  # type: ignore[list-item]
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            for lock in locks:
                lock.acquire()  # type: ignore[attr-defined]
            held.set()
            over.wait(60)
            for lock in locks:
                lock.release()  # type: ignore[attr-defined]

        holder = threading.Thread(target=hold, daemon=True)
        holder.start()
        assert held.wait(20)

        def calls() -> int:
            for call in (
                settled.result, waiting.result, waiting.exception, lambda: waiting.add_done_callback(print),
                producer.report, producer.flush, consumer.counts, lambda: pulls.poll(1), pulls.commit,
                settled.done, waiting.done, consumer.lag, lambda: consumer.assignment, lambda: pulls.assignment,
            ):  # fmt: skip
                try:
                    call()
                except ForkedError:
                    continue
                return 1
            for one in (producer, consumer, pulls):
                one.close()  # type: ignore[attr-defined]
            with Producer(server.target, "child") as own:
                return 7 if own.send("t", b"y").result(15).offset == 1 else 2

        try:
            assert in_child(calls) == 7
        finally:
            over.set()
            holder.join(20)
        assert producer.report().accepted == 2
        for one in (consumer, pulls):
            one.close()  # type: ignore[attr-defined]
        producer.close(0)


def test_a_queue_that_is_not_there_has_the_code_that_the_manual_names() -> None:
    with RocketServer({"t": 2}) as server:
        producer = Producer(server.target, "p")
        error = producer.send("t", b"x", queue=2).exception(20)
        assert isinstance(error, DeliveryFailed) and error.code == "NO_QUEUE" and "queue 2" in str(error)
        with pytest.raises(DeliveryFailed, match="topic 't' has no queue 2 that takes messages") as caught:
            producer.send_oneway("t", b"x", queue=2)
        assert caught.value.code == "NO_QUEUE"
        producer.close()


def test_what_is_too_large_is_said_in_words_of_rocketmq() -> None:
    with RocketServer({"t": 1}) as server, Producer(server.target, "p", compress_above=0) as producer:
        for send, what in (
            (
                lambda: producer.send("t", bytes(4_200_000)),
                "a body has 4200000 bytes; brokers take up to 4194304; split",
            ),
            (lambda: producer.send_batch("t", [bytes(2_200_000)] * 2), "a batch up to its message 2 has 44001"),
        ):
            with pytest.raises(InvalidMessageError, match=what) as caught:
                send()
            assert caught.value.code == "BODY_TOO_LARGE"


@pytest.mark.parametrize("instance", [5, None, b"a", "a\nb", "x" * 201])
def test_an_instance_that_no_server_would_take_is_refused_by_name(instance: Any) -> None:
    with pytest.raises(ConfigError, match="instance="):
        Producer("rocketmq://127.0.0.1:1", instance=instance)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_clients_cannot_be_copied(way: Callable[[object], object]) -> None:
    with RocketServer({"t": 1}) as server:
        made = [
            Producer(server.target),
            TransactionProducer(server.target, "p", lambda _message: "commit"),
            PullConsumer(server.target, "g", "t"),
            PushConsumer(server.target, "g", "t", lambda _messages: None),
        ]
        for one in made:
            with pytest.raises(TypeError, match=f"a {type(one).__name__} owns threads and sockets"):
                way(one)
            one.close()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_delivery_says_what_it_is_and_cannot_be_copied(way: Callable[[object], object]) -> None:
    with RocketServer({"t": 1}) as server, Producer(server.target) as producer:
        sent = producer.send("t", b"x")
        sent.result(20)
        assert repr(sent) == f"<Delivery of {sent.id} to 't', delivered>"
        with pytest.raises(TypeError, match="a Delivery belongs to its producer"):
            way(sent)
