"""Answers without a number: one request is under way on a connection, and the next answer is its."""

from __future__ import annotations

import pytest

from dataproxy.numbers import FAMILY_REPORT
from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import DELIVERED, EXPIRED, FAILED, SECOND, connect_all, holder, opened

DRAINED_EVENT, UNEXPECTED, DEAF, SILENT, LOST = 7, 12, 9, 4, 3


def answer(code: int = 0, text: str = "Ok", *, close: bool = False) -> bytes:
    body = f'{{"code":"{code}","msg":"{text}"}}'
    closes = "Connection: close\r\n" if close else ""
    return f"HTTP/1.1 200 OK\r\n{closes}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def status(code: int) -> bytes:
    return f"HTTP/1.1 {code} No\r\nContent-Length: 0\r\n\r\n".encode()


def over_http(labels: list[str] | None = None, **config: object) -> Connections:
    given = {"heartbeat": 0, "avoid": 0, "retry_backoff": 0, "reconnect_backoff": 0, **config}
    return opened(labels or ["a:1"], family=FAMILY_REPORT, **given)


def sent(pool: Connections, connection: int, now: int) -> bytes:
    """Write what may be written, and return it."""
    out = b""
    while parts := pool.gather(connection):
        pool.wrote(connection, sum(map(len, parts)), now)
        out += b"".join(parts)
    pool.wrote(connection, 0, now)
    return out


def work(pool: Connections) -> list[tuple[int, str]]:
    found = []
    while (one := pool.take_work()) is not None:
        found.append(one[:2])
    return found


def renew(pool: Connections, connection: int, now: int, event: int = 0) -> None:
    """Do what an executor does when a close was asked for, and connect again."""
    assert (connection, "close") in work(pool)
    pool.lost(connection, event, 0, now)
    pool.expire(now)
    connect_all(pool, now)


def test_the_next_request_waits_for_the_answer_before_it():
    pool = over_http()
    for ident in (1, 2, 3):
        pool.submit(ident, 10 + ident, [b"m%d" % ident], 100 * SECOND, 0)
    for ident in (1, 2, 3):
        request = sent(pool, 0, ident)
        assert request.count(b"POST ") == 1
        assert b"Host: a:1\r" in request
        assert b"body=m%d&" % ident in request
        assert sent(pool, 0, ident) == b""
        pool.feed(0, answer(), ident)
        (result,) = pool.take_settled()
        assert (result["ident"], result["outcome"], result["node"]) == (ident, DELIVERED, "a:1")


def test_a_request_that_is_partly_written_goes_on():
    pool = over_http()
    pool.submit(1, 11, [b"x" * 1000], 100 * SECOND, 0)
    (request,) = pool.gather(0)
    pool.wrote(0, 100, 0)
    assert pool.gather(0) == [request[100:]]
    pool.wrote(0, len(request) - 100, 0)
    assert pool.gather(0) == []


def test_a_refusal_before_the_whole_request_was_written_is_the_requests():
    pool = over_http()
    pool.submit(1, 11, [b"x" * 1000], 100 * SECOND, 0)
    pool.submit(2, 12, [b"y"], 100 * SECOND, 0)
    pool.gather(0)
    pool.wrote(0, 100, 0)
    pool.feed(0, status(413), 10)
    (result,) = pool.take_settled()
    assert (result["ident"], result["outcome"], result["attempts"], result["code"]) == (1, FAILED, 1, 413)
    renew(pool, 0, 10)
    request = sent(pool, 0, 10)  # the rest of the first one is not written to anybody
    assert request.startswith(b"POST ")
    assert b"body=y" in request
    pool.feed(0, answer(), 20)
    assert [one["outcome"] for one in pool.take_settled()] == [DELIVERED]


def test_a_success_before_the_whole_request_was_written_counts_for_nothing():
    pool = over_http()
    pool.submit(1, 11, [b"x" * 1000], 100 * SECOND, 0)
    pool.gather(0)
    pool.wrote(0, 100, 0)
    pool.feed(0, answer(), 10)
    assert pool.take_settled() == []
    renew(pool, 0, 10)
    assert sent(pool, 0, 10).startswith(b"POST ")


def test_a_resend_names_the_server_it_goes_to():
    pool = over_http(["a:1", "b:22 (10.0.0.1)"])
    pool.submit(1, 11, [b"x"], 100 * SECOND, 0)
    first = holder(pool, 1)
    names = [b"Host: a:1\r", b"Host: b:22\r"]
    one = sent(pool, first, 0)
    assert names[first] in one
    pool.lost(first, LOST, 104, 10)
    other = sent(pool, 1 - first, 10)
    assert names[1 - first] in other
    assert one.replace(names[first].strip(), b"").split() == other.replace(names[1 - first].strip(), b"").split()
    pool.feed(1 - first, answer(), 20)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["open_attempts"], result["attempts"]) == (DELIVERED, 2, 2)


def test_an_answer_that_nobody_waits_for_ends_the_connection():
    pool = over_http()
    pool.submit(1, 11, [b"x"], 100 * SECOND, 0)
    sent(pool, 0, 0)
    pool.feed(0, answer() + answer(), 10)
    assert [one["outcome"] for one in pool.take_settled()] == [DELIVERED]
    assert UNEXPECTED in [event for event, *_ in pool.events]
    assert (0, "close") in work(pool)


def test_an_expired_request_ends_its_connection():
    pool = over_http(ack_timeout=10 * SECOND)
    pool.submit(1, 11, [b"x"], 2 * SECOND, 0)
    sent(pool, 0, 0)
    pool.expire(2 * SECOND)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["open_attempts"]) == (EXPIRED, 1)
    renew(pool, 0, 2 * SECOND)
    pool.submit(2, 12, [b"y"], 100 * SECOND, 2 * SECOND)
    sent(pool, 0, 2 * SECOND)
    pool.feed(0, answer(103, "no"), 3 * SECOND)
    (result,) = pool.take_settled()
    assert (result["ident"], result["outcome"]) == (2, FAILED)


@pytest.mark.parametrize("interim", [False, True])
def test_a_late_request_ends_its_connection(interim):
    pool = over_http(ack_timeout=SECOND)
    pool.submit(1, 11, [b"x"], 100 * SECOND, 0)
    sent(pool, 0, 0)
    if interim:
        pool.feed(0, b"HTTP/1.1 100 Continue\r\n\r\n", SECOND // 2)
    pool.expire(SECOND)
    renew(pool, 0, SECOND, SILENT)
    assert b"body=x" in sent(pool, 0, SECOND)


def test_a_connection_that_the_server_ends_is_made_anew_at_once():
    pool = over_http(reconnect_backoff=10 * SECOND, reconnect_backoff_max=10 * SECOND)
    for ident in (1, 2):
        pool.submit(ident, 10 + ident, [b"m%d" % ident], 100 * SECOND, 0)
    sent(pool, 0, 0)
    pool.feed(0, answer(close=True), 10)
    assert [one["ident"] for one in pool.take_settled()] == [1]
    pool.lost(0, 0, 0, 10)
    pool.expire(10)
    assert (0, "connect") in work(pool)
    pool.lost(0, LOST, 111, 20)  # nobody listens now: the next connect waits
    pool.expire(30)
    assert (0, "connect") not in work(pool)


@pytest.mark.parametrize(("code", "unsure"), [(114, False), (502, True), (200, True)])
def test_only_an_answer_without_a_code_leaves_the_attempt_open(code, unsure):
    pool = over_http(late_attempts=9)
    pool.submit(1, 11, [b"x"], 1000 * SECOND, 0)
    now = 0
    for _ in range(2):
        sent(pool, 0, now)
        pool.feed(0, answer(code, "full") if code < 200 else status(code), now)
        renew(pool, 0, now)
        now += 100 * SECOND
        pool.expire(now)
    sent(pool, 0, now)
    pool.feed(0, answer(), now)
    (result,) = pool.take_settled()
    assert (result["outcome"], result["attempts"], result["open_attempts"]) == (DELIVERED, 3, 3 if unsure else 1)
    assert result["refused"] == code


def test_heartbeats_take_their_turn():
    pool = over_http(heartbeat=SECOND, avoid=100 * SECOND)
    pool.expire(SECOND)
    request = sent(pool, 0, SECOND)
    assert request.startswith(b"GET /dataproxy/heartbeat ")
    assert b"Host: a:1\r" in request
    pool.submit(1, 11, [b"x"], 100 * SECOND, SECOND)
    assert sent(pool, 0, SECOND) == b""
    pool.feed(0, answer(), SECOND + 10)
    assert pool.connection(0)["unanswered"] == 0
    assert sent(pool, 0, SECOND + 20).startswith(b"POST ")
    pool.feed(0, answer(), SECOND + 30)
    assert [one["outcome"] for one in pool.take_settled()] == [DELIVERED]


def test_one_unanswered_heartbeat_is_too_many():
    pool = over_http(heartbeat=SECOND, heartbeat_retries=10, ack_timeout=100 * SECOND)
    pool.expire(SECOND)
    sent(pool, 0, SECOND)
    pool.expire(2 * SECOND + 10)
    found = []
    while (one := pool.take_work()) is not None:
        found.append(one)
    assert (0, "close", DEAF) in found


def test_a_heartbeat_that_is_refused_makes_its_node_be_avoided():
    pool = over_http(["a:1", "b:1"], heartbeat=SECOND, avoid=100 * SECOND)
    pool.expire(SECOND)
    for index in (0, 1):
        sent(pool, index, SECOND)
    pool.feed(0, answer(2, "Service closed"), SECOND + 10)
    pool.feed(1, answer(), SECOND + 10)
    assert DRAINED_EVENT in [event for event, *_ in pool.events]
    renew(pool, 0, SECOND + 20)
    assert pool.connection(0)["state"] == "active"
    assert {pool.choose(SECOND + 30) for _ in range(20)} == {1}
