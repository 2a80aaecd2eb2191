"""The reader of TubeMQ's frames for people: every vector, any bytes, and what it says of wrong ones."""

from __future__ import annotations

import json
import random
import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.cli.calltext import call_json, call_lines
from dataproxy.wire.tubemq.calls import METHODS, Call, read_calls
from tests.support.reference import tubemq as plain
from tests.support.reference.tubevectors import BY_NAME, FRAMES, VECTORS

KINDS = {"request": "request", "response": "answer"}
GOOD = bytes.fromhex(BY_NAME["get_message_ok"]["frame_hex"])


def one(data: bytes) -> Call:
    (call,) = read_calls(data)
    return call


def wrong(data: bytes) -> tuple[str, str]:
    (problem,) = one(data).problems
    return problem.field, problem.text


@pytest.mark.parametrize("vector", FRAMES, ids=lambda v: v["name"])
def test_every_vector(vector: dict[str, Any]) -> None:
    call = one(bytes.fromhex(vector["frame_hex"]))
    assert (call.problems, call.kind, call.method) == ([], KINDS[vector["kind"]], vector["method"])
    assert call.serial == vector["serial"]
    assert call.parts[-1].name == vector["message"]
    assert call.parts[-1].message == plain.filled(vector["message"], vector["fields"])
    text = "".join(call_lines(call, full=True))
    assert METHODS[vector["method"]].text in text
    assert call_json(call, full=True).endswith("\n")


@pytest.mark.parametrize("vector", VECTORS["exception_responses"], ids=lambda v: v["name"])
def test_every_exception(vector: dict[str, Any]) -> None:
    call = one(bytes.fromhex(vector["frame_hex"]))
    assert (call.problems, call.kind) == ([], "exception")
    assert vector["exceptionName"] in "".join(call_lines(call, full=True))


def test_a_stream_in_slices() -> None:
    payload = b"".join(plain.join(GOOD)[0][1:])
    data = GOOD + plain.cut(7, payload, 11) + bytes.fromhex(VECTORS["framing"]["cpp_zero_padding"]["frame_hex"])
    first, second, third = read_calls(data)
    assert first.parts == second.parts
    assert (second.offset, second.serial, set(second.slices[:-1])) == (len(GOOD), 7, {11})
    assert (third.behind, third.problems) == (9, [])


@pytest.mark.parametrize(
    ("data", "field", "text"),
    [
        (b"\xff\x7f\xf4\xff" + GOOD[4:], "token", "it is ff7ff4ff; expected ff7ff4fe"),
        (GOOD[:7], "frame", "only 7 of the 12 bytes of its head are there"),
        (GOOD[:8] + struct.pack(">I", 0), "listSize", "it is 0; expected 1 to 3584"),
        (GOOD[:8] + struct.pack(">I", 3585), "listSize", "it is 3585; expected 1 to 3584"),
        (GOOD[:14], "slice 0", "2 of the 4 bytes of its length are there"),
        (GOOD[:12] + struct.pack(">I", 65537), "slice 0", "its length is 65537; expected 1 to 65536"),
        (GOOD[:-1], "slice 0", f"its length is {len(GOOD) - 16}; {len(GOOD) - 17} bytes are there"),
        (plain.cut(1, b"\x02\x08"), "RpcConnHeader", "it has 2 bytes, 1 are left in the payload"),
        (plain.cut(1, b"\x80"), "RpcConnHeader", "its length is not whole"),
        (plain.cut(1, b"\x00"), "RpcConnHeader", "required fields are missing: flag"),
        (plain.cut(1, b"\x01\x0a"), "RpcConnHeader", "protobuf cannot read it"),
        (plain.cut(1, plain.called(1, 3, 99, 1, b"")), "method", "99 is no method of this protocol; known: 1, 2, 3"),
        (plain.cut(1, plain.called(1, 3, 19, 1, b"")), "method", "19 is reserved: it has no messages"),
        (plain.cut(1, b"\x02\x08\x01\x02\x08\x05\0"), "ResponseHeader", "status is 5; expected 0, 1 or 2"),
        (plain.cut(1, plain.called(2, 3, 17, 1, b"")), "GetMessageRequestC2B", "required fields are missing: clientId"),
    ],
)
def test_what_is_wrong(data: bytes, field: str, text: str) -> None:
    found = wrong(data)
    assert found[0] == field
    assert found[1].startswith(text)


def test_a_message_that_is_not_what_its_checksum_says() -> None:
    data = bytearray(GOOD)
    data[data.index(b"plain payload")] ^= 1
    assert wrong(bytes(data))[1].startswith("its checksum is 384299206; expected ")
    data = bytearray(GOOD)
    at = data.index(b"\0\0\0\x2c$msg")
    data[at] = 0x7F
    problems = one(bytes(data)).problems
    assert [problem.text[:12] for problem in problems] == ["its checksum", "it has 60 by"]
    assert {problem.field for problem in problems} == {"messages[0]"}
    assert {problem.at for problem in problems} == {one(bytes(data)).parts[-1].at}


def answer(**fields: Any) -> bytes:
    """Return an answer to a request for a pack."""
    message = plain.filled("GetMessageResponseB2C", {"success": True, "errCode": 200, **fields})
    return plain.cut(1, plain.answered(17, message.SerializePartialToString()))


def test_only_a_request_may_leave_its_checksum_to_the_broker() -> None:
    message = {"messageId": 1, "checkSum": -1, "payLoadData": {"hex": "61"}, "flag": 0}
    call = one(answer(messages=[message]))
    assert [problem.text[:22] for problem in call.problems] == ["its checksum is -1; ex"]
    assert "the broker computes it" not in "".join(call_lines(call, full=False))


def test_faults_of_a_frame_are_told_up_to_some() -> None:
    message = {"messageId": 1, "checkSum": 1, "payLoadData": {"hex": "61"}, "flag": 0}
    call = one(answer(messages=[message] * 1000))
    assert len(call.problems) == 21
    assert call.problems[-1].text == "1000 faults in all; the first are told"
    call = one(answer(messages=[{}] * 1000))
    expected = [f"messages[0].{name}" for name in ("messageId", "checkSum", "payLoadData", "flag")]
    expected += ["messages[1].messageId, and more"]
    assert call.problems[0].text == f"required fields are missing: {', '.join(expected)}"


def test_a_frame_that_is_cut_is_read_as_far_as_it_goes() -> None:
    ((_, payload),) = plain.join(GOOD)
    call = one(plain.cut(1, payload, 100)[:-1])
    assert [part.name for part in call.parts] == ["RpcConnHeader", "ResponseHeader"]
    assert (call.list_size, len(call.problems)) == (len(call.slices), 1)
    assert call.kind == "answer"


def test_what_has_no_part_of_its_own_is_shown() -> None:
    call = one(plain.cut(1, plain.called(1, 3, 99, 1, b"abc")))
    assert "request = abc\n" in "".join(call_lines(call, full=False))
    call = one(plain.cut(1, plain.called(2, 3, 17, 1, b"abc") + b"\0"))
    assert "request = abc\n" in "".join(call_lines(call, full=False))
    assert call.behind == 1


def test_who_sent_a_frame_does_not_hang_on_its_flag() -> None:
    closed = plain.cut(1, b"\x02\x08\x00" + plain.answered(3, b"\x08\x01\x10\xc8\x01\x1a\x00")[3:])
    for sender in ("either", "server"):
        (call,) = read_calls(closed, sender)  # type: ignore[arg-type]
        assert (call.kind, call.problems) == ("answer", [])
    (call,) = read_calls(closed, "client")
    assert call.problems


def test_texts_are_whole_in_json() -> None:
    vector = BY_NAME["consumer_heartbeat_event_result"]
    (call,) = read_calls(bytes.fromhex(vector["frame_hex"]))
    fields = json.loads(call_json(call, full=False))["parts"][-1]["fields"]
    assert fields["subscribeInfo"] == vector["fields"]["subscribeInfo"]


def test_reading_costs_what_there_is_to_read() -> None:
    def cost(frames: int) -> float:
        data = plain.cut(1, b"\1") * frames
        least = 1e9
        for _ in range(3):
            begin = time.thread_time()
            assert sum(1 for _ in read_calls(data)) == frames
            least = min(least, time.thread_time() - begin)
        return least

    assert cost(40_000) < 8 * 5 * cost(5_000)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_as_far_as_they_go(tail: bytes) -> None:
    for data in (tail, GOOD[:4] + tail, GOOD[:16] + tail, plain.cut(1, tail or b"\0")):
        for call in read_calls(data):
            assert "".join(call_lines(call, full=False)).replace("\n", "").isprintable()
            call_json(call, full=False)


def test_any_changed_byte() -> None:
    source = random.Random(1)
    for vector in FRAMES:
        data = bytearray.fromhex(vector["frame_hex"])
        for _ in range(20):
            data[source.randrange(len(data))] = source.randrange(256)
            for call in read_calls(bytes(data)):
                list(call_lines(call, full=True))
                call_json(call, full=True)
