"""How long a handshake may take until a word is said about it, and until it ends."""

from tests.native.probe_connections import Connections
from tests.unit.conn.test_pool import CLASSES, SECOND

CONNECT_FAILED = 2


def connecting(**config: object) -> Connections:
    """Return a connection whose connect has begun, at time 0."""
    pool = Connections(classes=CLASSES, **config)
    assert pool.endpoints(["a:1"], 1, 0) == 0
    assert pool.take_work() == (0, "connect", 0)
    return pool


def test_a_word_is_asked_for_within_two_seconds_and_the_end_comes_at_the_limit() -> None:
    pool = connecting(connect_timeout=5 * SECOND)
    pool.shaking(0, SECOND // 4)
    told = pool.next_due()
    assert SECOND < told < 2 * SECOND
    pool.shaking(0, SECOND)  # each part of the peer's answer says it again
    assert pool.next_due() == told
    pool.expire(told - 1)
    assert pool.take_work() is None
    pool.expire(told)
    assert pool.take_work() == (0, "look", 0)
    assert pool.connection(0)["state"] == "connecting"
    assert pool.next_due() == 5 * SECOND
    pool.expire(5 * SECOND)
    assert pool.take_work() == (0, "close", CONNECT_FAILED)


def test_a_connect_without_a_handshake_is_not_asked_about() -> None:
    pool = connecting(connect_timeout=5 * SECOND)
    assert pool.next_due() == 5 * SECOND


def test_a_shorter_limit_ends_it_at_once() -> None:
    pool = connecting(connect_timeout=SECOND)
    pool.shaking(0, 0)
    assert pool.next_due() == SECOND
    pool.expire(SECOND)
    assert pool.take_work() == (0, "close", CONNECT_FAILED)


def test_a_handshake_that_ends_is_not_asked_about() -> None:
    pool = connecting(connect_timeout=5 * SECOND, heartbeat=30 * SECOND)
    pool.shaking(0, 0)
    told = pool.next_due()
    pool.connected(0, SECOND)
    pool.expire(told)
    assert pool.take_work() is None
    assert pool.connection(0)["state"] == "active"


def test_the_next_attempt_has_its_own_time() -> None:
    pool = connecting(connect_timeout=SECOND, reconnect_backoff=SECOND, reconnect_backoff_max=SECOND)
    pool.shaking(0, 0)
    pool.expire(SECOND)
    assert pool.take_work() == (0, "close", CONNECT_FAILED)
    pool.lost(0, CONNECT_FAILED, 0, SECOND)
    again = pool.next_due()
    pool.expire(again)
    assert pool.take_work() == (0, "connect", 0)
    pool.shaking(0, again)
    assert pool.next_due() == again + SECOND
