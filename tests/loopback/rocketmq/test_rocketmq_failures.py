"""What fails under clients of RocketMQ: their own threads, callbacks, brokers that go, are away, or do not read."""

from __future__ import annotations

import json
import math
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.errors import BufferFullError, DataProxyError, DeliveryFailed
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, Queue, TransactionProducer
from dataproxy.rocketmq.group.offsets import BrokerOffsets
from tests.support.rocketserver import RocketServer
from tests.support.waiting import eventually

SEND = 310


@pytest.fixture
def dead_port() -> Iterator[int]:
    """Return a port at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def break_down(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread fail that reads connections."""

    def fail() -> None:
        raise ZeroDivisionError("by a test")

    connections = client._client.connections
    monkeypatch.setattr(connections, "_flush_gathered", fail)
    connections.wake()
    assert eventually(lambda: not connections._thread.is_alive())


def beside(call: Callable[[], object]) -> Callable[[], BaseException | None]:
    """Call a function on another thread; return a function that waits for its end, and returns its error."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except DataProxyError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end() -> BaseException | None:
        thread.join(20)
        assert not thread.is_alive(), "it still waits"
        return errors[0] if errors else None

    return end


def test_a_failure_of_the_thread_that_reads_is_told_to_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with RocketServer({"t": 1}) as server:
        producer = Producer(server.target, "p", request_timeout=60, delivery_timeout=60)
        server.on[SEND] = lambda *_: None
        sent = producer.send("t", b"x")
        server.wait(lambda: server.requests(SEND))
        server.on[105] = lambda *_: None
        asks, flushes = beside(lambda: producer.queues("u")), beside(lambda: producer.flush(math.inf))
        server.wait(lambda: len(server.requests(105)) == 2)
        break_down(producer, monkeypatch)
        failed = sent.exception(20)
        assert isinstance(failed, DeliveryFailed)
        assert (failed.code, "ZeroDivisionError: by a test" in failed.message) == ("ABORTED", True)
        for end in (asks, flushes):
            error = end()
            assert isinstance(error, DataProxyError)
            assert (error.fatal, "the client has failed" in error.message) == (True, True)
        with pytest.raises(DataProxyError, match=r"has failed \(ZeroDivisionError: by a test\); make a new one"):
            producer.send("t", b"y")
        assert "ZeroDivisionError" in producer.trouble
        report = producer.close()
        assert (report.accepted, report.failed, report.pending, report.maybe_delivered) == (1, 1, 0, 1)


def test_a_failure_of_the_thread_that_reads_ends_waits_of_consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    with RocketServer({"t": 1}) as server:
        pulls = PullConsumer(server.target, "g", "t")
        pushes = PushConsumer(server.target, "h", "t", print)
        server.wait(lambda: {fields["consumerGroup"] for fields, _ in server.requests(11)} == {"g", "h"})
        polls = beside(lambda: pulls.poll(math.inf))
        for consumer in (pulls, pushes):
            assert consumer.trouble == ""
            break_down(consumer, monkeypatch)
            assert "ZeroDivisionError" in consumer.trouble
        error = polls()
        assert isinstance(error, DataProxyError) and "has failed" in error.message
        for consumer in (pulls, pushes):
            consumer.close()


def test_callbacks_that_raise_whatever_they_like_end_no_thread() -> None:
    with RocketServer({"t": 1}) as server, Producer(server.target) as producer:
        for what in (SystemExit(1), ValueError("no")):
            called = threading.Event()

            def fail(_delivery: object, what: BaseException = what, called: threading.Event = called) -> None:
                called.set()
                raise what

            producer.send("t", b"x").add_done_callback(fail)
            assert called.wait(10)
            producer.send("t", b"y").result(10)
        done = producer.send("t", b"z")
        done.result(10)
        with pytest.raises(SystemExit):  # on the thread of the caller, whose exit it is
            done.add_done_callback(lambda _delivery: sys.exit(3))


def test_a_check_that_raises_whatever_it_likes_is_followed_by_others() -> None:
    answers: list[Any] = [SystemExit(1), "no end", ["commit"], "commit"]

    def check(_message: object) -> Any:
        found = answers.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    with RocketServer({"t": 1}) as server, TransactionProducer(server.target, "p", check) as producer:
        producer.send("t", b"half").result(10)
        [client] = server.wait(lambda: [one for one in server.clients if one.id])
        for _ in range(4):
            fields = {"tranStateTableOffset": 1, "commitLogOffset": 2, "msgId": "M"}
            client.ask(39, fields, server.store[("t", 0)][0], one_way=True)  # type: ignore[arg-type]
        server.wait(lambda: server.requests(37))
        assert [fields["commitOrRollback"] for fields, _ in server.requests(37)] == ["8"] and not answers


@pytest.mark.parametrize("place", ["_bury", "_call"])
def test_an_orderly_queue_goes_on_after_a_failure_of_our_own(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    seen: list[bytes] = []

    def listener(messages: Any) -> None:
        seen.append(messages[0].body)
        if seen.count(b"0") < 2:
            raise ValueError("again")

    with RocketServer({"t": 1}) as server:
        consumer = PushConsumer(server.target, "g", "t", listener, begin="first", orderly=True)
        real, failures = getattr(consumer, place), [1]

        def once(*arguments: Any) -> Any:
            if failures:
                failures.pop()
                raise KeyError("by a test")
            return real(*arguments)

        monkeypatch.setattr(consumer, place, once)
        server.put("t", 0, b"0")
        server.put("t", 0, b"1")
        server.wait(lambda: seen[-1:] == [b"1"])
        consumer.close()
        assert seen == [b"0", b"0", b"1"] and server.offsets[("g", "t", 0)] == 2


def test_a_message_that_cannot_be_sent_back_for_a_reason_of_our_own_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dataproxy.rocketmq.push as module

    def fail(*_: object) -> None:
        raise KeyError("by a test")

    seen: list[bytes] = []

    def listener(messages: Any) -> None:
        seen.append(messages[0].body)
        if len(seen) == 1:
            raise ValueError("once")

    monkeypatch.setattr(module, "send_again", fail)
    monkeypatch.setattr(module, "_AGAIN_S", 0.05)
    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"x")
        with PushConsumer(server.target, "g", "t", listener, begin="first") as consumer:
            server.wait(lambda: consumer.counts().done == 1)
        assert seen == [b"x", b"x"] and server.offsets[("g", "t", 0)] == 1


def test_what_could_not_be_taken_is_asked_for_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataproxy.rocketmq.group.reader as module

    monkeypatch.setattr(module, "_FAULT_S", 0.05)
    with RocketServer({"t": 1}) as server, PullConsumer(server.target, "g", "t", begin="first") as consumer:
        take, failures = consumer._take, [1]

        def once(reader: Any, chunks: Any) -> None:
            if failures:
                failures.pop()
                raise KeyError("by a test")
            take(reader, chunks)

        monkeypatch.setattr(consumer, "_take", once)
        server.put("t", 0, b"x")
        assert [one.body for one in consumer.poll(20)] == [b"x"] and not failures


def test_a_broker_that_does_not_read_holds_no_more_than_the_buffer() -> None:
    gate = threading.Event()
    with RocketServer({"t": 1}) as server:
        send = server._code_310
        server.on[SEND] = lambda *call: (gate.wait(30), send(*call))[1]
        most = 24 << 20
        producer = Producer(
            server.target, "p", buffer_bytes=most, max_block=0.05, request_timeout=60, delivery_timeout=60,
            compress_above=0,
        )  # fmt: skip
        body = bytes(1 << 20)
        for _ in range(23):
            producer.send("t", body)
        with pytest.raises(BufferFullError):
            producer.send("t", body)
        report = producer.report()
        assert (report.pending, report.accepted) == (23, 23) and report.buffered_bytes <= most
        [link] = [link for link in producer._client.connections._links.values() if link.sends]
        assert 0 < link.unsent <= most  # the system takes only a part
        gate.set()
        report = producer.flush(60)
        assert (report.delivered, report.duplicates_possible) == (23, 0) and len(server.store[("t", 0)]) == 23
        producer.close()


def test_a_broker_that_does_not_read_does_not_hold_up_a_close() -> None:
    gate = threading.Event()
    with RocketServer({"t": 1}) as server:
        server.on[SEND] = lambda *_call: gate.wait(30) and None
        producer = Producer(server.target, "p", request_timeout=60, delivery_timeout=60, compress_above=0)
        for _ in range(20):
            producer.send("t", bytes(1 << 20))
        server.wait(lambda: server.requests(SEND))
        report = producer.close(0.1)
        gate.set()
        assert (report.accepted, report.failed, report.pending, report.maybe_delivered) == (20, 20, 0, 20)


def test_clients_survive_a_broker_that_vanishes_and_comes_back() -> None:
    seen: list[bytes] = []
    with RocketServer({"t": 1}) as first:
        producer = Producer(first.target, "p", delivery_timeout=30, request_timeout=2)
        consumer = PushConsumer(
            first.target, "g", "t", lambda found: seen.extend(one.body for one in found), begin="first"
        )
        producer.send("t", b"before").result(10)
        first.wait(lambda: seen == [b"before"])
    between = producer.send("t", b"between")
    with RocketServer({"t": 1}, after=first) as server:
        assert between.result(30).offset == 1
        producer.send("t", b"after").result(10)
        server.wait(lambda: seen == [b"before", b"between", b"after"])
        consumer.close()
        producer.close()
        assert server.offsets[("g", "t", 0)] == 3


def test_one_of_two_brokers_is_away(dead_port: int) -> None:
    seen: list[bytes] = []
    with RocketServer({"t": 1}) as server:
        server.others["a"] = f"127.0.0.1:{dead_port}"  # it is asked first
        server.put("t", 0, b"x")
        consumer = PushConsumer(
            server.target, "g", "t", lambda found: seen.extend(one.body for one in found), begin="first", orderly=True
        )
        with consumer:
            server.wait(lambda: seen == [b"x"])
            assert Queue("a", 0, "t") not in consumer.assignment and Queue("b", 0, "t") in consumer.assignment
            with pytest.raises(DataProxyError, match="no connection"):
                BrokerOffsets(consumer._client, "other").write({Queue("a", 0, "t"): 5, Queue("b", 0, "t"): 6})
            server.wait(lambda: server.offsets.get(("other", "t", 0)) == 6)
        assert not server.locks and server.offsets[("g", "t", 0)] == 1


def test_a_message_goes_to_the_broker_that_is_there(dead_port: int) -> None:
    with RocketServer({"t": 1}) as server:
        server.others["a"] = f"127.0.0.1:{dead_port}"
        with Producer(server.target, "p") as producer:
            assert {producer.send("t", b"%d" % i).result(20).broker for i in range(4)} == {"b"}
            assert producer.report().duplicates_possible == 0


def test_a_close_connects_to_no_broker_that_is_dead(monkeypatch: pytest.MonkeyPatch, dead_port: int) -> None:
    with RocketServer({"t": 1}) as server:
        server.others["a"] = f"127.0.0.1:{dead_port}"
        producer = Producer(server.target, "p")
        producer.send("t", b"x").result(20)
        producer._client.keeper.close(20)  # it may be connecting for a heartbeat
        for client in list(server.clients):
            client.cut()
        assert eventually(lambda: not producer._client.connections._links)
        tried: list[object] = []
        monkeypatch.setattr(producer._client.connections, "_connect", tried.append)
        assert producer.close().delivered == 1 and not tried


def test_the_counts_add_up_after_a_signal_handler_that_raised_in_a_send(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise InterruptedError("by a test")

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with RocketServer({"t": 1}) as server, Producer(server.target, "p") as producer:
            real = producer._dispatcher._place

            def place(*_: object) -> None:
                monkeypatch.setattr(producer._dispatcher, "_place", real)
                signal.raise_signal(signal.SIGUSR1)

            monkeypatch.setattr(producer._dispatcher, "_place", place)
            with pytest.raises(InterruptedError):
                producer.send("t", b"x")
            report = producer.report()
            assert report.accepted == 1 == report.delivered + report.pending
            report = producer.flush(20)
            assert (report.accepted, report.delivered, report.pending) == (1, 1, 0)
            assert len(server.store[("t", 0)]) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_may_close_a_producer_in_the_middle_of_its_send(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    with RocketServer({"t": 1}) as server:
        producer = Producer(server.target, "p", delivery_timeout=120)
        producer.send("t", b"before").result(20)
        before = signal.signal(signal.SIGUSR1, lambda *_: reports.append(producer.close(60)))
        try:
            real = producer._dispatcher._place

            def place(*arguments: Any) -> Any:
                signal.raise_signal(signal.SIGUSR1)
                return real(*arguments)

            monkeypatch.setattr(producer._dispatcher, "_place", place)
            begun = time.monotonic()
            sent = producer.send("t", b"x")
            assert time.monotonic() - begun < 40, "the handler has waited for what it had interrupted"
        finally:
            signal.signal(signal.SIGUSR1, before)
        error = sent.exception(20)
        assert isinstance(error, DeliveryFailed) and error.code == "CLOSED"
        assert [(one.accepted, one.delivered, one.failed, one.pending) for one in reports] == [(2, 1, 1, 0)]
        assert len(server.store[("t", 0)]) == 1


def test_a_flush_waits_for_what_was_accepted_before_it() -> None:
    gate = threading.Event()
    with RocketServer({"t": 1}) as server:
        send = server._code_310

        def answer(client: Any, fields: Any, body: bytes) -> Any:
            gate.wait(20)
            return send(client, fields, body) if body == b"first" else None

        server.on[SEND] = answer
        producer = Producer(server.target, "p", request_timeout=60, delivery_timeout=60)
        producer.send("t", b"first")
        reports: list[Any] = []
        end = beside(lambda: reports.append(producer.flush(30)))
        assert eventually(lambda: producer._dispatcher._flushes)
        producer.send("t", b"later")
        gate.set()
        assert end() is None
        assert (reports[0].accepted, reports[0].delivered, reports[0].pending) == (2, 1, 1)
        producer.close(0)


def test_two_quick_notices_take_no_orderly_queue_from_its_listener() -> None:
    inside, go_on = threading.Event(), threading.Event()
    seen: list[bytes] = []

    def listener(messages: Any) -> None:
        seen.append(messages[0].body)
        if messages[0].body == b"1":
            inside.set()
            assert go_on.wait(20)

    with RocketServer({"t": 1}) as server:
        for i in range(3):
            server.put("t", 0, b"%d" % i)
        with PushConsumer(server.target, "g", "t", listener, begin="first", orderly=True) as consumer:
            assert inside.wait(20)
            ids = json.dumps({"consumerIdList": ["0", consumer.client_id]}).encode()
            server.on[38] = lambda *_: (0, {}, ids)  # another member comes, and takes the queue
            [client] = list(server.members["g"].values())
            for _ in range(4):
                asked = len(server.requests(38))
                client.ask(40, {"consumerGroup": "g"}, one_way=True)
                server.wait(lambda: len(server.requests(38)) > asked)  # noqa: B023 - it is called in this round
            assert not [body for _, body in server.requests(42) if b'"topic":"t"' in body.replace(b" ", b"")]
            assert server.locks[("g", "t", 0)] == consumer.client_id
            go_on.set()
            server.wait(lambda: ("g", "t", 0) not in server.locks)
            assert seen == [b"0", b"1"] and server.offsets[("g", "t", 0)] == 2  # its next member goes on with the third


def test_a_close_that_does_not_wait_for_a_listener_leaves_its_orderly_queue_locked() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def listener(_messages: object) -> None:
        inside.set()
        go_on.wait(20)

    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"x")
        consumer = PushConsumer(server.target, "g", "t", listener, begin="first", orderly=True)
        assert inside.wait(20)
        consumer.close(0.05)
        server.wait(lambda: not server.members["g"])
        assert server.locks[("g", "t", 0)] == consumer.client_id
        go_on.set()


def test_a_queue_that_became_shorter_is_read_from_its_end_and_no_place_is_skipped() -> None:
    inside, go_on, again = threading.Event(), threading.Event(), threading.Event()
    seen: list[bytes] = []

    def listener(messages: Any) -> None:
        seen.append(messages[0].body)
        if messages[0].body == b"old 3":
            inside.set()
            assert go_on.wait(20)
        if messages[0].body == b"new 2":
            assert again.wait(20)

    with RocketServer({"t": 1}) as server:
        with PushConsumer(server.target, "g", "t", listener, begin="first") as consumer:
            consumer._pace = 1.0  # messages are handed out one by one
            for i in range(4):
                server.put("t", 0, b"old %d" % i)
            assert inside.wait(20)
            with server.changed:
                del server.store[("t", 0)][2:]
                server.changed.notify_all()
            server.wait(lambda: any(fields["queueOffset"] == "2" for fields, _ in server.requests(11)))
            server.put("t", 0, b"new 2")
            server.put("t", 0, b"new 3")
            server.wait(lambda: b"new 3" in seen)
            go_on.set()
            server.wait(lambda: consumer.counts().done >= 5)
            [reader] = [one for queue, one in consumer._member.readers.items() if queue.topic == "t"]
            assert reader.backlog.done == 2  # new 2 is not done yet
            again.set()
        assert server.offsets[("g", "t", 0)] == 4


def test_messages_for_a_broker_that_is_away_wait_and_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 100
    with RocketServer({"t": 1}) as names, RocketServer({"t": 1}) as gone:
        gone.__exit__()
        names.shown_port = gone.port
        with Producer(names.target, delivery_timeout=60) as producer:
            tries, connects = [0], [0]
            dispatch, connect = producer._dispatcher.dispatch, producer._client.connections._connect

            def counted(delivery: Any) -> None:
                tries[0] += 1
                dispatch(delivery)

            def connecting(address: Any) -> Any:
                connects[0] += address.port == gone.port
                return connect(address)

            monkeypatch.setattr(producer._dispatcher, "dispatch", counted)
            monkeypatch.setattr(producer._client.connections, "_connect", connecting)
            sent = [producer.send("t", b"x") for _ in range(n)]
            assert eventually(lambda: connects[0] >= 3)
            assert tries[0] <= 2 * n  # behind the route, and the first connection
            with RocketServer({"t": 1}, after=gone) as back:
                assert [one.result(30).attempts for one in sent] == [1] * n
                assert len(back.requests(SEND)) == n


def test_messages_of_brokers_that_are_away_go_to_the_first_that_is_back() -> None:
    with RocketServer({"t": 1}) as names, RocketServer({"t": 1}) as one, RocketServer({"t": 1}) as two:
        for gone in (one, two):
            gone.__exit__()
        names.others["a"], names.shown_port = f"127.0.0.1:{one.port}", two.port
        with Producer(names.target, delivery_timeout=60) as producer:
            sent = [producer.send("t", b"x") for _ in range(20)]
            assert eventually(lambda: all("no connection" in each._why for each in sent))
            with RocketServer({"t": 1}, after=two):
                assert {each.result(30).broker for each in sent} == {"b"}
            with RocketServer({"t": 1}, after=one):
                assert eventually(lambda: producer.send("t", b"x").result(30).broker == "a")


def test_messages_that_wait_for_a_broker_go_where_the_route_says_later() -> None:
    with RocketServer({"t": 1}) as names, RocketServer({"t": 1}) as gone, RocketServer({"t": 1}) as moved:
        gone.__exit__()
        names.shown_port = gone.port
        with Producer(names.target, delivery_timeout=30) as producer:
            keyed, plain = producer.send("t", b"x", key="k"), producer.send("t", b"x")
            assert eventually(lambda: "no connection" in keyed._why and "no connection" in plain._why)
            names.shown_port = moved.port
            producer._client.refresh()
            assert keyed.result(30).attempts == plain.result(30).attempts == 1
