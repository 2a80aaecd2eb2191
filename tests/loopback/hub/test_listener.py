"""The DataProxy port over real sockets: requests, errors, limits; a bad connection alone suffers."""

import random
import socket
import struct

import pytest

from tests.loopback.hub.peer import binary_frame, mask_times, read_all, read_exactly, read_frame, wait_until

HEARTBEAT = bytes.fromhex("0000000101")

# What the strict profile answers otherwise than the reference server: code -> entries of the vectors.
STRICT = {
    123: {
        "text5_bad_tail_item_dropped",
        "text6_malformed_pairs_lost",
        "bin7_garbage_items",
        "text5_tail_1_to_3_bytes",
        "text6_body_under_4_bytes",
        "text6_negative_item_len",
    },
    96: {"bin7_snappy_flag_bad_body", "text_bad_snappy"},
    95: {"bin_body_len_minus_1", "bin_body_len_too_big", "bin_attr_len_too_big", "bin_trailing_bytes"},
    0: {"text3_body_single_lf", "bin_utf8_attr"},
}
STRICT_CODE = {name: code for code, names in STRICT.items() for name in names}


def ask(connect, hub, frame: bytes) -> bytes:
    """Return everything that a new connection gets for a frame."""
    connection = connect(hub)
    connection.sendall(frame)
    connection.shutdown(socket.SHUT_WR)
    return read_all(connection)


def code_of(reply: bytes) -> int:
    """Return the error code in a reply, 0 for a success."""
    assert b"dpIp=" in reply
    return int(reply.partition(b"errCode=")[2].partition(b"&")[0].partition(b"\xee")[0] or 0)


def plain(entries: list[dict]) -> list[dict]:
    """Return the entries that ask for no special server state and need no number mapping."""
    return [e for e in entries if not e.get("server_mode") and "numeric" not in e["name"]]


def test_requests_of_the_vectors_are_answered_to_the_byte(hub, connect, vectors):
    for entry in plain(vectors["requests"]):
        reply = ask(connect, hub, bytes.fromhex(entry["hex"]))
        if entry["name"] in STRICT_CODE:
            assert code_of(reply) == STRICT_CODE[entry["name"]], entry["name"]
        elif entry["name"] == "bin7_trace_ext_0x6":
            assert b"node2ip=127.0.0.1&" in reply
        elif "syncsend" in entry["name"] or "proxysend" in entry["name"]:
            # The reference server forgets these; the layout of the answer has no node name.
            assert b"Send=true" in reply, entry["name"]
            assert b"dpIp" not in reply, entry["name"]
            assert b"errCode" not in reply, entry["name"]
        else:
            assert mask_times(reply) == mask_times(bytes.fromhex(entry.get("reply_hex") or "")), entry["name"]


def test_malformed_frames_hurt_their_own_connection_only(hub, connect, vectors):
    bystander = connect(hub)
    for i, entry in enumerate(plain(vectors["malformed"])):
        name = entry["name"]
        reply = ask(connect, hub, bytes.fromhex(entry["hex"]))
        if name in STRICT_CODE:
            assert code_of(reply) == STRICT_CODE[name], name
        elif entry["expect"] in {"close", "wait", "none"}:
            assert reply == b"", name
        elif entry.get("err_code") == 115:
            assert code_of(reply) == 0, "every group is known unless a list is given"
        else:
            assert code_of(reply) == entry["err_code"], name
        bystander.sendall(binary_frame(i, [b"x"]))
        assert code_of(read_frame(bystander)) == 0
    assert hub.stats()["connections"] == 1


def test_heartbeats_of_the_vectors(start_hub, connect, vectors):
    hub = start_hub(load="unknown")
    for entry in vectors["heartbeats"]:
        reply = ask(connect, hub, bytes.fromhex(entry["hex"]))
        expected = bytes.fromhex(entry["reply_hex"])
        assert reply[:5] + reply[9:] == expected[:5] + expected[9:], entry["name"]


def test_every_split_of_a_frame_is_understood(hub, connect):
    frame = binary_frame(7, [b"one", b"two"])
    connection = connect(hub)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for cut in range(1, len(frame)):
        connection.sendall(frame[:cut])
        connection.sendall(frame[cut:])
        assert code_of(read_frame(connection)) == 0
    assert hub.counts()["g", "s"].records == 2 * (len(frame) - 1)


def test_many_frames_in_one_write_are_all_answered_in_order(hub, connect):
    connection = connect(hub)
    connection.sendall(b"".join(binary_frame(i, [b"x" * i]) for i in range(1, 500)))
    assert [struct.unpack(">I", read_frame(connection)[5:9])[0] for _ in range(1, 500)] == list(range(1, 500))
    stats = hub.stats()
    assert (stats["frames"], stats["entries"], stats["records"]) == (499, 499, 499)
    assert stats["store"]["commits"] < 499, "one commit takes many requests"


def test_records_come_back_as_they_were_sent(hub, connect):
    bodies = [b"", b"\x00\xff", b"x" * 70000, "ä&=\n".encode()][1:]
    connection = connect(hub)
    connection.sendall(binary_frame(1, bodies, group="g1", stream="s1"))
    read_frame(connection)
    records = list(hub.records("g1", "s1"))
    assert [record.body for record in records] == bodies
    assert {(r.group_id, r.stream_id, r.offset, r.source) for r in records} == {("g1", "s1", 0, "127.0.0.1")}


def test_random_bytes_and_truncated_frames_do_not_disturb_others(hub, connect):
    draw = random.Random(11)
    bystander = connect(hub)
    good = binary_frame(1, [b"abc", b"defg"])
    for i in range(300):
        connection = connect(hub)
        kind = i % 3
        if kind == 0:
            data = draw.randbytes(draw.randrange(1, 2000))
        elif kind == 1:
            data = good[: draw.randrange(1, len(good))]
        else:
            data = bytearray(good)
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        connection.sendall(data)
        connection.close()
    bystander.sendall(good)
    assert code_of(read_frame(bystander)) == 0
    wait_until(lambda: hub.stats()["connections"] == 1)


@pytest.mark.parametrize("length", [524289 - 4, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_frame_over_the_limit_closes_its_connection_at_once(hub, connect, length):
    connection = connect(hub)
    connection.sendall(struct.pack(">I", length) + b"\x07")
    assert read_all(connection) == b""
    assert hub.stats()["closed"]["oversize"] == 1


def test_the_largest_frame_is_taken(hub, connect):
    room = 524288 - len(binary_frame(1, [b""]))
    connection = connect(hub)
    connection.sendall(binary_frame(1, [b"x" * room]))
    assert code_of(read_frame(connection)) == 0
    connection.sendall(binary_frame(2, [b"x" * (room + 1)]))
    assert read_all(connection) == b""


def test_what_came_before_a_broken_frame_is_answered(hub, connect):
    connection = connect(hub)
    connection.sendall(binary_frame(1, [b"x"]) + b"\x00\x00\x00\x00")
    assert code_of(read_frame(connection)) == 0
    assert read_all(connection) == b""


def test_unknown_topics_get_115_when_a_list_is_given(start_hub, connect):
    hub = start_hub(topics=["a", "b/only"])
    answers = {}
    for group, stream in [("a", "any"), ("b", "only"), ("b", "other"), ("c", "x"), ("aa", "x"), ("", "x")]:
        answers[group, stream] = code_of(ask(connect, hub, binary_frame(1, [b"x"], group, stream)))
    assert answers == {
        ("a", "any"): 0,
        ("b", "only"): 0,
        ("b", "other"): 115,
        ("c", "x"): 115,
        ("aa", "x"): 115,
        ("", "x"): 100,
    }
    assert hub.stats()["refused"] == {100: 1, 115: 3}


def test_service_states(hub, connect):
    connection = connect(hub)
    for state, code in [("not_ready", 1), ("stopped", 2), ("running", 0)]:
        hub.set_service(state)
        wait_until(lambda code=code: hub.stats()["service_code"] == code)
        connection.sendall(HEARTBEAT)
        assert read_exactly(connection, 5) == HEARTBEAT
        connection.sendall(binary_frame(5, [b"x"]))
        assert code_of(read_frame(connection)) == code
    assert hub.counts()["g", "s"].records == 1


def test_several_loops_share_one_port(start_hub, connect):
    hub = start_hub(threads=3)
    connections = [connect(hub) for _ in range(40)]
    for i, connection in enumerate(connections):
        connection.sendall(binary_frame(i, [b"%d" % i]))
    for connection in connections:
        assert code_of(read_frame(connection)) == 0
    assert sorted(int(record.body) for record in hub.records("g")) == list(range(40))


@pytest.mark.parametrize(("option", "load"), [("auto", 0), ("unknown", 65535), ("1234", 1234)])
def test_the_load_in_heartbeat_answers(start_hub, connect, option, load):
    hub = start_hub(load=option)
    heartbeat = bytes.fromhex("0000000e 08 00000000 01 00000000 0000 ee01")
    connection = connect(hub)
    connection.sendall(heartbeat)
    assert int.from_bytes(read_frame(connection)[14:16], "big") == load
    hub.set_load(77)
    connection.sendall(heartbeat)
    assert int.from_bytes(read_frame(connection)[14:16], "big") == 77


def test_streams_spread_over_partitions_and_keep_their_order(start_hub, connect):
    hub = start_hub(partitions=4)
    connection = connect(hub)
    connection.sendall(b"".join(binary_frame(i, [b"%d" % i], "g", f"s{i % 8}") for i in range(400)))
    for _ in range(400):
        read_frame(connection)
    places: dict[str, set[int]] = {}
    bodies: dict[str, list[int]] = {}
    for record in hub.records("g"):
        places.setdefault(record.stream_id, set()).add(record.partition)
        bodies.setdefault(record.stream_id, []).append(int(record.body))
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set.union(*places.values())) > 1
    assert bodies == {f"s{k}": list(range(k, 400, 8)) for k in range(8)}
