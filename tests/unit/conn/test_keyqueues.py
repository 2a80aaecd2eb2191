"""Key queues: at most one pack of each is under way, and only its result lets the next one go."""

import pytest

from tests.native.probe_connections import Connections
from tests.support.scripted import ack, refusal

MS = 1000
DELIVERED, FAILED, EXPIRED = 1, 2, 3
FAR = 10_000 * MS


@pytest.fixture
def pool():
    connections = Connections(
        ack_timeout=100 * MS, retry_backoff=10 * MS, retry_backoff_max=10 * MS, heartbeat=0, classes={101: 4, 114: 2}
    )
    connections.endpoints(["a:1", "b:1"], 2, 0)
    while connections.take_work():
        pass
    for i in (0, 1):
        connections.connected(i, 0)
    return connections


def write(pool, now):
    """Let every connection write all it has; return {frame: connection}."""
    while pool.advance(now):
        pass
    found = {}
    while work := pool.take_work():
        if work[1] == "write":
            for frame in pool.gather(work[0]):
                found[frame] = work[0]
                pool.wrote(work[0], len(frame), now)
    return found


def results(pool):
    """Return [(pack, outcome)] since the last call."""
    return [(r["ident"], r["outcome"]) for r in pool.take_settled()]


def test_the_next_goes_with_the_result(pool):
    frames = [pool.submit(i, i, [b"x"], FAR, 0, key_queue=3) for i in range(3)]
    assert pool.key_queue(3) == (0, [1, 2])
    for i, frame in enumerate(frames):
        written = write(pool, i)
        assert set(written) == {frame}
        pool.feed(written[frame], ack(frame), i)
        assert results(pool) == [(i, DELIVERED)]
    assert pool.key_queue(3) == (None, [])


def test_key_queues_do_not_wait_for_each_other_nor_others_for_them(pool):
    frames = [pool.submit(i, i, [b"x"], FAR, 0, key_queue=i % 2 if i < 4 else -1) for i in range(6)]
    assert set(write(pool, 0)) == {frames[0], frames[1], frames[4], frames[5]}
    assert (pool.key_queue(0), pool.key_queue(1)) == ((0, [2]), (1, [3]))


def test_neither_ack_timeout_nor_loss_lets_the_next_go(pool):
    first = pool.submit(0, 0, [b"x"], FAR, 0, key_queue=0)
    pool.submit(1, 1, [b"y"], FAR, 0, key_queue=0)
    at = write(pool, 0)[first]
    pool.feed(at, b"\x00\x00\x00\x01\x01", 50 * MS)  # the connection lives, the frame has no answer
    pool.expire(150 * MS)
    again = write(pool, 150 * MS)
    assert set(again) == {first}
    pool.lost(again[first], 3, 104, 160 * MS)
    pool.expire(300 * MS)
    once_more = write(pool, 300 * MS)
    assert set(once_more) <= {first}
    assert pool.key_queue(0) == (0, [1])
    assert results(pool) == []


@pytest.mark.parametrize("code", [101, 114])
def test_a_refusal_that_is_final_lets_the_next_go(pool, code):
    first = pool.submit(0, 0, [b"x"], FAR, 0, key_queue=0)
    second = pool.submit(1, 1, [b"y"], FAR, 0, key_queue=0)
    at = write(pool, 0)[first]
    pool.feed(at, refusal(first, code), 1)
    if code == 101:
        assert results(pool) == [(0, FAILED)]
        assert set(write(pool, 1)) == {second}
    else:
        assert set(write(pool, 1)) == set()
        pool.expire(20 * MS)
        assert set(write(pool, 20 * MS)) == {first}


def test_held_packs_expire_at_their_own_deadline(pool):
    first = pool.submit(0, 0, [b"x"], 80 * MS, 0, key_queue=0)
    pool.submit(1, 1, [b"y"], 50 * MS, 0, key_queue=0)
    third = pool.submit(2, 2, [b"z"], 90 * MS, 0, key_queue=0)
    assert set(write(pool, 0)) == {first}
    pool.expire(50 * MS)
    assert results(pool) == [(1, EXPIRED)]
    assert pool.key_queue(0) == (0, [2])
    pool.expire(80 * MS)
    assert results(pool) == [(0, EXPIRED)]
    assert set(write(pool, 80 * MS)) == {third}


def test_a_freed_key_queue_does_not_send_what_is_over(pool):
    first = pool.submit(0, 0, [b"x"], 50 * MS, 0, key_queue=0)
    pool.submit(1, 1, [b"y"], 60 * MS, 0, key_queue=0)
    third = pool.submit(2, 2, [b"z"], 90 * MS, 0, key_queue=0)
    at = write(pool, 0)[first]
    pool.feed(at, ack(first), 49 * MS)
    assert set(write(pool, 60 * MS)) == {third}
    assert results(pool) == [(0, DELIVERED), (1, EXPIRED)]


def test_abort_fails_what_is_held(pool):
    for i in range(6):
        pool.submit(i, i, [b"x"], FAR, 0, key_queue=i % 2)
    write(pool, 0)
    pool.abort(-4)
    assert sorted(results(pool)) == [(i, FAILED) for i in range(6)]
    assert pool.key_queue(0) == pool.key_queue(1) == (None, [])
    facts = pool.facts()
    assert (facts["table"], facts["waiting"], facts["backoff"]) == (0, 0, 0)
