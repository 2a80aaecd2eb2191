"""Requests that the hub's thread answers, its own requests to connections, and news of their end."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from dataproxy._core.server.rocketmq.core import ANSWER, CLOSED, REQUEST
from tests.native import probe_rocketmq as wire
from tests.support.reference.rocketvectors import CAPTURED, captured_body
from tests.support.remoting import JSON, RMQ, Port, Remote, fields
from tests.support.waiting import SECONDS, eventually

Start = Callable[..., Port]
REQUESTS = [
    (i, one) for i, one in enumerate(CAPTURED)
    if one["direction"] == "client->server" and not one["flag"] & 1 and one["code"] != 11
]  # fmt: skip


@pytest.mark.parametrize(("i", "one"), REQUESTS, ids=[f"{i}-{one['code']}" for i, one in REQUESTS])
def test_recorded_requests_come_whole_and_are_answered_in_their_form(start_port: Start, i: int, one: dict) -> None:
    port = start_port()
    remote = port.connect()
    frame = bytes.fromhex(one["hex"])
    remote.socket.sendall(frame)
    call = port.call()
    read = wire.read(frame)
    assert (call.code, call.flag, call.opaque, call.form) == (one["code"], one["flag"], read["opaque"], read["form"])
    assert (call.frame, call.body, call.version) == (frame, captured_body(one), read["version"])
    assert call.fields == {name.decode(): value.decode() for name, value in read["fields"] or ()}
    assert call.peer == "{}:{}".format(*remote.socket.getsockname())
    assert call.local == "{}:{}".format(*remote.socket.getpeername())
    call.answer(0, {"offset": "17"}, "a remark", b"body")
    if one["flag"] & 2:
        assert port.number(remote) == call.connection  # nothing else came
        return
    answer = wire.read(remote.answer(read["opaque"]))
    assert (answer["form"], answer["code"], answer["flag"], answer["version"]) == (read["form"], 0, 1, 409)
    assert (answer["fields"], answer["remark"], answer["body"]) == ([(b"offset", b"17")], b"a remark", b"body")


def test_answers_come_in_any_order(port: Port) -> None:
    remote = port.connect()
    numbers = [remote.request(105, topic=str(i)) for i in range(3)]
    calls = [port.call() for _ in range(3)]
    assert [call.fields["topic"] for call in calls] == ["0", "1", "2"]
    for call in reversed(calls):
        call.answer(17, remark=call.fields["topic"])
    assert [wire.read(remote.answer(number))["remark"] for number in reversed(numbers)] == [b"2", b"1", b"0"]


def test_a_call_is_answered_once_and_one_that_is_dropped_is_answered_as_failed(port: Port) -> None:
    remote = port.connect(RMQ)
    number = remote.request(38, consumerGroup="g")
    call = port.call()
    call.answer(1)
    with pytest.raises(ValueError, match="is answered"):
        call.answer(0)
    assert wire.read(remote.answer(number))["code"] == 1
    number = remote.request(38)
    call = port.call()
    del call
    answer = wire.read(remote.answer(number))
    assert (answer["code"], answer["form"]) == (1, RMQ)
    assert b"could not answer" in answer["remark"]


def test_an_answer_that_no_frame_holds_is_refused_and_the_call_stays_open(port: Port) -> None:
    remote = port.connect()
    number = remote.request(33)
    call = port.call()
    with pytest.raises(ValueError, match="more than a frame"):
        call.answer(0, body=bytes(17 << 20))
    call.answer(0, body=b"less")
    assert wire.read(remote.answer(number))["body"] == b"less"


def test_requests_of_one_way_are_never_answered(port: Port) -> None:
    remote = port.connect()
    remote.request(15, oneway=True)
    call = port.call()
    assert call.oneway
    call.answer(1, remark="nobody hears it")
    first = port.number(remote)
    assert call.connection == first
    assert remote.requests == []


def test_the_hub_asks_a_connection_and_the_answer_comes_back(port: Port) -> None:
    one, other = port.connect(), port.connect(RMQ)
    first, second = port.number(one), port.number(other)
    assert first != second
    port.remoting.send(second, 307, 41, False, {"consumerGroup": "g", "clientId": "c"}, b"x")
    port.remoting.send(first, 40, 5, True, {"consumerGroup": "h"})
    request = other.hear()
    read = wire.read(request)
    assert (read["form"], read["code"], read["flag"], read["opaque"], read["body"]) == (JSON, 307, 0, 41, b"x")
    assert fields(request) == {"consumerGroup": "g", "clientId": "c"}
    told = wire.read(one.hear())
    assert (told["code"], told["flag"], told["opaque"]) == (40, 2, 5)
    other.reply(request, 0, b"running", offset="1")
    call = port.call(ANSWER)
    assert (call.connection, call.opaque, call.code, call.body, call.fields) == (
        second, 41, 0, b"running", {"offset": "1"},
    )  # fmt: skip
    call.answer(0)  # needs none
    other.reply(request)  # nobody waits for a second one
    one.reply(request)  # nor for one of who was not asked
    port.number(other)
    port.number(one)
    assert port.remoting.stats()["stray_answers"] == 2


def test_the_end_of_a_connection_is_told_once_behind_its_calls(port: Port) -> None:
    remote, other = port.connect(), port.connect()
    unknown = port.connect()  # has never asked anything
    kept = port.number(other)
    unknown.close()
    for _ in range(3):
        remote.request(15, oneway=True)
    remote.close()
    calls = [port.call() for _ in range(3)]
    end = port.call(CLOSED)
    assert {call.connection for call in (*calls, end)} == {end.connection}
    assert end.connection != kept
    assert end.fields == {}
    assert port.number(other) == kept
    assert not port.has_call()


def test_numbers_of_connections_are_not_used_again(start_port: Start) -> None:
    port = start_port(threads=2)
    seen = set()
    for _ in range(20):
        with Remote(port.port) as remote:
            number = port.number(remote)
        assert port.call(CLOSED).connection == number
        assert number not in seen
        seen.add(number)


def test_what_is_sent_to_a_connection_that_is_gone_is_lost(port: Port) -> None:
    remote = port.connect()
    number = port.number(remote)
    remote.close()
    assert port.call(CLOSED).connection == number
    port.remoting.send(number, 40, 1, True)
    port.remoting.close(number)
    port.remoting.send((1 << 64) - 1, 40, 1, True)  # there is no such loop
    assert port.number(port.connect()) != number


def test_the_hub_closes_a_connection(port: Port) -> None:
    remote = port.connect()
    number = port.number(remote)
    port.remoting.send(number, 40, 1, True)
    port.remoting.close(number)
    assert wire.read(remote.hear())["code"] == 40
    assert remote.is_closed()
    remote.close()
    assert port.call(CLOSED).connection == number


def test_a_connection_that_does_not_read_is_closed_by_requests_of_the_hub(port: Port) -> None:
    remote = port.connect()
    remote.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    number = port.number(remote)
    for i in range(48):  # more than 32 MiB, which pulls and the largest frame may leave, and what the system takes
        port.remoting.send(number, 309, i, False, {}, bytes(1 << 20))
    assert port.call(CLOSED).connection == number
    assert port.core.stats()["closed"]["replies"] == 1


def test_too_many_calls_are_refused_and_others_are_served(start_port: Start) -> None:
    port = start_port(calls=16)
    remote = port.connect()
    numbers = [remote.request(105) for _ in range(20)]
    assert eventually(lambda: port.remoting.stats()["refused_calls"] == 12)
    busy = [wire.read(remote.answer(number)) for number in numbers[8:]]
    assert {one["code"] for one in busy} == {2}
    other = socket.create_connection(("127.0.0.1", port.port), timeout=SECONDS, source_address=("127.0.0.2", 0))
    other.sendall(wire.write(remote.head(106)))
    calls = [port.call() for _ in range(9)]
    assert calls[-1].code == 106
    assert calls[-1].peer.startswith("127.0.0.2:")
    for call in calls:
        call.answer(0)
    assert {wire.read(remote.answer(number))["code"] for number in numbers[:8]} == {0}
    other.close()


def test_answers_of_clients_count_as_calls_do_and_news_do_not(start_port: Start) -> None:
    port = start_port(calls=4)
    remote = port.connect()
    number = port.number(remote)
    for i in range(5):
        port.remoting.send(number, 221, i, False)
    requests = [remote.hear() for _ in range(5)]
    for request in requests:
        remote.reply(request)
    remote.close()
    kinds = []
    assert eventually(lambda: port.remoting.stats()["refused_calls"] == 3)
    while not kinds or kinds[-1] != CLOSED:
        call = port.remoting.take(port.core.clock_us() + 5_000_000)
        assert call is not None
        kinds.append(call.kind)
    assert kinds == [ANSWER, ANSWER, CLOSED]


def test_a_hub_that_stops_answers_what_it_has_taken(start_port: Start) -> None:
    port = start_port()
    remote = port.connect()
    number = remote.request(105)
    call = port.call()
    port.remoting.stop()
    refused = wire.read(remote.answer(remote.request(105)))
    assert refused["code"] == 14
    call.answer(0)
    assert wire.read(remote.answer(number))["code"] == 0
    assert port.remoting.stopped


def test_a_second_port_is_the_same(start_port: Start) -> None:
    port = start_port(rocketmq_second_port=0)
    port.topic("T")
    first, second = port.core.ports[port.core.rocketmq :]
    with Remote(first) as one, Remote(second) as other:
        assert one.send("T", b"1")["queueOffset"] == 0
        assert other.send("T", b"2")["queueOffset"] == 1
        assert {port.number(one), port.number(other)} == {port.number(one), port.number(other)}


HOSTILE = {
    "no frame": b"GET / HTTP/1.1\r\n\r\n",
    "tls": bytes.fromhex("1603010200010001fc0303"),
    "negative length": struct.pack(">i", -1),
    "tiny length": struct.pack(">i", 3) + bytes(3),
    "huge length": struct.pack(">i", (16 << 20) + 1) + bytes(4),
    "unknown form": struct.pack(">iB", 8, 7) + bytes(7),
    "header longer than the frame": struct.pack(">iI", 8, 9) + b"{}{}",
    "no json": struct.pack(">iI", 8, 4) + b"nope",
    "bomb": struct.pack(">iI", 4 + 40000, 40000) + b'{"a":' * 8000,
    "no number": struct.pack(">iI", 4 + 10, 10) + b'{"code":1}',
    "binary cut short": struct.pack(">iI", 4 + 5, 1 << 24 | 5) + bytes(5),
    "fields longer than the header": struct.pack(">iI", 4 + 21, 1 << 24 | 21) + bytes(17) + b"\x00\x00\x00\x09",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_frame_ends_its_connection_and_no_other(start_port: Start, name: str) -> None:
    port = start_port()
    other = port.connect()
    for step in (1, 1 << 20):
        remote = port.connect()
        data = HOSTILE[name]
        step = step if len(data) < 1000 else 1 << 20
        for at in range(0, len(data), step):
            try:
                remote.socket.sendall(data[at : at + step])
            except ConnectionError:
                break
        assert remote.is_closed()
        port.number(other)


def test_bytes_that_come_one_by_one_are_a_request_as_well(port: Port) -> None:
    remote = port.connect(RMQ)
    head = remote.head(105)
    for byte in wire.write(head | {"fields": [(b"topic", b"T")]}):
        remote.socket.sendall(bytes([byte]))
    call = port.call()
    assert call.fields == {"topic": "T"}
    call.answer(17)
    assert wire.read(remote.answer(head["opaque"]))["code"] == 17


def test_half_a_frame_is_not_read_for_ever(start_port: Start) -> None:
    port = start_port(queue_bytes=1 << 20)
    holders = [port.connect() for _ in range(4)]
    for one in holders:
        one.socket.sendall(struct.pack(">iI", 16 << 20, 2))
        with_body = bytes(12 << 20)
        try:
            one.socket.sendall(with_body)
        except ConnectionError:
            continue
    assert eventually(lambda: port.core.stats()["closed"]["memory"] >= 1)
    port.number(port.connect())
    assert port.core.stats()["frame_bytes"] <= 33 << 20


def test_an_answer_that_was_half_written_is_not_sent(port: Port) -> None:
    remote = port.connect()
    for given in ({"a": "b", "c": "\ud83d"}, {"a": "b", "c": 3}):
        numbers = [remote.request(33), remote.request(33)]
        calls = [port.call(), port.call()]
        for call in calls:
            with pytest.raises((UnicodeEncodeError, AttributeError)):
                call.answer(0, given)
        calls[0].answer(0, {"a": "whole"}, body=b"body")
        answer = wire.read(remote.answer(numbers[0]))
        assert (answer["code"], answer["fields"], answer["body"]) == (0, [(b"a", b"whole")], b"body")
        del call, calls[:]
        answer = wire.read(remote.answer(numbers[1]))
        assert (answer["code"], answer["fields"], b"could not answer" in answer["remark"]) == (1, [], True)


def test_calls_that_outlive_the_server_loops_are_dropped() -> None:
    port = Port()
    remote = port.connect()
    numbers = [remote.request(33) for _ in range(3)]
    calls = [port.call() for _ in numbers]
    port.close(0.05)
    calls[0].answer(0, body=b"nobody waits for it")
    calls[1].wait("T", 0, 0, 1)
    calls.clear()
    left = []
    while (call := port.remoting.take(0)) is not None:
        left.append(call.kind)
    assert REQUEST not in left
