"""Messages on the way of TubeMQ's data, compiled, against protobuf: random ones, and such with changed bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native import probe_tubemq as wire
from tests.support.reference import tubemq as plain

I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT, DATA, BOOL = st.text(max_size=20).map(str.encode), st.binary(max_size=300), st.booleans()
MESSAGE = st.fixed_dictionaries({"messageId": I64, "checkSum": I32, "payLoadData": DATA, "flag": I32})
AUTH = st.fixed_dictionaries({"visitAuthorizedToken": I64, "authAuthorizedToken": TEXT})
ANSWER: dict[str, Any] = {"success": BOOL, "errCode": I32, "errMsg": TEXT}
KINDS = {
    "GetMessageRequestC2B": st.fixed_dictionaries(
        {
            "clientId": TEXT, "partitionId": I32, "groupName": TEXT, "topicName": TEXT, "lastPackConsumed": BOOL,
            "manualCommitOffset": BOOL, "escFlowCtrl": BOOL,
        }
    ),
    "GetMessageResponseB2C": st.fixed_dictionaries(
        {
            **ANSWER, "messages": st.lists(MESSAGE, max_size=4), "currOffset": I64, "minLimitTime": I32,
            "escFlowCtrl": BOOL, "currDataDlt": I64, "requireSlow": BOOL, "maxOffset": I64,
        }
    ),
    "SendMessageRequestP2B": st.fixed_dictionaries(
        {
            "clientId": TEXT, "topicName": TEXT, "partitionId": I32, "data": DATA, "flag": I32, "checkSum": I32,
            "sentAddr": I32, "msgType": TEXT, "msgTime": TEXT,
        },
        optional={"authInfo": AUTH},
    ),
    "SendMessageResponseB2P": st.fixed_dictionaries(
        {**ANSWER, "requireAuth": BOOL, "messageId": I64, "appendTime": I64, "appendOffset": I64}
    ),
    "CommitOffsetRequestC2B": st.fixed_dictionaries(
        {"clientId": TEXT, "topicName": TEXT, "partitionId": I32, "groupName": TEXT, "lastPackConsumed": BOOL}
    ),
    "CommitOffsetResponseB2C": st.fixed_dictionaries({**ANSWER, "currOffset": I64, "maxOffset": I64}),
}  # fmt: skip
#: What a failure's answer leaves out, as it is read then.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "GetMessageResponseB2C": {"requireSlow": False, "maxOffset": -1},
    "SendMessageResponseB2P": {"requireAuth": False, "messageId": -1, "appendTime": -1, "appendOffset": -1},
    "CommitOffsetResponseB2C": {"maxOffset": -1},
}
PROTOCOL = -2
UNKNOWN = {"minLimitTime", "currOffset", "maxOffset", "currDataDlt", "messageId", "appendTime", "appendOffset"}


def as_fields(name: str, message: Any, top: bool = True) -> dict[str, Any]:
    """Return a message of protobuf's as the compiled code gives it."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.name == "messages":
            found[field.name] = [as_fields(name, one, top=False) for one in value]
        elif field.name == "authInfo":
            if message.HasField("authInfo"):
                found[field.name] = as_fields(name, value, top=False)
        elif top and field.name in UNKNOWN and not message.HasField(field.name):
            found[field.name] = -1
        elif field.name == "lastPackConsumed" and name.startswith("Commit") and not message.HasField(field.name):
            found[field.name] = True
        else:
            found[field.name] = plain.as_bytes(value) if isinstance(value, str) else value
    return found


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_what_is_written_protobuf_reads(name: str, data: st.DataObject) -> None:
    fields = data.draw(KINDS[name])
    written = wire.write(name, fields)
    if not fields.get("success", True):
        fields |= LEFT_OUT[name]
    assert as_fields(name, plain.read_message(name, written)) == fields
    assert wire.read(name, written) == fields


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_a_changed_message_is_read_as_protobuf_reads_it(name: str, data: st.DataObject) -> None:
    """What both take is the same.  What protobuf takes alone has a group."""
    written = bytearray(wire.write(name, data.draw(KINDS[name])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(written) - 1))
        written[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not written:
            return
    try:
        expected = plain.read_message(name, bytes(written))
    except plain.WireError:
        return
    try:
        found = wire.read(name, bytes(written))
    except wire.ProbeError:
        assert plain.has_group(name, bytes(written))
        return
    assert found == as_fields(name, expected)


PIECES = st.one_of(
    st.fixed_dictionaries({"messageId": I64}), st.fixed_dictionaries({"checkSum": I32}),
    st.fixed_dictionaries({"payLoadData": DATA}), st.fixed_dictionaries({"flag": I32}),
    st.fixed_dictionaries({"success": BOOL}), st.fixed_dictionaries({"maxOffset": I64}),  # other fields, of an answer
)  # fmt: skip


@given(usual=MESSAGE, more=st.lists(PIECES, max_size=3), moved=st.integers(0, 3))
def test_fields_of_a_message_may_be_repeated_unknown_and_out_of_order(
    usual: dict[str, Any], more: list[dict[str, Any]], moved: int
) -> None:
    """The last one counts, as for protobuf: what one broker writes first, another may write last."""
    pieces: list[dict[str, Any]] = [{name: value} for name, value in usual.items()]
    pieces = pieces[moved:] + pieces[:moved] + more
    kinds = ["GetMessageResponseB2C" if set(one) <= {"success", "maxOffset"} else "TransferedMessage" for one in pieces]
    message = b"".join(
        plain.filled(kind, one).SerializePartialToString() for kind, one in zip(kinds, pieces, strict=True)
    )
    answer = plain.filled("GetMessageResponseB2C", {"success": True, "errCode": 200}).SerializePartialToString()
    size = len(message)
    whole = answer + b"\x22" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + message
    read = plain.filled("TransferedMessage", {})
    read.MergeFromString(message)
    found = wire.read("GetMessageResponseB2C", whole)["messages"]
    assert found == [as_fields("TransferedMessage", read, top=False)]


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_no_bytes_break_a_reader(name: str, data: st.DataObject) -> None:
    try:
        wire.read(name, data.draw(st.binary(max_size=80)))
    except wire.ProbeError as error:
        status = error.status
    else:
        status = PROTOCOL
    assert status == PROTOCOL


@given(I32, st.integers(0, 2**31 - 1), I32, I64, DATA)
def test_whatever_is_called_protobuf_reads(service: int, version: int, method: int, timeout: int, data: bytes) -> None:
    payload = wire.call(service, version, method, timeout, data)
    assert payload == plain.called(service, version, method, timeout, data)
    assert wire.read_calls(payload + b"\0" * 9) == plain.split_call(payload)
    answer = wire.answer(method, data)
    assert answer == plain.answered(method, data)
    assert wire.read_answers(answer) == plain.split_answer(answer) == {"status": 0, "method": method, "data": data}


@pytest.mark.parametrize("answered", [False, True])
@given(data=st.data())
def test_a_changed_payload_is_read_as_protobuf_reads_it(answered: bool, data: st.DataObject) -> None:
    read, split = (wire.read_answers, plain.split_answer) if answered else (wire.read_calls, plain.split_call)
    good = plain.answered(17, b"abc") if answered else plain.called(2, 3, 17, 1000, b"abc")
    payload = bytearray(good)
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        expected = split(bytes(payload))
    except plain.WireError:
        expected = None
    try:
        found = read(bytes(payload))
    except wire.ProbeError as error:
        assert_refusal(error.status, expected, bytes(payload))
        return
    assert expected is None or found == expected


def assert_refusal(status: int, expected: Any, payload: bytes) -> None:
    """A payload that protobuf takes is refused for a group alone."""
    assert status == PROTOCOL
    assert expected is None or plain.payload_has_group(payload)


@given(st.text(max_size=12))
def test_codes_of_filters_are_those_of_java(item: str) -> None:
    assert wire.code_of_filter(item.encode()) == plain.hash_of(item)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_checksum_goes_on(first: bytes, second: bytes) -> None:
    assert wire.crc(second, wire.crc(first)) == wire.crc(first + second)
    assert wire.checksum(first) == plain.checksum_of(first)


@given(st.dictionaries(st.text("ab$", max_size=3), st.text("xyz", max_size=3), max_size=5), st.text("ab$", max_size=3))
def test_values_of_attributes(pairs: dict[str, str], key: str) -> None:
    text = ",".join(f"{name}={value}" for name, value in pairs.items()).encode()
    expected = pairs.get(key)
    assert wire.attribute(text, key.encode()) == (None if expected is None else expected.encode())


@given(st.binary(max_size=20), DATA)
def test_payloads_come_back(attribute: bytes, body: bytes) -> None:
    flag, payload = wire.payload(attribute, body)
    assert flag == (1 if attribute else 0)
    assert wire.split(flag, payload) == (attribute, body)
