"""RocketMQ's frames and messages, compiled, against the plain reference: random ones, and such with changed bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import CAPTURED, FRAMES, VECTORS

I16, I32, I64 = (st.integers(-(2 ** (n - 1)) + 1, 2 ** (n - 1) - 1) for n in (16, 32, 64))
TEXT = st.text(st.characters(codec="utf-8"), max_size=12).map(str.encode)
WORD = st.text(st.sampled_from('aZ%|_-0\x01\x02"\\\n\x7fé你\U0001f600'), min_size=1, max_size=8).map(str.encode)
PAIRS = st.none() | st.lists(st.tuples(TEXT, TEXT), max_size=5)
COMMAND = st.fixed_dictionaries(
    {
        "form": st.sampled_from([0, 1]), "code": I16, "language": st.integers(0, 12), "version": I16, "opaque": I32,
        "flag": I32, "remark": TEXT, "fields": PAIRS, "body": st.binary(max_size=60),
    }
)  # fmt: skip
SEEDS = [bytes.fromhex(one["hex"]) for one in CAPTURED]
SEEDS += [bytes.fromhex(one[form]) for one in FRAMES for form in ("hex_json", "hex_rocketmq")]
HOST = st.tuples(st.binary(min_size=4, max_size=4), I32)
HOST6 = st.tuples(st.binary(min_size=16, max_size=16), I32)


def same(frame: bytes, read: Any = wire.read, plainly: Any = plain.read_frame) -> None:
    """Both read the same, or both refuse."""
    try:
        expected = plainly(frame)
    except plain.WireError:
        expected = None
    try:
        found = read(frame)
    except wire.ProbeError:
        found = None
    assert found == expected


@given(COMMAND)
def test_what_is_written_is_read(command: dict[str, Any]) -> None:
    frame = wire.write(command)
    found = wire.read(frame)
    if command["form"]:
        command["fields"] = command["fields"] or None
    assert found == plain.read_frame(frame) == command


@given(data=st.data())
def test_a_changed_frame_is_read_as_the_reference_reads_it(data: st.DataObject) -> None:
    frame = data.draw(st.sampled_from(SEEDS))
    header = bytearray(frame[8 : 8 + int.from_bytes(frame[5:8])])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(header) - 1, 0)))
        piece = data.draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b"{", b"}", b"[", b",", b"\\u00", b"1"])
        )
        header[at : at + data.draw(st.integers(0, 3))] = piece
    same(plain.frame_of(frame[4], bytes(header), b"rest"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["code", "flag", "language", "opaque", "version", "remark", "extFields", "x"])


@given(st.dictionaries(KEYS, JSON, max_size=6), st.booleans(), st.sampled_from([None, 1]))
def test_any_object_of_json_is_read_as_the_reference_reads_it(value: Any, ascii_: bool, indent: int | None) -> None:
    same(plain.frame_of(0, json.dumps(value, ensure_ascii=ascii_, indent=indent).encode("utf-8", "replace")))


@given(st.sampled_from([0, 1]), st.binary(max_size=60))
def test_no_bytes_break_a_reader(form: int, header: bytes) -> None:
    same(plain.frame_of(form, header))


@given(st.binary(max_size=20))
def test_any_bytes_are_a_frame_for_both_or_for_none(data: bytes) -> None:
    same(data, wire.Stream().push, plain.join)


SEND = st.fixed_dictionaries(
    {
        "producerGroup": WORD, "topic": WORD, "defaultTopic": WORD, "defaultTopicQueueNums": I32, "queueId": I32,
        "sysFlag": I32, "bornTimestamp": I64, "flag": I32, "properties": TEXT, "reconsumeTimes": I32,
        "unitMode": st.booleans(), "maxReconsumeTimes": st.integers(-1, 2**31 - 1), "batch": st.booleans(),
        "bname": TEXT, "body": st.binary(max_size=60),
    }
)  # fmt: skip
PULL = st.fixed_dictionaries(
    {
        "consumerGroup": WORD, "topic": WORD, "queueId": I32, "queueOffset": I64, "maxMsgNums": I32, "sysFlag": I32,
        "commitOffset": I64, "suspendTimeoutMillis": I64, "subVersion": I64, "subscription": TEXT,
        "expressionType": TEXT, "bname": TEXT,
    }
)  # fmt: skip


@given(SEND, st.sampled_from([10, 310, 320]), st.sampled_from([0, 1]))
def test_requests_to_send(request: dict[str, Any], code: int, form: int) -> None:
    head = {"form": form, "code": code, "language": 3, "version": 409, "opaque": 1, "flag": 0, "fields": []}
    frame = wire.put("send", head, request)
    assert wire.take("send", frame) == plain.read_send(plain.read_frame(frame)) == request


@given(PULL, st.sampled_from([0, 1]))
def test_requests_to_pull(request: dict[str, Any], form: int) -> None:
    head = {"form": form, "code": 11, "language": 3, "version": 409, "opaque": 1, "flag": 0, "fields": []}
    frame = wire.put("pull", head, request)
    assert wire.take("pull", frame) == plain.read_pull(plain.read_frame(frame)) == request


STORED = st.fixed_dictionaries(
    {
        "queueId": I32, "flag": I32, "queueOffset": I64, "physicalOffset": I64, "sysFlag": st.integers(0, 0x7FF),
        "bornTimestamp": I64, "bornHost": HOST, "storeTimestamp": I64, "storeHost": HOST, "reconsumeTimes": I32,
        "preparedTransactionOffset": I64, "body": st.binary(max_size=60), "topic": st.binary(max_size=127),
        "properties": st.binary(max_size=90),
    }
)  # fmt: skip


@given(st.lists(st.tuples(STORED, HOST6, HOST6), max_size=3))
def test_stored_messages(made: list[tuple[dict[str, Any], Any, Any]]) -> None:
    wanted = []
    for message, born, store in made:
        hosts = {
            "bornHost": born if message["sysFlag"] & 16 else message["bornHost"],
            "storeHost": store if message["sysFlag"] & 32 else message["storeHost"],
        }
        wanted.append({**message, **hosts, "bodyCRC": plain.checksum(message["body"])})
    data = b"".join(wire.stored(one) for one in wanted)
    assert wire.read_stored_messages(data) == plain.messages(data) == wanted
    for one in wanted:
        identity = wire.message_id(one["storeHost"], one["physicalOffset"])
        assert wire.read_id(identity) == (one["storeHost"], one["physicalOffset"])


MESSAGES = [bytes.fromhex(one["hex"]) for one in VECTORS["stored_messages"]]
BATCHES = [bytes.fromhex(one["hex"]) for one in VECTORS["batch_bodies"]]


@pytest.mark.parametrize("kind", ["messages", "items"])
@given(data=st.data())
def test_changed_messages_and_items(kind: str, data: st.DataObject) -> None:
    whole = bytearray(
        b"".join(
            data.draw(st.lists(st.sampled_from(MESSAGES if kind == "messages" else BATCHES), min_size=1, max_size=2))
        )
    )
    at = data.draw(st.integers(0, len(whole) - 1) | st.sampled_from([3, 39, 87, 86]))
    whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    if kind == "messages":
        same(bytes(whole), wire.read_stored_messages, plain.messages)
    else:
        same(bytes(whole), wire.read_batch, plain.items)


@given(st.binary(max_size=60))
def test_no_bytes_break_a_reader_of_messages(data: bytes) -> None:
    same(data, wire.read_stored_messages, plain.messages)
    same(data, wire.read_batch, plain.items)
    same(b"\0\0\0\x16" + data, wire.read_batch, plain.items)


@given(st.lists(st.fixed_dictionaries({"flag": I32, "body": st.binary(max_size=30), "properties": TEXT}), max_size=4))
def test_batches(made: list[dict[str, Any]]) -> None:
    body = wire.batch(made)
    assert wire.read_batch(body) == plain.items(body) == made


@given(st.binary(max_size=40) | st.text(st.sampled_from("ab\x01\x02"), max_size=20).map(str.encode))
def test_any_text_of_properties(text: bytes) -> None:
    found = wire.properties(text)
    assert found == plain.properties(text)
    for name, value in dict(found).items():
        assert wire.property_of(text, name) == value


@given(st.lists(st.tuples(WORD, WORD), max_size=4))
def test_properties_are_written_so_that_they_are_read(pairs: list[tuple[bytes, bytes]]) -> None:
    good = [(n, v) for n, v in pairs if b"\x01" not in n and b"\x02" not in n + v]
    text = wire.put_properties(good)
    assert wire.properties(text) == good
    assert not text.endswith(b"\x02")
    if good != pairs:
        with pytest.raises(wire.ProbeError):
            wire.put_properties(pairs)
