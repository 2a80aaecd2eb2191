"""A server of V1 keeps its answers until a heartbeat shakes them loose: when that is sent, and what it counts for."""

from dataproxy.numbers import FAMILY_V1, OUT_DELIVERED
from tests.native.probe_connections import Connections
from tests.support.reference.v1 import info, read_pack
from tests.unit.conn.test_pool import SECOND, opened, write_all

BEAT = b"\0\0\0\1\1"
FILLER = b"_=" + b"." * 24


def submit(pool: Connections, ident: int, now: int = 0) -> bytes:
    """Hand over a pack of one message, as a producer of V1 appends it."""
    return pool.submit(ident, 100 + ident, [b"x" * 50, FILLER], 100 * SECOND, now)


def beats(data: bytes) -> int:
    """Return how many heartbeats stand in written bytes, which hold nothing else but packs."""
    found = 0
    while data:
        size = 4 + int.from_bytes(data[:4], "big")
        if data[:size] == BEAT:
            found += 1
        else:
            read_pack(data[:size])
        data = data[size:]
    return found


def v1_pool(**config: object) -> Connections:
    """Return one connection of V1."""
    return opened(["a:1"], family=FAMILY_V1, **config)


def test_a_heartbeat_follows_the_last_frame_of_a_write() -> None:
    pool = v1_pool(heartbeat=0)
    frames = [submit(pool, i) for i in range(3)]
    assert write_all(pool, 0, 1) == b"".join(frames)
    assert write_all(pool, 0, 2) == BEAT
    assert write_all(pool, 0, 3) == b"", "one is enough"
    pool.feed(0, info(0, 100) + info(0, 101) + info(0, 102) + BEAT, 4)
    assert [r["outcome"] for r in pool.take_settled()] == [OUT_DELIVERED] * 3
    assert (write_all(pool, 0, 5), pool.connection(0)["unanswered"]) == (b"", 0)


def test_frames_behind_a_heartbeat_get_another_one_when_it_is_answered() -> None:
    pool = v1_pool(heartbeat=0)
    submit(pool, 1)
    write_all(pool, 0, 1)
    assert write_all(pool, 0, 1) == BEAT
    submit(pool, 2)
    assert beats(write_all(pool, 0, 2)) == 0
    assert write_all(pool, 0, 2) == b"", "the first is not answered yet"
    pool.feed(0, info(0, 101) + BEAT, 3)
    assert write_all(pool, 0, 4) == BEAT
    pool.feed(0, info(0, 102) + BEAT, 5)
    assert len(pool.take_settled()) == 2
    assert write_all(pool, 0, 6) == b""


def test_an_answer_of_a_server_that_flushes_needs_no_further_heartbeat() -> None:
    pool = v1_pool(heartbeat=0)
    submit(pool, 1)
    write_all(pool, 0, 1)
    pool.feed(0, info(0, 101), 2)
    assert len(pool.take_settled()) == 1
    assert write_all(pool, 0, 3) == BEAT, "it was asked for with the write"
    pool.feed(0, BEAT, 4)
    assert write_all(pool, 0, 5) == b""


def test_a_heartbeat_goes_between_frames_while_others_wait() -> None:
    pool = v1_pool(heartbeat=0)
    first = submit(pool, 1)
    second = submit(pool, 2)
    pool.gather(0)
    pool.wrote(0, len(first), 1)
    data = write_all(pool, 0, 2)
    assert data == BEAT + second
    assert write_all(pool, 0, 3) == b""
    pool.feed(0, BEAT, 4)
    assert write_all(pool, 0, 5) == BEAT, "for the second frame"


def test_every_thousand_frames_have_a_heartbeat_whatever_is_answered() -> None:
    pool = v1_pool(heartbeat=SECOND, heartbeat_retries=1)
    written = b""
    for i in range(3500):
        submit(pool, i)
        written += write_all(pool, 0, 1)
    assert 4 <= beats(written) <= 5
    assert pool.connection(0)["unanswered"] == 1, "they count as one for the peer"


def test_replies_cut_anywhere_are_read() -> None:
    for cut in range(1, 20):
        pool = v1_pool(heartbeat=0)
        submit(pool, 1)
        write_all(pool, 0, 1)
        data = info(0, 101) + BEAT + info(-103, 2**33)
        status, used = pool.feed(0, data[:cut], 2)
        assert status == 0
        assert pool.feed(0, data[used:], 3)[0] == 0
        assert [r["outcome"] for r in pool.take_settled()] == [OUT_DELIVERED]


def test_the_wire_of_v0_shakes_nothing() -> None:
    pool = opened(["a:1"], heartbeat=0)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 1)
    assert write_all(pool, 0, 2) == b""
