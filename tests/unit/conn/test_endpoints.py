"""A new proxy list: good connections stay, those of proxies that left drain, and the wanted number is kept."""

import pytest

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import CLASSES, SECOND, ack, connect_all, opened, write_all

LOST = 3  # ConnectionEvent


def peers(pool) -> list[str]:
    """Return the proxies of the active connections."""
    connections = [pool.connection(i) for i in range(pool.facts()["connections"])]
    return sorted(connection["peer"] for connection in connections if connection["active"])


def test_a_connection_whose_proxy_stays_is_not_touched() -> None:
    pool = opened(["a:1", "b:1"])
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    before = [pool.connection(i) for i in range(2)]
    for labels in (["b:1", "a:1"], ["a:1", "b:1", "c:1"]):
        pool.endpoints(labels, len(labels), SECOND)
        assert [pool.connection(i) for i in range(2)] == before
    connect_all(pool, SECOND)
    assert peers(pool) == ["a:1", "b:1", "c:1"]


@pytest.mark.parametrize("connections", [1, 2, 3])
def test_connections_move_when_the_whole_list_is_replaced(connections: int) -> None:
    pool = opened(["a:1"], connections)
    pool.endpoints(["b:1"], connections, SECOND)
    connect_all(pool, SECOND)
    assert peers(pool) == ["b:1"] * connections


def test_a_retired_connection_takes_nothing_new_and_closes_when_its_frames_are_answered() -> None:
    pool = opened(["a:1"], 1, ack_timeout=SECOND)
    frame = pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.endpoints(["b:1"], 1, 10)
    connect_all(pool, 10)
    assert pool.connection(0)["retired"]
    assert pool.connection(0)["flight"] == [1]
    pool.submit(2, 8, [b"y"], 100 * SECOND, 20)
    assert pool.connection(1)["queue"] == [2]
    pool.feed(0, ack(frame), 30)
    assert [r["ident"] for r in pool.take_settled()] == [1]
    pool.expire(10 + SECOND)
    connect_all(pool, 10 + SECOND)
    assert pool.connection(0)["state"] == "idle"
    assert peers(pool) == ["b:1"]


def test_a_connection_in_backoff_whose_proxy_returns_at_once_goes_on_waiting() -> None:
    """It has no connection that could be lost a second time."""
    pool = opened(["a:1"], 1)
    pool.lost(0, LOST, 0, 10)
    before = pool.connection(0)
    assert before["state"] == "backoff"
    pool.endpoints(["b:1"], 1, 20)
    pool.endpoints(["a:1", "b:1"], 2, 30)
    connect_all(pool, 30)
    after = pool.connection(0)
    assert after["state"] == "backoff"
    assert (after["failures"], after["losses"]) == (before["failures"], before["losses"]) == (1, 1)
    pool.expire(100 * SECOND)
    connect_all(pool, 100 * SECOND)
    assert peers(pool) == ["a:1", "b:1"]


def test_a_proxy_that_returns_while_its_connection_drains_is_used_again() -> None:
    pool = opened(["a:1"], 1)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.endpoints(["b:1"], 1, 10)
    pool.endpoints(["a:1", "b:1"], 2, 20)
    connect_all(pool, 20)
    assert peers(pool) == ["a:1", "b:1"]
    assert pool.connection(0)["flight"] == [1]


def test_what_waits_goes_to_a_draining_connection_whose_proxy_returns() -> None:
    pool = opened(["a:1"], 1)
    pool.submit(1, 7, [b"x"], 100 * SECOND, 0)
    write_all(pool, 0, 0)
    pool.endpoints(["b:1"], 1, 10)  # which nobody connects to
    pool.submit(2, 8, [b"y"], 100 * SECOND, 20)
    assert pool.facts()["waiting"] == 1
    pool.endpoints(["a:1"], 1, 30)
    assert (pool.facts()["waiting"], pool.connection(0)["queue"]) == (0, [2])


@pytest.mark.parametrize("state", ["connecting", "backoff"])
def test_a_connection_on_its_way_to_a_proxy_that_left_goes_elsewhere(state: str) -> None:
    pool = opened(["a:1"], 1)
    pool.lost(0, 3, 104, 0)
    at = pool.connection(0)["reconnect_at"]
    if state == "connecting":
        pool.expire(at)
        pool.take_work()
    assert pool.connection(0)["state"] == state
    pool.endpoints(["b:1"], 1, at)
    pool.expire(at)  # its timer is due in the same round
    connect_all(pool, at)
    assert peers(pool) == ["b:1"]
    assert pool.facts()["active"] == 1


def test_a_standby_proxy_takes_over_from_one_that_fails() -> None:
    pool = opened(["a:1", "b:1"], 1)
    first = pool.connection(0)["peer"]
    pool.lost(0, 3, 104, 0)
    pool.expire(SECOND)
    connect_all(pool, SECOND)
    assert peers(pool) == [{"a:1": "b:1", "b:1": "a:1"}[first]]


def test_several_executors_spread_over_the_list() -> None:
    labels = ["a:1", "b:1", "c:1", "d:1"]
    used = []
    for offset in (0, 2):
        pool = opened(["x:1"], 1)
        pool.endpoints(labels, 2, 0, offset=offset)
        connect_all(pool, 0)
        used += peers(pool)
    assert sorted(used) == labels


def alone(labels: list[str]) -> Connections:
    """Return one connection that is to connect to proxies of two addresses each."""
    pool = Connections(classes=CLASSES)
    pool.endpoints(labels, 1, 0, two=True)
    return pool


def tried(pool: Connections, failures: int) -> list[tuple[str, int]]:
    """Return to which proxies, at which family of addresses, the connection connects while none can be reached."""
    seen = []
    for i in range(failures):
        connection = pool.connection(0)
        seen.append((connection["peer"], {2: 4, 10: 6}[connection["family"]]))
        pool.take_work()
        pool.lost(0, 2, 111, i * SECOND)
        pool.expire(pool.next_due())
    return seen


def test_a_proxy_that_cannot_be_reached_is_tried_at_its_other_address() -> None:
    assert tried(alone(["a:1"]), 4) == [("a:1", 4), ("a:1", 6), ("a:1", 4), ("a:1", 6)]
    both = [("a:1", 4), ("b:1", 4), ("a:1", 6), ("b:1", 6)]
    assert tried(alone(["a:1", "b:1"]), 6) == both + both[:2]


def test_an_address_that_works_is_kept_while_it_works() -> None:
    pool = alone(["a:1"])
    assert tried(pool, 1) == [("a:1", 4)]
    connect_all(pool, SECOND)
    assert (pool.connection(0)["family"], pool.connection(0)["active"]) == (10, True)
    pool.lost(0, 3, 104, 2 * SECOND)
    pool.expire(pool.next_due())
    assert pool.connection(0)["family"] == 10, "a lost connection says nothing against the address"
