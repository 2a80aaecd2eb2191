"""TubeMQ's table, client role: requests as protobuf reads them, answers of all kinds, any split of the bytes."""

from __future__ import annotations

import struct

import pytest

from dataproxy.numbers import BROKER_CODES, FAMILY_TUBEMQ
from dataproxy.wire.tubemq import messages
from tests.native.probe_wire import ProbeError, Wire
from tests.support.reference import tubemq as wire
from tests.unit.wire.contract import Feed, check_corruption, check_splits, check_truncation, read_all

WIRE = Wire("tubemq")
NAMES = b"groupId=&streamId=orders"
SENDER = b"10.0.0.5-7-1-1-Python"
LENGTH, ATTRS = 0, 1
SIZES = [1, 100, 7_990, 8_000, 8_060, 8_064, 8_192, 16_384, 20_000, 300_000]


def item(body: bytes, text: bytes = b"") -> bytes:
    """Return a message as it lies in a pack."""
    return struct.pack(">I", len(body)) + body + (struct.pack(">I", len(text)) + text if text else b"")


def framed(body: bytes, text: bytes = b"", names: bytes = NAMES, **spec: object) -> bytes:
    given = {"family": FAMILY_TUBEMQ, "items": ATTRS if text else LENGTH, "seq": 7, "sender": SENDER, "answer_ms": 9000}
    return WIRE.frame(item(body, text), names, **{**given, **spec})


def read(frame: bytes) -> tuple[int, dict[str, object], object]:
    """Return serial, envelope and request of a frame, as protobuf reads them."""
    ((serial, payload),) = wire.join(frame)
    call = wire.split_call(payload)
    return serial, call, wire.read_message("SendMessageRequestP2B", call["request"])


def slices_of(frame: bytes) -> list[int]:
    """Return the sizes of a frame's slices."""
    (n,), at, found = struct.unpack_from(">I", frame, 8), 12, []
    for _ in range(n):
        found.append(*struct.unpack_from(">I", frame, at))
        at += 4 + found[-1]
    assert at == len(frame)
    return found


def test_a_request_is_what_it_says():
    serial, call, request = read(framed(b"hello"))
    assert serial == 7
    assert (call["serviceType"], call["protocolVer"], call["method"], call["timeout"]) == (3, 3, 13, 9000)
    assert (request.clientId, request.topicName, request.partitionId) == (SENDER.decode(), "orders", 0)
    assert (request.data, request.flag, request.checkSum) == (b"hello", 0, wire.checksum_of(b"hello"))
    assert request.sentAddr == 0x0A000005
    assert not request.HasField("msgType")
    assert not request.HasField("msgTime")
    assert request.authInfo.visitAuthorizedToken == -2
    assert not request.authInfo.HasField("authAuthorizedToken")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", [b"", b"$msgType$=view,k=v"])
def test_every_byte_travels_in_slices_of_at_most_8192(size, text):
    body = bytes(i * 31 % 256 for i in range(size))
    frame = framed(body, text)
    request = read(frame)[2]
    prefix = struct.pack(">I", len(text)) + text if text else b""
    assert request.data == prefix + body
    assert request.flag == bool(text)
    assert request.checkSum == wire.checksum_of(request.data)
    assert {*slices_of(frame)[:-1]} <= {8192}
    assert 0 < slices_of(frame)[-1] <= 8192
    assert framed(body, text, undone=True) == item(body, text)


@pytest.mark.parametrize(
    ("shared", "own", "whole", "kind", "time"),
    [
        (b"", b"a=1", "a=1", "", ""),
        (b"&a=1", b"", "a=1", "", ""),
        (b"&$msgType$=view,a=1", b"b=2", "$msgType$=view,a=1,b=2", "view", ""),
        (b"&a=1", b"$msgType$=view,$msgTime$=202501020304", "a=1,$msgType$=view,$msgTime$=202501020304", "view",
         "202501020304"),
    ],
)  # fmt: skip
def test_attributes_of_stream_and_message_are_joined(shared, own, whole, kind, time):
    request = read(framed(b"body", own, NAMES + shared))[2]
    assert request.data == struct.pack(">I", len(whole)) + whole.encode() + b"body"
    assert (request.flag, request.msgType, request.msgTime) == (1, kind, time)
    assert framed(b"body", own, NAMES + shared, undone=True) == item(b"body", own)


def test_partition_and_admission_are_written_when_the_broker_is_known():
    frame = framed(b"x" * 20_000, b"a=1", proof_n=9)
    first = WIRE.place(frame, 2, 5, 1_700_000_000_000, b"proof one")
    assert len(first) == len(frame)
    request = read(first)[2]
    assert request.partitionId == 20_005
    assert request.authInfo.visitAuthorizedToken == 1_700_000_000_000
    assert request.authInfo.authAuthorizedToken == "proof one"
    again = read(WIRE.place(first, 0, 0, -2, b"proof two"))[2]
    assert (again.partitionId, again.authInfo.visitAuthorizedToken) == (0, -2)
    assert again.authInfo.authAuthorizedToken == "proof two"
    assert again.data == request.data
    kept = read(WIRE.place(first, 0, -1, 3))[2]
    assert (kept.partitionId, kept.authInfo.visitAuthorizedToken) == (20_005, 3)
    assert kept.authInfo.authAuthorizedToken == "proof one"


def test_a_proof_of_another_length_is_left_out():
    frame = framed(b"x", proof_n=4)
    assert read(WIRE.place(frame, 0, 1, 1, b"too long"))[2].authInfo.authAuthorizedToken == " " * 4
    assert WIRE.place(framed(b"x"), 0, 1, 1, b"no room") == WIRE.place(framed(b"x"), 0, 1, 1)


@pytest.mark.parametrize(
    ("sender", "address"),
    [
        (b"10.0.0.5-7", 0x0A000005), (b"255.255.255.255-1", -1), (b"127.0.0.1-", 0x7F000001), (b"10.0.0.256-7", 0),
        (b"10.0.0-7", 0), (b"10.0.0.5", 0), (b"host-7", 0), (b"1.2.3.4.5-1", 0),
    ],
)  # fmt: skip
def test_the_address_is_that_in_the_name(sender, address):
    assert read(framed(b"x", sender=sender))[2].sentAddr == address


@pytest.mark.parametrize(
    ("spec", "names", "body"),
    [
        ({"count": 2}, NAMES, b"body"),
        ({"compressed": True}, NAMES, b"body"),
        ({"items": ATTRS}, NAMES, b"body"),
        ({}, b"groupId=g", b"body"),
        ({}, b"groupId=&streamId=", b"body"),
        ({}, b"", b"body"),
    ],
)
def test_what_is_no_single_message_is_refused(spec, names, body):
    with pytest.raises(ProbeError) as caught:
        framed(body, names=names, **spec)
    assert caught.value.status == -6


def test_the_table_has_both_roles():
    assert WIRE.plays == (False, True)
    assert WIRE.family(FAMILY_TUBEMQ) == (False, False)
    assert WIRE.family(7) is None


def answer(**fields: object) -> bytes:
    """Return a broker's answer."""
    message = messages.SendMessageResponseB2P(**{"success": True, "errCode": 200, "errMsg": "OK!", **fields})
    return wire.cut(7, wire.answered(13, message.SerializeToString()))


def refusal(code: int, text: str = "no") -> bytes:
    return answer(success=False, errCode=code, errMsg=text)


GOLDEN = [
    answer(), answer(errMsg="123", requireAuth=True, messageId=5, appendTime=6, appendOffset=28), refusal(403),
    wire.cut(7, wire.failed(1, "java.io.IOException", "a\n at b")), wire.cut(7, wire.failed(2, "x.Fatal", "")),
]  # fmt: skip


def test_a_success_names_its_request():
    (event,), failed = read_all(WIRE, [answer()])
    assert failed is None
    assert (event["kind"], event["seq"], event["code"], event["unsure"]) == (1, 7, 0, False)


@pytest.mark.parametrize(
    ("code", "known", "unsure"),
    [
        (400, 400, False), (403, 403, False), (415, 415, False), (419, 419, False), (503, 503, False),
        (500, 500, True), (510, 510, True), (550, 550, True), (0, 599, True), (-1, 599, True), (600, 599, True),
        (200, 599, True),
    ],
)  # fmt: skip
def test_codes_say_whether_the_message_may_be_stored(code, known, unsure):
    (event,), _ = read_all(WIRE, [refusal(code, "why")])
    assert (event["code"], event["unsure"], event["message"]) == (BROKER_CODES + known, unsure, b"why")


def test_an_exception_is_a_refusal_that_may_have_stored():
    (event,), _ = read_all(WIRE, [wire.cut(7, wire.failed(1, "java.lang.Error", "what\n at x"))])
    assert (event["seq"], event["code"], event["unsure"]) == (7, BROKER_CODES + 501, True)
    assert event["message"] == b"what\n at x"
    (event,), _ = read_all(WIRE, [wire.cut(7, wire.failed(2, "java.lang.Error", ""))])
    assert event["message"] == b"java.lang.Error"


@pytest.mark.parametrize("size", [100, 8_000, 8_200, 30_000])
def test_a_long_exception_is_read_over_its_slices(size):
    (event,), _ = read_all(WIRE, [wire.cut(7, wire.failed(1, "java.lang.Error", "t" * size))])
    assert event["code"] == BROKER_CODES + 501
    assert event["message"] == b"t" * len(event["message"])
    assert min(size, 8_000) <= len(event["message"]) <= size


def test_an_answer_beyond_all_measure_is_none():
    assert read_all(WIRE, [wire.cut(7, wire.failed(1, "java.lang.Error", "t" * 70_000))]) == ([], -2)


def test_an_answer_to_another_call_is_skipped():
    message = messages.CommitOffsetResponseB2C(success=True, errCode=200, errMsg="", currOffset=1)
    (event,), failed = read_all(WIRE, [wire.cut(7, wire.answered(18, message.SerializeToString()))])
    assert (event["kind"], event["msg_type"], failed) == (3, 18, None)


@pytest.mark.parametrize("frame", GOLDEN, ids=range(len(GOLDEN)))
def test_the_contract_of_wires(frame):
    check_truncation(WIRE, frame)
    check_corruption(WIRE, frame)


def test_any_split_gives_the_same_events():
    check_splits(WIRE, b"".join(GOLDEN))


def test_a_web_server_is_no_broker():
    feed = Feed(WIRE)
    feed.push(b"HTTP/1.1 400 Bad Request\r\n")
    assert feed.failed == -2
