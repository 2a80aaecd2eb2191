"""Life of connections and the fate of what they hold, one step at a time."""

from dataproxy.codes import RETRY_CLASS
from tests.native.probe_connections import Connections
from tests.native.probe_wire import Server
from tests.sim.proxy import frame_seq

SECOND = 1_000_000
CLASSES = {code: int(kind) for code, kind in RETRY_CLASS.items()}
DELIVERED, FAILED, EXPIRED = 1, 2, 3
STRANGE = b"\x00\x00\x00\x05\x7fABCD"  # a frame of an unknown type, which answers nothing


def opened(labels: list[str], connections: int | None = None, **config: object) -> Connections:
    """Return connections that are connected to these proxies, at time 0."""
    pool = Connections(classes=CLASSES, **config)
    assert pool.endpoints(labels, connections or len(labels), 0) == 0
    connect_all(pool, 0)
    return pool


def connect_all(pool: Connections, now: int) -> None:
    """Do the socket work that is asked for; every connect succeeds, nothing is written."""
    work = pool.take_work()
    while work is not None:
        index, what, event = work
        if what == "connect":
            pool.connected(index, now)
        elif what == "close":
            pool.lost(index, event, 0, now)
        work = pool.take_work()


def write_all(pool: Connections, index: int, now: int) -> bytes:
    """Have a connection write everything."""
    data = b"".join(pool.gather(index))
    pool.wrote(index, len(data), now)
    return data


def ack(frame: bytes, code: int = 0, text: bytes = b"") -> bytes:
    """Return the answer to one data frame."""
    server = Server()
    reply = server.serve(frame, 0)["reply"]
    return server.refuse(reply, code, text) if code else reply


def holder(pool: Connections, ident: int) -> int:
    """Return the connection that holds a pack."""
    for i in range(pool.facts()["connections"]):
        connection = pool.connection(i)
        if ident in connection["queue"] or ident in connection["flight"]:
            return i
    raise AssertionError(f"no connection holds {ident}")


def test_a_frame_queued_on_a_lost_connection_moves_to_another() -> None:
    pool = opened(["a:1", "b:1"])
    pool.submit(1, 11, [b"x"], 100 * SECOND, 0)
    at = holder(pool, 1)
    pool.lost(at, 3, 104, 1)
    assert pool.connection(1 - at)["queue"] == [1]
    assert pool.connection(at)["queue_bytes"] == 0
    data = write_all(pool, 1 - at, 2)
    assert frame_seq(data) == 11
    assert pool.feed(1 - at, ack(data), 3) == (0, len(ack(data)))
    assert [r["outcome"] for r in pool.take_settled()] == [DELIVERED]


def test_queued_frames_of_a_lost_connection_keep_their_order() -> None:
    pool = opened(["a:1", "b:1"])
    for ident in range(20):
        pool.submit(ident, 100 + ident, [b"x"], 100 * SECOND, 0)
    before = pool.connection(0)["queue"]
    pool.lost(0, 3, 104, 1)
    assert pool.connection(1)["queue"][-len(before) :] == before
    assert pool.facts()["waiting"] == 0


def test_the_node_is_the_one_that_answered() -> None:
    pool = opened(["a:1", "b:1"], ack_timeout=SECOND)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    first = holder(pool, 1)
    frame = write_all(pool, first, 0)
    pool.lost(first, 3, 104, 10)
    write_all(pool, 1 - first, 20)
    pool.endpoints(["c:1", pool.connection(1 - first)["peer"]], 2, 30)
    pool.feed(1 - first, ack(frame), 40)
    (result,) = pool.take_settled()
    assert result["node"] == pool.connection(1 - first)["peer"]


def test_a_refusal_that_comes_twice_does_not_hide_an_open_attempt() -> None:
    pool = opened(["a:1"], retry_backoff=0, avoid=0)
    frame = pool.submit(1, 7, [b"x"], SECOND, 0)
    write_all(pool, 0, 0)
    no = ack(frame, 114)
    pool.feed(0, no + no, 10)
    pool.expire(20_000)
    assert holder(pool, 1) == 0
    write_all(pool, 0, 30_000)
    pool.expire(SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"], result["open_attempts"]) == (EXPIRED, 2, 1)


def test_garbage_counts_as_no_reply() -> None:
    pool = opened(["a:1"], reconnect_backoff=100_000)
    for losses in range(1, 4):
        status, _ = pool.feed(0, b"HTTP/1.1 400\r\n\r\n", losses * SECOND * 60)
        assert status < 0
        pool.lost(0, 5, 0, losses * SECOND * 60)
        assert pool.connection(0)["failures"] == losses
        pool.expire(pool.connection(0)["reconnect_at"])
        connect_all(pool, losses * SECOND * 60 + SECOND)


def test_a_success_for_a_half_written_resend_counts_even_when_the_pool_is_aborted() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.feed(0, STRANGE, SECOND // 2)  # it is not silent
    pool.expire(SECOND)
    assert pool.connection(0)["queue"] == [1]
    pool.wrote(0, 5, SECOND)
    pool.feed(0, ack(frame), SECOND + 1)
    assert pool.take_settled() == []
    pool.abort(-4)
    (result,) = pool.take_settled()
    assert result["outcome"] == DELIVERED


def test_an_unanswered_frame_expires_with_the_cause() -> None:
    pool = opened(["a:1"], ack_timeout=SECOND, retry_backoff=SECOND, retry_backoff_max=SECOND, heartbeat=0)
    pool.submit(1, 7, [b"x"], 2 * SECOND + 1, 0)
    write_all(pool, 0, 0)
    pool.feed(0, STRANGE, SECOND // 2)  # it is not silent
    pool.expire(SECOND)
    write_all(pool, 0, SECOND)
    pool.feed(0, STRANGE, SECOND + SECOND // 2)
    pool.expire(2 * SECOND)
    results = {r["ident"]: r for r in pool.take_settled()}
    assert 1 not in results
    pool.expire(2 * SECOND + 1)
    results = {r["ident"]: r for r in pool.take_settled()}
    assert (results[1]["outcome"], results[1]["code"], results[1]["open_attempts"]) == (EXPIRED, -2, 2)
