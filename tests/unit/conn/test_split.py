"""Packs that are refused for one message's fault: sent again in halves, until the guilty are alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy._core.wire.inlong.message import records
from dataproxy.numbers import OUT_MIXED as MIXED
from tests.native.probe_connections import Connections
from tests.native.probe_wire import Server
from tests.sim.proxy import frame_seq, take_frame
from tests.unit.conn.test_pool import DELIVERED, EXPIRED, FAILED, SECOND, ack, connect_all, opened, write_all

ITEMS, SIZE = 123, 104
PACK = b"pack-1"
NUMBER = 77


def split_pool(labels: tuple[str, ...] = ("a:1",), **config: object) -> Connections:
    """Return a pool that is connected, without heartbeats or pauses."""
    return opened(list(labels), heartbeat=0, retry_backoff=0, avoid=0, **config)


def submit(pool: Connections, bodies: list[bytes], *, deadline: int = 100 * SECOND, **more: Any) -> bytes:
    """Hand over one pack."""
    return pool.submit(1, NUMBER, bodies, deadline, 0, pack_id=PACK, **more)


def messages(frame: bytes) -> list[tuple[bytes, str]]:
    """Return the bodies of a frame with the names that a reader knows them by."""
    found = records(Server().serve(frame, 0)["entry"])
    return [(body, attrs.get("msgid") or f"{attrs.get('sid')}.{at}") for at, (body, attrs) in enumerate(found)]


def refuse_bad(frame: bytes) -> bytes:
    """Answer as a proxy that takes no body with the word bad."""
    if any(b"bad" in body for body, _ in messages(frame)):
        return ack(frame, ITEMS, b"bad one")
    return ack(frame)


def play(pool: Connections, answer: Callable[[bytes], bytes] = refuse_bad, now: int = 10) -> list[bytes]:
    """Answer everything on connection 0 until nothing more is written; return the frames."""
    frames = []
    while True:
        data = bytearray(write_all(pool, 0, now))
        if not data:
            return frames
        frame = take_frame(data)
        assert frame is not None
        assert not data, "one frame of a pack is on its way at a time"
        frames.append(frame)
        pool.feed(0, answer(frame), now + 1)
        now += 2
        pool.expire(now)


def outcomes(result: dict[str, Any]) -> list[int]:
    """Return the outcome of each message."""
    return [part[2] for part in result["parts"] for _ in range(part[1])]


@pytest.mark.parametrize("code", [ITEMS, SIZE])
def test_only_the_guilty_fails(code: int) -> None:
    pool = split_pool()
    bodies = [b"one", b"two", b"bad", b"four", b"five"]
    submit(pool, bodies)

    def answer(frame: bytes) -> bytes:
        return ack(frame, code, b"why") if refuse_bad(frame) != ack(frame) else ack(frame)

    frames = play(pool, answer)
    (result,) = pool.take_settled()
    assert (result["outcome"], outcomes(result)) == (MIXED, [DELIVERED, DELIVERED, FAILED, DELIVERED, DELIVERED])
    assert [part[3] for part in result["parts"]] == [0, code, 0]
    assert [part[7] for part in result["parts"]] == ["", "why", ""]
    assert len(frames) == 2 + 1 + 2, "whole; two, three; one, two"
    assert not result["armed"]
    assert sum(part[6] for part in result["parts"]) == sum(4 + len(body) for body in bodies)


def test_parts_go_from_left_to_right_under_the_names_of_their_messages() -> None:
    pool = split_pool()
    bodies = [b"bad%d" % i if i in (0, 4) else b"body%d" % i for i in range(7)]
    submit(pool, bodies)
    stored = [message for frame in play(pool) if refuse_bad(frame) == ack(frame) for message in messages(frame)]
    assert stored == [(body, f"pack-1.{i}") for i, body in enumerate(bodies) if b"bad" not in body]


def test_every_frame_of_a_pack_has_a_number_of_its_own() -> None:
    pool = split_pool()
    submit(pool, [b"bad", b"b", b"bad", b"d"])
    frames = play(pool)
    numbers = [frame_seq(frame) for frame in frames]
    assert len(set(numbers)) == len(numbers) == 7
    assert numbers[0] == NUMBER
    assert all((number - NUMBER) & 0xFFFFFFFF > 1 << 29 for number in numbers[1:]), "far from those of other packs"
    (result,) = pool.take_settled()
    assert result["seq"] == NUMBER


def test_at_most_twice_as_many_frames_as_messages() -> None:
    for n in (2, 3, 8, 33):
        pool = split_pool()
        submit(pool, [b"bad"] * n)
        assert len(play(pool)) == 2 * n - 1
        (result,) = pool.take_settled()
        assert outcomes(result) == [FAILED] * n
        assert pool.facts()["table"] == pool.facts()["backoff"] == pool.facts()["splitting"] == 0


def test_a_single_message_fails_at_once() -> None:
    pool = split_pool()
    submit(pool, [b"bad"])
    assert len(play(pool)) == 1
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["parts"]) == (FAILED, ITEMS, [])


def test_what_only_the_size_of_the_frame_was_wrong_with_is_all_delivered() -> None:
    pool = split_pool()
    submit(pool, [b"x" * 100 for _ in range(8)])
    play(pool, lambda frame: ack(frame, SIZE) if len(messages(frame)) > 3 else ack(frame))
    (result,) = pool.take_settled()
    assert outcomes(result) == [DELIVERED] * 8


def test_a_compressed_pack_is_split() -> None:
    pool = split_pool(compress=True)
    submit(pool, [b"x" * 200, b"bad" * 70, b"z" * 200])
    frames = play(pool)
    assert frames[0][4] & 0x20
    (result,) = pool.take_settled()
    assert outcomes(result) == [DELIVERED, FAILED, DELIVERED]


def test_parts_that_do_not_fit_a_frame_with_their_names_are_divided_first() -> None:
    pool = split_pool(max_frame=200)
    submit(pool, [b"%d" % (i % 10) if i != 5 else b"bad" for i in range(24)])
    frames = play(pool)
    assert all(len(frame) <= 200 for frame in frames)
    (result,) = pool.take_settled()
    assert outcomes(result) == [DELIVERED] * 5 + [FAILED] + [DELIVERED] * 18


def test_the_items_of_a_settled_pack_are_whole() -> None:
    pool = split_pool()
    bodies = [b"bad" * 9 if i % 3 == 0 else b"good" * 9 for i in range(9)]
    submit(pool, bodies)
    play(pool)
    (result,) = pool.take_settled()
    items, at, found = result["items"], 0, []
    while at < len(items):
        size = int.from_bytes(items[at : at + 4], "big")
        body = items[at + 4 : at + 4 + size]
        at += 4 + size
        size = int.from_bytes(items[at : at + 4], "big")
        found.append((body, items[at + 4 : at + 4 + size]))
        at += 4 + size
    assert found == [(body, b"msgid=pack-1.%d" % i) for i, body in enumerate(bodies)]


def test_an_answer_to_the_whole_frame_that_comes_late_is_for_no_part() -> None:
    pool = split_pool(ack_timeout=1000)
    whole = submit(pool, [b"bad", b"two"])
    write_all(pool, 0, 0)
    pool.feed(0, b"\x00\x00\x00\x05\x7fABCD", 900)  # it lives: the frame alone is late
    pool.expire(1100)
    pool.expire(3000)
    assert write_all(pool, 0, 3000) == whole
    pool.feed(0, ack(whole, ITEMS), 3001)  # the first attempt
    pool.feed(0, ack(whole, ITEMS), 3002)  # the second, which decides
    pool.expire(3003)
    part = write_all(pool, 0, 3003)
    assert [body for body, _ in messages(part)] == [b"bad"]
    pool.feed(0, ack(whole), 3004)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1
    pool.feed(0, ack(part, ITEMS), 3005)
    pool.expire(3006)
    play(pool, now=3007)
    (result,) = pool.take_settled()
    assert outcomes(result) == [FAILED, DELIVERED]


def test_a_frame_that_may_be_stored_makes_its_messages_maybe_delivered() -> None:
    pool = split_pool(("a:1", "b:1"))
    whole = submit(pool, [b"bad", b"two"])
    at = 0 if pool.connection(0)["queue"] else 1
    write_all(pool, at, 0)
    pool.lost(at, 3, 104, 1)  # nobody knows whether it was stored
    pool.expire(2)
    write_all(pool, 1 - at, 2)
    pool.feed(1 - at, ack(whole, ITEMS), 3)
    pool.expire(4)
    assert pool.facts()["duplicates"] == 1
    part = write_all(pool, 1 - at, 4)
    pool.feed(1 - at, ack(part, ITEMS), 5)
    pool.expire(6)
    part = write_all(pool, 1 - at, 6)
    pool.feed(1 - at, ack(part), 7)
    (result,) = pool.take_settled()
    assert [part[2:6] for part in result["parts"]] == [(FAILED, ITEMS, 3, True), (DELIVERED, 0, 3, False)]


def test_a_part_that_is_refused_for_now_is_sent_again() -> None:
    pool = split_pool()
    submit(pool, [b"one", b"bad"])
    asked: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        asked.append(frame)
        return ack(frame, 114) if len(asked) in (2, 3) else refuse_bad(frame)

    frames = play(pool, answer)
    assert frames[1] == frames[2] == frames[3], "the same bytes"
    (result,) = pool.take_settled()
    assert [part[2:5] for part in result["parts"]] == [(DELIVERED, 0, 4), (FAILED, ITEMS, 2)]


def test_attempts_of_the_whole_frame_do_not_use_up_those_of_a_part() -> None:
    pool = split_pool(late_attempts=2)
    submit(pool, [b"one", b"bad"])
    codes = [ITEMS, 2147483647 & 0x7FFF, 0, ITEMS]
    assert len(play(pool, lambda frame: ack(frame, codes.pop(0)))) == 4
    (result,) = pool.take_settled()
    assert outcomes(result) == [DELIVERED, FAILED]


def test_a_part_that_fails_otherwise_takes_no_other_with_it() -> None:
    pool = split_pool()
    submit(pool, [b"a", b"b", b"c", b"d"])
    codes = [ITEMS, 10, 0]
    play(pool, lambda frame: ack(frame, codes.pop(0)))
    (result,) = pool.take_settled()
    assert [part[:4] for part in result["parts"]] == [(0, 2, FAILED, 10), (2, 2, DELIVERED, 0)]


def test_the_connection_is_lost_in_the_middle() -> None:
    pool = split_pool(reconnect_backoff=0)
    submit(pool, [b"one", b"two", b"bad", b"four"])
    frame = write_all(pool, 0, 1)
    pool.feed(0, refuse_bad(frame), 2)
    pool.expire(3)
    part = write_all(pool, 0, 3)
    pool.lost(0, 3, 104, 4)
    pool.expire(5)
    connect_all(pool, 6)
    pool.expire(7)
    frames = play(pool, now=8)
    assert frames[0] == part, "sent again as it was"
    (result,) = pool.take_settled()
    assert [part[2:6] for part in result["parts"]] == [
        (DELIVERED, 0, 3, False), (FAILED, ITEMS, 3, False), (DELIVERED, 0, 3, False),
    ]  # fmt: skip


def test_a_half_written_part_is_answered_from_an_earlier_attempt() -> None:
    pool = split_pool(("a:1", "b:1"), ack_timeout=1000)
    submit(pool, [b"one", b"bad"])
    at = 0 if pool.connection(0)["queue"] else 1
    whole = write_all(pool, at, 0)
    pool.feed(at, refuse_bad(whole), 1)
    pool.expire(2)
    first = 0 if pool.connection(0)["queue"] else 1
    part = write_all(pool, first, 2)
    pool.feed(first, b"\x00\x00\x00\x05\x7fABCD", 500)
    pool.expire(1500)
    pool.expire(2600)
    second = 0 if pool.connection(0)["queue"] else 1
    pool.gather(second)
    pool.wrote(second, 5, 2601)
    pool.feed(first, ack(part), 2602)
    assert pool.take_settled() == []
    rest = b"".join(pool.gather(second))
    assert rest == part[5:]
    pool.wrote(second, len(rest), 2603)
    pool.expire(2604)
    third = 0 if pool.connection(0)["queue"] else 1
    last = write_all(pool, third, 2605)
    assert [body for body, _ in messages(last)] == [b"bad"]
    pool.feed(third, ack(last, ITEMS), 2606)
    (result,) = pool.take_settled()
    assert outcomes(result) == [DELIVERED, FAILED]


def test_the_deadline_ends_what_has_no_result() -> None:
    pool = split_pool()
    submit(pool, [b"one", b"two", b"bad", b"four"], deadline=50)
    whole = write_all(pool, 0, 1)
    pool.feed(0, refuse_bad(whole), 2)
    pool.expire(3)
    part = write_all(pool, 0, 3)
    pool.feed(0, ack(part), 4)
    pool.expire(5)
    write_all(pool, 0, 5)  # the right half, which is not answered
    pool.expire(50)
    (result,) = pool.take_settled()
    assert [part[:3] + part[5:6] for part in result["parts"]] == [(0, 2, DELIVERED, False), (2, 2, EXPIRED, True)]
    assert not result["armed"]


@pytest.mark.parametrize("steps", range(5))
def test_an_end_in_the_middle(steps: int) -> None:
    """Whatever was done by then, every message gets one result and nothing is left."""
    pool = split_pool()
    submit(pool, [b"one", b"bad", b"three"])
    for step in range(steps):
        data = write_all(pool, 0, step) if step % 2 == 0 else b""
        if data:
            pool.feed(0, refuse_bad(data), step)
        pool.expire(step)
    pool.abort(-4)
    (result,) = pool.take_settled()
    assert sum(part[1] for part in result["parts"]) in (0, 3)
    assert set(outcomes(result)) <= {DELIVERED, FAILED}
    facts = pool.facts()
    assert facts["backoff"] == facts["table"] == facts["splitting"] == facts["unsplit"] == facts["waiting"] == 0


def test_a_key_queue_waits_for_the_whole_pack() -> None:
    pool = split_pool()
    submit(pool, [b"one", b"bad"], key_queue=3)
    pool.submit(2, NUMBER + 1, [b"behind"], 100 * SECOND, 0, key_queue=3, pack_id=b"pack-2")
    frames = play(pool)
    assert pool.key_queue(3) == (None, [2])
    assert [[body for body, _ in messages(frame)] for frame in frames] == [[b"one", b"bad"], [b"one"], [b"bad"]]
    assert pool.advance(100)
    assert [messages(frame) for frame in play(pool, now=101)] == [[(b"behind", "pack-2.0")]]


def test_packs_without_a_name_and_full_circles() -> None:
    pool = split_pool()
    pool.submit(1, NUMBER, [b"one", b"bad"], 100 * SECOND, 0)
    assert len(play(pool)) == 1
    assert pool.take_settled()[0]["outcome"] == FAILED, "parts of it could not be told apart"
    for number in (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1):
        pool.submit(1, number, [b"one", b"bad"], 100 * SECOND, 0, pack_id=PACK)
        play(pool)
        assert outcomes(pool.take_settled()[0]) == [DELIVERED, FAILED]


def test_the_memory_of_names_is_bounded_and_every_pack_gets_its_turn() -> None:
    pool = split_pool()
    count = 3000  # some thirty bytes of names each
    sizes = []
    for ident in range(8):
        pool.submit(
            ident, 1000 + ident, [b"bad" if i == 7 else b"x" for i in range(count)], 100 * SECOND, 0,
            pack_id=b"pack-%d" % ident,
        )  # fmt: skip
    now, done = 1, []
    while len(done) < 8:
        data = bytearray(write_all(pool, 0, now))
        assert data, f"only {done} came to an end"
        while data:
            frame = take_frame(data)
            assert frame is not None
            pool.feed(0, refuse_bad(frame), now)
        pool.expire(now)
        sizes.append(pool.facts()["splitting"])
        done += pool.take_settled()
        now += 1
    assert max(sizes) < 262144 + 40 * count
    assert pool.facts()["splitting"] == pool.facts()["unsplit"] == 0
    for result in done:
        assert outcomes(result) == [DELIVERED] * 7 + [FAILED] + [DELIVERED] * (count - 8)


def test_a_pack_that_waits_for_its_turn_expires_whole() -> None:
    pool = split_pool()
    many = [b"bad"] + [b"x"] * 15000
    for ident in range(2):
        pool.submit(ident, 1000 + ident, many, (100 + 50 * ident) * SECOND, 0, pack_id=b"pack-%d" % ident)
    data = bytearray(write_all(pool, 0, 1))
    while data:
        pool.feed(0, refuse_bad(take_frame(data) or b""), 1)
    pool.expire(2)
    assert pool.facts()["unsplit"] == 1
    pool.expire(150 * SECOND)
    first, second = sorted(pool.take_settled(), key=lambda result: result["ident"])
    assert outcomes(first) == [EXPIRED] * len(many)
    assert (second["outcome"], second["code"], second["parts"]) == (EXPIRED, ITEMS, [])


def test_whatever_is_bad_and_however_it_goes() -> None:
    """Random packs, answers and losses: each message gets the result that the proxy gave it."""
    for seed in range(150):
        rng = random.Random(seed)
        pool = split_pool(reconnect_backoff=0, compress=rng.random() < 0.3, max_frame=rng.choice((400, 4096)))
        bodies = [
            (b"bad" if rng.random() < 0.2 else b"ok") + b"." * rng.choice((0, 3, 40)) for _ in range(rng.randint(1, 9))
        ]
        submit(pool, bodies)
        stored: set[str] = set()
        now = 1
        for _ in range(400):
            data = bytearray(write_all(pool, 0, now))
            while data:
                frame = take_frame(data)
                assert frame is not None
                deed = rng.random()
                reply = refuse_bad(frame)
                if reply == ack(frame) and deed > 0.1:
                    stored |= {name for _, name in messages(frame)}
                if deed > 0.2:
                    pool.feed(0, reply, now)
                elif deed > 0.1:
                    pool.lost(0, 3, 104, now)
                    break
                else:
                    pool.feed(0, ack(frame, 114), now)
            now += 1000
            pool.expire(now)
            connect_all(pool, now)
            if result := pool.take_settled():
                break
        else:
            raise AssertionError(f"seed {seed}: no result")
        got = outcomes(result[0]) or [result[0]["outcome"]] * len(bodies)
        want = [FAILED if b"bad" in body else DELIVERED for body in bodies]
        assert got == want, f"seed {seed}"
        assert all((f"pack-1.{i}" in stored) == (one == DELIVERED) for i, one in enumerate(want)), f"seed {seed}"
