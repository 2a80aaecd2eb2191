"""What may befall clients of RocketMQ: listeners that send, brokers that fall silent, divisions that change, closes."""

from __future__ import annotations

import contextlib
import json
import signal
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dataproxy.errors import DataProxyError, DeliveryPending, FlushTimeout
from dataproxy.rocketmq import Delivered, Producer, PullConsumer, PushConsumer, RetryLater
from tests.support.rocketserver import RocketServer

SEND = 310


def test_a_listener_may_wait_for_what_it_sends() -> None:
    with RocketServer({"t": 1, "u": 1}) as server:
        server.put("t", 0, b"x")
        send = server._code_310
        server.on[SEND] = lambda *call: (time.sleep(0.1), send(*call))[1]
        found: list[Any] = []
        done = threading.Event()
        with Producer(server.target) as producer:

            def forward(_messages: object) -> None:
                try:
                    found.append(producer.send("u", b"on").result(10))
                except DataProxyError as error:
                    found.append(error)
                finally:
                    done.set()

            with PushConsumer(server.target, "g", "t", forward, begin="first"):
                assert done.wait(10)
        assert isinstance(found[0], Delivered)


def test_polls_go_on_without_commits() -> None:
    with RocketServer({"t": 1}) as server:
        for _ in range(300):
            server.put("t", 0, b"x")
        with PullConsumer(server.target, "g", "t", begin="first", max_messages=64) as consumer:
            polled = 0
            while polled < 300:
                messages = consumer.poll(10)
                assert messages, f"{polled} of 300 came"
                polled += len(messages)


def test_an_answer_that_never_comes_frees_its_place() -> None:
    with RocketServer({"t": 1}) as server:
        send, calls = server._code_310, []
        server.on[SEND] = lambda *call: None if calls.append(call) or len(calls) == 1 else send(*call)
        with Producer(server.target, in_flight=1, delivery_timeout=20, request_timeout=0.5) as producer:
            for i in range(5):
                producer.send("t", b"%d" % i)
            report = producer.flush(20)
        assert (report.delivered, report.duplicates_possible) == (5, 1)


def test_what_failed_at_the_close_is_not_sent_afterwards() -> None:
    with RocketServer({"t": 1}) as server:
        send = server._code_310
        server.on[SEND] = lambda *call: (time.sleep(0.5), send(*call))[1]
        producer = Producer(server.target, in_flight=1)
        for i in range(5):
            producer.send("t", b"%d" % i)
        server.wait(lambda: server.requests(SEND))
        report = producer.close(0.1)
        assert (report.accepted, report.failed, report.maybe_delivered) == (5, 5, 1)
        time.sleep(1.0)  # in which what was held would come
        assert len(server.requests(SEND)) == 1


def test_an_answer_in_front_of_what_is_no_frame_counts() -> None:
    with RocketServer({"t": 1}) as server:
        numbers: list[int] = []
        answer, send = server.answer, server._code_310

        def noted(client: Any, code: int, fields: Any, body: bytes, command: Any) -> Any:
            if code == SEND:
                numbers.append(command["opaque"])
            return answer(client, code, fields, body, command)

        def with_noise(client: Any, fields: Any, body: bytes) -> Any:
            if len(numbers) > 1:
                return send(client, fields, body)
            real = client._socket

            class Noisy:
                def sendall(self, data: bytes) -> None:
                    real.sendall(data + struct.pack(">II", 0x7FFFFFFF, 0))

                def __getattr__(self, name: str) -> Any:
                    return getattr(real, name)

            client._socket = Noisy()
            place = {"msgId": "7F00000100002A9F" + "0" * 16, "queueId": 0, "queueOffset": 0}
            client.write(0, 1, numbers[0], place)
            client._socket = real
            return None

        server.answer, server.on[SEND] = noted, with_noise  # type: ignore[method-assign]
        with Producer(server.target, delivery_timeout=10, request_timeout=2) as producer:
            producer.send("t", b"m")
            report = producer.flush(10)
        assert (report.delivered, report.duplicates_possible, len(numbers)) == (1, 0, 1)


def test_a_queue_that_was_nearly_given_back_is_read_on() -> None:
    with RocketServer({"t": 1}) as server:
        for i in range(3):
            server.put("t", 0, b"%d" % i)
        got: list[bytes] = []
        inside, go_on = threading.Event(), threading.Event()

        def listener(messages: Any) -> None:
            got.append(messages[0].body)
            inside.set()
            assert go_on.wait(20)

        def told() -> None:
            asked = len(server.requests(38))
            for client in list(server.members["g"].values()):
                client.ask(40, {"consumerGroup": "g"}, one_way=True)
            server.wait(lambda: len(server.requests(38)) > asked)
            time.sleep(0.2)  # the division behind the answer

        with PushConsumer(server.target, "g", "t", listener, begin="first", orderly=True) as consumer:
            assert inside.wait(10)
            ids = json.dumps({"consumerIdList": ["0", consumer.client_id]}).encode()
            server.on[38] = lambda *_: (0, {}, ids)  # another member comes, and takes the queue
            told()
            del server.on[38]  # and is gone
            told()
            go_on.set()
            server.put("t", 0, b"3")
            server.wait(lambda: len(got) == 4)
        assert got == [b"0", b"1", b"2", b"3"]


def _changed_level() -> RetryLater:
    answer = RetryLater()
    answer.delay_level = "5"  # type: ignore[assignment]
    return answer


@pytest.mark.parametrize("what", [SystemExit(1), _changed_level()], ids=["exit", "level"])
def test_listeners_that_raise_what_nobody_expects_go_on(what: BaseException) -> None:
    with RocketServer({"t": 1}) as server:
        for i in range(6):
            server.put("t", 0, b"%d" % i)
        got: set[bytes] = set()

        def listener(messages: Any) -> None:
            got.add(messages[0].body)
            raise what

        with PushConsumer(server.target, "g", "t", listener, begin="first", threads=2):
            server.wait(lambda: len(got) == 6)


def test_a_listener_that_ends_after_the_close_writes_into_no_file(tmp_path: Path) -> None:
    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"x")
        inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        def listener(_messages: object) -> None:
            inside.set()
            go_on.wait(20)
            ended.set()
            raise ValueError("late")

        consumer = PushConsumer(server.target, "g", "t", listener, begin="first")
        assert inside.wait(10)
        consumer.close(0.3)
        files = [(tmp_path / str(i)).open("wb", buffering=0) for i in range(12)]
        try:
            go_on.set()
            assert ended.wait(10)
            time.sleep(0.5)  # in which the end of the listener is told
            assert [(tmp_path / str(i)).read_bytes() for i in range(12)] == [b""] * 12
        finally:
            for file in files:
                file.close()


def test_waits_that_signals_interrupt_leave_the_producer_whole() -> None:
    class Interrupted(Exception):
        pass

    def interrupt(_number: int, _frame: object) -> None:
        if is_armed:
            raise Interrupted

    is_armed, heard, other = False, 0, []
    before = signal.signal(signal.SIGALRM, interrupt)
    with RocketServer({"t": 1}) as server, Producer(server.target) as producer:
        producer.send("t", b"first").result(10)
        until = time.monotonic() + 60
        while heard < 1500 and time.monotonic() < until:
            delivery = producer.send("t", b"x")
            try:
                try:
                    is_armed = True
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (heard % 300 + 1), 0.05)  # a finalizer may lose one
                    while True:
                        with contextlib.suppress(DeliveryPending, FlushTimeout):
                            delivery.result(0 if heard % 2 else 10)
                            producer.flush(0 if heard % 4 == 1 else 10)
                            producer.queues("t")
                finally:
                    is_armed = False
            except Interrupted:
                heard += 1
            except (DataProxyError, RuntimeError) as error:  # the latter is one of a lock
                other.append(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        assert (other, producer.flush(20).pending) == ([], 0)
        assert producer.send("t", b"last").result(10).queue == 0
