"""V1 in both roles: against the golden vectors, and against protobuf's own messages on random input."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.wire.inlong.message import records
from dataproxy.numbers import FAMILY_V1
from tests.native.probe_wire import ProbeError, Server, Wire, pack
from tests.support.reference.snappy import pack_literals
from tests.support.reference.v1 import Messages, info, pack_frame, read_infos, read_pack
from tests.support.reference.vectors import NOW_MS, VECTORS

WIRE = Wire("inlongv1")
IDS = b"groupId=test_group&streamId=test_stream"
DT = 1_700_000_000_000
ITEMS, OBJECTS = 1, 3
NEED_DATA, PROTOCOL, LIMIT = 1, -2, -3
FILLER = b"_=" + b"." * 24
V1 = {vector["name"]: vector for vector in VECTORS["v1"]}
PACKS = [name for name, vector in V1.items() if "hex" in vector]
RESULTS = [name for name in V1 if name.startswith("v1_response")]


def appended(bodies: list[bytes]) -> bytes:
    """Return items as a producer appends them: body and filler, each with its length."""
    return b"".join(struct.pack(">I", len(b)) + b + struct.pack(">I", len(FILLER)) + FILLER for b in bodies)


def frame(bodies: list[bytes], attrs: bytes = IDS, **fields: Any) -> bytes:
    """Return the frame that the client makes of bodies."""
    given = {"seq": 77, "count": len(bodies), "data_time_ms": DT, **fields}
    return WIRE.frame(appended(bodies), attrs, family=FAMILY_V1, items=ITEMS, **given)


def serve(data: bytes, **profile: Any) -> dict[str, Any]:
    """Return what a strict server does with one frame."""
    return Server(wire="inlongv1", **profile).serve(data, NOW_MS)


# --- client role


def test_a_frame_is_what_protobuf_reads() -> None:
    header, messages = read_pack(frame([b"hello", b"\0\xff", b"x" * 300], IDS + b"&app=web", sid=b"abc-1f"))
    assert (header.inlongGroupId, header.inlongStreamId) == ("test_group", "test_stream")
    assert (header.packId, header.packTime, header.msgCount, header.compressType) == (77, DT, 3, 0)
    assert header.srcLength == header.compressLen > 300
    assert [(p.key, p.value) for p in header.params] == [("app", "web"), ("sid", "abc-1f")]
    assert [(m.msgTime, m.sourceIp, m.body) for m in messages] == [
        (DT, "127.0.0.1", body) for body in (b"hello", b"\0\xff", b"x" * 300)
    ]


def test_the_source_is_the_address_that_was_given() -> None:
    _, messages = read_pack(frame([b"x"], origin=b"255.255.255.255"))
    assert messages[0].sourceIp == "255.255.255.255"


@given(
    st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=6), st.integers(0, 2**32 - 1),
    st.integers(0, 2**42 - 1), st.sampled_from([b"", b"1.2.3.4", b"100.100.100.100"]),
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=4), st.text("xyzé", max_size=9)), max_size=4,
             unique_by=lambda pair: pair[0]),
)  # fmt: skip
def test_whatever_is_framed_protobuf_reads(bodies: Any, seq: int, when: int, origin: bytes, params: Any) -> None:
    attrs = IDS + b"".join(f"&{key}={value}".encode() for key, value in params)
    header, messages = read_pack(frame(bodies, attrs, seq=seq, data_time_ms=when, origin=origin))
    assert [m.body for m in messages] == bodies
    assert {m.msgTime for m in messages} == {when}
    assert (header.packId, header.msgCount) == (seq, len(bodies))
    assert [(p.key, p.value) for p in header.params] == params


def test_a_packed_body_says_how_large_it_was() -> None:
    objects = Messages["MessageObjs"](
        msgs=[Messages["MessageObj"](msgTime=DT, sourceIp="1.1.1.1", body=b"a" * 500)]
    ).SerializeToString()
    made = WIRE.frame(
        pack(objects), IDS, family=FAMILY_V1, items=OBJECTS, compressed=True, seq=5, count=1, data_time_ms=DT
    )
    header, messages = read_pack(made)
    assert (header.compressType, header.srcLength, header.compressLen) == (2, len(objects), len(pack(objects)))
    assert messages[0].body == b"a" * 500


@pytest.mark.parametrize(
    "fields", [{"data_time_ms": 2**42}, {"count": 65536}, {"attrs": b"groupId=g&a=" + b"x" * 32000}]
)
def test_what_no_pack_can_say_is_refused(fields: dict[str, Any]) -> None:
    attrs = fields.pop("attrs", IDS)
    with pytest.raises(ProbeError):
        frame([b"x"], attrs, **fields)


@pytest.mark.parametrize("name", RESULTS)
def test_every_reply_is_found_and_read(name: str) -> None:
    vector = V1[name]
    data = bytes.fromhex(vector["response_hex"])
    assert info(vector["result"], vector["pack_id"]) == data
    for n in range(len(data)):
        assert WIRE.delimit(data[:n]) == (NEED_DATA, 0)
    assert WIRE.delimit(data + b"\x08") == (0, len(data))
    event = WIRE.parse_reply(data)
    codes = {0: 0, -1: 2147483647, -101: 112, -102: 95, -103: 114, -104: 123, -105: 115}
    assert event["code"] == codes[vector["result"]]
    assert event["seq"] == (vector["pack_id"] if vector["pack_id"] < 2**32 else None)
    assert (event["message"] == b"") == (vector["result"] == 0)


def test_replies_stand_between_v0_frames() -> None:
    beat = b"\0\0\0\1\1"
    stream = info(0, 1) + beat + info(-103, 2**31) + info(0, 3) + beat
    found = []
    while stream:
        status, size = WIRE.delimit(stream)
        assert status == 0
        event = WIRE.parse_reply(stream[:size])
        found.append((event["kind"], event["seq"], event["code"]))
        stream = stream[size:]
    assert found == [(1, 1, 0), (2, None, 0), (1, 2**31, 114), (1, 3, 0), (2, None, 0)]


@pytest.mark.parametrize(
    "data", [b"\x08\0\x18\0", b"\x08" + b"\x80" * 10, b"\x08\0\x10" + b"\xff" * 10, b"HTTP/1.1 400", b"\x15\3\3\0\2"]
)
def test_other_bytes_are_no_reply(data: bytes) -> None:
    assert WIRE.delimit(data)[0] in (PROTOCOL, LIMIT)


# --- server role


@pytest.mark.parametrize("name", PACKS)
def test_the_golden_packs(name: str) -> None:
    vector = V1[name]
    outcome = serve(bytes.fromhex(vector["hex"]), groups={b"test_group"})
    if name == "v1_pack_gzip":
        assert outcome["action"] == "close", "the hub does not read gzip"
        return
    expected = vector["reply_hex"][: len(vector["reply_hex"]) // (2 if name == "v1_pack_no_messages" else 1)]
    assert outcome["reply"].hex() == expected, "an empty pack is answered once"
    if name in ("v1_pack_none", "v1_pack_snappy"):
        stored = list(records(outcome["entry"]))
        assert [body for body, _ in stored] == [b"hello", b"in long"]
        assert [attrs["dt"] for _, attrs in stored] == [str(m["msgTime"]) for m in vector["msgs"]]
        assert stored[0][1]["clientIp"] == vector["msgs"][0]["sourceIp"]
        assert stored[1][1]["rtms"] == "1700000000001"
        assert (outcome["action"], outcome["records"], outcome["group"]) == ("store", 2, b"test_group")


@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_what_the_client_frames_the_server_stores(bodies: list[bytes], stored_packed: bool, params: bool) -> None:
    attrs = IDS + (b"&k=v" if params else b"")
    outcome = serve(frame(bodies, attrs, sid=b"abc-1"), compress_entries=stored_packed)
    assert read_infos(outcome["reply"]) == [(0, 77)]
    stored = list(records(outcome["entry"]))
    assert [body for body, _ in stored] == bodies
    for _, found in stored:
        assert (found["groupId"], found["streamId"], found["dt"], found["sid"]) == (
            "test_group", "test_stream", str(DT), "abc-1",
        )  # fmt: skip
        assert found.get("k") == ("v" if params else None)


def of_messages(*messages: dict[str, Any], **header: Any) -> bytes:
    """Return a frame with these messages; ``header`` overrides fields."""
    objects = Messages["MessageObjs"](msgs=[Messages["MessageObj"](**one) for one in messages]).SerializeToString()
    fields = {
        "inlongGroupId": "g", "inlongStreamId": "s", "packId": 9, "packTime": DT, "msgCount": len(messages),
        "srcLength": len(objects), "compressLen": len(objects), "compressType": 0, **header,
    }  # fmt: skip
    head = Messages["MessagePackHeader"](**fields)
    return pack_frame(Messages["MessagePack"](header=head, compressBytes=objects).SerializeToString())


ONE = {"msgTime": DT, "sourceIp": "1.1.1.1", "body": b"x"}


@pytest.mark.parametrize(
    ("data", "profile", "result"),
    [
        (of_messages(ONE), {"service_code": 2}, -103),
        (of_messages(ONE), {"service_code": 1}, 0),  # V1 has no such check
        (of_messages(ONE), {"groups": {b"other"}}, -105),
        (of_messages(ONE, inlongGroupId="a&b"), {}, -105),
        (of_messages(ONE, inlongGroupId=""), {}, -105),
        (of_messages(), {}, 0),
        (of_messages({**ONE, "body": b""}), {}, -104),
        (of_messages(ONE, packId=-1), {}, 0),
    ],
)
def test_answers(data: bytes, profile: dict[str, Any], result: int) -> None:
    ((found, _),) = read_infos(serve(data, **profile)["reply"])
    assert found == result


@pytest.mark.parametrize(
    "data",
    [
        pack_frame(b""),
        pack_frame(b"\x0a\x00\x12\x00"),  # a header without its fields
        pack_frame(b"\xff" * 20),
        of_messages(ONE, compressType=1),
        of_messages(ONE, compressType=2),  # which is not what the bytes are
        of_messages(ONE)[:5] + b"\2" + of_messages(ONE)[6:],
        b"\0\0\0\1\0",
    ],
)
def test_what_cannot_be_read_closes(data: bytes) -> None:
    assert serve(data)["action"] == "close"


@given(st.binary(max_size=80))
def test_no_pack_breaks_the_server(data: bytes) -> None:
    outcome = serve(pack_frame(data))
    assert outcome["action"] in ("close", "reply", "store")


@given(st.data())
def test_a_changed_pack_is_read_as_protobuf_reads_it(data: st.DataObject) -> None:
    whole = bytearray(of_messages(ONE, {**ONE, "msgTime": DT + 5}))
    at = data.draw(st.integers(6, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    outcome = serve(bytes(whole))
    try:
        header, messages = read_pack(bytes(whole))
    except ValueError:
        return
    if header.compressType == 0 and outcome["action"] == "store":
        assert [body for body, _ in records(outcome["entry"])] == [m.body for m in messages]


def test_messages_with_times_of_their_own_stand_in_groups() -> None:
    params = [Messages["MapFieldEntry"](key="rtms", value="7"), Messages["MapFieldEntry"](key="a&b", value="c")]
    outcome = serve(of_messages(ONE, ONE, {**ONE, "msgTime": DT + 1}, {**ONE, "params": params}))
    stored = [(body, attrs["dt"], attrs["rtms"]) for body, attrs in records(outcome["entry"])]
    assert stored == [
        (b"x", str(DT), str(NOW_MS)), (b"x", str(DT), str(NOW_MS)),
        (b"x", str(DT + 1), str(NOW_MS)), (b"x", str(DT), "7"),
    ]  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_the_params_of_the_header_stand_in_each_group(packed: bool) -> None:
    entry = Messages["MapFieldEntry"]
    header = [entry(key="a", value="1"), entry(key="rtms", value="7"), entry(key="b=", value="2")]
    own = [entry(key="rtms", value="8"), entry(key="c", value="3")]
    messages = [ONE, {**ONE, "msgTime": DT + 1, "params": own}, {**ONE, "body": b"y" * 9000}]
    data = of_messages(*messages, params=header)
    if packed:
        pack = Messages["MessagePack"].FromString(data[6:])
        pack.header.compressType = 2
        pack.compressBytes = pack_literals(pack.compressBytes)
        data = pack_frame(pack.SerializeToString())
    stored = [(body, attrs["a"], attrs["rtms"], attrs.get("c")) for body, attrs in records(serve(data)["entry"])]
    assert stored == [(b"x", "1", "7", None), (b"x", "1", "8", "3"), (b"y" * 9000, "1", "7", None)]


def cost(data: bytes) -> float:
    """Return the time of this thread that a pack takes which is stored, in seconds."""
    started = time.thread_time()
    assert serve(data)["action"] == "store"
    return time.thread_time() - started


def wide(frame: bytes) -> bytes:
    """Return a frame whose first message has 20,000 fields that nobody knows."""
    pack = Messages["MessagePack"].FromString(frame[6:])
    objects = Messages["MessageObjs"].FromString(pack.compressBytes)
    objects.msgs[0].MergeFromString(b"\x28\x00" * 20_000)
    pack.compressBytes = objects.SerializeToString()
    return pack_frame(pack.SerializeToString())


ALTERNATING = [{**ONE, "msgTime": DT + i % 2} for i in range(4000)]
LEFT_OUT = [Messages["MapFieldEntry"](key="=")] * 20_000


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (of_messages(ONE, params=LEFT_OUT), of_messages(*ALTERNATING), of_messages(*ALTERNATING, params=LEFT_OUT)),
        (wide(of_messages(ONE)), of_messages(*[ONE] * 4000), wide(of_messages(*[ONE] * 4000))),
    ],
    ids=["params of the header", "unknown fields"],
)
def test_what_no_message_grows_by_is_read_once(one: bytes, other: bytes, both: bytes) -> None:
    """Nothing else bounds what it costs: the entry does not grow by it."""
    apart = sum(max(cost(data) for _ in range(3)) for data in (one, other))
    assert min(cost(both) for _ in range(3)) < 10 * apart


@pytest.mark.parametrize(("code", "result"), [(114, -103), (2, -103), (119, -103), (115, -105), (123, -104)])
def test_a_success_becomes_a_refusal(code: int, result: int) -> None:
    server = Server(wire="inlongv1")
    reply = server.serve(of_messages(ONE, packId=2**40), NOW_MS)["reply"]
    assert read_infos(server.refuse(reply, code, b"no")) == [(result, 2**40)]
    assert server.tell_known(reply, 1, 0, 5) == reply


def test_v0_frames_are_answered_beside_packs() -> None:
    server = Server(wire="inlongv1")
    assert server.serve(b"\0\0\0\1\1", NOW_MS)["reply"] == b"\0\0\0\1\1"
    for vector in VECTORS["requests"][:8]:
        data = bytes.fromhex(vector["hex"])
        assert server.serve(data, NOW_MS) == Server().serve(data, NOW_MS)


def test_params_that_would_be_repeated_without_end_are_refused() -> None:
    wide = [Messages["MapFieldEntry"](key="k", value="v" * 60_000)]
    messages = [{**ONE, "msgTime": DT + i % 2} for i in range(4000)]
    ((result, _),) = read_infos(serve(of_messages(*messages, params=wide), compress_entries=False)["reply"])
    assert result == -104
    ((result, _),) = read_infos(serve(of_messages(*messages[:8], params=wide), compress_entries=False)["reply"])
    assert result == 0
