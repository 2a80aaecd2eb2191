"""The reader of frames for people: against every vector, against the compiled reader, and on wrong frames."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.wire.attributes import read_answer
from dataproxy.wire.snappy import SnappyError, unpack
from tests.native.probe_wire import ProbeError, pack
from tests.native.probe_wire import unpack as compiled_unpack
from tests.support.reference import frames
from tests.support.reference.snappy import lines as sample
from tests.support.reference.snappy import pack_repeats, size_prefix
from tests.support.reference.vectors import VECTORS, by_name, named
from tests.unit.wire.agreement import WIRE, agrees_with_the_client, agrees_with_the_server, one, read

NAMES = b"groupId=g&streamId=s"
ITEM = b"\0\0\0\1x"


@pytest.mark.parametrize("vector", named("requests"))
def test_requests(vector):
    data, fields = bytes.fromhex(vector["hex"]), vector["fields"]
    agrees_with_the_server(data)
    frame, items = one(data)
    assert frame.sender == "client"
    assert frame.kind == fields["msg_type"]
    if not frame.problems:
        text = b"&".join(piece.key + b"=" + (piece.value or b"") for piece in frame.attributes)
        assert text == fields["attr"].encode()
        if fields["layout"] == "text":
            assert frame.content.hex() == fields["body_uncompressed"]
        if frame.kind == 5:
            assert [item.body.hex() for item in items] == fields["items"]


@pytest.mark.parametrize("vector", named("malformed"))
def test_malformed_requests(vector):
    data = bytes.fromhex(vector["hex"])
    if vector["expect"] == "wait":
        [*_, (frame, _)] = read(data, "client")
        assert [problem.field for problem in frame.problems] == ["length"]
    elif WIRE.delimit(data) == (0, len(data)):
        agrees_with_the_server(data)
    else:
        assert any(frame.problems for frame, _ in read(data, "client"))


@pytest.mark.parametrize("kind", ["requests", "malformed", "heartbeats"])
def test_answers_of_the_reference_server(kind):
    for vector in VECTORS[kind]:
        for name in ("reply_hex", "sink_reply_hex"):
            if name in vector:
                data = bytes.fromhex(vector[name])
                agrees_with_the_client(data)
                assert one(data)[0].sender == ("either" if data[4] == 1 else "server"), vector["name"]


@pytest.mark.parametrize("vector", named("acks"))
def test_acknowledgements(vector):
    agrees_with_the_client(bytes.fromhex(vector["hex"]))


@pytest.mark.parametrize("vector", named("heartbeats"))
def test_heartbeats(vector):
    frame, _ = one(bytes.fromhex(vector["hex"]), "client")
    assert frame.problems == []
    assert frame.kind in (1, 8)


def test_a_stream_of_answers():
    vector = VECTORS["streams"][0]
    data = bytes.fromhex(vector["hex"])
    found = [frame for frame, _ in read(data)]
    assert [frame.kind for frame in found] == vector["message_types"]
    assert b"".join(frame.data for frame in found) == data
    assert [frame.offset for frame in found] == [sum(len(other.data) for other in found[:n]) for n in range(len(found))]


@pytest.mark.parametrize("vector", VECTORS["snappy"], ids=lambda vector: vector["name"])
def test_snappy_vectors(vector):
    assert unpack(bytes.fromhex(vector["compressed"]), 1 << 20) == bytes.fromhex(vector["raw"])


@pytest.mark.parametrize("kind", ["random", "letters", "runs", "words"])
@pytest.mark.parametrize("size", [1, 70, 70_000])
def test_snappy_blocks_of_the_library(kind, size):
    raw = sample(kind, size, 1)
    assert unpack(pack(raw), len(raw)) == raw
    with pytest.raises(SnappyError):
        unpack(pack(raw), len(raw) - 1)


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 255))
def test_a_changed_block_is_read_or_refused(raw, at, byte):
    block = bytearray(pack(raw * 3))
    block[at % len(block)] = byte
    try:
        expected = compiled_unpack(bytes(block), 1 << 20)
    except ProbeError:
        expected = None
    try:
        found = unpack(bytes(block), 1 << 20)
    except SnappyError:
        found = None
    assert found == expected


pieces = st.one_of(
    st.builds("{}={}".format, st.sampled_from(["groupId", "cp", "k", "dt", "", "errCode", "mid", "messageId", "dpIp",
                                               "errMsg"]),
              st.sampled_from(["", "g", "1", "é", "a b", "115", "-1", "+7", "4294967296", "x=y", "(a"])),
    st.text(alphabet="ab&= \t()é", max_size=8),
)  # fmt: skip
texts = st.lists(pieces, max_size=6).map(lambda parts: "&".join(parts).encode())
bodies = st.one_of(
    st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4).map(frames.join_items),
    st.lists(st.tuples(st.binary(min_size=1, max_size=9), st.sampled_from([b"a=1", b"a=1&b=2", b"c", b"\xff=1"])),
             min_size=1, max_size=3).map(frames.join_pairs),
    st.binary(max_size=24),
)  # fmt: skip


@st.composite
def requests(draw):
    """Draw data frames, some with a packed body, some with a changed byte."""
    body = draw(bodies)
    body = pack(body) if draw(st.booleans()) else body
    text = draw(st.one_of(texts, st.just(NAMES), texts.map(lambda more: NAMES + b"&" + more if more else NAMES)))
    kind = draw(st.integers(2, 7))
    if kind < 7:
        frame = frames.text_frame(kind, body, text)
    else:
        flags, ext = draw(st.sampled_from([0, 0x20, 0x40, 0x60, 0x80])), draw(st.sampled_from([4, 5, 6, 0x24, 12, 0]))
        frame = frames.binary_frame(body, text, ext=ext, flags=flags)
    if draw(st.booleans()):
        at = draw(st.integers(5, len(frame) - 1))
        frame = frame[:at] + bytes([draw(st.integers(0, 255))]) + frame[at + 1 :]
    return frame


@given(requests())
def test_random_requests(data):
    agrees_with_the_server(data)


@given(st.sampled_from([2, 3, 4, 5, 6]), texts, st.binary(max_size=3))
def test_random_text_answers(kind, text, body):
    agrees_with_the_client(frames.text_frame(kind, body, text))


@given(texts, st.integers(0, 2**32 - 1))
def test_random_binary_answers(text, uniq):
    inner = b"\x07" + struct.pack(">IH", uniq, len(text)) + text + b"\xee\x01"
    agrees_with_the_client(struct.pack(">I", len(inner)) + inner)


@given(st.integers(0, 40), st.binary(max_size=40))
def test_random_frames(kind, inner):
    data = struct.pack(">IB", len(inner) + 1, kind) + inner
    agrees_with_the_client(data)
    agrees_with_the_server(data)


@given(st.binary(max_size=200), st.sampled_from(["client", "server", "either"]))
def test_any_bytes_are_read_to_their_end(data, sender):
    found = read(data, sender)
    assert b"".join(frame.data for frame, _ in found) == data
    for frame, _ in found:
        for problem in frame.problems:
            assert 0 <= problem.at <= len(frame.data) or problem.unpacked


TEXT = frames.text_frame(5, ITEM, NAMES)
BINARY = frames.binary_frame(ITEM, NAMES)
PACKED = frames.binary_frame(pack(ITEM + b"\0\0\0\2x"), NAMES, flags=0x20)


def changed(data, at, new):
    return data[:at] + new + data[at + len(new) :]


WRONG = {
    "cut short": (TEXT[:-1], 0, "length", f"{len(TEXT) - 4} bytes should follow, {len(TEXT) - 5} are there"),
    "no length": (b"\0\0", 0, "length", "only 2 of its 4 bytes"),
    "length 0": (bytes(8), 0, "length", "it is 0; expected 1 or more"),
    "type": (b"\0\0\0\1\x1f", 4, "type", "31 is no type of this protocol; expected 1 to 8"),
    "no room for a field": (b"\0\0\0\3\5\0\0", 5, "bodyLen", "4 bytes expected, 2 are left"),
    "bodyLen 0": (changed(TEXT, 5, bytes(4)), 9, "attrLen", "it is 1; expected"),
    "bodyLen negative": (changed(TEXT, 5, b"\xff" * 4), 5, "bodyLen", "it is -1; expected a positive number"),
    "bodyLen": (changed(TEXT, 5, b"\0\0\0\xc8"), 5, "bodyLen", "it says 200 bytes; at most 25 fit"),
    "attrLen": (changed(TEXT, 14, b"\0\0\0\1"), 14, "attrLen", "it is 1; expected 20, the rest of the frame"),
    "binary bodyLen": (changed(BINARY, 21, b"\0\0\1\0"), 21, "bodyLen", "it says 256 bytes; at most"),
    "binary attrLen": (changed(BINARY, 30, b"\0\1"), 30, "attrLen", "it is 1; expected 20"),
    "magic": (BINARY[:-1] + b"\2", len(BINARY) - 2, "magic", "it is 0xee02; expected 0xee01"),
    "attribute without =": (frames.text_frame(5, ITEM, b"groupId=g&k"), 28, "attributes", "exactly one '='"),
    "attribute twice": (frames.text_frame(5, ITEM, b"k=1&k=2"), 22, "attributes", "'k' stands here for the second"),
    "attribute no UTF-8": (frames.text_frame(5, ITEM, b"k=\xff"), 20, "attributes", "not UTF-8"),
    "item length": (frames.text_frame(5, ITEM * 2 + b"\0\0\0\5", NAMES), 19, "length of item 2", "it is 5"),
    "item tail": (frames.text_frame(5, ITEM + b"\0", NAMES), 14, "length of item 1", "4 bytes expected, 1 are left"),
    "item attributes": (frames.text_frame(6, ITEM + b"\0\0\0\1k", NAMES), 18, "attributes of item 0", "exactly one"),
    "no block": (frames.binary_frame(b"\4\0x\5", NAMES, flags=0x20), 28, "body", "marked as a snappy block, but"),
    "heartbeat": (bytes.fromhex("0000000e080000000101000000640000ee01"), 10, "bodyLen", "it says 100 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_byte(name):
    data, at, field, words = WRONG[name]
    frame, _ = one(data, "client" if name == "bodyLen 0" else "either")
    [problem] = frame.problems
    assert (problem.at, problem.field, problem.unpacked) == (at, field, False)
    assert words in problem.text


def test_an_item_in_a_packed_body_is_named_by_its_byte_in_there():
    frame, items = one(PACKED)
    assert [item.body for item in items] == [b"x"]
    [problem] = frame.problems
    assert (problem.at, problem.field, problem.unpacked) == (5, "length of item 1", True)


def test_a_length_of_0_ends_the_reading_and_says_how_much_is_left():
    [(_, _), (frame, _)] = read(TEXT + bytes(4) + BINARY)
    assert (frame.offset, frame.data) == (len(TEXT), bytes(4) + BINARY)
    assert f"{len(BINARY)} bytes behind the length are not read" in frame.problems[0].text
    assert "not read" not in one(bytes(4))[0].problems[0].text


def test_reading_goes_on_behind_a_wrong_frame():
    found = read(changed(TEXT, 5, b"\xff" * 4) + BINARY)
    assert [bool(frame.problems) for frame, _ in found] == [True, False]
    assert found[1][0].offset == len(TEXT)


BOMB = frames.binary_frame(pack_repeats([(b"a" * 60, 20_000)]), NAMES, flags=0x20)
HOSTILE = {
    "length": b"\xff\xff\xff\xff\x05" + bytes(60),
    "body length": changed(TEXT, 5, b"\x7f\xff\xff\xff"),
    "attribute length": changed(TEXT, 14, b"\x7f\xff\xff\xff"),
    "item length": frames.text_frame(5, b"\xff\xff\xff\xff" + ITEM, NAMES),
    "announced size": frames.binary_frame(b"\xff\xff\xff\xff\x0f" + ITEM, NAMES, flags=0x20),
    "literal": frames.binary_frame(size_prefix(1 << 20) + b"\xfc\xff\xff\xff\x7f" + ITEM, NAMES, flags=0x20),
    "bomb": BOMB,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_length_is_believed(name):
    read(TEXT + BINARY)
    tracemalloc.start()
    try:
        [(frame, _)] = read(HOSTILE[name], limit=100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert frame.problems
    assert most < 100_000 + 20 * len(HOSTILE[name])


def test_the_limit_is_told():
    [problem] = one(BOMB, limit=1000)[0].problems
    assert "announces 1200000 bytes, the limit is 1000" in problem.text
    frame, _ = one(BOMB, limit=1_200_000)
    assert len(frame.content) == 1_200_000


def test_an_encrypted_body_is_not_looked_into():
    frame, items = one(frames.binary_frame(b"secret", NAMES, flags=0x60))
    assert frame.form == "encrypted"
    assert [item.body for item in items] == [b"secret"]
    assert frame.problems == []


def test_quoted_attributes_in_a_message():
    vector = by_name("acks", "text3_err_msg_holds_attr")
    frame, _ = one(bytes.fromhex(vector["hex"]))
    assert frame.answer.message == b"Parse attr (a=b&mid=9&mid=9) failure"
    assert read_answer(b"errMsg=(open&mid=3") == (0, 3, b"", b"(open")
