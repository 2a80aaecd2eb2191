"""When heartbeats are sent, and what their silence means."""

import pytest

from tests.unit.conn.test_pool import SECOND, ack, connect_all, opened, write_all

SILENT, DEAF = 4, 9


@pytest.mark.parametrize(("kind", "first"), [(8, 8), (1, 1)])
def test_an_idle_connection_sends_one_each_interval(kind: int, first: int) -> None:
    pool = opened(["a:1"], heartbeat=SECOND, heartbeat_kind=kind, heartbeat_retries=100)
    for turn in range(1, 5):
        pool.expire(turn * SECOND - 1)
        assert pool.connection(0)["empty"]
        pool.expire(turn * SECOND)
        data = write_all(pool, 0, turn * SECOND)
        assert data[4] == first
        assert pool.connection(0)["unanswered"] == turn


def test_off_means_none() -> None:
    pool = opened(["a:1"], heartbeat=0)
    for turn in range(1, 100):
        pool.expire(turn * SECOND)
    assert pool.connection(0)["empty"]
    assert pool.connection(0)["state"] == "active"


def test_none_while_something_waits_in_the_queue() -> None:
    pool = opened(["a:1"], heartbeat=SECOND)
    pool.submit(1, 1, [b"x"], 100 * SECOND, 0)
    pool.expire(SECOND)
    assert pool.connection(0)["control"] == 0
    frame = write_all(pool, 0, SECOND)
    pool.feed(0, ack(frame), SECOND)
    pool.expire(2 * SECOND)
    assert pool.connection(0)["control"] > 0


@pytest.mark.parametrize("retries", [1, 3])
def test_silence_replaces_the_connection(retries: int) -> None:
    pool = opened(["a:1"], heartbeat=SECOND, heartbeat_retries=retries, reconnect_backoff=0, reconnect_backoff_max=0)
    for turn in range(1, retries + 1):
        pool.expire(turn * SECOND)
        assert write_all(pool, 0, turn * SECOND)
    now = (retries + 1) * SECOND
    pool.expire(now)
    assert pool.take_work() == (0, "close", DEAF)
    pool.lost(0, DEAF, 0, now)
    pool.expire(now)
    connect_all(pool, now)
    connection = pool.connection(0)
    assert (connection["state"], connection["unanswered"], connection["losses"]) == ("active", 0, 1)


def test_an_answer_starts_the_count_again() -> None:
    pool = opened(["a:1"], heartbeat=SECOND, heartbeat_retries=2)
    for turn in range(1, 20):
        pool.expire(turn * SECOND)
        data = write_all(pool, 0, turn * SECOND)
        if turn % 2 == 0:
            pool.feed(0, ack(data), turn * SECOND)
            assert pool.connection(0)["unanswered"] == 0
    assert pool.connection(0)["state"] == "active"


def test_a_connection_that_says_nothing_to_a_frame_is_replaced_but_one_that_talks_is_kept() -> None:
    for talks in (False, True):
        pool = opened(["a:1", "b:1"], ack_timeout=SECOND, heartbeat=0)
        pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
        at = next(i for i in (0, 1) if pool.connection(i)["queue"])
        write_all(pool, at, 1)
        if talks:
            pool.feed(at, b"\x00\x00\x00\x05\x7fABCD", 10)
        pool.expire(SECOND)  # looks when the first frame may be due
        pool.expire(SECOND + 1)
        work = []
        while (item := pool.take_work()) is not None:
            work.append(item)
        assert ((at, "close", SILENT) in work) is not talks
        if not talks:
            pool.lost(at, SILENT, 0, SECOND + 1)
        assert 1 in pool.connection(0)["queue"] + pool.connection(1)["queue"]
