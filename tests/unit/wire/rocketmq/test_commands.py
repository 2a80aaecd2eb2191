"""Frames of RocketMQ's remoting read for people: those of the vectors, wrong ones, and how they are shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.cli.rocketmq.commandtext import command_json, command_lines
from dataproxy.wire.rocketmq.commands import Command, begins_command, read_commands
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import BY_NAME, CAPTURED, FRAMES, VECTORS

FRAMED = [(one.get("name", str(one["code"])), bytes.fromhex(one[form])) for one in [*FRAMES, *CAPTURED]
          for form in ("hex", "hex_json", "hex_rocketmq") if form in one]  # fmt: skip


def only(data: bytes) -> Command:
    (command,) = read_commands(data)
    return command


def shown(command: Command, *, full: bool = False) -> str:
    json.loads(command_json(command, full=full))
    return "".join(command_lines(command, full=full))


@pytest.mark.parametrize(("name", "frame"), FRAMED)
def test_every_frame_of_the_vectors(name: str, frame: bytes) -> None:
    command, wanted = only(frame), plain.read_frame(frame)
    assert command.problems == []
    assert begins_command(frame)
    assert (command.form, command.code, command.opaque) == (wanted["form"], wanted["code"], wanted["opaque"])
    assert (command.flag, command.version, command.remark.encode()) == (
        wanted["flag"], wanted["version"], wanted["remark"],
    )  # fmt: skip
    assert plain.LANGUAGES.index(command.language) == wanted["language"]
    fields = [(key.encode(), value.encode()) for key, value in command.fields]
    assert dict(fields) == dict(wanted["fields"] or ())
    assert (command.body, command.data) == (wanted["body"], frame)
    assert shown(command).startswith(f"frame 1 at byte 0: {len(frame)} bytes, RocketMQ, {command.kind}")
    if command.messages and command.code != 320:
        found = plain.messages(command.body)
        assert [(one.body, one.fields["queueOffset"]) for one in command.messages] == [
            (one["body"], one["queueOffset"]) for one in found
        ]


def test_a_stream_of_frames() -> None:
    data = b"".join(frame for _, frame in FRAMED)
    found = list(read_commands(data))
    assert [one.data for one in found] == [frame for _, frame in FRAMED]
    assert [data[one.offset :][: len(one.data)] for one in found] == [one.data for one in found]


def test_what_frames_say() -> None:
    text = shown(only(bytes.fromhex(BY_NAME["send_batch"]["hex_json"])))
    assert "b (topic) = TopicTest" in text
    assert "message 1, 98 bytes" in text
    assert "body = batch1   (6 bytes)" in text
    text = shown(only(bytes.fromhex(BY_NAME["pull_found"]["hex_rocketmq"])))
    assert "answer: SUCCESS" in text
    assert "queueOffset = 1" in text
    assert "property TAGS = TagB" in text
    assert "one-way request: UPDATE_CONSUMER_OFFSET" in shown(
        only(bytes.fromhex(BY_NAME["update_offset_oneway"]["hex_json"]))
    )


GOOD = bytes.fromhex(BY_NAME["send_v2"]["hex_rocketmq"])
PULLED = bytes.fromhex(BY_NAME["pull_found"]["hex_rocketmq"])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (GOOD[:5], "only 5 of the 8 bytes"),
        (GOOD[:-1], f"length, at byte 0: it is {len(GOOD) - 4}; {len(GOOD) - 5} bytes are there"),
        (b"\xff" + GOOD[1:], "length, at byte 0: it is -"),
        (GOOD[:4] + b"\x02" + GOOD[5:], "form, at byte 4: it is 2"),
        (GOOD[:5] + b"\xff" + GOOD[6:], "header length, at byte 5"),
        (GOOD[:21] + b"\x7f" + GOOD[22:], "remark, at byte 21: its length is"),
        (GOOD[:25] + b"\x7f" + GOOD[26:], "extFields, at byte 25: its length is"),
        (GOOD[:29] + b"\x7f" + GOOD[30:], "name of a field, at byte 29"),
        (GOOD[:32] + b"\x7f" + GOOD[33:], "value of a field, at byte 32"),
        (plain.frame_of(1, b"abc"), "header, at byte 8: it has 3 bytes"),
        (plain.frame_of(0, b"abc"), "header, at byte 8: it is no JSON"),
        (plain.frame_of(0, b"[1]"), "header, at byte 8: it is no JSON object"),
        (plain.frame_of(0, b"[" * 100_000), "header, at byte 8: it is no JSON"),
        (plain.frame_of(0, b'{"code":"x"}'), "code, at byte 8: it is 'x'"),
        (plain.frame_of(0, b'{"code":true}'), "code, at byte 8: it is 'True'"),
        (plain.frame_of(0, b'{"code":34}'), "opaque, at byte 8: it is missing"),
        (plain.frame_of(0, b'{"extFields":[]}'), "opaque, at byte 8"),
        (plain.frame_of(0, b'{"extFields":[1]}'), "extFields, at byte 8"),
        (plain.frame_of(0, b'{"code":38,"opaque":1}'), "consumerGroup, at byte 8: the field 'consumerGroup'"),
        (plain.frame_of(0, b'{"code":320,"opaque":1}', b"\0\0\0\x50"), "message 0, at byte 31: its size is 80"),
        (plain.frame_of(0, b'{"code":320,"opaque":1}', b"\0\0\0\x06ab"), "expected 22 or more"),
        (PULLED.replace(b"hello-2", b"hello-3"), "its checksum is"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_wrong_is_told(data: bytes, told: str) -> None:
    found = list(read_commands(data))
    assert told in shown(found[-1])
    assert sum(len(one.data) for one in found) == len(data)


def test_a_wrong_header_does_not_end_the_reading() -> None:
    first, second = read_commands(plain.frame_of(0, b"abc") + GOOD)
    assert first.problems
    assert second.kind == "request"
    assert second.problems == []


@pytest.mark.parametrize("vector", VECTORS["invalid"], ids=lambda v: v["name"])
def test_invalid_input_has_problems(vector: dict[str, Any]) -> None:
    assert any(one.problems for one in read_commands(bytes.fromhex(vector["hex"])))


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0\0\x09\x01" + bytes(8), b"\0\0\0\x10\x05" + bytes(20), b"\xff\x7f\xf4\xfe" + bytes(20), b"{" * 40],
)
def test_what_is_no_frame_of_rocketmq(data: bytes) -> None:
    """A heartbeat, a pack and a text of other protocols."""
    assert not begins_command(data)


def test_long_values_are_cut() -> None:
    header = {"code": 11, "opaque": 1, "flag": 1, "extFields": {f"f{i}": "v" * 500 for i in range(30)}}
    command = only(plain.frame_of(0, json.dumps(header).encode(), b"b" * 500))
    text = shown(command)
    assert "... 10 more fields; --full prints them" in text
    assert max(map(len, text.splitlines())) < 200
    assert "v" * 500 in shown(command, full=True)


@given(st.data())
def test_any_bytes_are_shown(data: st.DataObject) -> None:
    frame = bytearray(data.draw(st.sampled_from(FRAMED))[1])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not frame:
            return
    found = list(read_commands(bytes(frame)))
    assert b"".join(one.data for one in found) == bytes(frame)
    for one in found:
        shown(one)
