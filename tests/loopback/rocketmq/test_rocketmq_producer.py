"""A producer of RocketMQ against a broker in plain Python: results, retries, limits, ends."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

import dataproxy
from dataproxy.errors import (
    BufferFullError,
    ClosedError,
    ConfigError,
    DeliveryExpired,
    DeliveryFailed,
    DeliveryPending,
    FlushTimeout,
    ForkedError,
    InvalidMessageError,
    LocalProtocolError,
    UndeliveredError,
)
from dataproxy.rocketmq import Message, Producer
from tests.support.reference import rocketmq as reference
from tests.support.rocketserver import Client, RocketServer

SEND, BATCH = 310, 320


def make(server: RocketServer, **options: object) -> Producer:
    return Producer(server.target, "group", **{"delivery_timeout": 10, "request_timeout": 2, **options})  # type: ignore[arg-type]


def test_a_result_keeps_no_body() -> None:
    with RocketServer({"t": 1}) as server, make(server) as producer:
        body = b"x" * 1000
        uses = sys.getrefcount(body)
        stored = producer.send("t", body)
        assert stored.result().id == stored.id
        assert sys.getrefcount(body) == uses


def test_an_error_that_is_asked_for_again_keeps_nobody_who_has_asked() -> None:
    class Large:
        """Stand for what a caller has in its variables."""

    with RocketServer({"t": 1}) as server:
        producer = make(server)
        sent = producer.send("t", b"x", queue=9)

        def ask() -> weakref.ref[Large]:
            large = Large()
            with pytest.raises(DeliveryFailed, match="no queue 9") as caught:
                sent.result(10)
            assert len(caught.traceback) == 2 and caught.value.details == sent.exception().details  # type: ignore[union-attr]
            return weakref.ref(large)

        kept = [ask() for _ in range(3)]
        gc.collect()
        assert [one() for one in kept] == [None] * 3
        assert producer.close().failed == 1


def test_a_message_travels_with_all_that_it_has() -> None:
    with RocketServer({"t": 3}) as server, make(server) as producer:
        sent = producer.send(
            "t", b"body", tag="a", keys=("k", "l"), properties={"n": "1"}, delay_level=3, flag=9, queue=2
        )
        result = sent.result(10)
        [(fields, body)] = server.requests(SEND)
        assert body == b"body" and {name: fields[name] for name in "abcdefhjkm"} == {
            "a": "group", "b": "t", "c": "TBW102", "d": "4", "e": "2", "f": "0", "h": "9", "j": "0", "k": "false",
            "m": "false",
        }  # fmt: skip
        assert dict(reference.properties(fields["i"].encode())) == {
            b"UNIQ_KEY": sent.id.encode(), b"WAIT": b"true", b"TAGS": b"a", b"KEYS": b"k l", b"DELAY": b"3", b"n": b"1",
        }  # fmt: skip
        assert (result.id, result.broker, result.queue, result.offset, result.attempts) == (sent.id, "b", 2, 0, 1)
        assert sent.done() and sent.exception() is None and len(sent.id) == 32
        assert producer.report()[:5] == (1, 1, 0, 0, 0)


def test_large_bodies_are_compressed_where_that_helps() -> None:
    with RocketServer({"t": 1}) as server, make(server, compress_above=100) as producer:
        noise = os.urandom(200)
        producer.send("t", b"x" * 200).result(10)
        producer.send("t", noise).result(10)
        [(first, packed), (second, plain)] = server.requests(SEND)
        assert first["f"] == str(1 | 0x300) and zlib.decompress(packed) == b"x" * 200
        assert second["f"] == "0" and plain == noise


def test_a_batch_is_one_request() -> None:
    def stored(client: Client, fields: dict[str, str], body: bytes) -> tuple[int, dict[str, object], bytes]:
        return 0, {"msgId": "A,B", "queueId": 0, "queueOffset": 5}, b""

    with RocketServer({"t": 1}) as server, make(server) as producer:
        server.on[BATCH] = stored
        result = producer.send_batch("t", [Message(b"one", tag="a"), b"two"]).result(10)
        assert result.offset_ids == ("A", "B") and result.offset == 5
        [(fields, body)] = server.requests(BATCH)
        assert fields["m"] == "true" and [one["body"] for one in reference.items(body)] == [b"one", b"two"]
        assert producer.report().delivered == 2


def test_a_batch_has_what_its_iterator_gave_whatever_becomes_of_the_buffer() -> None:
    buffer = bytearray(b"one")

    def bodies() -> Iterator[bytearray | memoryview]:
        yield buffer
        buffer[:] = b"two"
        yield memoryview(buffer)
        buffer[:] = b"end"

    with RocketServer({"t": 1}) as server, make(server) as producer:
        server.on[BATCH] = lambda *_: (0, {"msgId": "A,B", "queueId": 0, "queueOffset": 0}, b"")
        sent = producer.send_batch("t", bodies())
        sent.result(10)
        [(_, body)] = server.requests(BATCH)
        assert [one["body"] for one in reference.items(body)] == [b"one", b"two"]


@pytest.mark.parametrize(("body", "most"), [(b"x", 32_768), (bytes(1 << 20), 5)])
def test_of_an_iterator_without_end_no_more_is_taken_than_a_batch_may_have(body: bytes, most: int) -> None:
    taken = itertools.count(1)
    with RocketServer({"t": 1}) as server, make(server) as producer:
        with pytest.raises(InvalidMessageError, match="a batch"):
            producer.send_batch("t", (body for _ in itertools.islice(taken, 100_000)))
        assert next(taken) <= most + 1 and producer.report().accepted == 0


@pytest.mark.parametrize("send", [lambda p, body: p.send("t", body), lambda p, body: p.send_batch("t", [b"x", body])])
def test_a_view_that_was_released_is_no_body(send: Callable[[Producer, memoryview], object]) -> None:
    gone = memoryview(b"gone")
    gone.release()
    with RocketServer({"t": 1}) as server, make(server) as producer:
        with pytest.raises(InvalidMessageError, match="released memoryview") as caught:
            send(producer, gone)
        assert caught.value.code == "BAD_BODY"


@pytest.mark.parametrize(("codes", "attempts"), [([2, 14, 215], 4), ([1, 17], 3)])
def test_it_is_tried_again_where_that_can_help(codes: list[int], attempts: int) -> None:
    left = list(codes)

    def answer(client: Client, fields: dict[str, str], body: bytes) -> tuple[int, dict[str, object], bytes]:
        if left:
            return left.pop(0), {"remark": "busy"}, b""
        return 0, {"msgId": "A", "queueId": 0, "queueOffset": 0}, b""

    with RocketServer({"t": 2}) as server, make(server) as producer:
        server.on[SEND] = answer
        assert producer.send("t", b"x").result(10).attempts == attempts
        assert len({fields["i"] for fields, _ in server.requests(SEND)}) == 1  # with the same id
        assert producer.report().duplicates_possible == (1 if 1 in codes else 0)


def test_what_is_refused_fails_with_the_broker_s_words() -> None:
    with RocketServer({"t": 1}) as server:
        producer = make(server)
        server.on[SEND] = lambda client, fields, body: (13, {"remark": "too\nlarge"}, b"")
        error = producer.send("t", b"x").exception(10)
        assert isinstance(error, DeliveryFailed) and error.code == "SEND_REFUSED"
        assert error.details["code"] == 13 and error.details["maybe_delivered"] is False and r"too\nlarge" in str(error)
        report = producer.close()
        assert (report.failed, report.pending, report.maybe_delivered) == (1, 0, 0)


def test_after_a_lost_connection_it_is_sent_again_and_says_that_it_may_be_there_twice() -> None:
    cuts = [1, 1]

    def cut(client: Client, fields: dict[str, str], body: bytes) -> tuple[int, dict[str, object], bytes] | None:
        if cuts:
            cuts.pop()
            client.cut()
            return None
        return 0, {"msgId": "A", "queueId": 0, "queueOffset": 0}, b""

    with RocketServer({"t": 1}) as server, make(server) as producer:
        server.on[SEND] = cut
        assert producer.send("t", b"x").result(10).attempts == 3
        assert producer.report().duplicates_possible == 1


def test_without_an_answer_it_expires_in_its_time() -> None:
    with RocketServer({"t": 1}) as server:
        producer = make(server, delivery_timeout=0.5, request_timeout=0.2)
        server.on[SEND] = lambda client, fields, body: None
        begun = time.monotonic()
        with pytest.raises(DeliveryExpired, match=r"within 0.5 s: .*did not answer in time"):
            producer.send("t", b"x").result(10)
        assert time.monotonic() - begun < 5
        assert producer.close().maybe_delivered == 1


def test_without_a_broker_it_expires_in_its_time_and_says_why() -> None:
    with RocketServer() as server:
        producer = make(server, delivery_timeout=0.5)
        server.queues.clear()
        with pytest.raises(DeliveryExpired):
            producer.send("t", b"x").result(10)
    with pytest.raises(DeliveryExpired, match="no name server"):
        producer.send("other", b"x").result(10)
    assert producer.close().expired == 2


def test_room_is_bounded() -> None:
    with RocketServer({"t": 1}) as server:
        producer = make(server, buffer_bytes=1000, max_block=0.05, request_timeout=0.2, delivery_timeout=1)
        server.on[SEND] = lambda client, fields, body: None
        producer.send("t", b"x" * 600)
        with pytest.raises(BufferFullError, match="raise buffer_bytes"):
            producer.send("t", b"x" * 600)
        assert producer.report().accepted == 1
        with pytest.raises(FlushTimeout):
            producer.flush(0.01)
        producer.close(0)


def test_small_messages_count_as_the_memory_they_take() -> None:
    """Each takes some 500 bytes beside its body: what waits for a slow broker would take ten times the bound."""
    with RocketServer({"t": 1}) as server:
        producer = make(server, buffer_bytes=1 << 20, max_block=0, request_timeout=20, delivery_timeout=20)
        server.on[SEND] = lambda client, fields, body: None
        with pytest.raises(BufferFullError):
            deque((producer.send("t", b"x") for _ in range(10_000)), maxlen=0)
        report = producer.report()
        assert 1000 < report.pending < 2048 and report.buffered_bytes <= 1 << 20
        producer.close(0)


def test_no_more_are_under_way_than_allowed() -> None:
    with RocketServer({"t": 1}) as server, make(server, in_flight=3) as producer:
        held: list[tuple[Client, int]] = []
        producer.send("t", b"warm").result(10)
        opaque = iter(range(1000))
        server.on[SEND] = lambda client, fields, body: held.append((client, next(opaque)))  # type: ignore[func-returns-value]
        for n in range(10):
            producer.send("t", b"%d" % n)
        server.wait(lambda: len(held) == 3)
        assert len(server.requests(SEND)) == 4
        del server.on[SEND]
        server.clients[0].cut()
        assert producer.flush(20).delivered == 11


class Turns:
    """Stand for the clock of the thread that reads: it sleeps until a test lets it go on."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.free = True
        self._allowed = 0
        self._asleep = False
        self._changed = threading.Condition()

    def sleep(self, _seconds: float) -> None:
        with self._changed:
            self._asleep = True
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.free or self._allowed, 20)
            self._allowed -= not self.free
            self._asleep = False

    def hold(self) -> None:
        """Let it go to sleep, and return when it does."""
        with self._changed:
            self.free = False
            assert self._changed.wait_for(lambda: self._asleep, 20)

    def allow(self, *, all_of_them: bool = False) -> None:
        with self._changed:
            self._allowed += 1
            self.free = all_of_them
            self._changed.notify_all()


def test_messages_that_wait_for_their_turn_are_written_when_answers_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """While as many are under way as may be, there is nothing to gather."""
    turns, gate = Turns(), threading.Event()
    monkeypatch.setattr("dataproxy.rocketmq.network.connections.time", turns)
    with RocketServer({"t": 1}) as server, make(server, in_flight=64) as producer:
        producer.send("t", b"warm").result(10)

        def answer(client: Client, fields: dict[str, str], body: bytes) -> object:
            assert gate.wait(20)
            return server._code_310(client, fields, body)

        server.on[SEND] = answer  # type: ignore[assignment]
        for _ in range(200):
            producer.send("t", b"x")
        link = next(iter(producer._client.connections._links.values()))
        server.wait(lambda: link.sends == 64 and link.unsent == 0)
        producer._client.connections.wake()
        turns.hold()
        gate.set()
        server.wait(lambda: len(server.store["t", 0]) == 65)
        turns.allow()
        server.wait(lambda: len(server.requests(SEND)) > 65)
        turns.allow(all_of_them=True)
        assert producer.flush(20).delivered == 201


def test_answers_that_come_together_are_told_in_their_order() -> None:
    """The thread that reads is held up in a callback, so that it finds several answers at once."""
    told: list[bytes] = []
    listening, go_on = threading.Event(), threading.Event()

    def answer(client: Client, fields: dict[str, str], body: bytes) -> object:
        assert listening.wait(20)
        return (13, {"remark": "bad"}, b"") if body == b"bad" else server._code_310(client, fields, body)

    with RocketServer({"t": 1}) as server, closing(make(server)) as producer:
        server.on[SEND] = answer  # type: ignore[assignment]
        producer.send("t", b"0").add_done_callback(lambda _: go_on.wait(20))
        listening.set()
        made = {}
        for body in (b"1", b"bad", b"2", b"3"):
            made[body] = producer.send("t", body)
            made[body].add_done_callback(lambda _, body=body: told.append(body) or 1 / 0)
        server.wait(lambda: len(server.requests(SEND)) == 5)
        go_on.set()
        counts = producer.flush(20)
        assert (counts.delivered, counts.failed) == (4, 1)
        server.wait(lambda: len(told) == 4)
        assert [one for one in told if one != b"bad"] == [b"1", b"2", b"3"]
        assert [made[body].result(0).offset for body in (b"1", b"2", b"3")] == [1, 2, 3]
        assert made[b"bad"].exception(0).code == "SEND_REFUSED"


def test_who_waits_for_room_does_not_wait_for_callbacks() -> None:
    """A callback needs what the thread has that waits for room."""
    lock, accepted, go_on = threading.Lock(), threading.Event(), threading.Event()

    def answer(client: Client, fields: dict[str, str], body: bytes) -> object:
        assert go_on.wait(20)
        return server._code_310(client, fields, body)

    with RocketServer({"t": 1}) as server, make(server, buffer_bytes=2000, max_block=60.0) as producer:
        producer.send("t", b"warm").result(10)
        server.on[SEND] = answer  # type: ignore[assignment]
        needed: list[bool] = []
        producer.send("t", b"x" * 1400).add_done_callback(lambda _: needed.append(lock.acquire(timeout=30.0)))

        def send() -> None:
            with lock:
                producer.send("t", b"y" * 1400)
                accepted.set()

        thread = threading.Thread(target=send)
        thread.start()
        server.wait(lambda: producer._dispatcher._awaited)
        go_on.set()
        assert accepted.wait(20)
        thread.join(20)
        server.wait(lambda: needed == [True])


def test_callbacks_and_waits_inside_of_them() -> None:
    found: list[object] = []
    done = threading.Event()

    with RocketServer({"t": 1}) as server, make(server) as producer:

        def callback(delivery: object) -> None:
            try:
                producer.flush()
            except LocalProtocolError as error:
                found.append(error.message)
            done.set()
            raise ZeroDivisionError

        delivery = producer.send("t", b"x")
        delivery.add_done_callback(callback)
        assert done.wait(10) and found == ["a callback may not wait for results"]
        delivery.result(10)
        delivery.add_done_callback(found.append)
        assert found[-1] is delivery
        with pytest.raises(dataproxy.DataProxyError):
            delivery.add_done_callback(3)  # type: ignore[arg-type]


def test_a_result_that_is_not_there_yet() -> None:
    with RocketServer({"t": 1}) as server:
        producer = make(server)
        server.on[SEND] = lambda client, fields, body: None
        with pytest.raises(DeliveryPending):
            producer.send("t", b"x").result(0.01)
        report = producer.close(0)
        assert (report.failed, report.pending) == (1, 0) and producer.close() is report
        with pytest.raises(ClosedError):
            producer.send("t", b"x")


def test_a_with_block_tells_what_was_not_delivered() -> None:
    with RocketServer({"t": 1}) as server:
        server.on[SEND] = lambda client, fields, body: (13, {}, b"")
        with (
            pytest.raises(UndeliveredError, match="1 of 1 accepted messages was not delivered"),
            make(server) as producer,
        ):
            producer.send("t", b"x")


def test_a_forked_child_is_told() -> None:
    with RocketServer({"t": 1}) as server, make(server) as producer:
        producer.send("t", b"x").result(10)
        child = os.fork()
        if child == 0:
            try:
                producer.send("t", b"y")
            except ForkedError:
                producer.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        producer.send("t", b"z").result(10)


@pytest.mark.parametrize("call", ["done", "result", "exception"])
@pytest.mark.parametrize("answered", [True, False])
def test_a_delivery_of_the_parent_is_refused_in_a_child(call: str, answered: bool) -> None:
    with RocketServer({"t": 1}) as server:
        producer = make(server)
        if not answered:
            server.on[SEND] = lambda client, fields, body: None
        delivery = producer.send("t", b"x")
        if answered:
            delivery.result(10)
        child = os.fork()
        if child == 0:
            try:
                getattr(delivery, call)()
            except ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        producer.close(0)


def test_oneway_asks_for_no_answer() -> None:
    with RocketServer({"t": 1}) as server, make(server) as producer:
        producer.send_oneway("t", b"x", tag="a")
        server.wait(lambda: server.store.get(("t", 0)))
        assert producer.report().accepted == 0


def test_garbage_ends_the_connection_and_nothing_else() -> None:
    answers = [b"\x16\x03\x01\x00\x00", b"\x7f" * 64, b"\x00\x00\x00\x10\x07" + bytes(20)]

    def garbage(client: Client, fields: dict[str, str], body: bytes) -> tuple[int, dict[str, object], bytes] | None:
        if answers:
            client.raw(answers.pop())
            return None
        return 0, {"msgId": "A", "queueId": 0, "queueOffset": 0}, b""

    with RocketServer({"t": 1}) as server:
        producer = make(server, delivery_timeout=20)
        server.on[SEND] = garbage
        error = producer.send("t", b"x").exception(20)
        assert isinstance(error, DeliveryFailed) and "no frame of RocketMQ" in error.message
        assert producer.send("t", b"y").result(20).attempts == 1 and producer.report().failed == 1
        producer.close()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: p.send("no topic", b"x"), "topic 'no topic'"),
        (lambda p: p.send(["t"], b"x"), r"topic \['t'\]"),
        (lambda p: p.send("t", "text"), "body"),
        (lambda p: p.send("t", b""), "the body is empty"),
        (lambda p: p.send("t", bytes((4 << 20) + 1)), "4194304"),
        (lambda p: p.send("t", b"x", tag="a||b"), "divides tags"),
        (lambda p: p.send("t", b"x", keys="k"), "keys 'k' is not a tuple"),
        (lambda p: p.send("t", b"x", keys=("a b",)), "has a blank"),
        (lambda p: p.send("t", b"x", properties={"TAGS": "x"}), "belongs to the protocol"),
        (lambda p: p.send("t", b"x", properties={"a": "b\x01"}), "which divide properties"),
        (lambda p: p.send("t", b"x", properties={"a": 1}), "is not a text"),
        (lambda p: p.send("t", b"x", properties={"a": "x" * 40000}), "32767"),
        (lambda p: p.send("t", b"x", properties={"a": "\ud83d"}), "surrogate"),
        (lambda p: p.send("t", b"x", delay_level=19), "delay_level 19"),
        (lambda p: p.send("t", b"x", flag=1 << 31), "flag"),
        (lambda p: p.send("t", b"x", key=3), "key 3"),
        (lambda p: p.send_batch("t", []), "0 messages"),
        (lambda p: p.send_batch("t", [Message(b"x", delay_level=1)]), "delay_level"),
    ],
)
def test_bad_messages_are_named(call: object, text: str) -> None:
    producer = Producer("rocketmq://127.0.0.1:1", "g")
    with pytest.raises(InvalidMessageError, match=text):
        call(producer)  # type: ignore[operator]
    assert producer.close().accepted == 0


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("tcp://h:1", "does not begin with 'rocketmq://'"), (3, "is not a text"), ("rocketmq://", "not an address"),
        ("rocketmq://u:p@h:1", "contains '@'"), ("rocketmq://h:0", "'h:0' is not"), ("rocketmq://h:99999", "is not an"),
        ("rocketmq://a,,b", "'' is not an address"), ("rocketmq://[::x]:1", "is not an address"),
    ],
)  # fmt: skip
def test_bad_targets_are_named(target: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Producer(target, "g")  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["buffer_bytes", "in_flight"])
def test_bad_options_are_named(option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}=0"):
        Producer("rocketmq://h", "g", **{option: 0})  # type: ignore[arg-type]
    with pytest.raises(InvalidMessageError, match="group 'a b'"):
        Producer("rocketmq://h", "a b")
