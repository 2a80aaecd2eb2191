"""The reader of TubeMQ's frames for people: every vector, any bytes, and what it says of wrong ones."""

from __future__ import annotations

import random
import struct
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
        (GOOD[:-1], "slice 0", f"it has {len(GOOD) - 16} bytes, {len(GOOD) - 17} are there"),
        (plain.cut(1, b"\x02\x08"), "RpcConnHeader", "it has 2 bytes, 1 are left in the payload"),
        (plain.cut(1, b"\x80"), "RpcConnHeader", "its length is not whole"),
        (plain.cut(1, b"\x00"), "RpcConnHeader", "required fields are missing: flag"),
        (plain.cut(1, b"\x01\x0a"), "RpcConnHeader", "protobuf cannot read it"),
        (plain.cut(1, plain.called(1, 3, 99, 1, b"")), "method", "99 is no method of this protocol; known: 1, 2, 3"),
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
    assert [problem.text[:12] for problem in one(bytes(data)).problems] == ["its checksum", "it has 60 by"]


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
