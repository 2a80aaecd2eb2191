"""Proxies that do worse than their peers are out for a while, at most half of them, and come back half open."""

from __future__ import annotations

import pytest

from tests.native.probe_connections import Connections
from tests.native.probe_wire import Server
from tests.sim.proxy import frame_seq, take_frame
from tests.unit.conn.test_pool import SECOND, ack, connect_all, opened, write_all

FAR = 1000 * SECOND
LOST, SILENT = 3, 4
RESET = 104
FAILURES, REFUSALS, SLOW, STALLED = 1, 2, 3, 4
OUT, RETURNED = 15, 16
MS = 1000
NAMES = ["a:1", "b:1", "c:1", "d:1"]


class Talk:
    """Submit frames one at a time to a chosen connection's proxy, and answer after a time."""

    def __init__(self, pool: Connections) -> None:
        self.pool = pool
        self.number = 0
        self.now = SECOND

    def place(self, now: int, size: int = 1) -> tuple[int, bytes]:
        """Submit one frame; return the connection that wrote it and the frame."""
        self.number += 1
        frame = self.pool.submit(self.number, self.number, [b"x" * size], now + FAR, now)
        for i in range(self.pool.facts()["connections"]):
            if self.pool.connection(i)["queue"] == [self.number]:
                write_all(self.pool, i, now)
                return i, frame
        raise AssertionError("no connection took the frame")

    def rounds(self, times: int, takes: dict[str, int], code: dict[str, int] | None = None) -> None:
        """Send frames; each proxy answers after its time, and then the executor has a round."""
        for _ in range(times):
            at, frame = self.place(self.now)
            peer = self.pool.connection(at)["peer"]
            self.now += takes.get(peer, 2 * MS)
            self.pool.feed(at, ack(frame, (code or {}).get(peer, 0)), self.now)
            self.pool.take_settled()
            self.now += 100 * MS
            self.pool.expire(self.now)
            self.answer_rest(code or {})

    def answer_rest(self, code: dict[str, int]) -> None:
        """Answer what was sent again."""
        for i in range(self.pool.facts()["connections"]):
            data = bytearray(write_all(self.pool, i, self.now))
            for frame in iter(lambda data=data: take_frame(data), None):
                if frame[4] != 8:
                    self.pool.feed(i, ack(frame, code.get(self.pool.connection(i)["peer"], 0)), self.now)
        self.pool.take_settled()


def index(pool: Connections, label: str) -> int:
    """Return the connection to a proxy."""
    return next(i for i in range(pool.facts()["connections"]) if pool.connection(i)["peer"] == label)


def beat(pool: Connections, at: int, now: int, late: int = 0) -> bool:
    """Answer the heartbeat that a connection has sent, if it has; tell whether it had."""
    pool.expire(now)
    data = bytearray(write_all(pool, at, now))
    beats = [frame for frame in iter(lambda: take_frame(data), None) if frame[4] == 8]
    for frame in beats:
        pool.feed(at, Server().serve(frame, 0)["reply"], now + late)
    return bool(beats)


def test_a_slow_proxy_is_out_and_the_event_says_why() -> None:
    pool = opened(NAMES, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(40, {"b:1": 200 * MS})
    assert pool.proxy("b:1")["out"] == SLOW
    assert pool.connection(index(pool, "b:1"))["out"] == SLOW
    (event,) = [event for event in pool.events if event[0] == OUT]
    assert event[1:3] == ("b:1", SLOW)
    assert event[3] == b"it answers in 200.0 ms, its peers in 2.0 ms"
    assert "b:1" not in {pool.connection(pool.choose(talk.now))["peer"] for _ in range(200)}


@pytest.mark.parametrize("takes", [{"b:1": 11 * MS}, dict.fromkeys(NAMES, 300 * MS), {}])
def test_what_is_little_slower_or_slow_like_all_others_stays(takes: dict[str, int]) -> None:
    pool = opened(NAMES, heartbeat=30 * SECOND)
    Talk(pool).rounds(60, takes)
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0]


def test_one_late_answer_is_no_reason() -> None:
    pool = opened(NAMES, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(40, {})
    at, frame = talk.place(talk.now)
    talk.now += 900 * MS
    pool.feed(at, ack(frame), talk.now)
    talk.rounds(5, {})
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0]


def test_at_most_half_are_out() -> None:
    pool = opened(["a:1", "b:1", "c:1", "d:1", "e:1"], heartbeat=0)
    talk = Talk(pool)
    for slow in ("a:1", "b:1", "c:1", "d:1"):
        talk.rounds(40, {slow: 500 * MS, "d:1": 40 * MS})
        assert sum(pool.proxy(name)["out"] > 0 for name in ("a:1", "b:1", "c:1", "d:1", "e:1")) <= 2


def test_without_the_option_nothing_is_out() -> None:
    pool = opened(NAMES, keep_outliers=True)
    Talk(pool).rounds(60, {"b:1": 400 * MS})
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0]


def test_it_returns_after_heartbeats_that_are_answered_in_time_and_begins_slowly() -> None:
    pool = opened(NAMES, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(40, {"b:1": 200 * MS})
    at, until = index(pool, "b:1"), pool.proxy("b:1")["until"]
    assert 5 * SECOND <= until - talk.now <= 12.5 * SECOND
    pool.expire(until - 1)
    assert pool.connection(at)["control"] == 0
    assert beat(pool, at, until)
    assert pool.proxy("b:1")["out"] == SLOW  # one answer is not enough
    assert at not in {pool.choose(until + SECOND) for _ in range(200)}
    assert beat(pool, at, until + SECOND)
    assert pool.proxy("b:1")["out"] == 0
    assert pool.events[-1][:3] == (RETURNED, "b:1", SLOW)
    now = until + SECOND + 1000
    share = sum(pool.connection(pool.choose(now))["peer"] == "b:1" for _ in range(2000))
    later = sum(pool.connection(pool.choose(now + 10 * SECOND))["peer"] == "b:1" for _ in range(2000))
    assert share < later / 3
    assert later > 350


def test_a_slow_answer_to_the_question_begins_a_longer_time() -> None:
    pool = opened(NAMES, heartbeat=30 * SECOND)
    talk = Talk(pool)
    talk.rounds(40, {"b:1": 200 * MS})
    at, until = index(pool, "b:1"), pool.proxy("b:1")["until"]
    assert beat(pool, at, until, late=200 * MS)
    assert pool.proxy("b:1")["out"] == SLOW
    assert 20 * SECOND <= pool.proxy("b:1")["until"] - until <= 26 * SECOND


def test_each_time_is_twice_as_long_up_to_five_minutes() -> None:
    pool = opened(NAMES, heartbeat=0)
    talk = Talk(pool)
    spans = []
    for _ in range(8):
        before = pool.facts()["outs"][SLOW]
        for _ in range(400):
            talk.rounds(1, {"b:1": 200 * MS})
            if pool.facts()["outs"][SLOW] > before:
                break
        spans.append((pool.proxy("b:1")["until"] - talk.now) / SECOND)
        talk.now = pool.proxy("b:1")["until"] + 1
        pool.expire(talk.now)
        assert pool.proxy("b:1")["out"] == 0, "without heartbeats the time alone decides"
    least = [10, 20, 40, 80, 160, 300, 300, 300]
    assert all(low - 0.5 <= span <= 1.25 * low for low, span in zip(least, spans, strict=True)), spans


def test_a_proxy_that_refuses_most_frames_is_out_and_one_that_refuses_some_is_not() -> None:
    pool = opened(NAMES, heartbeat=0, retry_backoff=0)
    talk = Talk(pool)
    talk.rounds(200, {}, {"c:1": 114})
    assert pool.proxy("c:1")["out"] == REFUSALS
    assert any(event[3].startswith(b"it refused 8 of ") for event in pool.events if event[0] == OUT)
    assert [pool.proxy(name)["out"] for name in ("a:1", "b:1", "d:1")] == [0, 0, 0]


def test_refusals_for_the_content_are_nobodys_fault() -> None:
    pool = opened(NAMES, heartbeat=0)
    Talk(pool).rounds(200, {}, {"c:1": 101})
    assert pool.facts()["outs"] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("answers", [False, True])
def test_three_failures_in_a_row_and_a_success_between_them(answers: bool) -> None:
    pool = opened(NAMES, heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    talk = Talk(pool)
    at = index(pool, "a:1")
    for turn in range(6):
        pool.lost(at, LOST, RESET, talk.now)
        assert pool.facts()["outs"][FAILURES] == (0 if answers else (turn + 1) // 3)
        pool.expire(talk.now + 1)
        connect_all(pool, talk.now + 2)  # without heartbeats it returns with its connection
        talk.now += 11 * SECOND
        if answers:
            talk.rounds(60, {})


def test_a_proxy_that_was_out_for_failures_is_asked_as_soon_as_it_is_connected() -> None:
    pool = opened(["a:1", "b:1", "c:1"], heartbeat=30 * SECOND, reconnect_backoff=0, reconnect_backoff_max=0)
    at, now = index(pool, "a:1"), SECOND
    for _ in range(3):
        pool.lost(at, LOST, RESET, now)
        pool.expire(now + 1)
        if pool.facts()["outs"][FAILURES]:
            break
        connect_all(pool, now + 2)
        now += SECOND
    assert pool.proxy("a:1")["out"] == FAILURES
    connect_all(pool, now + 3)
    assert pool.connection(at)["state"] == "active"
    assert beat(pool, at, now + 2000)
    assert beat(pool, at, now + 2000 + SECOND)
    assert pool.proxy("a:1")["out"] == 0


def test_a_proxy_from_which_nothing_comes_is_out_long_before_the_ack_timeout() -> None:
    pool = opened(NAMES, heartbeat=0)
    talk = Talk(pool)
    talk.rounds(40, {})
    at, _ = talk.place(talk.now)
    peer = pool.connection(at)["peer"]
    for late in range(0, 2400, 100):
        pool.expire(talk.now + late * MS)
    assert pool.proxy(peer)["out"] == 0
    for late in range(2400, 4200, 100):
        pool.expire(talk.now + late * MS)
    assert pool.proxy(peer)["out"] == STALLED
    assert pool.connection(at)["flight"], "its frames may still be answered"


@pytest.mark.parametrize("moves", [True, False])
def test_a_frame_that_the_network_still_carries_is_no_silence(moves: bool) -> None:
    pool = opened(NAMES, heartbeat=0)
    talk = Talk(pool)
    talk.rounds(40, {})
    at, frame = talk.place(talk.now, 1000)
    for tenth in range(80):
        pool.held[at] = len(frame) - 1 - (tenth if moves else 0)
        pool.expire(talk.now + tenth * 100 * MS)
    assert pool.facts()["outs"][STALLED] == (0 if moves else 1)


def test_the_only_proxy_is_never_out() -> None:
    pool = opened(["a:1"], 3, heartbeat=0, reconnect_backoff=0, reconnect_backoff_max=0)
    for turn in range(6):
        pool.lost(turn % 3, LOST, RESET, turn * 1000)
        pool.expire(turn * 1000 + 1)
        connect_all(pool, turn * 1000 + 2)
    assert pool.proxy("a:1")["out"] == 0
    assert pool.choose(7000) >= 0


def test_a_new_list_keeps_what_is_known() -> None:
    pool = opened(NAMES, heartbeat=0)
    talk = Talk(pool)
    talk.rounds(40, {"b:1": 200 * MS})
    pool.endpoints(["d:1", "e:1", "b:1", "a:1"], 4, talk.now)
    assert pool.proxy("b:1")["out"] == SLOW
    assert pool.proxy("e:1")["out"] == 0


def test_frame_numbers_are_what_the_helpers_think() -> None:
    pool = opened(["a:1"])
    assert frame_seq(Talk(pool).place(SECOND)[1]) == 1
