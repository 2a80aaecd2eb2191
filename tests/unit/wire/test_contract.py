"""The wire contract, held by InLong."""

import pytest

from tests.native.probe_wire import Server, Wire
from tests.support.reference import report
from tests.support.reference.vectors import NOW_MS, VECTORS, named
from tests.unit.wire.contract import check_corruption, check_splits, check_truncation, read_all

WIRE = Wire("inlong")
REPLIES = [
    bytes.fromhex(entry[key])
    for kind in ("acks", "requests", "malformed", "heartbeats")
    for entry in VECTORS[kind]
    for key in ("hex" if kind == "acks" else "reply_hex", "sink_reply_hex")
    if key in entry
]
SHORT = [bytes.fromhex(entry["hex"]) for entry in VECTORS["acks"] if len(entry["hex"]) < 170]


def test_the_golden_stream_gives_its_events_at_every_cut():
    (vector,) = VECTORS["streams"]
    stream = bytes.fromhex(vector["hex"])
    events, failed = read_all(WIRE, [stream])
    assert failed is None
    assert [event["msg_type"] for event in events] == vector["message_types"]
    for cut in vector["cut_at"]:
        assert read_all(WIRE, [stream[:cut], stream[cut:]]) == (events, None)


def test_splits_do_not_matter():
    check_splits(WIRE, b"".join(REPLIES[:9]) + bytes.fromhex("00000003 1f0102 00000001 01"))


@pytest.mark.parametrize("frame", REPLIES[::5])
def test_truncation_asks_for_more(frame):
    check_truncation(WIRE, frame)


@pytest.mark.parametrize("frame", SHORT)
def test_corruption_never_escapes(frame):
    check_corruption(WIRE, frame)


@pytest.mark.parametrize("vector", named("requests"))
def test_both_roles_understand_each_other(vector):
    # What the server answers, the client reads; what the client would send, the server has accepted.
    outcome = Server().serve(bytes.fromhex(vector["hex"]), NOW_MS)
    if outcome["reply"]:
        event = WIRE.parse_reply(outcome["reply"])
        assert event["code"] == outcome["code"]
        assert event["msg_type"] == outcome["msg_type"]


@pytest.mark.parametrize("vector", named("requests")[::4])
@pytest.mark.parametrize("compat", [False, True])
def test_the_server_survives_every_changed_byte(vector, compat):
    frame = bytes.fromhex(vector["hex"])
    server = Server(compat=compat)
    for at in range(4, min(len(frame), 160)):
        for value in (0, 1, 0x26, 0x3D, 0x7F, 0x80, 0xFF, frame[at] ^ 1):
            changed = frame[:at] + bytes([value]) + frame[at + 1 :]
            outcome = server.serve(changed, NOW_MS)
            if outcome["reply"]:
                assert WIRE.delimit(outcome["reply"]) == (0, len(outcome["reply"]))
                assert WIRE.parse_reply(outcome["reply"])["code"] == outcome["code"]


FRAMES = [
    *(bytes.fromhex(entry["hex"]) for kind in ("requests", "malformed", "heartbeats") for entry in VECTORS[kind]),
    *(bytes.fromhex(entry["hex"]) for entry in VECTORS["v1"] if "hex" in entry),
    *(
        report.build(entry["method"], entry["target"], entry.get("body", "").encode(), entry["headers"])
        for entry in VECTORS["http"]
    ),
]


@pytest.mark.parametrize("wire", ["inlong", "inlongv1", "http"])
def test_nothing_is_left_of_the_frame_before(wire):
    """The hub's loops use one request for all connections and wires, and trust ``serve`` with it."""
    used = Server(wire=wire)
    for frame in FRAMES:
        fresh = Server(wire=wire)
        expected = fresh.serve(frame, NOW_MS), fresh.left()
        used.soil()
        assert (used.serve(frame, NOW_MS), used.left()) == expected


def test_an_unknown_wire_is_named():
    with pytest.raises(ValueError, match="'kafka'"):
        Wire("kafka")
