"""RocketMQ's golden vectors and recorded frames in both roles: by the compiled code and by the plain reference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import BY_NAME, CAPTURED, FRAMES, VECTORS, body_of

PROTOCOL = -2


def name_of(vector: dict[str, Any]) -> str:
    return str(vector.get("name") or f"{vector['encoding']}-{vector['code']}-of-{vector.get('in_reply_to_code', '')}")


def pairs_of(vector: dict[str, Any]) -> list[tuple[bytes, bytes]] | None:
    fields = vector["fields"]["extFields"]
    return None if fields is None else [(name.encode(), value.encode()) for name, value in fields.items()]


def expected(vector: dict[str, Any], form: int) -> dict[str, Any]:
    """Return what a synthetic frame says."""
    fields = vector["fields"]
    pairs = pairs_of(vector)
    return {
        "form": form, "code": vector["code"], "language": plain.LANGUAGES.index(fields["language"]),
        "version": fields["version"], "opaque": fields["opaque"], "flag": fields["flag"],
        "remark": (fields["remark"] or "").encode(), "fields": pairs or None if form else pairs,
        "body": body_of(vector),
    }  # fmt: skip


def unordered(command: dict[str, Any]) -> dict[str, Any]:
    return {**command, "fields": None if command["fields"] is None else dict(command["fields"])}


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("vector", FRAMES, ids=name_of)
def test_every_synthetic_frame_is_read(vector: dict[str, Any], form: int) -> None:
    frame = bytes.fromhex(vector["hex_rocketmq" if form else "hex_json"])
    assert wire.Stream().push(frame) == plain.join(frame) == [frame]
    found = wire.read(frame)
    assert found == plain.read_frame(frame)
    assert unordered(found) == unordered(expected(vector, form))


@pytest.mark.parametrize("vector", FRAMES, ids=name_of)
def test_every_synthetic_frame_is_written(vector: dict[str, Any]) -> None:
    """The binary form byte for byte; a header of JSON as the object it is, in the order of its keys."""
    assert wire.write(expected(vector, 1)).hex() == vector["hex_rocketmq"]
    written, wanted = wire.write(expected(vector, 0)), bytes.fromhex(vector["hex_json"])
    headers = [frame[8 : 8 + int.from_bytes(frame[5:8])] for frame in (written, wanted)]
    if not vector["fields"]["remark"]:  # null and "" are the same here
        headers[1] = headers[1].replace(b'"remark":"",', b"")
    assert json.loads(headers[0]) == {"serializeTypeCurrentRPC": "JSON", **json.loads(headers[1])}
    assert list(json.loads(headers[0])) == sorted(json.loads(headers[0]))
    assert wire.read(written) == {**wire.read(wanted), "fields": wire.read(written)["fields"]}


@pytest.mark.parametrize("vector", CAPTURED, ids=name_of)
def test_every_recorded_frame_is_read_and_written(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["hex"])
    found = wire.read(frame)
    assert found == plain.read_frame(frame)
    assert (found["code"], found["flag"], found["form"]) == (
        vector["code"],
        vector["flag"],
        vector["encoding"] == "RMQ",
    )
    again = wire.write(found)
    assert wire.read(again) == found
    if vector["encoding"] == "RMQ":
        assert again == frame


def test_words_of_a_client_of_cpp() -> None:
    """Numbers and booleans in the fields, and a line's end behind the header."""
    (frame,) = [bytes.fromhex(one["hex"]) for one in CAPTURED if one["code"] == 10]
    found = wire.take("send", frame)
    assert (found["queueId"], found["sysFlag"], found["defaultTopicQueueNums"], found["batch"]) == (0, 0, 4, False)
    assert (found["topic"], found["body"], found["maxReconsumeTimes"]) == (b"TopicCPP", b"cpp-hello", -1)
    assert found["properties"].endswith(b"WAIT\x01true\x02")
    assert dict(wire.properties(found["properties"]))[b"KEYS"] == b"k1"
    assert wire.read(frame)["language"] == plain.LANGUAGES.index("CPP")


DATA = {10: "send", 310: "send", 320: "send", 11: "pull"}
ANSWERS = {10: "sent", 310: "sent", 320: "sent", 11: "pulled"}
READ = {"send": plain.read_send, "sent": plain.read_sent, "pull": plain.read_pull, "pulled": plain.read_pulled}


def data_frames() -> list[tuple[str, bytes]]:
    found = []
    for vector in [*FRAMES, *CAPTURED]:
        answered = vector.get("in_reply_to_code")
        kind = DATA.get(vector["code"]) if answered is None else ANSWERS.get(answered)
        frames = [vector[key] for key in ("hex", "hex_json", "hex_rocketmq") if key in vector]
        found += [(kind, bytes.fromhex(frame)) for frame in frames if kind]
    return found


@pytest.mark.parametrize(("kind", "frame"), data_frames())
def test_the_way_of_data_is_read_and_written(kind: str, frame: bytes) -> None:
    found, command = wire.take(kind, frame), wire.read(frame)
    wanted = READ[kind](plain.read_frame(frame))
    assert {key: found[key] for key in wanted} == wanted
    written = wire.put(kind, {**command, "fields": []}, found)
    assert wire.take(kind, written) == found
    before, after = dict(command["fields"] or ()), dict(wire.read(written)["fields"] or ())
    assert wire.read(written)["body"] == command["body"]
    if kind == "sent":
        assert (after.pop(b"MSG_REGION"), after.pop(b"TRACE_ON")) == (b"DefaultRegion", b"true")
    spelt = {name: value.replace(b"0", b"false") for name, value in before.items() if name in (b"batch", b"unitMode")}
    assert after.items() <= {**before, **spelt}.items()


@pytest.mark.parametrize("vector", VECTORS["stored_messages"], ids=name_of)
def test_stored_messages(vector: dict[str, Any]) -> None:
    data, fields = bytes.fromhex(vector["hex"]), vector["fields"]
    (found,) = wire.read_stored_messages(data)
    assert plain.messages(data) == [found]
    plainly = ("queueId", "queueOffset", "physicalOffset", "bodyCRC", "flag", "sysFlag", "bornTimestamp",
               "storeTimestamp", "reconsumeTimes", "preparedTransactionOffset")  # fmt: skip
    assert {name: found[name] for name in plainly} == {name: fields[name] for name in plainly}
    assert found["topic"] == fields["topic"].encode()
    assert dict(wire.properties(found["properties"])) == {
        name.encode(): value.encode() for name, value in fields["properties"].items()
    }
    assert (found["bornHost"][1], found["storeHost"][1]) == (fields["bornHost"][1], fields["storeHost"][1])
    assert wire.checksum(found["body"]) == plain.checksum(found["body"]) == fields["bodyCRC"]
    assert wire.stored(found) == data
    assert wire.message_id(found["storeHost"], found["physicalOffset"]).decode() == vector["offsetMsgId"]
    assert len(data) == fields["totalSize"]


def test_compressed_bodies_say_how() -> None:
    assert [wire.compression(flag) for flag in (0, 1, 0x301, 0x101, 0x201, 0x401, 0x300)] == [0, 1, 1, 2, 3, 4, 0]


@pytest.mark.parametrize("vector", VECTORS["batch_bodies"], ids=lambda v: str(len(v["items"])))
def test_batches(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    found = wire.read_batch(data)
    assert found == plain.items(data)
    for item, one in zip(found, vector["items"], strict=True):
        assert (item["body"].decode(), item["flag"]) == (one["body"], one["flag"])
        pairs = [(name.encode(), value.encode()) for name, value in one["properties"].items()]
        assert wire.properties(item["properties"]) == pairs
        assert wire.put_properties(pairs) == item["properties"]
    assert wire.batch(found) == data


@pytest.mark.parametrize("vector", VECTORS["message_ids"], ids=lambda v: v["ip"])
def test_message_ids(vector: dict[str, Any]) -> None:
    from ipaddress import ip_address

    host = (ip_address(vector["ip"]).packed, vector["port"])
    assert wire.message_id(host, vector["offset"]).decode() == vector["id"]
    assert (
        wire.read_id(vector["id"].encode()) == wire.read_id(vector["id"].lower().encode()) == (host, vector["offset"])
    )
    for wrong in (vector["id"][:-1], vector["id"] + "0", "G" + vector["id"][1:], ""):
        assert wire.read_id(wrong.encode()) is None


@pytest.mark.parametrize("vector", VECTORS["body_crc"], ids=lambda v: v["body_hex"])
def test_checksums(vector: dict[str, Any]) -> None:
    body = bytes.fromhex(vector["body_hex"])
    assert wire.checksum(body) == plain.checksum(body) == vector["crc"]


@pytest.mark.parametrize("vector", VECTORS["properties_strings"], ids=lambda v: repr(v["text"]))
def test_properties(vector: dict[str, Any]) -> None:
    text = vector["text"].encode()
    found = wire.properties(text)
    assert found == plain.properties(text)
    assert dict(found) == {name.encode(): value.encode() for name, value in vector["decoded"].items()}
    for name, value in found:
        assert wire.property_of(text, name) == value


def test_of_a_property_that_stands_twice_the_last_counts() -> None:
    assert wire.property_of(b"WAIT\x01true\x02A\x01b\x02WAIT\x01false", b"WAIT") == b"false"
    assert wire.property_of(b"WAIT\x01true", b"WAI") is None


@pytest.mark.parametrize("vector", VECTORS["invalid"], ids=name_of)
def test_what_is_refused_is_refused_in_any_pieces(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        with pytest.raises(wire.ProbeError) as caught:
            read_pieces(pieces)
        assert caught.value.status == (-3 if "16MiB" in vector["name"] else PROTOCOL)
    with pytest.raises(plain.WireError):
        [plain.read_frame(frame) for frame in plain.join(data)]


def read_pieces(pieces: list[bytes]) -> None:
    stream = wire.Stream()
    for piece in pieces:
        for frame in stream.push(piece):
            wire.read(frame)


def test_a_frame_is_refused_with_the_first_byte_that_is_wrong() -> None:
    good = bytes.fromhex(BY_NAME["heartbeat_ok"]["hex_rocketmq"])
    for at, byte in ((0, 0x80), (0, 0x16), (4, 2)):
        bad = bytearray(good)
        bad[at] = byte
        with pytest.raises(wire.ProbeError):
            wire.Stream().push(bytes(bad[: at + 1]))
