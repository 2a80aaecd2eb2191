"""Answers leave in the order of the requests of their connection, also those that need no commit."""

import socket

import pytest

from tests.loopback.hub.peer import binary_frame, mask_times, read_frame

HEARTBEAT = bytes.fromhex("0000000101")
ATTRS = b"groupId=g&streamId=s"


def binary_heartbeat(attrs: bytes) -> bytes:
    """Return a heartbeat of type 8 that carries attributes."""
    rest = b"\x08" + bytes(4) + b"\x01" + bytes(4) + len(attrs).to_bytes(2, "big") + attrs + b"\xee\x01"
    return len(rest).to_bytes(4, "big") + rest


def text_frame(kind: int, body: bytes, attrs: bytes) -> bytes:
    """Return a frame of a text type."""
    rest = bytes([kind]) + len(body).to_bytes(4, "big") + body + len(attrs).to_bytes(4, "big") + attrs
    return len(rest).to_bytes(4, "big") + rest


def name_of(answer: bytes) -> str:
    """Return what one of the requests below calls itself."""
    if answer[4] & 0x1F == 7:
        return f"binary {int.from_bytes(answer[5:9], 'big')}" + (" refused" if b"errCode" in answer else "")
    if answer[4] & 0x1F == 1:
        return "heartbeat"
    return answer.partition(b"name=")[2].partition(b"&")[0].partition(b"\xee")[0].decode()


#: Requests of every kind, in the order in which they are sent and have to be answered.
MIXED = [
    (binary_frame(1, [b"a"]), "binary 1"),
    (HEARTBEAT, "heartbeat"),
    (binary_frame(2, [b"b"], group="unknown"), "binary 2 refused"),
    (text_frame(3, b"c", ATTRS + b"&name=text"), "text"),
    (binary_heartbeat(b"name=beat"), "beat"),
    (text_frame(5, b"", ATTRS), ""),
    (text_frame(3, b"c", ATTRS + b"&isAck=false&name=silent"), None),
    (binary_frame(3, [b"d"]), "binary 3"),
    (text_frame(3, b"c", b"groupId=unknown&name=refused"), "refused"),
    (HEARTBEAT, "heartbeat"),
]


@pytest.mark.parametrize("profile", ["strict", "compat"])
@pytest.mark.parametrize("durable", [False, True])
def test_every_kind_of_answer_waits_for_its_turn(start_hub, connect, tmp_path, profile, durable):
    hub = start_hub(tmp_path / "store" if durable else None, profile=profile, topics=["g"])
    connection = connect(hub)
    connection.sendall(b"".join(frame for frame, _ in MIXED) * 20)
    expected = [name for _, name in MIXED if name is not None] * 20
    assert [name_of(read_frame(connection)) for _ in expected] == expected
    stats = hub.stats()
    assert stats["replies"] == len(expected)
    assert stats["entries"] == 20 * 4


@pytest.mark.parametrize("full", [False, True])
def test_refusals_wait_for_their_turn(start_hub, connect, full):
    hub = start_hub(topics=["g"])
    if full:
        hub.faults.add("queue_full", group="g", times=3)
    connection = connect(hub)
    connection.sendall(b"".join(frame for frame, _ in MIXED))
    answers = [read_frame(connection) for _ in range(9)]
    refused = sum(b"errCode=114" in one for one in answers)
    assert refused == (2 if full else 0), "the third has no answer"
    order = [int.from_bytes(one[5:9], "big") for one in answers if one[4] & 0x1F == 7]
    assert order == [1, 2, 3]
    assert [one[4] & 0x1F for one in answers] == [7, 1, 7, 3, 8, 5, 7, 3, 1]


def test_requests_without_an_answer_keep_nobody_waiting(start_hub, connect):
    hub = start_hub()
    connection = connect(hub)
    silent = text_frame(3, b"c", ATTRS + b"&isAck=false")
    connection.sendall(silent * 50 + HEARTBEAT + silent + binary_frame(9, [b"x"]))
    assert read_frame(connection) == HEARTBEAT
    assert name_of(read_frame(connection)) == "binary 9"
    assert hub.stats()["entries"] == 52


def test_a_peer_that_has_said_all_gets_every_answer(start_hub, connect):
    hub = start_hub()
    connection = connect(hub)
    connection.sendall((binary_frame(1, [b"x"]) + HEARTBEAT) * 100)
    connection.shutdown(socket.SHUT_WR)
    kinds = [read_frame(connection)[4] & 0x1F for _ in range(200)]
    assert kinds == [7, 1] * 100
    assert connection.recv(1) == b""


@pytest.mark.parametrize("kind", ["text", "binary"])
@pytest.mark.parametrize("control", [b"syncSend=true", b"proxySend=true"])
def test_compat_answers_an_order_message_when_its_queue_is_full_and_never_otherwise(start_hub, connect, kind, control):
    hub = start_hub(profile="compat", node_ip="10.1.2.3")
    attrs = ATTRS + b"&" + control + b"&partitionKey=k"
    asked = text_frame(3, b"x", attrs)
    if kind == "binary":
        asked = binary_frame(1, [b"x"], stream="s&" + control.decode() + "&partitionKey=k")
    connection = connect(hub)
    with hub.faults.add("queue_full", group="g", times=1):
        connection.sendall(asked + asked + HEARTBEAT)
        answer = mask_times(read_frame(connection))
    before = b"rt=0&rtms=0&" if kind == "text" else b"rtms=0&"
    failed = b"dpIp=10.1.2.3&errCode=114&errMsg=Put msg event to channel failure: the queue is full&"
    assert failed + before + attrs in answer, "as its source handler refuses: the attributes are completed by then"
    assert read_frame(connection) == HEARTBEAT, "the second one was stored, and has no answer"
    assert hub.stats()["entries"] == 1


def test_compat_writes_the_port_where_the_trace_wants_an_address(start_hub, connect):
    hub = start_hub(profile="compat", nodes=2)
    for listener in hub.listeners:
        with socket.create_connection(("127.0.0.1", listener.port), timeout=30) as connection:
            frame = bytearray(binary_frame(1, [b"x"]))
            frame[9:11] = (4 | 2).to_bytes(2, "big")
            connection.sendall(frame)
            assert b"node2ip=%d&" % listener.port in read_frame(connection)
