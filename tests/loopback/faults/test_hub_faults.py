"""What a raw client sees of each fault, to the byte where the reply is defined."""

import itertools
import socket

import pytest

from tests.loopback.hub.peer import binary_frame, mask_times, read_all, read_exactly, read_frame

NODE = b"dpIp=127.0.0.1"


def ack(uniq: int, before: bytes = b"", group: str = "g", times: bytes = b"&rtms=0") -> bytes:
    """Return the reply to ``binary_frame(uniq, ...)``, times masked."""
    text = NODE + before + times + f"&groupId={group}&streamId=s".encode()
    rest = b"\x07" + uniq.to_bytes(4, "big") + len(text).to_bytes(2, "big") + text + b"\xee\x01"
    return len(rest).to_bytes(4, "big") + rest


def masked(reply: bytes) -> bytes:
    """Return a binary reply with its time blanked and the lengths that go with it."""
    text = mask_times(reply[11:-2])
    rest = reply[4:9] + len(text).to_bytes(2, "big") + text + reply[-2:]
    return len(rest).to_bytes(4, "big") + rest


def ask(connection: socket.socket, uniq: int, group: str = "g") -> bytes:
    """Send a frame and return its reply, times masked."""
    connection.sendall(binary_frame(uniq, [b"body"], group))
    return masked(read_frame(connection))


def count(hub, group: str = "g") -> int:
    """Return the stored entries of a group."""
    found = hub.counts().get((group, "s"))
    return 0 if found is None else found.entries


def refused(uniq: int, code: int, message: bytes = b"") -> bytes:
    """Return the refusal of a frame: a proxy that is not in service says nothing of times."""
    told = b"&errCode=%d" % code
    return ack(uniq, told + b"&errMsg=" + message) if message else ack(uniq, told, times=b"")


@pytest.mark.parametrize(
    ("kind", "options", "code", "message"),
    [
        ("stopped", {}, 2, b""),
        ("drained", {}, 2, b""),
        ("not_ready", {}, 1, b""),
        ("queue_full", {}, 114, b"Put msg event to channel failure: the queue is full"),
        ("disk_full", {}, 114, b"Put msg event to channel failure: the disk of the store is full"),
        ("store_error", {}, 114, b"Put msg event to channel failure: the store refused it"),
        ("refuse", {"code": 119}, 119, b""),
        ("refuse", {"code": 118, "message": "no broker"}, 118, b"no broker"),
    ],
)
def test_a_refusal_is_answered_to_the_byte_and_stores_nothing(hub, dial, kind, options, code, message):
    c = dial(hub)
    with hub.faults.add(kind, nth=2, **options) as fault:
        assert ask(c, 1) == ack(1)
        assert ask(c, 2) == refused(2, code, message)
        assert ask(c, 3) == ack(3)
        assert (fault.seen, fault.fired) == (3, 1)
    assert count(hub) == 2
    assert hub.stats()["refused"] == {code: 1}


def test_a_dropped_reply_is_stored(hub, dial):
    c = dial(hub)
    with hub.faults.add("drop_reply", every=2) as fault:
        for uniq in range(1, 5):
            c.sendall(binary_frame(uniq, [b"x"]))
        assert [masked(read_frame(c)) for _ in range(2)] == [ack(1), ack(3)]
        fault.wait(2)
    assert ask(c, 9) == ack(9)
    assert count(hub) == 5


def test_a_delayed_reply_comes_after_the_next_one(hub, dial):
    c = dial(hub)
    with hub.faults.add("delay", seconds=3600, nth=1):
        c.sendall(binary_frame(1, [b"x"]) + binary_frame(2, [b"y"]))
        assert masked(read_frame(c)) == ack(2)
        hub._core.advance_clock(3600)
        assert masked(read_frame(c)) == ack(1)


def test_a_duplicate_reply_has_the_same_bytes(hub, dial):
    c = dial(hub)
    with hub.faults.add("duplicate", copies=3, nth=1):
        c.sendall(binary_frame(1, [b"x"]))
        replies = [read_frame(c) for _ in range(3)]
        assert len(set(replies)) == 1
        assert masked(replies[0]) == ack(1)
        assert ask(c, 2) == ack(2)
    assert count(hub) == 2


def test_a_foreign_id_is_one_that_nobody_has(hub, dial):
    c = dial(hub)
    with hub.faults.add("foreign_id", nth=1):
        assert ask(c, 1) == ack(1 | 0x40000000)
        assert ask(c, 2) == ack(2)


@pytest.mark.parametrize(("number", "uniq"), [("next", 8), ("previous", 6)])
def test_a_foreign_id_may_be_a_neighbour(hub, dial, number, uniq):
    c = dial(hub)
    with hub.faults.add("foreign_id", number=number):
        assert ask(c, 7) == ack(uniq)


def test_a_foreign_id_may_be_that_of_another_connection(hub, dial):
    c, other = dial(hub), dial(hub)
    with hub.faults.add("foreign_id", number="other", connection=1):
        assert ask(c, 7) == ack(7), "there is no other one yet"
        assert ask(other, 9) == ack(9)
        assert ask(other, 10) == ack(10)
        assert ask(c, 8) == ack(10)


def test_a_foreign_id_may_be_one_that_is_settled(hub, dial):
    c = dial(hub)
    with hub.faults.add("foreign_id", number="settled"):
        assert [ask(c, uniq) for uniq in (3, 4, 5)] == [ack(3), ack(3), ack(4)]


def test_a_foreign_id_in_text_keeps_its_length(hub, dial):
    c = dial(hub)
    with hub.faults.add("foreign_id", number="next"):
        for own, answered in ((41, 42), (99, "00")):
            attrs = f"groupId=g&streamId=s&mid={own}".encode()
            rest = b"\x05" + (5).to_bytes(4, "big") + b"\0\0\0\x01x" + len(attrs).to_bytes(4, "big") + attrs
            c.sendall(len(rest).to_bytes(4, "big") + rest)
            assert f"mid={answered}".encode() in read_frame(c)


def test_replies_in_reverse_order(hub, dial):
    c = dial(hub)
    with hub.faults.add("reverse", batch=3):
        for uniq in range(1, 5):
            c.sendall(binary_frame(uniq, [b"x"]))
        assert [masked(read_frame(c)) for _ in range(3)] == [ack(3), ack(2), ack(1)]
    assert masked(read_frame(c)) == ack(4), "taking the fault back sends what was collected"


def test_a_sliced_reply_is_whole(hub, dial):
    c = dial(hub)
    with hub.faults.add("slice", first=2):
        c.sendall(binary_frame(1, [b"x"]) + binary_frame(2, [b"x"]) + binary_frame(3, [b"x"]))
        assert [masked(read_frame(c)) for _ in range(3)] == [ack(1), ack(2), ack(3)]


def test_garbage_comes_before_the_reply(hub, dial):
    c = dial(hub)
    with hub.faults.add("garbage", data=b"HTTP/1.1 200 OK\r\n\r\n", nth=1):
        c.sendall(binary_frame(1, [b"x"]))
        assert read_exactly(c, 19) == b"HTTP/1.1 200 OK\r\n\r\n"
        assert masked(read_frame(c)) == ack(1)


@pytest.mark.parametrize(("at", "mask"), [(4, 0x07), (-1, 0xFF), (5, 0x80)])
def test_a_corrupt_byte(hub, dial, at, mask):
    c = dial(hub)
    with hub.faults.add("corrupt", at=at, mask=mask, nth=1):
        c.sendall(binary_frame(1, [b"x"]))
        reply = bytearray(read_frame(c))
        reply[at] ^= mask
        assert masked(bytes(reply)) == ack(1)


@pytest.mark.parametrize(
    ("stage", "stored", "answered"), [("before_store", 1, 1), ("after_store", 2, 1), ("after_reply", 2, 2)]
)
@pytest.mark.parametrize("reset", [False, True])
def test_close_at_the_second_frame(hub, dial, stage, stored, answered, reset):
    c = dial(hub)
    with hub.faults.add("close", stage=stage, reset=reset, nth=2) as fault:
        assert ask(c, 1) == ack(1)
        c.sendall(binary_frame(2, [b"x"]))
        if answered == 2:
            assert masked(read_frame(c)) == ack(2)
        if reset:
            with pytest.raises(ConnectionResetError):
                c.recv(1)
        else:
            assert c.recv(1) == b""
        assert fault.fired == 1
    c.close()
    assert ask(dial(hub), 3) == ack(3)
    assert count(hub) == stored + 1


def test_close_at_a_byte(hub, dial):
    frame = binary_frame(1, [b"body"])
    with hub.faults.add("reset", at_byte=len(frame) + 5) as fault:
        c = dial(hub)
        c.sendall(frame + frame)
        assert masked(read_frame(c)) == ack(1)
        with pytest.raises(ConnectionResetError):
            c.recv(1)
        assert fault.fired == 1
    assert count(hub) == 1


@pytest.mark.parametrize("side", ["both", "read"])
def test_a_frozen_connection_goes_on_when_the_fault_is_taken_back(hub, dial, side):
    c, other = dial(hub), dial(hub)
    with hub.faults.add("freeze", nth=2, side=side) as fault:
        assert ask(c, 1) == ack(1)
        c.sendall(b"".join(binary_frame(uniq, [b"x"]) for uniq in range(2, 6)))
        fault.wait()
        assert ask(other, 7) == ack(7)
        c.setblocking(False)
        with pytest.raises(BlockingIOError):
            c.recv(1)
        c.settimeout(30)
        assert count(hub) == 2
    assert [masked(read_frame(c)) for _ in range(4)] == [ack(2), ack(3), ack(4), ack(5)]
    assert count(hub) == 6


def test_a_fault_sees_every_frame_after_one_that_was_frozen(hub, dial):
    c = dial(hub)
    for uniq in range(1, 6, 2):
        with hub.faults.add("freeze", nth=1) as frozen:
            c.sendall(binary_frame(uniq, [b"body"]))
            frozen.wait()
        assert masked(read_frame(c)) == ack(uniq)
        with hub.faults.add("refuse", code=119, nth=1) as fault:
            assert ask(c, uniq + 1) == refused(uniq + 1, 119)
            assert (fault.seen, fault.fired) == (1, 1)


def test_a_connection_that_is_not_answered_stores(hub, dial):
    c = dial(hub)
    with hub.faults.add("freeze", side="write", nth=1) as fault:
        c.sendall(binary_frame(1, [b"x"]) + binary_frame(2, [b"x"]))
        fault.wait()
        while count(hub) < 2:
            pass
        c.setblocking(False)
        with pytest.raises(BlockingIOError):
            c.recv(1)
        c.settimeout(30)
    assert [masked(read_frame(c)) for _ in range(2)] == [ack(1), ack(2)]


def test_a_frozen_connection_stores_late_what_its_peer_sent_before_it_went(hub, dial):
    c = dial(hub)
    with hub.faults.add("freeze", nth=1) as fault:
        c.sendall(binary_frame(1, [b"late"]))
        fault.wait()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        c.close()
        assert ask(dial(hub), 2) == ack(2)
    stored = itertools.islice(hub.records("g", follow=True), 2)  # the late one comes when it comes
    assert [record.body for record in stored] == [b"body", b"late"]


def test_connections_close_or_freeze_at_once(hub, dial):
    with hub.faults.add("reset", on="connect", nth=1), hub.faults.add("freeze", on="connect", nth=2):
        with pytest.raises(ConnectionResetError):
            dial(hub).recv(1)
        frozen = dial(hub)
        frozen.sendall(binary_frame(1, [b"x"]))
        assert ask(dial(hub), 2) == ack(2)
        assert count(hub) == 1
    assert masked(read_frame(frozen)) == ack(1)


def test_refused_connections_while_others_go_on(hub, dial):
    c = dial(hub, 1)
    with hub.faults.add("refuse_connections", listener=1) as fault:
        with pytest.raises(ConnectionRefusedError):
            dial(hub, 1)
        assert ask(c, 1) == ack(1)
        assert ask(dial(hub, 0), 2) == ack(2)
        assert not hub.listeners[1].listens
        assert fault.fired == 1
    assert ask(dial(hub, 1), 3) == ack(3)


def test_a_killed_listener_comes_back_on_its_port(hub, dial):
    victims = [dial(hub, 2) for _ in range(3)]
    assert [ask(c, 1) for c in victims] == [ack(1)] * 3
    bystander = dial(hub, 0)
    hub.listeners[2].kill()
    assert [read_all(c) for c in victims] == [b""] * 3
    with pytest.raises(ConnectionRefusedError):
        dial(hub, 2)
    assert ask(bystander, 2) == ack(2)
    port = hub.listeners[2].port
    hub.listeners[2].restart()
    assert hub.listeners[2].port == port
    assert ask(dial(hub, 2), 3) == ack(3)
    assert hub.stats()["closed"]["fault"] == 3


def test_heartbeats_report_a_load_or_are_not_answered(hub, dial):
    beat = bytes.fromhex("0000001008" + "00000000" + "01" + "00000000" + "0000" + "ee01")
    beat = (len(beat) - 4).to_bytes(4, "big") + beat[4:]
    c = dial(hub)
    with hub.faults.add("load", load=777):
        c.sendall(beat)
        assert (777).to_bytes(2, "big") in read_frame(c)
    with hub.faults.add("drop_reply", on="heartbeat"):
        c.sendall(beat)
        assert ask(c, 5) == ack(5)


def test_slow_reading_takes_everything_in_the_end(hub, dial):
    c = dial(hub)
    with hub.faults.add("slow", bytes_per_second=2000, listener=0) as fault:
        frame = binary_frame(1, [b"z" * 100])
        c.sendall(frame)
        assert masked(read_frame(c)) == ack(1)
        assert fault.fired >= len(frame) // 20


def test_a_fault_finds_its_listener_group_and_connection(hub, dial):
    hub.faults.add("refuse", code=110, listener=1)
    hub.faults.add("refuse", code=111, group="other")
    hub.faults.add("refuse", code=112, connection=2, listener=2)
    assert ask(dial(hub, 0), 1) == ack(1)
    assert ask(dial(hub, 1), 2) == refused(2, 110)
    assert b"errCode=111" in ask(dial(hub, 0), 3, "other")
    assert ask(dial(hub, 2), 4) == ack(4)
    assert ask(dial(hub, 2), 5) == refused(5, 112)
    hub.faults.clear()
    assert not len(hub.faults)
    assert ask(dial(hub, 1), 6) == ack(6)


def test_counting_by_connection(hub, dial):
    with hub.faults.add("drop_reply", nth=2, per_connection=True) as fault:
        for _ in range(3):
            c = dial(hub)
            c.sendall(b"".join(binary_frame(uniq, [b"x"]) for uniq in (1, 2, 3)))
            assert [masked(read_frame(c)) for _ in range(2)] == [ack(1), ack(3)]
        assert (fault.seen, fault.fired) == (9, 3)


def test_a_seed_repeats_itself(hub, dial):
    def codes(seed: int) -> list[bool]:
        c = dial(hub)
        with hub.faults.add("refuse", code=117, share=0.3, seed=seed):
            return [b"errCode" in ask(c, uniq) for uniq in range(200)]

    first = codes(1)
    assert codes(1) == first
    assert codes(2) != first
    assert 30 < sum(first) < 90


def test_closing_a_hub_with_faults_leaves_nothing_behind(hub, dial):
    c, d = dial(hub), dial(hub)
    freeze = hub.faults.add("freeze", nth=1)
    c.sendall(binary_frame(1, [b"x"]))
    freeze.wait()
    hub.faults.add("delay", seconds=3600)
    hub.faults.add("reverse", batch=10, times=1)
    d.sendall(binary_frame(2, [b"x"]))
    while count(hub) < 1:
        pass
    hub.close()
    assert masked(read_frame(d)) == ack(2)
    freeze.remove()
