"""Doubt about a silent proxy: it belongs to the proxy, whichever connections have to do with it."""

from __future__ import annotations

import pytest

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import SECOND, STRANGE, ack, connect_all, holder, opened, write_all

LOST, SILENT, DEAF = 3, 4, 9
RESET = 104
FAR = 1000 * SECOND
AVOID = 10 * SECOND


def chosen(pool: Connections, now: int) -> set[str]:
    """Return the proxies that frames go to."""
    return {pool.connection(pool.choose(now))["peer"] for _ in range(100)}


def falls_silent(pool: Connections, now: int) -> int:
    """Lose a connection for silence, with a frame on it; return its number."""
    pool.submit(99, 99, [b"x"], FAR, now)
    at = holder(pool, 99)
    write_all(pool, at, now)
    pool.lost(at, SILENT, 0, now + SECOND)
    return at


def test_a_connection_that_moves_to_a_healthy_proxy_takes_no_doubt_with_it() -> None:
    pool = opened(["a:1", "b:1"], heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    at = falls_silent(pool, 0)
    silent = pool.connection(at)["peer"]
    pool.endpoints(["c:1", silent, "b:1" if silent == "a:1" else "a:1"], 2, SECOND)
    pool.expire(SECOND + 1)
    connect_all(pool, SECOND + 1)
    assert pool.connection(at)["peer"] == "c:1"
    assert pool.connection(at)["avoid_until"] == 0
    assert "c:1" in chosen(pool, SECOND + 1)


@pytest.mark.parametrize("state", ["backoff", "connecting"])
def test_a_connection_without_a_socket_is_doubted_when_it_has_one(state: str) -> None:
    pool = opened(["a:1", "b:1"], 4, heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    at, other = (i for i in range(4) if pool.connection(i)["peer"] == "a:1")
    pool.lost(other, LOST, RESET, 0)
    if state == "connecting":
        pool.expire(1)
    assert pool.connection(other)["state"] == state
    pool.lost(at, SILENT, 0, 2)
    pool.expire(3)
    connect_all(pool, 4)
    assert (pool.connection(other)["state"], pool.connection(other)["peer"]) == ("active", "a:1")
    assert chosen(pool, 5) == {"b:1"}


def test_the_first_answer_over_any_connection_ends_the_doubt_for_all() -> None:
    pool = opened(["a:1", "b:1"], 6, heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    at = falls_silent(pool, 0)
    silent = pool.connection(at)["peer"]
    pool.expire(SECOND + 1)
    connect_all(pool, SECOND + 1)
    assert silent not in chosen(pool, SECOND + 1)
    one, _ = (i for i in range(6) if i != at and pool.connection(i)["peer"] == silent)
    pool.feed(one, STRANGE, SECOND + 2)
    assert {pool.choose(SECOND + 2) for _ in range(300)} == set(range(6)) - {holder(pool, 99)}  # it has more to do


def test_what_one_silent_proxy_says_does_not_end_the_doubt_about_another() -> None:
    pool = opened(["a:1", "b:1", "c:1"], 6, heartbeat=0)
    pool.lost(0, SILENT, 0, 0)
    pool.lost(1, SILENT, 0, 0)
    first, second, fine = (pool.connection(i)["peer"] for i in range(3))
    assert len({first, second, fine}) == 3
    assert chosen(pool, 1) == {fine}
    pool.feed(next(i for i in range(2, 6) if pool.connection(i)["peer"] == first), STRANGE, 1)
    assert chosen(pool, 1) == {first, fine}


def test_a_new_list_keeps_the_doubt() -> None:
    pool = opened(["a:1", "b:1"], 4, heartbeat=0)
    silent = pool.connection(falls_silent(pool, 0))["peer"]
    pool.endpoints(["d:1", "b:1", "a:1"], 4, SECOND)
    assert silent not in chosen(pool, SECOND)


def test_the_connections_to_the_only_proxy_share_the_frames_while_it_is_doubted() -> None:
    pool = opened(["a:1"], 4, heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    at = falls_silent(pool, 0)
    pool.expire(SECOND + 1)
    connect_all(pool, SECOND + 1)
    for ident in range(40):
        pool.submit(ident, ident, [bytes(1000)], FAR, SECOND + 1)
    assert min(len(pool.connection(i)["queue"]) for i in range(4)) >= 9
    assert pool.connection(at)["state"] == "active"


@pytest.mark.parametrize("code", [2, 1])
def test_an_answer_does_not_end_what_the_server_asked_for(code: int) -> None:
    pool = opened(["a:1", "b:1"], 4, heartbeat=0, retry_backoff=FAR, retry_backoff_max=FAR)
    frame = pool.submit(1, 7, [b"x"], FAR, 0)
    at = holder(pool, 1)
    write_all(pool, at, 0)
    (other,) = (i for i in range(4) if i != at and pool.connection(i)["peer"] == pool.connection(at)["peer"])
    pool.feed(at, ack(frame, code), 1)
    until = pool.connection(at)["avoid_until"]
    assert until > 1
    pool.lost(other, SILENT, 0, 1)
    assert pool.connection(at)["avoid_until"] == 1 + AVOID
    pool.feed(at, STRANGE, 2)
    assert pool.connection(at)["avoid_until"] == until


@pytest.mark.parametrize("retries", [1, 3])
def test_a_heartbeat_without_an_answer_is_not_followed_early_by_another(retries: int) -> None:
    """Else a healthy connection is closed for a question whose answer is on its way."""
    pool = opened(["a:1"], 2, heartbeat=SECOND, heartbeat_retries=retries, ack_timeout=FAR)
    for turn in range(1, retries + 1):
        pool.expire(turn * SECOND)
        beats = [write_all(pool, i, turn * SECOND) for i in (0, 1)]
    now = retries * SECOND
    pool.lost(0, SILENT, 0, now + 1)
    pool.expire(now + 10_000)
    work = []
    while (item := pool.take_work()) is not None:
        work.append(item)
    assert (1, "close", DEAF) not in work
    pool.feed(1, ack(beats[1]), now + 20_000)
    assert pool.connection(1)["unanswered"] == 0


@pytest.mark.parametrize("retries", [1, 3])
def test_a_heartbeat_that_was_not_written_is_not_unanswered(retries: int) -> None:
    """The socket is full; a connection that does not move is closed for that, after its time."""
    pool = opened(["a:1"], heartbeat=SECOND, heartbeat_retries=retries, ack_timeout=FAR)
    for turn in range(1, retries + 5):
        pool.expire(turn * SECOND)
        work = pool.take_work()
        assert work is None or work[1] != "close"
        assert pool.connection(0)["control"] > 0
    assert len(write_all(pool, 0, 9 * SECOND)) < 40  # one, not one for each turn
