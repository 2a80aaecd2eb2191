"""TubeMQ's golden vectors in both roles: byte for byte, by the compiled code and by the plain reference."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.native import probe_tubemq as wire
from tests.support.reference import tubemq as plain
from tests.support.reference.tubevectors import BY_NAME, FRAMES, VECTORS, request_payload

COMPILED = {
    "GetMessageRequestC2B", "GetMessageResponseB2C", "SendMessageRequestP2B", "SendMessageResponseB2P",
    "CommitOffsetRequestC2B", "CommitOffsetResponseB2C",
}  # fmt: skip
DEFAULTS: dict[str, dict[str, Any]] = {
    "GetMessageResponseB2C": {"messages": [], "requireSlow": False, "maxOffset": -1},
    "SendMessageRequestP2B": {"msgType": b"", "msgTime": b""},
    "SendMessageResponseB2P": {"requireAuth": False, "messageId": -1, "appendTime": -1, "appendOffset": -1},
    "CommitOffsetResponseB2C": {"maxOffset": -1},
}
REQUESTS = [vector for vector in FRAMES if vector["kind"] == "request"]
RESPONSES = [vector for vector in FRAMES if vector["kind"] == "response"]
DATA = [vector for vector in FRAMES if vector["message"] in COMPILED]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


def as_read(value: Any) -> Any:
    """Return a vector's field as the compiled code gives it: texts and bytes are bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    if isinstance(value, dict):
        return {key: as_read(inner) for key, inner in value.items()}
    return [as_read(one) for one in value] if isinstance(value, list) else value


def fields_of(vector: dict[str, Any]) -> dict[str, Any]:
    fields = {**DEFAULTS.get(vector["message"], {}), **as_read(vector["fields"])}
    if "authInfo" in fields:
        fields["authInfo"].setdefault("authAuthorizedToken", b"")
    return fields


@pytest.mark.parametrize("vector", FRAMES, ids=name_of)
def test_the_schema_writes_and_reads_every_message(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["message_hex"])
    assert plain.filled(vector["message"], vector["fields"]).SerializeToString() == data
    assert plain.read_message(vector["message"], data) == plain.filled(vector["message"], vector["fields"])


@pytest.mark.parametrize("vector", REQUESTS, ids=name_of)
def test_every_request_is_framed_and_read(vector: dict[str, Any]) -> None:
    frame, parts = bytes.fromhex(vector["frame_hex"]), request_payload(vector)
    ((serial, payload),) = wire.Stream().push(frame)
    assert serial == vector["serial"]
    assert wire.read_calls(payload) == plain.split_call(payload) == parts
    assert wire.frame(serial, payload) == plain.cut(serial, payload) == frame
    made = (parts["serviceType"], parts["protocolVer"], parts["method"], parts["timeout"], parts["request"])
    assert plain.called(*made, flag=parts["flag"]) == payload
    if parts["flag"] == 0:
        assert wire.call(*made) == payload


@pytest.mark.parametrize("vector", RESPONSES, ids=name_of)
def test_every_answer_is_framed_and_read(vector: dict[str, Any]) -> None:
    frame, data = bytes.fromhex(vector["frame_hex"]), bytes.fromhex(vector["message_hex"])
    ((serial, payload),) = wire.Stream().push(frame)
    assert serial == vector["serial"]
    assert wire.read_answers(payload) == plain.split_answer(payload)
    assert wire.read_answers(payload) == {"status": 0, "method": vector["method"], "data": data}
    assert wire.answer(vector["method"], data) == plain.answered(vector["method"], data) == payload
    assert wire.frame(serial, payload) == frame


@pytest.mark.parametrize("vector", VECTORS["exception_responses"], ids=name_of)
def test_every_exception_is_framed_and_read(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["frame_hex"])
    ((serial, payload),) = wire.Stream().push(frame)
    name, trace, status = vector["exceptionName"], vector["stackTrace"], vector["response_header"]["status"]
    expected = {"status": status, "exceptionName": name.encode(), "stackTrace": trace.encode()}
    assert wire.read_answers(payload) == plain.split_answer(payload) == expected
    assert wire.frame(serial, wire.exception(status, name.encode(), trace.encode())) == frame
    assert plain.cut(serial, plain.failed(status, name, trace)) == frame


@pytest.mark.parametrize("vector", DATA, ids=name_of)
def test_messages_on_the_way_of_data_are_written_and_read(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["message_hex"])
    assert wire.read(vector["message"], data) == fields_of(vector)
    assert wire.write(vector["message"], fields_of(vector)) == data


def test_a_long_payload_is_cut() -> None:
    vector = VECTORS["framing"]["multi_slice"]
    fields = fields_of(BY_NAME["send_message_plain_go_style"])
    fields |= {"data": bytes(i % 251 for i in range(20000)), "sentAddr": 0x7F000001}
    request = wire.write("SendMessageRequestP2B", fields)
    payload = wire.call(vector["service_type"], 3, vector["method"], 10000, request)
    frame = wire.frame(vector["serial"], payload)
    assert (len(frame), hashlib.sha256(frame).hexdigest()) == (vector["frame_length"], vector["frame_sha256"])
    assert frame.startswith(bytes.fromhex(vector["frame_head_hex"]))
    assert wire.Stream().push(frame) == plain.join(frame) == [(vector["serial"], payload)]


@pytest.mark.parametrize("sizes", ["one", "two"])
def test_a_slice_ends_where_the_payload_does(sizes: str) -> None:
    vector = VECTORS["framing"]["exact_boundary"]
    payload = bytes(sum(vector[sizes]))
    frame = wire.frame(1, payload)
    assert frame.startswith(bytes.fromhex(vector[f"head_{sizes}_hex"]))
    assert len(frame) == 12 + 4 * len(vector[sizes]) + len(payload)
    assert wire.Stream().push(frame) == [(1, payload)]


def test_zeros_behind_a_request_are_no_part_of_it() -> None:
    vector = VECTORS["framing"]["cpp_zero_padding"]
    ((serial, payload),) = wire.Stream().push(bytes.fromhex(vector["frame_hex"]))
    bare = bytes.fromhex(vector["payload_without_padding_hex"])
    assert serial == vector["serial"]
    assert payload.startswith(bare)
    assert len(payload) > len(bare)
    assert wire.read_calls(payload) == wire.read_calls(bare) == plain.split_call(bare)


@pytest.mark.parametrize("vector", VECTORS["checksum"], ids=lambda v: v["input_hex"][:16])
def test_checksums(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["input_hex"])
    assert wire.crc(data) == vector["crc32_unsigned"]
    assert wire.checksum(data) == plain.checksum_of(data) == vector["tubemq_checksum"]


@pytest.mark.parametrize("vector", VECTORS["payload"], ids=name_of)
def test_payloads(vector: dict[str, Any]) -> None:
    payload = bytes.fromhex(vector["payload_hex"])
    assert wire.checksum(payload) == vector["checksum"]
    if vector["data_hex"] is None:
        assert wire.split(vector["flag"], payload) is None
        return
    attribute, body = (vector["attribute"] or "").encode(), bytes.fromhex(vector["data_hex"])
    assert wire.split(vector["flag"], payload) == (attribute, body)
    if attribute or not vector["flag"]:
        assert wire.payload(attribute, body) == (vector["flag"], payload)


@pytest.mark.parametrize("vector", VECTORS["filter_hash"], ids=lambda v: v["text"])
def test_filter_codes(vector: dict[str, Any]) -> None:
    assert wire.code_of_filter(vector["text"].encode()) == plain.hash_of(vector["text"]) == vector["java_hash"]


def test_stored_records() -> None:
    vector = VECTORS["store_records"]["data_record"]
    data = bytes.fromhex(vector["hex"])
    fields = {key: value for key, value in vector["fields"].items() if key not in ("length", "token", "payload_hex")}
    fields["payload"] = bytes.fromhex(vector["fields"]["payload_hex"])
    assert wire.read_stored(data + b"more") == (fields, len(data))
    assert wire.record(fields) == data
    for n in range(len(data)):
        with pytest.raises(wire.ProbeError) as caught:
            wire.read_stored(data[:n])
        assert caught.value.status == 1


@pytest.mark.parametrize(("at", "value"), [(0, 0x80), (3, 0), (4, 0)])
def test_what_is_no_record(at: int, value: int) -> None:
    data = bytearray.fromhex(VECTORS["store_records"]["data_record"]["hex"])
    data[at] = value
    with pytest.raises(wire.ProbeError) as caught:
        wire.read_stored(bytes(data))
    assert caught.value.status == -2


def test_index_entries() -> None:
    vector = VECTORS["store_records"]["index_record"]
    assert wire.read_index(bytes.fromhex(vector["hex"])) == vector["fields"]
    assert wire.index_entry(vector["fields"]).hex() == vector["hex"]
