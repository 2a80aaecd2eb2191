"""Server role against the golden vectors: compat byte for byte, strict where it is meant to differ."""

import pytest

from dataproxy._core.wire.inlong import message
from tests.native.probe_wire import Server, Wire
from tests.support.reference.snappy import pack_literals
from tests.support.reference.vectors import NOW_MS, VECTORS, by_name, named

WIRE = Wire()
SERVICE_CODES = {"service_stopped": 2, "mq_not_ready": 1}
FULL = b"Put msg event to channel failure: queue full"
# Numeric ids are an option that is off by default: these vectors were made with a mapping.
MAPPED = {
    "bin7_numeric_ids", "bin7_numeric_ids_translated", "bin_numeric_group_unknown", "bin_numeric_stream_unknown",
    "bin_numeric_group_mismatch", "bin_numeric_stream_zero_attr_stream",
}  # fmt: skip


NUMBERS = {100: (b"test_group", False, {10: b"test_stream"}), 200: (b"test_group", True, {20: b"test_stream"})}


def react(vector, **profile):
    """Return (reaction, reply, outcome) to a vector's bytes as they stand in a stream."""
    data = bytes.fromhex(vector["hex"])
    status, size = WIRE.delimit(data)
    if status == 1:
        return "wait", b"", None
    if status < 0:
        return "close", b"", None
    assert size == len(data)
    mode = vector.get("server_mode")
    if vector["name"] in MAPPED:
        profile = {"numbers": NUMBERS, **profile}
    server = Server(groups={b"test_group"}, service_code=SERVICE_CODES.get(mode, 0), **profile)
    outcome = server.serve(data, NOW_MS)
    reply = outcome["reply"]
    if mode == "queue_full":
        assert outcome["action"] == "store"
        reply = server.refuse(reply, 114, FULL)
    if outcome["action"] == "close":
        return "close", reply, outcome
    return "ack" if reply else "none", reply, outcome


@pytest.mark.parametrize("vector", named("requests") + named("malformed") + named("heartbeats"))
def test_compat_reacts_like_the_reference_server(vector):
    reaction, reply, outcome = react(vector, compat=True)
    if vector["name"] == TRANSLATED:
        return
    assert reaction == vector.get("expect", "ack")
    if "reply_hex" in vector:
        assert reply.hex() == vector["reply_hex"]
    if vector.get("expect") == "ack" and outcome["action"] == "reply":
        assert outcome["code"] == vector["err_code"] == WIRE.parse_reply(reply)["code"]


TRANSLATED = "bin7_numeric_ids_translated"  # the reference's mapping holds a wrong name there


@pytest.mark.parametrize("name", sorted(MAPPED))
@pytest.mark.parametrize("compat", [False, True])
def test_numeric_ids_are_off_unless_a_mapping_is_given(name, compat):
    _, reply, outcome = react(by_name("requests" if "bin7" in name else "malformed", name), compat=compat, numbers=None)
    assert outcome["code"] == WIRE.parse_reply(reply)["code"] == 3


@pytest.mark.parametrize("compat", [False, True])
def test_translated_ids_are_stored_as_names(compat):
    _, reply, outcome = react(by_name("requests", TRANSLATED), compat=compat)
    names = b"rtms=1700000001234&groupId=test_group&streamId=test_stream"
    assert WIRE.parse_reply(reply)["text"] == b"dpIp=127.0.0.1&" + names
    assert (outcome["group"], outcome["stream"]) == (b"test_group", b"test_stream")
    (group,) = message.decode(outcome["entry"]).groups
    assert (group.attrs["groupId"], group.attrs["streamId"]) == ("test_group", "test_stream")
    assert outcome["entry"][7:13] == b"\0\0\0\0\0\4"


def test_ids_that_are_not_translated_are_stored_as_numbers():
    _, _, outcome = react(by_name("requests", "bin7_numeric_ids"))
    assert (outcome["group"], outcome["stream"]) == (b"test_group", b"test_stream")
    (group,) = message.decode(outcome["entry"]).groups
    assert (group.attrs["groupId"], group.attrs["streamId"]) == ("100", "10")


# What the strict profile does better: (reaction, code).
STRICT = {
    "text5_syncsend": ("ack", 0),
    "text5_proxysend": ("ack", 0),
    "bin7_proxysend": ("ack", 0),
    "bin7_syncsend_partition": ("ack", 0),
    "text5_bad_tail_item_dropped": ("ack", 123),
    "text5_tail_1_to_3_bytes": ("ack", 123),
    "text6_malformed_pairs_lost": ("ack", 123),
    "text6_body_under_4_bytes": ("ack", 123),
    "text6_negative_item_len": ("ack", 123),
    "bin7_garbage_items": ("ack", 123),
    "bin7_snappy_flag_bad_body": ("ack", 96),
    "text3_body_single_lf": ("ack", 0),
    "bin_utf8_attr": ("ack", 0),
    "bin_body_len_minus_1": ("ack", 95),
    "bin_body_len_too_big": ("ack", 95),
    "bin_attr_len_too_big": ("ack", 95),
    "bin_trailing_bytes": ("ack", 95),
}


@pytest.mark.parametrize("vector", named("requests") + named("malformed") + named("heartbeats"))
def test_strict_is_the_same_on_correct_requests_and_better_on_broken_ones(vector):
    reaction, reply, outcome = react(vector, compat=False)
    name = vector["name"]
    if name == TRANSLATED:
        return
    if name in STRICT:
        expected, code = STRICT[name]
        assert (reaction, outcome["code"]) == (expected, code)
        event = WIRE.parse_reply(reply)
        assert event["code"] == code
        if "bin" in name:
            assert event["seq"] == int.from_bytes(bytes.fromhex(vector["hex"])[17:21])
    else:
        assert reaction == vector.get("expect", "ack")
        if "reply_hex" in vector and name != "bin7_trace_ext_0x6":
            assert reply.hex() == vector["reply_hex"]
        elif "reply_hex" in vector:  # the trace names the address instead of the port
            port = WIRE.parse_reply(bytes.fromhex(vector["reply_hex"]))["text"]
            assert WIRE.parse_reply(reply)["text"] == port.replace(b"node2ip=46801", b"node2ip=127.0.0.1")


@pytest.mark.parametrize("name", ["bin7_proxysend", "bin7_syncsend_partition"])
def test_strict_answers_order_and_proxy_messages_in_the_sink_layout(name):
    vector = by_name("requests", name)
    _, reply, outcome = react(vector, compat=False)
    assert reply.hex() == vector["sink_reply_hex"]
    assert outcome["order"] == (name != "bin7_proxysend")
    assert outcome["partition_key"] == (b"" if name == "bin7_proxysend" else b"k1")


def test_strict_answers_text_order_messages_without_body_and_node():
    _, reply, _ = react(by_name("requests", "text5_syncsend"), compat=False)
    assert reply[5:9] == b"\0\0\0\0"
    assert reply[13:].startswith(b"rt=1700000001234&rtms=1700000001234&groupId=")


def stored(outcome):
    return [record for group in message.decode(outcome["entry"]).groups for record in group.records]


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("vector", named("requests"))
def test_what_is_stored_holds_the_records(vector, compat, compress):
    if not compat and STRICT.get(vector["name"], ("", 0))[1]:
        return
    _, _, outcome = react(vector, compat=compat, compress_entries=compress)
    assert outcome["action"] == "store"
    assert outcome["group"] == b"test_group"
    if "stored_records" not in vector or vector["name"] == "bin7_snappy_then_aes":
        return
    assert [record.hex() for record in stored(outcome)] == vector["stored_records"]
    if not compat:
        assert outcome["records"] == len(vector["stored_records"])
    version = {1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 3, 7: 4}[outcome["msg_type"]]
    assert outcome["entry"][:2] == bytes([15, version]) == outcome["entry"][-2:]


@pytest.mark.parametrize("name", ["v1_three_records_plain", "v4_bin_plain"])
def test_stored_bytes_are_the_golden_containers(name):
    golden = bytes.fromhex(by_name("inlongmsg", name)["hex"])
    ids = b"groupId=test_group&streamId=test_stream"
    body = bytes.fromhex(by_name("requests", "bin7_chars")["fields"]["body"])
    family = 7 if name.startswith("v4") else 5
    frame = WIRE.frame(body, ids, family=family, seq=9, count=3, data_time_ms=1700000000000)
    entry = Server(compress_entries=False).serve(frame, NOW_MS)["entry"]
    if family == 7:
        assert entry == golden
    else:
        ours, theirs = message.decode(entry), message.decode(golden)
        assert ours.groups[0].attrs.pop("mid") == "9"
        assert ours == theirs


def test_a_packed_body_is_stored_as_it_came():
    golden = bytes.fromhex(by_name("inlongmsg", "v4_bin_compressed_by_sdk")["hex"])
    raw = bytes.fromhex(by_name("requests", "bin7_chars")["fields"]["body"])
    frame = WIRE.frame(pack_literals(raw), b"groupId=test_group&streamId=test_stream", compressed=True, seq=9,
                       count=3, data_time_ms=1700000000000)  # fmt: skip
    assert Server(compress_entries=True).serve(frame, NOW_MS)["entry"] == golden


@pytest.mark.parametrize("vector", named("heartbeats"))
def test_heartbeats_carry_the_load_only_in_strict(vector):
    frame = bytes.fromhex(vector["hex"])
    golden = WIRE.parse_reply(bytes.fromhex(vector["reply_hex"]))
    for load, expected in ((-1, -1), (0, 0), (37, 37), (70000, 65534)):
        event = WIRE.parse_reply(Server(load=load).serve(frame, NOW_MS)["reply"])
        assert event == {**golden, "load": expected if golden["msg_type"] == 8 else -1}
        reply = Server(load=load, compat=True).serve(frame, NOW_MS)["reply"]
        assert reply.hex() == vector["reply_hex"]


def test_a_heartbeat_is_answered_while_the_service_is_stopped():
    assert Server(service_code=2).serve(WIRE.heartbeat(8, NOW_MS), NOW_MS)["action"] == "reply"


def test_the_vectors_are_complete():
    assert {kind: len(VECTORS[kind]) for kind in ("requests", "malformed", "heartbeats", "acks", "inlongmsg")} == {
        "requests": 39, "malformed": 66, "heartbeats": 6, "acks": 12, "inlongmsg": 11,
    }  # fmt: skip
