"""Limits of frames and replies that the vectors do not reach."""

import pytest

from dataproxy.numbers import FAMILY_BINARY_LINES
from tests.native.probe_wire import ProbeError, Wire
from tests.support.reference.frames import text_frame

WIRE = Wire()
IDS = b"groupId=g&streamId=s"
NEED_DATA, PROTOCOL, LIMIT, INVALID = 1, -2, -3, -6


def status_of(call, *args, **kwargs):
    with pytest.raises(ProbeError) as info:
        call(*args, **kwargs)
    return info.value.status


@pytest.mark.parametrize(
    ("attrs", "kwargs", "status"),
    [
        (b"a" * 32001, {}, LIMIT),
        (b"a" * 31990, {"family": 5}, LIMIT),  # with dt, mid and cnt over the limit
        (IDS, {"count": 65536}, LIMIT),
        (IDS, {"data_time_ms": 2**32 * 1000}, LIMIT),
        (IDS, {"count": 0}, INVALID),
        (IDS, {"data_time_ms": -1}, INVALID),
        (b"", {}, INVALID),
        ("k=é".encode(), {}, INVALID),  # binary frames: ASCII only
        (IDS, {"items": 2, "compressed": True}, INVALID),
        (IDS, {"items": 9}, INVALID),
        (IDS, {"family": 4}, INVALID),
        (IDS, {"family": 3}, INVALID),  # length-prefixed items in a text of lines
        (IDS, {"family": 5, "items": 2}, INVALID),
        (IDS, {"family": 6}, INVALID),  # items without attribute texts
        (IDS, {"family": FAMILY_BINARY_LINES}, INVALID),
        (IDS, {"family": FAMILY_BINARY_LINES, "items": 2, "compressed": True}, INVALID),
        (b"a" * 31990, {"ack": 2}, LIMIT),
        (b"a" * 31980, {"origin": b"10.0.0.1"}, LIMIT),
    ],
)
def test_what_no_frame_can_say_is_refused(attrs, kwargs, status):
    assert status_of(WIRE.frame, b"\0\0\0\1x", attrs, **kwargs) == status


def test_the_limits_themselves_are_allowed():
    assert WIRE.frame(b"x", b"a" * 32000, count=65535, data_time_ms=(2**32 - 1) * 1000 + 999)
    assert WIRE.frame(b"x", "k=é".encode(), family=5)
    assert status_of(WIRE.frame, b"", IDS) == INVALID


def test_the_body_is_never_moved():
    for family, items in ((7, 0), (7, 1), (7, 2), (5, 0), (5, 1), (3, 2), (2, 2), (6, 1), (FAMILY_BINARY_LINES, 2)):
        assert b"BODY" * 9 in WIRE.frame(b"BODY" * 9, IDS, family=family, items=items)
    assert WIRE.head_room >= 29


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (NEED_DATA, 0)),
        (b"\0\0\0", (NEED_DATA, 0)),
        (b"\0\0\0\1", (NEED_DATA, 5)),
        (b"\0\0\0\1\1", (0, 5)),
        (b"\0\0\0\1\1more", (0, 5)),
        (b"\0\0\0\0", (PROTOCOL, 0)),
        (b"\0\7\xff\xfc", (NEED_DATA, 524288)),
        (b"\0\7\xff\xfd", (LIMIT, 0)),
        (b"\xff\xff\xff\xff", (LIMIT, 0)),
    ],
)
def test_frames_are_bounded_by_their_first_four_bytes(data, expected):
    assert WIRE.delimit(data) == expected


def acknowledgement(text, msg_type=5):
    return WIRE.parse_reply(text_frame(msg_type, b"2", text))


@pytest.mark.parametrize(
    ("text", "seq"),
    [
        (b"mid=1", 1),
        (b"amid=1&mid=2", 2),  # whole keys, not substrings
        (b"errMsg=mid=5 is bad&mid=6", 6),
        (b"mid=1&mid=2", 2),  # the echo comes last
        (b"messageId=-1", 0xFFFFFFFF),
        (b"messageId=5&mid=6", 6),
        (b"mid=6&messageId=5", 6),
        (b"mid=4294967295", 0xFFFFFFFF),
        (b"mid=4294967296", None),
        (b"mid=", None),
        (b"mid=6f9619ff-8b86", None),
        (b"midd=1&Mid=1", None),
        (b"", None),
    ],
)
def test_correlation_is_by_exact_key(text, seq):
    assert acknowledgement(text)["seq"] == seq


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (b"errCode=115&errMsg=a=b&mid=1", 115, b"a=b"),
        (b"errCode=1&x=y&errCode=2", 1, b""),
        (b"errCode=", 0, b""),
        (b"errCode= ", 0, b""),
        (b"errCode=0", 0, b""),
        (b"errCode=abc", 2147483647, b""),
        (b"errCode=-5", 2147483647, b""),
        (b"errCode=99999999999", 2147483647, b""),
        (b"errCode=2147483647", 2147483647, b""),
        (b"errCode=9&errMsg=open (a&b=c", 9, b"open (a"),
        (b"errCode=9&errMsg=f(a&(b)&c) g&mid=1", 9, b"f(a&(b)&c) g"),
        (b"errCode=9&errMsg=", 9, b""),
        (b"&&=&errCode=7&", 7, b""),
    ],
)
def test_error_codes_and_texts(text, code, message):
    event = acknowledgement(text)
    assert (event["code"], event["message"], event["text"]) == (code, message, text)


@pytest.mark.parametrize(
    "hexes",
    [
        "00000008 07 00000001 0000 ee",  # too short
        "00000009 07 00000001 0001 ee01",  # text longer than the frame
        "00000009 07 00000001 0000 ee02",  # magic
        "0000000a 05 00000001 32 00000001",  # text longer than the frame
        "0000000a 05 ffffffff 32 00000000",
        "00000008 05 00000000 000000",
        "0000000e 08 00000000 01 00000001 0000 ee01",
        "0000000e 08 00000000 01 ffffffff 0000 ee01",
        "0000000e 08 00000000 01 00000000 0000 ee02",
        "0000000d 08 00000000 01 00000000 0000 ee",
        "00000005 0700",  # not the frame that its length says
        "00000000",
        "",
    ],
)
def test_malformed_replies_are_protocol_errors(hexes):
    assert status_of(WIRE.parse_reply, bytes.fromhex(hexes)) == PROTOCOL


def test_a_reply_whose_text_outgrew_its_length_field_is_read():
    text = b"mid=1&" + b"k" * 65536
    frame = (9 + len(text)).to_bytes(4) + b"\7\0\0\0\5" + (len(text) & 0xFFFF).to_bytes(2) + text + b"\xee\1"
    event = WIRE.parse_reply(frame)
    assert event["seq"] == 5  # never the text's
    assert event["text"] == text


@pytest.mark.parametrize("type_byte", [0, 9, 31, 0x20, 0xE0])
def test_unknown_types_are_reported(type_byte):
    event = WIRE.parse_reply(bytes([0, 0, 0, 3, type_byte, 1, 2]))
    assert event["kind"] == 3
    assert event["msg_type"] == type_byte & 31


def test_a_load_is_taken_from_any_version():
    frame = "00000010 08 00000000 {:02x} 00000002 {} 0000 ee01"
    assert WIRE.parse_reply(bytes.fromhex(frame.format(2, "fffe")))["load"] == 65534
    assert WIRE.parse_reply(bytes.fromhex(frame.format(9, "0000")))["load"] == 0
    assert WIRE.parse_reply(bytes.fromhex(frame.format(1, "ffff")))["load"] == -1
    assert WIRE.parse_reply(bytes.fromhex("00000011 08 00000000 01 00000003 000001 0000 ee01"))["load"] == -1


def test_an_unknown_heartbeat_kind_is_refused():
    assert status_of(WIRE.heartbeat, 5, 0) == INVALID
