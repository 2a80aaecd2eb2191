"""Frames that ask for no answer, and frames that ask for one from behind the message queue."""

from dataproxy.numbers import LC_NO_SINK_ACK, OUT_DELIVERED, OUT_EXPIRED, OUT_SENT
from tests.native.probe_connections import Connections
from tests.native.probe_wire import Server
from tests.unit.conn.test_pool import SECOND, ack, connect_all, holder, opened, write_all

SINK, NONE = 1, 2
SILENT, DRAINED, REFUSED = 4, 7, 8


def answer(frame: bytes, code: int = 0) -> bytes:
    """Return what a server that overlooks ``isAck=false`` answers."""
    return ack(frame.replace(b"isAck=false", b"isack=false"), code)


def test_a_frame_without_an_answer_has_its_result_with_its_last_byte() -> None:
    pool = opened(["a:1"], ack=NONE)
    frame = pool.submit(1, 7, [b"x" * 100], 100 * SECOND, 0)
    assert b"&isAck=false" in frame
    assert b"".join(pool.gather(0)) == frame
    pool.wrote(0, len(frame) - 1, 1)
    assert pool.take_settled() == []
    assert pool.connection(0)["head_sent"] == len(frame) - 1
    assert b"".join(pool.gather(0)) == frame[-1:]
    pool.wrote(0, 1, 2)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"], result["attempts"], result["open_attempts"]) == (OUT_SENT, 0, 1, 0)
    assert result["node"] == "a:1"
    connection = pool.connection(0)
    assert (connection["flight"], connection["flight_bytes"], connection["sent_frames"]) == ([], 0, 1)
    assert (connection["empty"], pool.facts()["table"], pool.facts()["timers"]) == (True, 0, 1)


def test_a_frame_that_lost_its_connection_before_the_last_byte_is_sent_again() -> None:
    pool = opened(["a:1", "b:1"], ack=NONE)
    frame = pool.submit(1, 7, [b"x" * 100], 100 * SECOND, 0)
    at = holder(pool, 1)
    pool.gather(at)
    pool.wrote(at, len(frame) - 1, 1)
    pool.lost(at, 3, 104, 2)
    assert pool.take_settled() == []
    assert write_all(pool, 1 - at, 3) == frame
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"], result["node"]) == (OUT_SENT, 1, "ba"[at] + ":1")


def test_what_was_written_whole_stays_sent_when_its_connection_is_lost() -> None:
    pool = opened(["a:1", "b:1"], ack=NONE)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    at = holder(pool, 1)
    write_all(pool, at, 1)
    assert [r["outcome"] for r in pool.take_settled()] == [OUT_SENT]
    pool.lost(at, 3, 104, 2)
    assert (pool.take_settled(), pool.connection(1 - at)["queue"]) == ([], [])


def test_a_deadline_within_a_frame_ends_its_connection_and_the_message_did_not_arrive() -> None:
    pool = opened(["a:1"], ack=NONE, heartbeat=0)
    frame = pool.submit(1, 7, [b"x" * 100], SECOND, 0)
    pool.gather(0)
    pool.wrote(0, len(frame) // 2, 1)
    pool.expire(SECOND)
    assert pool.take_work() == (0, "close", 0)
    pool.lost(0, 0, 0, SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["open_attempts"]) == (OUT_EXPIRED, 0)


def test_answers_that_nobody_asked_for() -> None:
    pool = opened(["a:1"], ack=NONE, avoid=5 * SECOND)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 1)
    pool.take_settled()
    del pool.events[:]
    good = answer(frame)
    assert pool.feed(0, good, 2) == (0, len(good))
    assert (pool.events, pool.facts()["unmatched"], pool.take_settled()) == ([], 0, [])
    pool.feed(0, answer(frame, 115), 3)
    assert [(event[0], event[2]) for event in pool.events] == [(REFUSED, 115)]
    pool.feed(0, answer(frame, 2) * 1000, 2 * SECOND)
    assert [(event[0], event[2]) for event in pool.events[1:]] == [(DRAINED, 2)]
    assert pool.connection(0)["avoid_until"] == 7 * SECOND
    assert (pool.facts()["backoff"], pool.take_settled()) == (0, [])


def sink_pool(**config: object) -> tuple[Connections, bytes]:
    """Return a connection that has written a frame which waits for a sink ack."""
    pool = opened(["a:1", "b:1"], ack=SINK, ack_timeout=SECOND, **config)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    at = holder(pool, 1)
    assert b"&proxySend=true" in frame
    write_all(pool, at, 0)
    return pool, frame


def answer_heartbeats(pool: Connections, now: int) -> int:
    """Write what is queued, and answer as a proxy does that answers heartbeats alone; return how many there were."""
    beats = 0
    for index in (0, 1):
        data = write_all(pool, index, now)
        while data:
            size = 4 + int.from_bytes(data[:4], "big")
            assert data[4] == 8, "nothing but heartbeats is written"
            pool.feed(index, Server().serve(data[:size], 0)["reply"], now)
            beats += 1
            data = data[size:]
    return beats


def test_a_sink_ack_delivers() -> None:
    pool, frame = sink_pool()
    reply = Server().serve(frame, 0)["reply"]
    assert b"dpIp" not in reply
    pool.feed(holder(pool, 1), reply, 90 * SECOND)
    assert [r["outcome"] for r in pool.take_settled()] == [OUT_DELIVERED]


def test_a_missing_sink_ack_sends_nothing_again_and_the_frame_expires() -> None:
    pool, _ = sink_pool(heartbeat=30 * SECOND)
    beats = 0
    for tick in range(1, 1000):
        pool.expire(tick * SECOND // 10)
        assert pool.take_settled() == []
        beats += answer_heartbeats(pool, tick * SECOND // 10)
    assert 10 < beats < 250
    pool.expire(100 * SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["code"]) == (OUT_EXPIRED, LC_NO_SINK_ACK)
    assert (result["attempts"], result["open_attempts"]) == (1, 1)


def test_a_peer_that_does_not_even_answer_heartbeats_loses_the_frames_that_wait_for_sink_acks() -> None:
    pool, frame = sink_pool(heartbeat=30 * SECOND)
    at = holder(pool, 1)
    closed = -1
    for tick in range(1, 40):
        now = tick * SECOND // 10
        pool.expire(now)
        work = pool.take_work()
        while work is not None:
            if work[1:] == ("close", SILENT):
                closed = tick
                pool.lost(work[0], SILENT, 0, now)
            work = pool.take_work()
        if closed >= 0:
            break
        write_all(pool, at, now)
    assert 20 <= closed < 40, "a heartbeat after one ack_timeout, and another one for its answer"
    assert write_all(pool, 1 - at, 5 * SECOND) == frame


def test_a_refusal_of_a_frame_that_waits_for_a_sink_ack_is_a_refusal() -> None:
    pool, frame = sink_pool(retry_backoff=1000, retry_backoff_max=1000, heartbeat=0)
    at = holder(pool, 1)
    pool.feed(at, ack(frame, 119, b"no queue"), 10)
    assert pool.facts()["backoff"] == 1
    pool.expire(SECOND // 2)
    again = holder(pool, 1)
    assert write_all(pool, again, SECOND // 2) == frame
    pool.feed(again, ack(frame), SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"]) == (OUT_DELIVERED, 2)


def test_a_lost_connection_sends_a_frame_again_that_waits_for_a_sink_ack() -> None:
    pool, frame = sink_pool(heartbeat=0)
    at = holder(pool, 1)
    pool.lost(at, 3, 104, 10)
    connect_all(pool, 10)
    assert write_all(pool, 1 - at, 20) == frame
