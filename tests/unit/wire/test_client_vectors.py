"""Client role against the golden vectors: frames that are ours byte for byte, every reply read."""

import pytest

from dataproxy.numbers import FAMILY_BINARY_LINES
from tests.native.probe_wire import Wire, pack
from tests.support.reference.snappy import unpack
from tests.support.reference.vectors import NOW_MS, VECTORS, by_name, named

EV_ACK, EV_HEARTBEAT_ACK = 1, 2
LENGTH, ATTRS, LINES = 0, 1, 2
IDS = b"groupId=test_group&streamId=test_stream"
DT = 1700000000000
WIRE = Wire()


@pytest.mark.parametrize("vector", named("acks"))
def test_every_form_of_reply_is_read(vector):
    frame, fields = bytes.fromhex(vector["hex"]), vector["fields"]
    assert WIRE.delimit(frame) == (0, len(frame))
    event = WIRE.parse_reply(frame)
    assert event["msg_type"] == fields["msg_type"]
    assert event["code"] == fields.get("err_code", 0)
    if "err_msg" in fields:
        assert event["message"] == fields["err_msg"].encode()
    if "dp_ip" in fields:
        assert event["node"] == fields["dp_ip"].encode()
    seq = fields.get("uniq", fields.get("mid", fields.get("messageId")))
    assert event["seq"] == (int(seq) if seq is not None else None)
    heartbeat = fields["msg_type"] in (1, 8)
    assert event["kind"] == (EV_HEARTBEAT_ACK if heartbeat else EV_ACK)
    assert event["load"] == (fields["load"] if fields.get("load_known") else -1)


@pytest.mark.parametrize("kind", ["requests", "malformed", "heartbeats"])
def test_every_reply_of_the_reference_server_is_read(kind):
    for vector in VECTORS[kind]:
        for name in ("reply_hex", "sink_reply_hex"):
            if name in vector:
                event = WIRE.parse_reply(bytes.fromhex(vector[name]))
                assert event["code"] == vector.get("err_code", 0), vector["name"]


def test_replies_with_quoted_attributes_keep_their_whole_message():
    event = WIRE.parse_reply(bytes.fromhex(by_name("acks", "text3_err_msg_holds_attr")["hex"]))
    assert event["message"] == b"Parse attr (a=b&mid=9&mid=9) failure"


BINARY = [
    ("bin7_chars", LENGTH),
    ("bin7_lf_ext_0x24", LINES),
    ("bin7_attr_pairs_ext_0x5", ATTRS),
    ("bin7_uniq_high", LENGTH),
    ("bin7_isack_false", LENGTH),
    ("bin7_proxysend", LENGTH),
    ("bin7_syncsend_partition", LENGTH),
    ("bin7_java_attrs", LENGTH),
]


@pytest.mark.parametrize(("name", "items"), BINARY)
def test_binary_frames_are_written_byte_for_byte(name, items):
    vector = by_name("requests", name)
    fields = vector["fields"]
    body = bytes.fromhex(fields["body"])
    if items == LINES:
        body = body[4:]  # the wire writes the one item's length itself
    frame = WIRE.frame(body, fields["attr"].encode(), items=items, seq=fields["uniq"], count=fields["cnt"],
                       data_time_ms=DT + 999)  # fmt: skip
    assert frame.hex() == vector["hex"]


def test_a_packed_binary_frame_is_the_golden_one_around_its_block():
    vector = by_name("requests", "bin7_snappy")
    body = bytes.fromhex(by_name("requests", "bin7_chars")["fields"]["body"])
    golden = bytes.fromhex(vector["fields"]["body"])
    assert unpack(golden) == body == unpack(pack(body))
    frame = WIRE.frame(golden, IDS, compressed=True, seq=0x01020304, count=3, data_time_ms=DT)
    assert frame.hex() == vector["hex"]


TEXT = [
    ("text5_cpp", 5, LENGTH, 5),
    ("text6_cpp_attr_pairs", 5, ATTRS, 6),
    ("text6_cpp_attr_pairs", 6, ATTRS, 6),
    ("text3_java_lf", 3, LINES, 3),
    ("text2_single", 2, LINES, 2),
]


@pytest.mark.parametrize(("name", "family", "items", "msg_type"), TEXT)
def test_text_frames_are_the_golden_ones_up_to_private_attributes(name, family, items, msg_type):
    vector = by_name("requests", name)
    golden = bytes.fromhex(vector["hex"])
    body = bytes.fromhex(vector["fields"]["body_uncompressed"])
    frame = WIRE.frame(body, IDS, family=family, items=items, seq=42 + (msg_type == 6), count=2, data_time_ms=DT)
    attr_at = 9 + len(body) + 4
    assert frame[4] == msg_type
    assert frame[5 : attr_at - 4] == golden[5 : attr_at - 4]
    text = IDS + b"&dt=1700000000000&mid=%d&cnt=2" % (42 + (msg_type == 6))
    assert frame[attr_at:] == text
    assert int.from_bytes(frame[attr_at - 4 : attr_at]) == len(text)
    assert len(frame) == 4 + int.from_bytes(frame[:4])
    if msg_type == 6:
        assert frame == golden


def test_packed_text_frames_say_so_at_the_end():
    frame = WIRE.frame(pack(b"\0\0\0\1x"), IDS, family=5, compressed=True, seq=7, count=1, data_time_ms=DT)
    assert frame.endswith(IDS + b"&dt=1700000000000&mid=7&cnt=1&cp=snappy")


def test_heartbeats_are_the_golden_ones():
    assert WIRE.heartbeat(1, NOW_MS).hex() == by_name("heartbeats", "hb1_short")["hex"]
    assert WIRE.heartbeat(8, DT).hex() == by_name("heartbeats", "hb8_cpp")["hex"]


@pytest.mark.parametrize(("name", "level"), [("bin7_isack_false", 2), ("bin7_proxysend", 1)])
def test_the_asked_answer_is_named_behind_all_attributes(name, level):
    vector = by_name("requests", name)
    fields = vector["fields"]
    frame = WIRE.frame(bytes.fromhex(fields["body"]), IDS, seq=fields["uniq"], count=fields["cnt"], data_time_ms=DT,
                       ack=level)  # fmt: skip
    assert frame.hex() == vector["hex"]


def test_joined_lines_have_a_family_of_their_own():
    vector = by_name("requests", "bin7_lf_ext_0x24")
    fields = vector["fields"]
    body = bytes.fromhex(fields["body"])[4:]
    frame = WIRE.frame(body, IDS, family=FAMILY_BINARY_LINES, items=LINES, seq=fields["uniq"], count=fields["cnt"],
                       data_time_ms=DT)  # fmt: skip
    assert frame.hex() == vector["hex"]


def test_the_trace_is_the_golden_one_and_stands_between_id_and_answer():
    vector = by_name("requests", "bin7_trace_ext_0x6")
    fields = vector["fields"]
    body, trace = bytes.fromhex(fields["body"]), {"origin": b"10.0.0.1", "origin_ms": 1700000000000}
    frame = WIRE.frame(body, IDS, seq=fields["uniq"], count=fields["cnt"], data_time_ms=DT, **trace)
    assert frame.hex() == vector["hex"]
    frame = WIRE.frame(body, IDS, sid=b"abc-1", ack=2, **trace)
    assert IDS + b"&sid=abc-1&node1ip=10.0.0.1&rtime1=1700000000000&isAck=false\xee\x01" in frame
    assert WIRE.frame(body, IDS, family=5, **trace) == WIRE.frame(body, IDS, family=5), "text frames have no such bit"
