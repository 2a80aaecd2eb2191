"""What a connection is judged by: bytes that move and answers that come, one look at a time."""

import pytest

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import DELIVERED, SECOND, STRANGE, ack, connect_all, holder, opened, write_all

SILENT = 4
FAR = 1000 * SECOND
LOOK = SECOND // 8


def closes(pool: Connections) -> list[int]:
    """Return the connections that are to be closed for silence."""
    found = []
    while (work := pool.take_work()) is not None:
        if work[1] == "close":
            assert work[2] == SILENT
            found.append(work[0])
    return found


def passes(pool: Connections, begin: int, end: int) -> list[int]:
    """Let time pass, timer by timer; return the connections that were to be closed by then."""
    found = []
    while not found and 0 <= pool.next_due() <= end:
        pool.expire(max(begin, pool.next_due()))
        found = closes(pool)
    return found


def test_a_half_written_frame_leaves_a_connection_that_does_not_move() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [bytes(1000)], FAR, 0)
    at = holder(pool, 1)
    pool.gather(at)
    pool.wrote(at, 500, 0)
    pool.held[at] = 500
    assert passes(pool, 0, SECOND - 1) == []
    assert passes(pool, SECOND, SECOND) == [at]
    pool.lost(at, SILENT, 0, SECOND)
    assert pool.connection(1 - at)["queue"] == [1]
    frame = write_all(pool, 1 - at, SECOND)
    pool.feed(1 - at, ack(frame), SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"]) == (DELIVERED, 1)


def test_frames_that_no_host_acknowledged_leave_a_connection_that_does_not_move() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    for ident in range(3):
        pool.submit(ident, ident, [b"x"], FAR, ident * SECOND // 4)
        write_all(pool, 0, ident * SECOND // 4)
        pool.held[0] = pool.connection(0)["sent_bytes"]
    assert passes(pool, 0, SECOND - 1) == []
    assert passes(pool, SECOND, SECOND) == [0]
    pool.lost(0, SILENT, 0, SECOND)
    assert pool.facts()["waiting"] + pool.facts()["backoff"] == 3


def test_what_a_slow_connection_still_carries_is_not_late() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frames = [pool.submit(ident, ident, [bytes(1000)], FAR, 0) for ident in range(40)]
    size = len(frames[0])
    write_all(pool, 0, 0)
    arrived, now = 0, 0
    pool.held[0] = 40 * size
    while arrived < 40:  # one frame in half an ack timeout: 20 times as long as one may take
        now += SECOND // 2
        assert passes(pool, 0, now) == []
        pool.held[0] -= size
        pool.feed(0, ack(frames[arrived]), now)
        arrived += 1
    assert [r["attempts"] for r in pool.take_settled()] == [1] * 40
    assert pool.facts()["retries"] == 0


def test_the_bytes_of_one_frame_count_as_well() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [bytes(100_000)], FAR, 0)
    frame = write_all(pool, 0, 0)
    pool.held[0] = len(frame)
    for step in range(1, 21):
        assert passes(pool, 0, step * SECOND // 2) == []
        pool.held[0] -= len(frame) // 20 if step < 20 else pool.held[0]
    pool.feed(0, ack(frame), 10 * SECOND)
    assert [r["attempts"] for r in pool.take_settled()] == [1]


def test_a_frame_that_arrived_is_late_after_the_timeout_though_others_still_arrive() -> None:
    """A host whose kernel takes bytes while its process is frozen."""
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frames = [pool.submit(ident, ident, [bytes(1000)], FAR, 0) for ident in range(40)]
    write_all(pool, 0, 0)
    pool.held[0] = 39 * len(frames[0])
    for step in range(1, 10):
        now = step * SECOND // 10
        assert passes(pool, 0, now - 1) == []
        pool.held[0] -= len(frames[0])
    assert passes(pool, 0, SECOND) == [0]


def test_a_frame_is_late_a_timeout_after_the_last_look_that_found_it_here() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [b"x"], FAR, 0)
    frame = write_all(pool, 0, 0)
    pool.held[0] = len(frame)
    assert passes(pool, 0, 4 * LOOK) == []
    pool.held[0] = 0
    assert passes(pool, 0, 4 * LOOK + SECOND - 1) == []
    assert passes(pool, 0, 4 * LOOK + SECOND) == [0]


def test_a_proxy_that_answers_in_order_has_time_for_each() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frames = [pool.submit(ident, ident, [b"x"], FAR, 0) for ident in range(20)]
    write_all(pool, 0, 0)
    for turn, frame in enumerate(frames):
        now = (turn + 1) * (SECOND - 1)
        assert passes(pool, 0, now) == []
        pool.feed(0, ack(frame), now)
    assert [r["attempts"] for r in pool.take_settled()] == [1] * 20


def test_answers_to_later_frames_do_not_excuse_a_missing_one() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frames = [pool.submit(ident, ident, [b"x"], FAR, 0) for ident in range(4)]
    write_all(pool, 0, 0)
    pool.feed(0, ack(frames[0]), SECOND // 4)
    pool.feed(0, ack(frames[2]), SECOND // 2)
    pool.feed(0, ack(frames[3]), SECOND)
    assert passes(pool, 0, SECOND + SECOND // 4 - 1) == []
    assert pool.connection(0)["flight"] == [1]
    assert passes(pool, 0, SECOND + SECOND // 4) == []
    assert pool.connection(0)["queue"] == [1]  # it alone is sent again


def test_a_proxy_that_freezes_after_an_answer_is_replaced() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    frames = [pool.submit(ident, ident, [b"x"], FAR, 0) for ident in range(4)]
    write_all(pool, 0, 0)
    pool.feed(0, ack(frames[0]), SECOND // 2)
    assert passes(pool, 0, SECOND + SECOND // 2 - 1) == []
    assert passes(pool, 0, SECOND + SECOND // 2) == [0]


def test_replies_are_progress_too() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [bytes(1000)], FAR, 0)
    pool.gather(0)
    pool.wrote(0, 500, 0)
    pool.held[0] = 500
    for step in range(1, 10):
        pool.feed(0, STRANGE, step * SECOND - 1)
        assert passes(pool, 0, step * SECOND) == []
    assert passes(pool, 0, 10 * SECOND) == [0]


def test_a_connection_without_duties_is_not_looked_at_often() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    assert pool.next_due() == SECOND
    frame = pool.submit(1, 7, [b"x"], FAR, 0)
    write_all(pool, 0, 0)
    assert pool.next_due() == LOOK
    pool.feed(0, ack(frame), 10)
    pool.expire(LOOK)
    assert pool.next_due() == LOOK + SECOND


@pytest.mark.parametrize("retries", [1, 3])
def test_a_heartbeat_that_never_left_is_not_unanswered(retries: int) -> None:
    """A slow connection has megabytes in front of it; one that does not move is closed for that."""
    pool = opened(["a:1"], ack_timeout=100 * SECOND, heartbeat=SECOND, heartbeat_retries=retries)
    pool.expire(SECOND)
    beat = write_all(pool, 0, SECOND)
    for step in range(2, 40):
        pool.held[0] = len(beat) + 40 - step
        assert passes(pool, 0, step * SECOND) == []
        assert pool.connection(0)["empty"]
    assert pool.connection(0)["unanswered"] == 1


def test_an_idle_connection_whose_host_is_gone_is_replaced_a_timeout_after_its_heartbeat() -> None:
    pool = opened(["a:1"], ack_timeout=2 * SECOND, heartbeat=SECOND, heartbeat_retries=100)
    pool.expire(SECOND)
    pool.held[0] = len(write_all(pool, 0, SECOND))
    assert passes(pool, 0, 3 * SECOND - 1) == []
    assert passes(pool, 0, 3 * SECOND) == [0]


@pytest.mark.parametrize("heartbeat", [0, 30 * SECOND])
def test_a_proxy_that_was_silent_gets_nothing_until_it_says_something(heartbeat: int) -> None:
    pool = opened(
        ["a:1", "b:1"], ack_timeout=SECOND, heartbeat=heartbeat, reconnect_backoff=0, reconnect_backoff_max=0
    )  # fmt: skip
    frame = pool.submit(1, 7, [b"x"], FAR, 0)
    at = holder(pool, 1)
    write_all(pool, at, 0)
    pool.expire(SECOND)
    assert closes(pool) == [at]
    pool.lost(at, SILENT, 0, SECOND)
    pool.expire(SECOND)
    connect_all(pool, SECOND)
    assert pool.connection(at)["state"] == "active"
    assert {pool.choose(SECOND) for _ in range(50)} == {1 - at}
    write_all(pool, 1 - at, SECOND)
    pool.feed(1 - at, ack(frame), SECOND)
    if heartbeat:  # it is asked at once
        pool.expire(SECOND + 1000)
        data = write_all(pool, at, SECOND + 1000)
        assert data[4] == 8
        pool.feed(at, ack(data), SECOND + 2000)
        assert {pool.choose(SECOND + 2000) for _ in range(50)} == {0, 1}
    else:
        assert {pool.choose(11 * SECOND) for _ in range(50)} == {0, 1}


def test_a_connection_whose_proxy_left_the_list_is_judged_as_before() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [b"x"], FAR, 0)
    pool.held[0] = len(write_all(pool, 0, 0))
    assert passes(pool, 0, SECOND - 1) == []
    pool.endpoints(["b:1"], 1, SECOND - 1)
    assert passes(pool, SECOND, SECOND) == [0]


def test_a_standstill_is_noticed_when_it_is_due() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, heartbeat=0)
    pool.submit(1, 7, [b"x"], FAR, 0)
    pool.held[0] = len(write_all(pool, 0, 0))
    assert passes(pool, 0, LOOK) == []
    pool.feed(0, STRANGE, LOOK + 1)
    assert passes(pool, 0, LOOK + SECOND) == []
    assert passes(pool, 0, LOOK + SECOND + 1) == [0]


def test_other_connections_to_a_proxy_that_was_silent_are_avoided_until_they_hear_something() -> None:
    pool = opened(["a:1", "b:1"], 4, ack_timeout=SECOND, heartbeat=30 * SECOND)
    frame = pool.submit(1, 7, [b"x"], FAR, 0)
    at = holder(pool, 1)
    write_all(pool, at, 0)
    pool.expire(SECOND)
    assert closes(pool) == [at]
    pool.lost(at, SILENT, 0, SECOND)
    peer = pool.connection(at)["peer"]
    (other,) = [i for i in range(4) if i != at and pool.connection(i)["peer"] == peer]
    heir = holder(pool, 1)
    write_all(pool, heir, SECOND)
    pool.feed(heir, ack(frame), SECOND)
    fine = {i for i in range(4) if pool.connection(i)["peer"] != peer}
    assert {pool.choose(SECOND) for _ in range(50)} == fine
    pool.expire(SECOND + 1000)
    pool.feed(other, ack(write_all(pool, other, SECOND + 1000)), SECOND + 2000)
    assert {pool.choose(SECOND + 2000) for _ in range(50)} == {*fine, other}
