"""Choice of a connection: what waits, what is known of the load, and nodes that are left alone."""

from collections import Counter

from tests.native.probe_connections import Connections
from tests.native.probe_wire import Server
from tests.unit.conn.test_pool import SECOND, ack, opened, write_all


def beat(pool: Connections, index: int, load: int, now: int) -> None:
    """Have a connection send a heartbeat and be answered with a load."""
    data = b"".join(pool.gather(index))
    pool.wrote(index, len(data), now)
    pool.feed(index, Server(load=load).serve(data, 0)["reply"], now)


def chosen(pool: Connections, times: int = 400, now: int = 0) -> Counter[str]:
    """Return how often each proxy is chosen."""
    return Counter(pool.connection(pool.choose(now))["peer"] for _ in range(times))


def test_no_connection_no_choice() -> None:
    assert Connections().choose(0) == -1


def test_idle_connections_take_turns() -> None:
    counts = chosen(opened(["a:1", "b:1", "c:1", "d:1"]))
    assert len(counts) == 4
    assert min(counts.values()) > 80


def test_the_connection_with_less_waiting_is_preferred() -> None:
    pool = opened(["a:1", "b:1"])
    pool.submit(1, 1, [b"x" * 100_000], 100 * SECOND, 0)
    busy = next(pool.connection(i)["peer"] for i in (0, 1) if pool.connection(i)["queue"])
    counts = chosen(pool)
    assert counts[busy] < 250  # it wins only where the other was no candidate
    assert sum(counts.values()) - counts[busy] > counts[busy]


def test_the_load_decides_between_idle_connections_when_both_are_known() -> None:
    pool = opened(["a:1", "b:1"], heartbeat=SECOND)
    before = chosen(pool)
    pool.expire(SECOND)
    beat(pool, 0, 900, SECOND)
    assert pool.connection(0)["load"] == 900
    assert abs(chosen(pool, now=SECOND)["a:1"] - before["a:1"]) < 60  # the other is unknown
    beat(pool, 1, 1, SECOND)
    after = chosen(pool, now=SECOND)
    assert after[pool.connection(1)["peer"]] > 250


def test_a_drained_node_is_avoided_for_a_while() -> None:
    pool = opened(["a:1", "b:1"], avoid=SECOND, retry_backoff=0)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    at = next(i for i in (0, 1) if pool.connection(i)["queue"])
    write_all(pool, at, 0)
    pool.feed(at, ack(frame, 2), 0)
    assert pool.connection(at)["avoid_until"] == SECOND
    assert set(chosen(pool, now=SECOND - 1)) == {pool.connection(1 - at)["peer"]}
    assert len(chosen(pool, now=SECOND)) == 2


def test_when_every_node_is_drained_the_first_to_return_is_used() -> None:
    pool = opened(["a:1", "b:1"], avoid=SECOND, retry_backoff=0, heartbeat=0)
    for now, ident in ((0, 1), (1000, 2)):
        frame = pool.submit(ident, ident, [b"x"], 100 * SECOND, now)
        at = next(i for i in (0, 1) if ident in pool.connection(i)["queue"])
        write_all(pool, at, now)
        pool.feed(at, ack(frame, 1), now)
    first = min((0, 1), key=lambda i: pool.connection(i)["avoid_until"])
    assert set(chosen(pool, now=2000)) == {pool.connection(first)["peer"]}
