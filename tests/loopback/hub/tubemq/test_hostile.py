"""Hostile clients at a hub's port of TubeMQ: typed answers or the end of the connection, and others are served."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from dataproxy.hub import Hub
from dataproxy.wire.tubemq import messages
from tests.loopback.hub.peer import read_all
from tests.support.rawclient import Connection
from tests.support.reference import tubemq as wire
from tests.support.waiting import SECONDS, eventually

TOKEN = wire.TOKEN
OVERFLOW = b"org.apache.inlong.tubemq.corerpc.exception.OverflowException"
Start = Callable[..., Hub]


def connected(hub: Hub, source: str = "127.0.0.1") -> socket.socket:
    """Return a connection that comes from an address."""
    return socket.create_connection(("127.0.0.1", hub.tubemq_port), timeout=SECONDS, source_address=(source, 0))


def heartbeat(serial: int, client: str = "p") -> bytes:
    """Return a call of control: the heartbeat of a producer."""
    request = messages.HeartRequestP2M(clientId=client, hostName="h", brokerCheckSum=-1, topicList=["one"])
    return wire.cut(serial, wire.called(1, 3, 2, 1000, request.SerializeToString()))


def message(serial: int, body: bytes, *, slice_bytes: int = 8192, version: int = 3) -> bytes:
    """Return a request to store a message."""
    request = messages.SendMessageRequestP2B(
        clientId="c", topicName="one", partitionId=0, data=body, flag=0, checkSum=-1, sentAddr=0
    )
    return wire.cut(serial, wire.called(2, version, 13, 1000, request.SerializeToString(), flag=10), slice_bytes)


def answers(connection: socket.socket, n: int) -> dict[int, dict]:
    """Return ``n`` answers by their numbers; none comes twice."""
    found: dict[int, dict] = {}
    data = bytearray()
    while len(found) < n:
        part = connection.recv(1 << 18)
        assert part, f"{len(found)} of {n} answers"
        data += part
        at = 0
        while (frame := wire.take_frame(data, at)) is not None:
            serial, payload, at = frame
            assert serial not in found
            found[serial] = wire.split_answer(payload)
        del data[:at]
    return found


def is_served(hub: Hub) -> bool:
    """Tell whether somebody else gets answers."""
    with Connection(hub.tubemq_port, SECONDS) as other:
        answer = other.ask("RegisterRequestP2M", clientId="o", hostName="h", brokerCheckSum=-1)
        stored = other.ask_data(
            "SendMessageRequestP2B", clientId=b"o", topicName=b"other", partitionId=0, data=b"x", flag=0, sentAddr=0,
            checkSum=-1, msgType=b"", msgTime=b"",
        )  # fmt: skip
    return answer.errCode == 200 and stored["errCode"] == 200


@contextlib.contextmanager
def busy(hub: Hub) -> Iterator[None]:
    """Keep the thread that answers calls of control busy for a while."""
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(SECONDS)

    holder = threading.Thread(target=lambda: hub._tubemq.run(hold))
    holder.start()
    assert held.wait(SECONDS)
    try:
        yield
    finally:
        go_on.set()
        holder.join()


NO_FRAMES = {
    "no token": b"GET / HTTP/1.1\r\n\r\n",
    "a token that is nearly right": struct.pack(">III", TOKEN ^ 1, 1, 1),
    "no slices": struct.pack(">III", TOKEN, 1, 0),
    "a negative count": struct.pack(">III", TOKEN, 1, 0x80000001),
    "more slices than any reader takes": struct.pack(">III", TOKEN, 1, 3585),
    "an empty slice": struct.pack(">IIII", TOKEN, 1, 1, 0),
    "a slice of a gigabyte": struct.pack(">IIII", TOKEN, 1, 1, 1 << 30),
    "a whole frame, and then none": heartbeat(1) + b"\0\0\0\0",
}


@pytest.mark.parametrize("what", NO_FRAMES)
def test_what_is_no_frame_ends_its_connection_alone(hub: Hub, what: str) -> None:
    with connected(hub) as connection:
        connection.sendall(NO_FRAMES[what])
        assert len(read_all(connection)) == 0 or what.startswith("a whole")
    assert hub.stats()["closed"]["protocol"] + hub.stats()["closed"]["oversize"] == 1
    assert is_served(hub)


def test_a_frame_over_the_limit_ends_its_connection(hub: Hub) -> None:
    with connected(hub) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(message(1, bytes(2 << 20)))
        assert read_all(connection) == b""
    assert eventually(lambda: hub.stats()["closed"]["oversize"] == 1)
    assert is_served(hub)


NO_CALLS = {
    "an empty header": b"\0",
    "a length beyond the frame": b"\x7f\x08\x00",
    "no method": bytes([2, 8, 0, 0, 0]),
    "noise": random.Random(5).randbytes(300),
    "a message that lacks its fields": wire.called(3, 3, 13, 1000, b"\x0a\x01c"),
    "a message that is none": wire.called(3, 3, 13, 1000, b"\xff\xff\xff"),
    "a heartbeat that is none": wire.called(1, 3, 2, 1000, b"\xff\xff\xff"),
}


@pytest.mark.parametrize("what", NO_CALLS)
def test_what_cannot_be_read_is_answered_as_fatal(hub: Hub, what: str) -> None:
    with connected(hub) as connection:
        connection.sendall(wire.cut(77, NO_CALLS[what]) + message(78, b"x"))
        found = answers(connection, 2)
    assert (found[77]["status"], found[78]["status"]) == (2, 0)
    assert found[77]["exceptionName"] == b"com.google.protobuf.InvalidProtocolBufferException"
    assert [one.body for one in hub.records("one")] == [b"x"]


@pytest.mark.parametrize("version", [0, 4, -1])
@pytest.mark.parametrize("method", [2, 13, 17, 18])
def test_versions_that_are_none(hub: Hub, version: int, method: int) -> None:
    with connected(hub) as connection:
        connection.sendall(wire.cut(5, wire.called(2, version, method, 0, b"")))
        (found,) = answers(connection, 1).values()
    assert found["status"] == 1
    assert found["exceptionName"].endswith(b".UnknownProtocolException")


def test_frames_come_in_any_parts(hub: Hub) -> None:
    frames = b"".join(message(i, b"%d" % i * 40, slice_bytes=7) for i in range(3)) + heartbeat(3)
    with connected(hub) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(frames)):
            connection.sendall(frames[i : i + 1])
        assert sorted(answers(connection, 4)) == [0, 1, 2, 3]
    assert [one.body for one in hub.records("one")] == [b"%d" % i * 40 for i in range(3)]


def test_bytes_behind_a_call_do_not_matter(hub: Hub) -> None:
    request = messages.HeartRequestP2M(clientId="c", hostName="h", brokerCheckSum=-1).SerializeToString()
    with connected(hub) as connection:
        connection.sendall(wire.cut(9, wire.called(1, 2, 2, 1000, request) + bytes(9)))
        assert answers(connection, 1)[9]["status"] == 0


@pytest.mark.parametrize("call", [heartbeat, lambda i: message(i, b"%d" % i)], ids=["control", "data"])
def test_ten_thousand_calls_in_one_write(hub: Hub, call: Callable[[int], bytes]) -> None:
    with connected(hub) as connection:
        writer = threading.Thread(target=connection.sendall, args=(b"".join(map(call, range(10_000))),))
        writer.start()
        assert is_served(hub)
        found = answers(connection, 10_000)
        writer.join()
    assert {one["status"] for one in found.values()} == {0}
    assert hub.stats()["refused_calls"] == 0


def test_answers_that_nobody_reads_stop_the_reading(hub: Hub) -> None:
    calls = b"".join(heartbeat(i) for i in range(200_000))
    with connected(hub) as connection:
        connection.setblocking(False)
        sent, pauses = 0, 0
        while pauses < 20:
            try:
                sent += connection.send(calls[sent : sent + (1 << 20)])
                pauses = 0
            except BlockingIOError:
                pauses += 1
                assert is_served(hub)
        assert sent < len(calls)
    assert hub.stats()["answer_bytes"] < 1 << 20


def test_a_flood_from_one_address_leaves_room_for_others(hub: Hub) -> None:
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(connected(hub, "127.0.0.9")) for _ in range(12)]
        other = stack.enter_context(connected(hub, "127.0.0.10"))
        with busy(hub):
            for connection in flood:
                connection.sendall(b"".join(heartbeat(i) for i in range(400)))
            refused = [answers(connection, 1) for connection in flood[-3:]]
            assert all(one["exceptionName"] == OVERFLOW for found in refused for one in found.values())
            assert hub.stats()["calls"] == 2048
            other.sendall(heartbeat(1))
            assert eventually(lambda: hub.stats()["calls"] == 2049)
        assert answers(other, 1)[1]["status"] == 0
    assert is_served(hub)


def test_clients_that_go_before_their_answers(hub: Hub) -> None:
    with busy(hub):
        for _ in range(20):
            with connected(hub) as connection:
                connection.sendall(b"".join(heartbeat(i) for i in range(5)))
        assert eventually(lambda: hub.stats()["calls"] == 100)
    assert is_served(hub)
    assert eventually(lambda: hub.stats()["connections"] == 0)


def test_a_busy_thread_holds_up_no_messages(hub: Hub) -> None:
    with busy(hub), connected(hub) as connection:
        connection.sendall(heartbeat(1) + b"".join(message(i, b"m") for i in range(2, 50)))
        assert sorted(answers(connection, 48)) == list(range(2, 50))


def test_a_hub_that_closes_answers_calls_that_wait(start_hub: Start) -> None:
    hub = start_hub(tubemq_port=0)
    with connected(hub) as connection:
        with busy(hub):
            connection.sendall(b"".join(heartbeat(i) for i in range(10)))
            assert eventually(lambda: hub.stats()["calls"] == 10)
            closing = threading.Thread(target=hub.close)
            closing.start()
        assert sorted(answers(connection, 10)) == list(range(10))
        closing.join()
        assert read_all(connection) == b""
