"""What TubeMQ's compiled readers must have, to the byte: required fields, whole messages, attributes that fit."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.wire.tubemq import messages
from tests.native import probe_tubemq as wire
from tests.support.reference import tubemq as plain
from tests.support.reference.tubevectors import FRAMES

PROTOCOL = -2
REQUIRED: dict[str, dict[str, Any]] = {
    "GetMessageRequestC2B": {"clientId": "c", "partitionId": 1, "groupName": "g", "topicName": "t"},
    "GetMessageResponseB2C": {"success": True, "errCode": 200},
    "SendMessageRequestP2B": {
        "clientId": "c", "topicName": "t", "partitionId": 1, "data": b"d", "flag": 0, "checkSum": 1, "sentAddr": 2,
    },
    "SendMessageResponseB2P": {"success": True, "errCode": 200, "errMsg": "m"},
    "CommitOffsetRequestC2B": {"clientId": "c", "topicName": "t", "partitionId": 1, "groupName": "g"},
    "CommitOffsetResponseB2C": {"success": True, "errCode": 200, "errMsg": "m"},
}  # fmt: skip
#: What a reader says of a field that is not there.
ABSENT: dict[str, dict[str, Any]] = {
    "GetMessageRequestC2B": {"lastPackConsumed": False, "manualCommitOffset": False, "escFlowCtrl": False},
    "GetMessageResponseB2C": {
        "errMsg": b"", "messages": [], "currOffset": -1, "minLimitTime": -1, "escFlowCtrl": False, "currDataDlt": -1,
        "requireSlow": False, "maxOffset": -1,
    },
    "SendMessageRequestP2B": {"msgType": b"", "msgTime": b""},
    "SendMessageResponseB2P": {"requireAuth": False, "messageId": -1, "appendTime": -1, "appendOffset": -1},
    "CommitOffsetRequestC2B": {"lastPackConsumed": True},
    "CommitOffsetResponseB2C": {"currOffset": -1, "maxOffset": -1},
}  # fmt: skip


def written(name: str, fields: dict[str, Any]) -> bytes:
    """Return a message with these fields alone, as protobuf writes it."""
    kind: Any = getattr(messages, name)
    return bytes(kind(**fields).SerializePartialToString())


def refused(read: Any, *given: Any) -> None:
    with pytest.raises(wire.ProbeError) as caught:
        read(*given)
    assert caught.value.status == PROTOCOL


@pytest.mark.parametrize("name", REQUIRED)
def test_a_message_of_required_fields_alone(name: str) -> None:
    found = wire.read(name, written(name, REQUIRED[name]))
    expected = {key: value.encode() if isinstance(value, str) else value for key, value in REQUIRED[name].items()}
    assert found == {**expected, **ABSENT[name]}


@pytest.mark.parametrize(("name", "field"), [(name, field) for name, fields in REQUIRED.items() for field in fields])
def test_each_required_field_is_missed(name: str, field: str) -> None:
    refused(wire.read, name, written(name, {key: value for key, value in REQUIRED[name].items() if key != field}))


@pytest.mark.parametrize("field", ["messageId", "checkSum", "payLoadData", "flag"])
def test_each_required_field_of_a_message_in_a_pack_is_missed(field: str) -> None:
    whole: dict[str, Any] = {"messageId": 1, "checkSum": 2, "payLoadData": b"x", "flag": 0}
    del whole[field]
    data = written("GetMessageResponseB2C", {"success": True, "errCode": 200, "messages": [whole]})
    refused(wire.read, "GetMessageResponseB2C", data)


def test_credentials_without_a_token_are_none() -> None:
    """A client of Go sends such; two of them are one to protobuf."""
    data = written("SendMessageRequestP2B", REQUIRED["SendMessageRequestP2B"])
    assert "authInfo" not in wire.read("SendMessageRequestP2B", data + b"\x52\x00")
    found = wire.read("SendMessageRequestP2B", data + b"\x52\x03\x12\x01z\x52\x02\x08\x05")
    assert found["authInfo"] == {"visitAuthorizedToken": 5, "authAuthorizedToken": b"z"}


@pytest.mark.parametrize("vector", FRAMES, ids=lambda v: v["name"])
def test_a_payload_that_lacks_bytes_is_refused(vector: dict[str, Any]) -> None:
    ((_, payload),) = plain.join(bytes.fromhex(vector["frame_hex"]))
    read = wire.read_calls if vector["kind"] == "request" else wire.read_answers
    end = len(payload.rstrip(b"\0")) if vector["kind"] == "request" else len(payload)
    for n in range(end):
        refused(read, payload[:n])


@pytest.mark.parametrize("left", range(6))
def test_an_attribute_fits_or_does_not(left: int) -> None:
    size = 10
    payload = size.to_bytes(4, "big") + b"a" * (size - left)
    assert wire.split(1, payload) == ((b"a" * size, b"") if left == 0 else None)
    assert wire.split(0, payload) == (b"", payload)


@pytest.mark.parametrize("n", range(4))
def test_a_payload_that_has_no_room_for_the_size_of_its_attribute(n: int) -> None:
    assert wire.split(1, bytes(n)) is None


def test_a_checksum_is_never_negative() -> None:
    assert all(0 <= wire.checksum(bytes([i])) < 1 << 31 for i in range(256))
