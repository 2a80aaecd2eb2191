"""What becomes of a frame after each kind of answer."""

import pytest

from dataproxy.codes import RETRY_CLASS, SERVER_CODES
from tests.unit.io.test_links import DELIVERED, EXPIRED, FAILED, SECOND, ack, holder, opened, write_all


def refused(code: int, **config: object):
    """Return links and the frame that one of them was refused with this code."""
    pool = opened(["a:1"], retry_backoff=1000, retry_backoff_max=50_000, avoid=0, heartbeat=0, **config)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, code, b"why"), 10)
    return pool, frame


@pytest.mark.parametrize("code", [code for code in SERVER_CODES if 0 < code < 65536])
def test_every_code_does_what_its_class_says(code: int) -> None:
    pool, frame = refused(code)
    kind = int(RETRY_CLASS[code])
    results = pool.take_settled()
    if kind == 0:
        assert results[0]["outcome"] == DELIVERED
    elif kind == 4:
        assert (results[0]["outcome"], results[0]["code"], results[0]["text"]) == (FAILED, code, "why")
    else:
        assert results == []
        assert pool.facts()["backoff"] == 1
        attempts = 1
        for turn in range(1, 10):
            pool.expire(turn * 200_000)
            if pool.facts()["backoff"] or not pool.link(0)["queue"]:
                break
            assert write_all(pool, 0, turn * 200_000) == frame
            attempts += 1
            pool.feed(0, ack(frame, code), turn * 200_000)
            results = pool.take_settled()
        if kind == 3:
            assert attempts == 5
            assert (results[0]["outcome"], results[0]["code"]) == (FAILED, code)
        else:
            assert attempts == 10
            assert results == []


def test_a_refused_attempt_is_no_possible_duplicate() -> None:
    pool, frame = refused(114)
    pool.expire(200_000)
    write_all(pool, 0, 200_000)
    pool.feed(0, ack(frame), 200_010)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"]) == (DELIVERED, 2)
    assert pool.facts()["duplicates"] == 0


def test_an_unknown_code_backs_off() -> None:
    pool, _ = refused(999)
    assert pool.facts()["backoff"] == 1


def test_a_refusal_without_time_for_another_attempt_expires_with_its_code() -> None:
    pool = opened(["a:1"], retry_backoff=SECOND, retry_backoff_max=SECOND)
    frame = pool.submit(1, 7, [b"x"], 1000, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 114), 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["open_attempts"]) == (EXPIRED, 114, 0)


def test_a_pack_that_is_late_already_expires_at_once() -> None:
    pool = opened(["a:1"])
    pool.submit(1, 7, [b"x"], 5, 5)
    assert [(r["outcome"], r["code"]) for r in pool.take_settled()] == [(EXPIRED, -1)]


def test_what_waits_for_a_link_goes_out_in_order_when_one_comes() -> None:
    pool = opened(["a:1"], heartbeat=0)
    pool.lost(0, 3, 0, 0)
    for ident in range(5):
        pool.submit(ident, ident, [b"x"], 100 * SECOND, 1)
    assert pool.facts()["waiting"] == 5
    pool.expire(SECOND)
    assert pool.take_work()[1] == "connect"
    pool.connected(0, SECOND)
    assert pool.link(0)["queue"] == list(range(5))


def test_a_half_written_frame_ends_with_its_connection_at_the_deadline() -> None:
    pool = opened(["a:1"], heartbeat=0)
    pool.submit(1, 7, [b"x" * 100], 1000, 0)
    pool.submit(2, 8, [b"y"], 100 * SECOND, 0)
    pool.wrote(0, 10, 0)
    pool.expire(1000)
    assert pool.take_work() == (0, "close", 0)
    pool.lost(0, 0, 0, 1000)
    (result,) = pool.take_settled()
    assert (result["ident"], result["outcome"], result["open_attempts"]) == (1, EXPIRED, 0)
    assert pool.facts()["waiting"] == 1


def test_a_late_success_settles_a_frame_that_waits_for_its_next_attempt() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND, retry_backoff=SECOND * 5, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    first = holder(pool, 1)
    write_all(pool, first, 0)
    pool.feed(first, b"\x00\x00\x00\x05\x7fABCD", 10)
    pool.expire(SECOND)
    second = holder(pool, 1)
    write_all(pool, second, SECOND)
    pool.feed(second, b"\x00\x00\x00\x05\x7fABCD", SECOND + 10)
    pool.expire(2 * SECOND)
    assert pool.facts()["backoff"] == 1
    pool.feed(first, ack(frame), 2 * SECOND + 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"], result["open_attempts"]) == (DELIVERED, 2, 2)
    assert pool.facts()["duplicates"] == 1
    pool.feed(second, ack(frame), 2 * SECOND + 20)
    assert pool.facts()["unmatched"] == 1
