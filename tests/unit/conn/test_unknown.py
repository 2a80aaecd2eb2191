"""Frames that a proxy refuses because it does not know their group or stream."""

from __future__ import annotations

import itertools

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import DELIVERED, EXPIRED, FAILED, SECOND, ack, opened, write_all

UNKNOWN = 115
ELSE = 255  # an unknown error: five attempts


def one(**config: object) -> Connections:
    """Return connections to one proxy."""
    return opened(["a:1"], heartbeat=0, **config)


def submit(pool: Connections, ident: int, *, deadline: int = 1000 * SECOND, now: int = 0, **how: int) -> bytes:
    frame: bytes = pool.submit(ident, ident, [b"%d" % ident], deadline, now, **how)
    return frame


def refuse_until(pool: Connections, frames: dict[int, bytes], until: int, step: int = 10_000) -> list[tuple[int, int]]:
    """Refuse each attempt as unknown until a time; return (when, which) of the attempts."""
    attempts = []
    by_frame = {frame: ident for ident, frame in frames.items()}
    for now in range(step, until, step):
        pool.expire(now)
        while pool.connection(0)["queue"]:
            frame = write_all(pool, 0, now)
            for one_frame, ident in by_frame.items():
                if one_frame in frame:
                    attempts.append((now, ident))
                    pool.feed(0, ack(one_frame, UNKNOWN, b"Topic not configured"), now)
    return attempts


def test_it_is_tried_again_for_the_whole_time_and_then_fails() -> None:
    pool = one(retry_backoff=100_000)
    frame = submit(pool, 1)
    attempts = refuse_until(pool, {1: frame}, 59 * SECOND)
    assert pool.take_settled() == []
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(attempts)]
    assert 10 < len(attempts) < 60
    assert all(100_000 < gap <= 5_100_000 for gap in gaps)
    assert max(gaps[:2]) < SECOND < min(gaps[6:])  # they grow
    assert len(set(gaps)) > 5  # and are not all alike
    pool.expire(61 * SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["text"]) == (FAILED, UNKNOWN, "Topic not configured")
    assert result["attempts"] == len(attempts)
    assert pool.facts()["unknown"] == 0


def test_it_is_delivered_when_the_proxy_knows_the_group() -> None:
    pool = one()
    frame = submit(pool, 1)
    refuse_until(pool, {1: frame}, 33 * SECOND)
    for now in range(33 * SECOND, 40 * SECOND, 10_000):
        pool.expire(now)
        if pool.connection(0)["queue"]:
            assert write_all(pool, 0, now) == frame
            pool.feed(0, ack(frame), now)
            break
    (result,) = pool.take_settled()
    assert result["outcome"] == DELIVERED
    assert pool.facts()["duplicates"] == pool.facts()["unknown"] == 0


def test_the_time_limit_of_the_message_comes_first() -> None:
    pool = one()
    frame = submit(pool, 1, deadline=7 * SECOND)
    refuse_until(pool, {1: frame}, 7 * SECOND)
    assert pool.take_settled() == []
    pool.expire(7 * SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"]) == (EXPIRED, UNKNOWN)


def test_without_a_time_it_fails_at_once() -> None:
    pool = one(unknown_timeout=0)
    frame = submit(pool, 1)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, UNKNOWN), 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["attempts"]) == (FAILED, UNKNOWN, 1)
    assert [event for event in pool.events if event[0] == "unknown"] == []


def test_one_frame_at_a_time_asks_and_all_follow_when_one_is_delivered() -> None:
    pool = one()
    frames = {ident: submit(pool, ident) for ident in range(1, 21)}
    attempts = refuse_until(pool, frames, 30 * SECOND)
    first, later = attempts[:20], attempts[20:]
    assert sorted(ident for _, ident in first) == sorted(frames)
    assert 4 < len(later) < 30  # not twenty times as many
    now = 30 * SECOND
    while not pool.connection(0)["queue"]:
        now += 10_000
        pool.expire(now)
    asked = write_all(pool, 0, now)
    assert asked in frames.values()
    pool.feed(0, ack(asked), now)
    pool.expire(now)
    assert len(pool.connection(0)["queue"]) == 19
    write_all(pool, 0, now)
    for frame in frames.values():
        if frame != asked:
            pool.feed(0, ack(frame), now)
    assert sorted(result["ident"] for result in pool.take_settled()) == sorted(frames)


def test_it_uses_up_no_attempts_and_no_budget() -> None:
    """Five attempts are what an unknown error may use up; the budget has 256 at once."""
    pool = one(retry_share=0, retry_backoff=1000, retry_backoff_max=1000)
    frames = {ident: submit(pool, ident, stream=ident % 16) for ident in range(1, 400)}
    refuse_until(pool, frames, 20 * SECOND)
    assert (pool.facts()["held"], pool.take_settled()) == (0, [])
    now = 20 * SECOND
    while not pool.connection(0)["queue"]:
        now += 10_000
        pool.expire(now)
    asked = write_all(pool, 0, now)
    frame = next(frame for frame in frames.values() if frame in asked)
    pool.feed(0, ack(frame, ELSE), now)
    assert pool.take_settled() == []


def test_other_streams_are_not_concerned() -> None:
    pool = one()
    strange = submit(pool, 1)
    write_all(pool, 0, 0)
    pool.feed(0, ack(strange, UNKNOWN), 10)
    for ident in range(2, 50):
        frame = submit(pool, ident, now=20, stream=1)
        assert write_all(pool, 0, 20) == frame
        pool.feed(0, ack(frame), 30)
    assert [result["outcome"] for result in pool.take_settled()] == [DELIVERED] * 48
    assert pool.connection(0)["avoid_until"] == 0
    assert pool.connection(0)["failures"] == 0


def test_it_is_told_when_a_stream_becomes_unknown_and_when_nothing_waits_for_it() -> None:
    pool = one()
    frames = {ident: submit(pool, ident) for ident in (1, 2)}
    refuse_until(pool, frames, 10 * SECOND)
    told = [event for event in pool.events if isinstance(event[0], str)]
    assert told == [("unknown", "a:1", UNKNOWN)]
    assert pool.facts()["unknown"] == 2 * 5
    pool.expire(70 * SECOND)
    assert [result["code"] for result in pool.take_settled()] == [UNKNOWN] * 2
    told = [event for event in pool.events if isinstance(event[0], str)]
    assert told[1:] == [("nothing waits", "", 0)]


def test_what_holds_too_much_gives_way() -> None:
    pool = one()
    frames = {ident: submit(pool, ident) for ident in range(1, 7)}
    refuse_until(pool, frames, 100_000)
    assert pool.facts()["unknown"] == 30
    pool.share(20)
    results = pool.take_settled()
    assert [result["outcome"] for result in results] == [FAILED, FAILED]
    assert pool.facts()["unknown"] == 20


def test_with_a_key_the_next_frame_waits() -> None:
    pool = one()
    frames = {ident: submit(pool, ident, key_queue=1) for ident in (1, 2)}
    attempts = refuse_until(pool, frames, 20 * SECOND)
    assert {ident for _, ident in attempts} == {1}
    assert pool.key_queue(1) == (1, [2])
