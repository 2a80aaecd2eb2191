"""RocketMQ's frames in pieces, and headers that lie: any split gives the same, nothing is believed, work is linear."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import BY_NAME, CAPTURED

PROTOCOL, LIMIT, INVALID = -2, -3, -6
STREAM = [bytes.fromhex(one["hex"]) for one in CAPTURED]
SEND = bytes.fromhex(BY_NAME["send_v2"]["hex_json"])


def pushed(pieces: list[bytes]) -> list[bytes]:
    stream = wire.Stream()
    return [frame for piece in pieces for frame in stream.push(piece)]


def refusal(frame: bytes) -> int:
    with pytest.raises(wire.ProbeError) as caught:
        wire.read(frame)
    with pytest.raises(plain.WireError):
        plain.read_frame(frame)
    return int(caught.value.status)


def headed(header: dict[str, Any] | str, body: bytes = b"") -> bytes:
    text = header if isinstance(header, str) else json.dumps(header)
    return plain.frame_of(0, text.encode(), body)


def test_bytes_one_by_one_give_the_same_frames() -> None:
    few = STREAM[:6]
    data = b"".join(few)
    assert pushed([data[at : at + 1] for at in range(len(data))]) == few


@given(st.lists(st.integers(0, sum(map(len, STREAM))), max_size=12))
def test_any_pieces_give_the_same_frames(cuts: list[int]) -> None:
    data, ends = b"".join(STREAM), sorted(cuts)
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    assert pushed(pieces) == STREAM


def test_a_receiver_may_want_less_than_16_mib() -> None:
    frame = headed({"code": 1})
    assert wire.Stream(len(frame) - 4).push(frame) == [frame]
    with pytest.raises(wire.ProbeError) as caught:
        wire.Stream(len(frame) - 5).push(frame[:4])
    assert caught.value.status == LIMIT


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("", "nothing"),
        ("[]", "no object"),
        ("null", "no object"),
        ("{", "no end"),
        ('{"code":1}}', "something behind it"),
        ('{"code":1,}', "a comma before the end"),
        ("{'code':1}", "other quotes"),
        ("{code:1}", "no quotes"),
        ('{"code":01}', "a zero before a number"),
        ('{"code":1.5}', "no whole number"),
        ('{"code":2147483648}', "more than 32 bits"),
        ('{"code":true}', "no number"),
        ('{"code":[1]}', "no number"),
        ('{"code":NaN}', "no number of JSON"),
        ('{"remark":{}}', "no text"),
        ('{"extFields":[]}', "no object"),
        ('{"extFields":"x"}', "no object"),
        ('{"extFields":{"a":{}}}', "an object for a text"),
        ('{"extFields":{"a":[1]}}', "an array for a text"),
        ('{"extFields":{"a":"\\x"}}', "no escape"),
        ('{"extFields":{"a":"\\u12g4"}}', "no escape"),
        ('{"remark":"\\', "half an escape"),
        ('{"x":' + "[" * 40 + "]" * 40 + "}", "too deep"),
        ('{"x":' + "[" * 100_000, "far too deep"),
        ('{"x":' + '{"a":' * 40 + "1" + "}" * 41, "too deep"),
    ],
    ids=lambda value: value[:40],
)
def test_headers_of_json_that_are_refused(header: str, why: str) -> None:
    assert refusal(headed(header)) == PROTOCOL, why


def test_how_deep_a_header_may_be() -> None:
    for levels in (31, 32):
        frame = headed('{"x":' + "[" * levels + "]" * levels + "}")
        if levels == 31:
            assert wire.read(frame) == plain.read_frame(frame)
        else:
            assert refusal(frame) == PROTOCOL


def test_a_header_that_is_no_utf8_is_refused() -> None:
    assert refusal(plain.frame_of(0, b'{"remark":"\xff"}')) == PROTOCOL
    assert refusal(plain.frame_of(0, b'{"remark":"\xed\xa0\x80"}')) == PROTOCOL


def test_numbers_as_texts_and_texts_as_numbers() -> None:
    """Blanks, unknown keys, a number in quotes, and a key that stands twice, of which the last one counts."""
    header = """ {"code":"310", "opaque" : "-7" , "flag":0,"flag":1,"unknown":[{"a":[null,-1.5e+3,{}]},true],
    "language":1,"version":null,"remark":12.50,"ser\\u0069al":2,
    "extFields":{"a":1,"b":1.50,"c":true,"d":null,"e":"\\u0035","\\u0066":""}}
    """
    frame = headed(header, b"body")
    found = wire.read(frame)
    assert found == plain.read_frame(frame)
    assert (found["code"], found["opaque"], found["flag"], found["language"]) == (310, -7, 1, 1)
    assert found["fields"] == [(b"a", b"1"), (b"b", b"1.50"), (b"c", b"true"), (b"e", b"5"), (b"f", b"")]
    assert found["remark"] == b"12.50"


@pytest.mark.parametrize(
    ("value", "code"), [('"GO"', 9), ('"KLINGON"', -1), ("9", 9), ("13", -1), ("null", 0), ("[]", -1)]
)
def test_languages(value: str, code: int) -> None:
    frame = headed(f'{{"language":{value}}}')
    assert wire.read(frame)["language"] == plain.read_frame(frame)["language"] == code


def test_a_header_without_a_number_says_so() -> None:
    assert wire.read(headed({"code": 34}))["opaque"] is None
    assert wire.read(headed({"code": 34, "opaque": 0}))["opaque"] == 0


def test_characters_beyond_the_first_plane_and_halves_of_one() -> None:
    frame = headed('{"remark":"\\ud83d\\ude00 \\ud83d \\ude00\\ud83d\\u0041 \\u00e9\\u4f60"}')
    found = wire.read(frame)
    assert found == plain.read_frame(frame)
    assert found["remark"].decode() == "\U0001f600 � ��A é你"


@pytest.mark.parametrize("piece", ['\\"', "\\\\", "\\u0001", "\u00e9", "!", "#", "[", "]"])
def test_texts_end_and_escapes_begin_wherever_they_are(piece: str) -> None:
    """Texts are looked through eight bytes at a time."""
    for before in range(18):
        for behind in range(10):
            frame = headed(f'{{"remark":"{"a" * before}{piece}{"b" * behind}","opaque":7}}')
            found = wire.read(frame)
            assert found == plain.read_frame(frame) and found["opaque"] == 7


BINARY = bytes.fromhex(BY_NAME["send_v2"]["hex_rocketmq"])


@pytest.mark.parametrize("size", range(21))
def test_a_binary_header_that_is_too_short(size: int) -> None:
    assert refusal(plain.frame_of(1, BINARY[8 : 8 + size])) == PROTOCOL


@pytest.mark.parametrize("value", [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 400])
@pytest.mark.parametrize("at", [13, 17, 24])
def test_a_binary_header_that_lies_about_its_lengths(at: int, value: int) -> None:
    """Of the remark, of all fields, of the first value."""
    header = bytearray(BINARY[8 : 8 + int.from_bytes(BINARY[5:8])])
    header[at : at + 4] = struct.pack(">I", value)
    assert refusal(plain.frame_of(1, bytes(header))) == PROTOCOL


@pytest.mark.parametrize("size", [0x8001, 0xFFFF, 0x7FFF])
def test_a_binary_name_that_is_longer_than_the_fields(size: int) -> None:
    header = bytearray(BINARY[8 : 8 + int.from_bytes(BINARY[5:8])])
    header[21:23] = struct.pack(">H", size)
    assert refusal(plain.frame_of(1, bytes(header))) == PROTOCOL


def changed(name: str, field: str, value: str | None, form: str = "hex_json") -> bytes:
    """Return a vector's frame with another value of a field, or without it."""
    command = wire.read(bytes.fromhex(BY_NAME[name][form]))
    pairs = [(key, old) for key, old in command["fields"] if key.decode() != field]
    command["fields"] = pairs + ([] if value is None else [(field.encode(), value.encode())])
    return bytes(wire.write(command))


@pytest.mark.parametrize("form", ["hex_json", "hex_rocketmq"])
@pytest.mark.parametrize("value", [None, "", "x", "1.5", "99999999999999999999"])
@pytest.mark.parametrize(
    ("name", "kind", "field", "told"),
    [
        ("send_v2", "send", "e", "queueId"),
        ("send_v2", "send", "g", "bornTimestamp"),
        ("send_v1", "send", "sysFlag", "sysFlag"),
        ("pull_lite", "pull", "queueOffset", "queueOffset"),
        ("pull_lite", "pull", "maxMsgNums", "maxMsgNums"),
        ("send_ok", "sent", "queueOffset", "queueOffset"),
        ("pull_found", "pulled", "nextBeginOffset", "nextBeginOffset"),
    ],
)
def test_a_field_that_is_missing_or_no_number_is_named(
    name: str, kind: str, field: str, told: str, value: str | None, form: str
) -> None:
    frame = changed(name, field, value, form)
    with pytest.raises(wire.ProbeError) as caught:
        wire.take(kind, frame)
    assert (caught.value.status, caught.value.field) == (INVALID, told)


@pytest.mark.parametrize(
    ("name", "kind", "field", "good", "bad"),
    [
        ("send_v2", "send", "e", "-2147483648", "2147483648"),
        ("send_v2", "send", "f", "2147483647", "-2147483649"),
        ("send_v2", "send", "g", "9223372036854775807", "9223372036854775808"),
        ("pull_lite", "pull", "maxMsgNums", "+5", "4294967297"),
        ("pull_lite", "pull", "queueOffset", "-1", "18446744073709551616"),
    ],
)
def test_a_number_has_the_bits_of_its_field(name: str, kind: str, field: str, good: str, bad: str) -> None:
    found = wire.take(kind, changed(name, field, good))
    assert int(good) in found.values()
    with pytest.raises(wire.ProbeError):
        wire.take(kind, changed(name, field, bad))


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_name_that_is_empty_is_missing(name: str) -> None:
    with pytest.raises(wire.ProbeError) as caught:
        wire.take("send", changed("send_v2", name, ""))
    assert caught.value.field == {"a": "producerGroup", "b": "topic", "c": "defaultTopic"}[name]


def test_a_field_that_stands_twice_counts_the_second_time() -> None:
    command = wire.read(SEND)
    for value, good in ((b"8", True), (b"x", False)):
        twice = wire.write({**command, "fields": [*command["fields"], (b"e", value)]})
        if good:
            assert wire.take("send", twice)["queueId"] == 8
        else:
            with pytest.raises(wire.ProbeError):
                wire.take("send", twice)


@pytest.mark.parametrize("code", [0, 1, 17])
def test_an_answer_to_a_send_has_fields(code: int) -> None:
    """If only a few: Java's client fails on one that has none."""
    head = {"form": 0, "code": 310, "language": 0, "version": 409, "opaque": 1, "flag": 1, "fields": None}
    sent = {"code": code, "remark": b"", "msgId": b"ID", "queueId": 1, "queueOffset": 2, "transactionId": b""}
    fields = dict(wire.read(wire.put("sent", head, sent))["fields"])
    assert fields[b"TRACE_ON"] == b"true"
    assert (b"msgId" in fields) == (code == 0)


def test_what_cannot_be_written() -> None:
    head = {"code": 40000, "language": 0, "version": 409, "opaque": 1, "flag": 0, "fields": []}
    assert wire.read(wire.write({**head, "form": 0}))["code"] == 40000
    for wrong in (
        {**head, "form": 1},  # a code has 16 bits there
        {**head, "form": 0, "body": bytes(16 << 20)},
        {**head, "form": 1, "code": 1, "fields": [(b"n" * 40000, b"")]},
    ):
        with pytest.raises(wire.ProbeError):
            wire.write(wrong)


def seconds(frame: bytes, times: int) -> float:
    best = 1e9
    for _ in range(5):
        begin = time.thread_time()
        wire.send_many(frame, times)
        best = min(best, time.thread_time() - begin)
    return best / times / len(frame)


SHAPES = {
    "escapes": lambda n: '{"remark":"' + "\\u0001" * (n // 6) + '"}',
    "names": lambda n: '{"extFields":{' + ",".join(f'"{i:x}":1' for i in range(n // 8)) + "}}",
    "one name": lambda n: '{"extFields":{' + ",".join(['"i":"v"'] * (n // 8)) + "}}",
    "remarks": lambda n: "{" + ",".join(['"remark":"\\t"'] * (n // 14)) + "}",
    "fields again and again": lambda n: "{" + ",".join(['"extFields":{"a":1}'] * (n // 20)) + "}",
    "brackets": lambda n: '{"x":[' + ",".join(["[]"] * (n // 3)) + "]}",
    "blanks": lambda n: " " * n + "{}",
    "an open text": lambda n: '{"x":"' + "\\\\" * (n // 2),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_header_costs_grows_with_its_bytes_alone(shape: str) -> None:
    """Time of the processor for a byte, compared with itself at another size, and with that of an ordinary header."""
    small, large = (seconds(headed(SHAPES[shape](size)), 20) for size in (1 << 13, 1 << 16))
    assert large < 6 * small + 1e-9
    assert large < 50 * max(seconds(SEND, 200), 1e-10)
