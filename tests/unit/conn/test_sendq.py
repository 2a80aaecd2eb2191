"""Gathering and partial writes: the stream on the wire is the frames in order, whatever the socket takes."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conn.test_pool import SECOND, ack, opened, write_all


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 3000), st.floats(0, 1)), min_size=1, max_size=40),
    st.booleans(),
)
def test_random_partial_writes_keep_the_stream_in_step(sizes, writes, heartbeat) -> None:
    pool = opened(["a:1"], heartbeat=SECOND)
    control = b""
    if heartbeat:
        pool.expire(SECOND)
        control = b"".join(pool.gather(0))
        assert len(control) == pool.connection(0)["control"] > 0
    frames = [pool.submit(i, 100 + i, [b"x" * n], 100 * SECOND, SECOND) for i, n in enumerate(sizes)]
    expected, sent = control + b"".join(frames), b""
    while len(sent) < len(expected):
        for most, most_bytes, share in writes:
            parts = pool.gather(0, most, most_bytes)
            assert len(parts) <= max(most, 1)
            data = b"".join(parts)
            n = max(1, int(share * len(data))) if data else 0
            pool.wrote(0, n, SECOND)
            sent += data[:n]
            connection = pool.connection(0)
            assert connection["queue_bytes"] == sum(len(frames[i]) for i in connection["queue"])
            assert connection["waiting"] == len(connection["queue"])
            assert connection["in_flight"] == len(connection["flight"])
    assert sent == expected
    connection = pool.connection(0)
    assert connection["empty"]
    assert connection["flight"] == list(range(len(frames)))
    assert connection["flight_bytes"] == sum(map(len, frames))
    assert connection["sent_bytes"] == len(expected)
    assert connection["sent_frames"] == len(frames)


def test_a_frame_is_never_queued_twice() -> None:
    pool = opened(["a:1", "b:1"], retry_backoff=0, avoid=0, heartbeat=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    for turn in range(1, 30):
        at = next(i for i in (0, 1) if pool.connection(i)["queue"])
        assert write_all(pool, at, turn) == frame
        pool.feed(at, ack(frame, 114), turn)
        pool.expire(turn * 10_000_000)
        held = [ident for i in (0, 1) for key in ("queue", "flight") for ident in pool.connection(i)[key]]
        assert held + [r["ident"] for r in pool.take_settled()] == [1]
        if not held:
            break


def test_a_heartbeat_waits_for_the_end_of_a_frame() -> None:
    pool = opened(["a:1"], heartbeat=SECOND)
    pool.submit(1, 7, [b"x" * 100], 100 * SECOND, 0)
    pool.wrote(0, 10, 0)
    pool.expire(SECOND)
    assert pool.connection(0)["control"] == 0
    write_all(pool, 0, SECOND)
    pool.expire(2 * SECOND)
    first = b"".join(pool.gather(0))
    pool.wrote(0, 3, 2 * SECOND)
    frame = pool.submit(2, 8, [b"y"], 100 * SECOND, 2 * SECOND)
    assert b"".join(pool.gather(0)) == first[3:] + frame
