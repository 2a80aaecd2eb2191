"""Which answers count: over whose connection they came, whose frame they mean, and what of them is told in the end."""

import pytest

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import (
    DELIVERED,
    EXPIRED,
    FAILED,
    SECOND,
    STRANGE,
    ack,
    connect_all,
    holder,
    opened,
    write_all,
)

NO_ACK = 2
CONNECTED, LOST, SILENT, DEAF, FRAMING, MISDIRECTED, UNEXPECTED = 1, 3, 4, 9, 10, 11, 12


def two_frames(**config: object):
    """Return connections to two proxies, and for each of them a frame that was written there and nowhere else."""
    pool = opened(["a:1", "b:1"], heartbeat=0, avoid=0, **config)
    frames = {}
    for ident in (1, 2):
        frame = pool.submit(ident, 10 + ident, [b"x" * ident], 100 * SECOND, 0)
        frames[holder(pool, ident)] = frame
    assert sorted(frames) == [0, 1]
    for connection in frames:
        write_all(pool, connection, 0)
    return pool, frames


def blind(code: int, text: bytes) -> bytes:
    """Return a refusal as text that names no frame: found before the attributes were read."""
    attrs = b"dpIp=127.0.0.1&errCode=%d&errMsg=%s" % (code, text)
    body = b"\x05" + (1).to_bytes(4, "big") + b"2" + len(attrs).to_bytes(4, "big") + attrs
    return len(body).to_bytes(4, "big") + body


def refusal(number: int, code: int, text: bytes) -> bytes:
    """Return a refusal of type 7, of any length."""
    attrs = b"errCode=%d&errMsg=%s" % (code, text)
    body = b"\x07" + number.to_bytes(4, "big") + (len(attrs) & 0xFFFF).to_bytes(2, "big") + attrs + b"\xee\x01"
    return len(body).to_bytes(4, "big") + body


def kinds(pool) -> list[int]:
    """Return the events but those of connects."""
    return [event for event, *_ in pool.events if event != CONNECTED]


# --- over whose connection


@pytest.mark.parametrize("code", [0, 120, 101, 114])
def test_an_answer_counts_over_a_connection_that_carried_the_frame(code: int) -> None:
    pool, frames = two_frames()
    pool.feed(0, ack(frames[1], code), 10)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1
    assert pool.connection(0)["acked_frames"] == 0
    assert pool.connection(1)["flight"] != []
    pool.feed(1, ack(frames[1]), 20)
    assert [r["outcome"] for r in pool.take_settled()] == [DELIVERED]


def test_a_success_counts_over_each_connection_that_has_an_open_attempt() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND, heartbeat=0, avoid=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    first = holder(pool, 1)
    write_all(pool, first, 0)
    pool.feed(first, b"\x00\x00\x00\x05\x7fABCD", 10)
    pool.expire(SECOND)
    if holder(pool, 1) == first:
        pool.lost(1 - first, LOST, 104, SECOND)
    write_all(pool, holder(pool, 1), SECOND)
    pool.feed(first, ack(frame), SECOND + 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["node"]) == (DELIVERED, pool.connection(first)["peer"])


def test_a_success_over_the_next_socket_of_the_same_connection_does_not_count() -> None:
    pool = opened(["a:1"], heartbeat=0, reconnect_backoff=0, retry_backoff=SECOND, retry_backoff_max=SECOND)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.lost(0, LOST, 104, 10)
    pool.expire(20)
    connect_all(pool, 20)
    assert pool.connection(0)["state"] == "active"
    pool.feed(0, ack(frame), 30)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1


def test_a_success_after_the_refusal_of_the_only_attempt_does_not_count() -> None:
    pool = opened(["a:1"], heartbeat=0, retry_backoff=SECOND, retry_backoff_max=SECOND)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 114), 10)
    pool.feed(0, ack(frame), 20)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1


def test_many_attempts_leave_each_living_connection_known() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND, heartbeat=0, retry_backoff=0, retry_backoff_max=0, avoid=0)
    frame = pool.submit(1, 7, [b"x"], 1000 * SECOND, 0)
    first = now = 0
    for attempt in range(12):
        now = attempt * SECOND
        at = holder(pool, 1)
        first = at if attempt == 0 else first
        write_all(pool, at, now)
        pool.feed(at, b"\x00\x00\x00\x05\x7fABCD", now + 10)  # it lives
        pool.feed(1 - at, b"\x00\x00\x00\x05\x7fABCD", now + 10)
        pool.expire(now + SECOND)
        pool.expire(now + SECOND)
    pool.feed(first, ack(frame), now + SECOND + 10)
    assert [r["outcome"] for r in pool.take_settled()] == [DELIVERED]


def attempts_everywhere(connections: int) -> tuple[Connections, bytes, int]:
    """Return connections that all hear something but no answer, a frame that was written to each, and the time."""
    pool = opened(
        [f"p{i}:1" for i in range(connections)], ack_timeout=SECOND, heartbeat=0, avoid=0, retry_backoff=0,
        retry_backoff_max=0, retry_share=1_000_000,
    )  # fmt: skip
    frame = pool.submit(1, 7, [b"x"], 100_000 * SECOND, 0)
    now, seen = 0, set()
    while len(seen) < connections:
        seen.add(holder(pool, 1))
        write_all(pool, holder(pool, 1), now)
        for i in range(connections):
            pool.feed(i, STRANGE, now + 10)
        now += SECOND
        while not any(pool.connection(i)["queue"] for i in range(connections)):
            pool.expire(now)
            now = max(now, pool.next_due())
    return pool, frame, now


@pytest.mark.parametrize("connections", [5, 8, 40])
def test_a_success_counts_however_many_connections_carried_the_frame(connections: int) -> None:
    for answers in range(connections):
        pool, frame, now = attempts_everywhere(connections)
        pool.feed(answers, ack(frame), now)
        (result,) = pool.take_settled()
        assert (result["outcome"], result["node"]) == (DELIVERED, f"p{answers}:1")
        assert pool.facts()["unmatched"] == 0


def test_of_many_connections_those_that_are_gone_do_not_count() -> None:
    pool, frame, now = attempts_everywhere(8)
    pool.lost(3, LOST, 104, now)
    pool.expire(pool.connection(3)["reconnect_at"])
    while (work := pool.take_work()) is not None:
        if work[1] == "connect":
            pool.connected(work[0], now)
    assert pool.connection(3)["state"] == "active"
    pool.feed(3, ack(frame), now)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1
    pool.feed(4, ack(frame), now)
    assert [r["outcome"] for r in pool.take_settled()] == [DELIVERED]


def test_refusals_of_many_attempts_over_one_connection_end_none_but_the_newest() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0, retry_backoff=0, retry_backoff_max=0, retry_share=1_000_000)
    frame = pool.submit(1, 7, [b"x"], 100_000 * SECOND, 0)
    now = 0
    for attempt in range(1, 10):
        write_all(pool, 0, now)
        pool.feed(0, STRANGE, now + 10)
        while attempt < 9 and not pool.connection(0)["queue"]:
            now = max(now + SECOND, pool.next_due())
            pool.expire(now)
    for _ in range(8):
        pool.feed(0, ack(frame, 101), now + 20)
        assert pool.take_settled() == []
    pool.feed(0, ack(frame, 101), now + 20)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["attempts"], result["open_attempts"]) == (FAILED, 101, 9, 0)


def test_answers_that_count_for_nothing_are_told_once_a_second() -> None:
    pool, frames = two_frames()
    for n in range(1000):
        pool.feed(0, ack(frames[1]), n)
    assert kinds(pool) == [MISDIRECTED]
    pool.feed(0, ack(frames[1]), SECOND + 1)
    assert kinds(pool) == [MISDIRECTED, MISDIRECTED]
    assert pool.facts()["unmatched"] == 1001
    pool.feed(1, ack(frames[1]), 2 * SECOND)
    pool.feed(1, ack(frames[1]), 2 * SECOND)
    assert kinds(pool)[2:] == [UNEXPECTED]


# --- refusals that name no frame


def test_a_refusal_without_a_number_is_that_of_the_only_frame_under_way() -> None:
    pool = opened(["a:1"], heartbeat=0)
    for ident in (1, 2, 3):
        frame = pool.submit(ident, ident, [b"x"], 100 * SECOND, 0)
        write_all(pool, 0, 0)
        if ident < 3:
            pool.feed(0, ack(frame), 10)
    pool.feed(0, blind(104, b"too long"), 20)
    results = pool.take_settled()
    assert [(r["ident"], r["outcome"]) for r in results] == [(1, DELIVERED), (2, DELIVERED), (3, FAILED)]
    assert (results[2]["code"], results[2]["text"], results[2]["refused"]) == (104, "too long", 104)


def test_a_refusal_without_a_number_is_that_of_no_frame_where_two_wait() -> None:
    pool = opened(["a:1"], heartbeat=0, retry_backoff=SECOND, retry_backoff_max=SECOND, ack_timeout=SECOND)
    for ident in (1, 2):
        frame = pool.submit(ident, ident, [b"x"], 3 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, blind(104, b"too long"), 20)
    assert pool.take_settled() == []
    assert pool.facts()["unmatched"] == 1
    assert pool.events[-1] == (8, "a:1", 104, b"too long")
    pool.feed(0, ack(frame), 30)
    pool.expire(SECOND)
    while not (results := pool.take_settled()[-1:]) or results[0]["ident"] != 1:
        pool.expire(pool.next_due())
    assert (results[0]["outcome"], results[0]["code"]) == (EXPIRED, -2)
    assert (results[0]["refused"], results[0]["text"]) == (104, "too long")


def test_an_attempt_that_timed_out_still_counts_as_waiting() -> None:
    pool = opened(["a:1"], heartbeat=0, retry_backoff=0, retry_backoff_max=0, ack_timeout=SECOND)
    pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, b"\x00\x00\x00\x05\x7fABCD", 10)
    pool.expire(SECOND)
    write_all(pool, 0, SECOND)  # two attempts over one connection: which is refused?
    pool.feed(0, blind(104, b""), SECOND + 10)
    assert pool.take_settled() == []


def test_what_a_connection_was_told_before_a_frame_is_not_its_reason() -> None:
    pool = opened(["a:1"], heartbeat=0, ack_timeout=SECOND)
    pool.feed(0, blind(104, b"old"), 5)
    pool.submit(1, 1, [b"x"], SECOND // 2, 10)
    write_all(pool, 0, 10)
    pool.expire(SECOND // 2)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["refused"], result["text"]) == (EXPIRED, 0, "")


def test_the_last_reason_outlives_what_happens_to_the_connection() -> None:
    pool = opened(["a:1"], heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0, retry_backoff=SECOND)
    frame = pool.submit(1, 1, [b"x"], 3 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 114, b"the queue is full"), 10)
    now = 10
    while not pool.connection(0)["queue"]:
        now = pool.next_due()
        pool.expire(now)
    write_all(pool, 0, now)
    pool.lost(0, LOST, 104, now)
    while not (results := pool.take_settled()):
        now = pool.next_due()
        pool.expire(now)
    assert (results[0]["outcome"], results[0]["code"]) == (EXPIRED, -3)
    assert (results[0]["refused"], results[0]["text"]) == (114, "the queue is full")


# --- sizes


@pytest.mark.parametrize("size", [300, 70_000, 1_000_000])
def test_a_refusal_may_be_longer_than_our_frames(size: int) -> None:
    pool = opened(["a:1"], heartbeat=0, max_frame=256)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    assert pool.feed(0, refusal(7, 101, b"y" * size), 10)[0] == 0
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["text"]) == (FAILED, 101, "y" * min(size, 400))


def test_a_reply_has_a_limit_all_the_same() -> None:
    pool = opened(["a:1"], heartbeat=0)
    assert pool.feed(0, (1 << 20).to_bytes(4, "big") + b"\x07", 10)[0] != 0


# --- connections that a code or silence ends


def test_a_code_that_doubts_the_framing_replaces_the_connection() -> None:
    pool = opened(["a:1"], heartbeat=0, retry_backoff=0, reconnect_backoff=0)
    frame = pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    other = pool.submit(2, 2, [b"y"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 94, b"magicInMsg(1) != 60929"), 10)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"]) == (FAILED, 94)
    assert pool.take_work() == (0, "close", FRAMING)
    pool.lost(0, FRAMING, 94, 20)
    assert kinds(pool) == [8, FRAMING]
    pool.expire(30)
    connect_all(pool, 30)
    assert pool.connection(0)["connects"] == 2
    assert write_all(pool, 0, 40) == other


def test_it_does_so_where_no_answer_was_asked_for() -> None:
    pool = opened(["a:1"], heartbeat=0, ack=NO_ACK)
    pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    while pool.take_work() is not None:
        pass
    pool.feed(0, refusal(77, 94, b"magicInMsg(1) != 60929"), 10)
    assert pool.take_work() == (0, "close", FRAMING)


@pytest.mark.parametrize("answer", ["strange number", "no number", "settled", "elsewhere", "older attempt"])
def test_it_does_so_whatever_number_the_code_comes_with(answer: str) -> None:
    """A server that has lost its place reads the number from the wrong bytes."""
    pool, frames = two_frames(ack_timeout=SECOND, retry_backoff=0, retry_backoff_max=0)
    text = b"magicInMsg(1) != 60929"
    seen = []
    if answer == "strange number":
        no, seen = refusal(77, 94, text), [(UNEXPECTED, "a:1", 94, text)]
    elif answer == "no number":
        pool.submit(3, 13, [b"y"], 100 * SECOND, 0)
        pool.submit(4, 14, [b"y"], 100 * SECOND, 0)
        write_all(pool, 0, 0)
        write_all(pool, 1, 0)
        no, seen = blind(94, text), [(8, "a:1", 94, text)]
    elif answer == "settled":
        pool.feed(0, ack(frames[0]), 5)
        no, seen = ack(frames[0], 94, text), [(UNEXPECTED, "a:1", 94, text)]
    elif answer == "elsewhere":
        no, seen = ack(frames[1], 94, text), [(MISDIRECTED, "a:1", 94, text)]
    else:
        pool.feed(0, STRANGE, 5)
        pool.expire(SECOND)
        no = ack(frames[0], 94, text)
    settled = len(pool.take_settled())
    while pool.take_work() is not None:
        pass
    pool.events.clear()
    pool.feed(0, no, SECOND + 10)
    assert pool.take_work() == (0, "close", FRAMING)
    assert pool.take_settled() == []
    assert settled == (answer == "settled")
    assert pool.events == seen


def test_why_a_connection_was_to_be_closed_is_forgotten_with_it() -> None:
    pool = opened(["a:1"], heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    frame = pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, ack(frame, 94), 10)
    pool.lost(0, LOST, 104, 10)  # the socket failed before the close was made
    pool.expire(20)
    connect_all(pool, 20)
    assert pool.connection(0)["state"] == "active"
    pool.endpoints(["b:1"], 1, 30)
    work = []
    while (item := pool.take_work()) is not None:
        work.append(item)
    assert (0, "close", 0) in work


@pytest.mark.parametrize(("event", "cause"), [(SILENT, -2), (DEAF, -3), (LOST, -3), (FRAMING, -3)])
def test_the_cause_says_who_gave_the_connection_up(event: int, cause: int) -> None:
    pool = opened(["a:1"], heartbeat=0)
    pool.submit(1, 1, [b"x"], SECOND, 0)
    write_all(pool, 0, 0)
    pool.submit(2, 2, [b"y"], SECOND, 0)
    pool.lost(0, event, 0, 10)
    pool.expire(SECOND)
    assert [(r["outcome"], r["code"]) for r in pool.take_settled()] == [(EXPIRED, cause)] * 2


def test_frames_without_an_answer_end_a_connection_as_silent_and_heartbeats_as_deaf() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 10)
    pool.expire(SECOND)
    pool.expire(SECOND + 10)
    assert pool.take_work() == (0, "close", SILENT)
    pool = opened(["a:1"], heartbeat=SECOND, heartbeat_retries=1)
    pool.expire(SECOND)
    write_all(pool, 0, SECOND)
    pool.take_work()
    pool.expire(2 * SECOND)
    assert pool.take_work() == (0, "close", DEAF)
