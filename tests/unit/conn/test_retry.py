"""What becomes of a frame after each kind of answer."""

import pytest

from dataproxy.codes import RETRY_CLASS, SERVER_CODES
from tests.unit.conn.test_pool import DELIVERED, EXPIRED, FAILED, SECOND, ack, holder, opened, write_all


def refused(code: int, **config: object):
    """Return connections and the frame that one of them was refused with this code."""
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
    elif kind in (4, 7, 8):  # of a single message
        assert (results[0]["outcome"], results[0]["code"], results[0]["text"]) == (FAILED, code, "why")
    else:
        assert results == []
        assert pool.facts()["backoff"] == 1
        attempts = 1
        step = 6 * SECOND if kind == 3 else 200_000  # an unknown stream has longer pauses
        for turn in range(1, 10):
            pool.expire(turn * step)
            if pool.facts()["backoff"] or not pool.connection(0)["queue"]:
                break
            assert write_all(pool, 0, turn * step) == frame
            attempts += 1
            pool.feed(0, ack(frame, code), turn * step)
            results = pool.take_settled()
        if kind == 6:
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


def test_a_refusal_without_time_for_another_attempt_expires_with_its_code_at_the_deadline() -> None:
    pool = opened(["a:1"], retry_backoff=SECOND, retry_backoff_max=SECOND, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], 15_000, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 114), 10)
    pool.expire(14_999)
    assert (pool.facts()["backoff"], pool.take_settled()) == (1, [])
    pool.expire(15_000)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["open_attempts"]) == (EXPIRED, 114, 0)


def test_a_wait_beyond_the_deadline_is_cut_to_half_of_what_is_left() -> None:
    pool = opened(["a:1"], retry_backoff=1000 * SECOND, retry_backoff_max=1000 * SECOND, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], SECOND, 0)
    at = attempts = 0
    while not (results := pool.take_settled()):
        if pool.connection(0)["queue"]:
            assert write_all(pool, 0, at) == frame
            attempts += 1
            pool.feed(0, ack(frame, 114), at)
        else:
            at = pool.next_due()
            pool.expire(at)
    assert at == SECOND
    assert attempts == 7  # 1 s halved until less than 20 ms are left
    assert results[0]["outcome"] == EXPIRED


def test_a_late_success_counts_until_the_deadline() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, retry_backoff=100 * SECOND, retry_backoff_max=100 * SECOND, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], SECOND + 8000, 0)
    other = pool.submit(2, 8, [b"y"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(other), 10)
    pool.expire(SECOND)
    pool.wrote(0, 5, SECOND)
    pool.feed(0, ack(frame), SECOND + 7999)
    pool.wrote(0, len(frame) - 5, SECOND + 7999)
    assert [(r["ident"], r["outcome"]) for r in pool.take_settled()] == [(2, DELIVERED), (1, DELIVERED)]


def test_the_refusal_of_an_older_attempt_ends_nothing() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND, heartbeat=0, avoid=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    first = holder(pool, 1)
    write_all(pool, first, 0)
    pool.feed(first, b"\x00\x00\x00\x05\x7fABCD", 10)  # it is not silent
    pool.expire(SECOND)
    second = holder(pool, 1)
    write_all(pool, second, SECOND)
    pool.feed(first, ack(frame, 110), SECOND + 10)
    if first != second:
        pool.feed(first, ack(frame, 110), SECOND + 11)  # answered already
        assert pool.facts()["unmatched"] == 1
    assert pool.take_settled() == []
    pool.feed(second, ack(frame, 110), SECOND + 20)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["attempts"], result["open_attempts"]) == (FAILED, 110, 2, 0)


def test_two_attempts_on_one_connection_are_refused_one_after_the_other() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, b"\x00\x00\x00\x05\x7fABCD", 10)
    pool.expire(SECOND)
    write_all(pool, 0, SECOND)
    pool.feed(0, ack(frame, 110), SECOND + 10)
    assert pool.take_settled() == []
    pool.feed(0, ack(frame, 110, b"now"), SECOND + 20)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["text"], result["open_attempts"]) == (FAILED, "now", 0)


def test_an_attempt_on_a_lost_connection_stays_open_whatever_the_next_one_says() -> None:
    pool = opened(["a:1"], reconnect_backoff=0, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.lost(0, 3, 104, 10)
    pool.expire(SECOND)
    assert pool.take_work()[1] == "connect"
    pool.connected(0, SECOND)
    pool.expire(2 * SECOND)
    assert write_all(pool, 0, 2 * SECOND) == frame
    pool.feed(0, ack(frame, 110), 2 * SECOND + 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"], result["open_attempts"]) == (FAILED, 2, 1)


def refuse_all(pool, code: int, now: int) -> int:
    """Write what is queued, refuse each frame, and return how many there were."""
    data = bytearray(write_all(pool, 0, now))
    n = 0
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        pool.feed(0, ack(bytes(data[:size]), code), now)
        del data[:size]
        n += 1
    return n


def test_a_cluster_that_refuses_everything_is_not_stormed() -> None:
    pool = opened(["a:1"], retry_backoff=1000, retry_backoff_max=10_000, heartbeat=0, ack_timeout=1000 * SECOND)
    for ident in range(400):
        pool.submit(ident, ident, [b"x"], 1000 * SECOND, 0)
    resent = 0
    for turn in range(6000):
        resent += refuse_all(pool, 114, turn * 5000)
        pool.expire(turn * 5000)
    resent -= 400  # first attempts
    assert 256 + 290 <= resent <= 256 + 301  # a burst, then ten a second
    assert pool.facts()["held"] > 0
    assert pool.facts()["backoff"] == 400


def test_resends_that_succeed_cost_nothing() -> None:
    pool = opened(["a:1"], retry_backoff=0, retry_backoff_max=0, heartbeat=0, retry_share=0)
    for ident in range(2000):
        frame = pool.submit(ident, ident, [b"x"], 1000 * SECOND, 0)
        write_all(pool, 0, 0)
        pool.feed(0, ack(frame, 114), 0)
        pool.expire(1)
        assert write_all(pool, 0, 1) == frame
        pool.feed(0, ack(frame), 1)
    assert pool.facts()["held"] == 0
    assert len(pool.take_settled()) == 2000


def test_a_pack_that_is_late_already_expires_at_once() -> None:
    pool = opened(["a:1"])
    pool.submit(1, 7, [b"x"], 5, 5)
    assert [(r["outcome"], r["code"]) for r in pool.take_settled()] == [(EXPIRED, -1)]


def test_what_waits_for_a_connection_goes_out_in_order_when_one_comes() -> None:
    pool = opened(["a:1"], heartbeat=0)
    pool.lost(0, 3, 0, 0)
    for ident in range(5):
        pool.submit(ident, ident, [b"x"], 100 * SECOND, 1)
    assert pool.facts()["waiting"] == 5
    pool.expire(SECOND)
    assert pool.take_work()[1] == "connect"
    pool.connected(0, SECOND)
    assert pool.connection(0)["queue"] == list(range(5))


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
