"""Requests that wait on a server loop: their lists, their bounds, and when the loop looks at them again."""

import random

import pytest

from dataproxy._core.server.rocketmq.core import RemotingCore
from tests.native.probe_remoting import Waits

NOW = 1_000_000_000
S = 1_000_000


@pytest.fixture
def waits():
    return Waits(RemotingCore(16, 1 << 20), NOW)


def test_a_wait_is_with_its_connection_and_with_its_bucket_until_it_ends(waits):
    assert waits.due() == 0
    for mark, line, bucket in ((1, 7, 3), (2, 7, 4), (3, 8, 3)):
        assert waits.begin(line, mark, NOW + S, bucket)
    assert (waits.of(7), waits.of(8), waits.of(9)) == ([2, 1], [3], [])
    assert (waits.at(3), waits.at(4), waits.at(5)) == ([3, 1], [2], [])
    assert (waits.watched(3), waits.watched(4), waits.count) == (2, 1, 3)
    assert (waits.finds(7, 1), waits.finds(8, 1)) == (True, False)
    waits.end(1)
    assert (waits.of(7), waits.at(3), waits.watched(3), waits.finds(7, 1)) == ([2], [3], 1, False)
    waits.end(3)
    waits.end(2)
    assert (waits.count, waits.watched(3), waits.watched(4), waits.due()) == (0, 0, 0, 0)


def test_the_loop_looks_again_when_the_first_one_ends(waits):
    waits.begin(1, 1, NOW + 5 * S, 0)
    assert waits.soonest == NOW + 5 * S
    waits.begin(1, 2, NOW + 2 * S, 0)
    assert waits.soonest == NOW + 2 * S
    waits.begin(1, 3, NOW + 9 * S, 0)
    assert waits.soonest == NOW + 2 * S
    for mark, due in ((2, NOW + 2 * S), (1, NOW + 5 * S), (3, NOW + 9 * S)):
        assert due - waits.tick_us < waits.due() <= due  # by ticks, never too late
        waits.end(mark)
    assert waits.due() == 0


def test_what_is_over_already_has_the_next_tick(waits):
    waits.begin(1, 1, NOW - 5 * S, 0)
    assert waits.due() == NOW + waits.tick_us


def test_no_wait_is_longer_than_fifty_seconds(waits):
    waits.begin(1, 1, NOW + 5000 * S, 0)
    assert waits.due() == NOW + 50 * S


def test_bounds(waits):
    assert not waits.begin(1, 1, NOW + S, 0, b"x" * 4097)
    assert waits.begin(1, 1, NOW + S, 0, b"x" * 4096)
    assert waits.begin(1, 2, NOW + S, 0, b"")
    for mark in range(3, 1025):
        assert waits.begin(1, mark, NOW + S, 0)
    assert not waits.begin(1, 1025, NOW + S, 0)
    assert waits.begin(2, 1025, NOW + S, 0)
    waits.end(500)
    assert waits.begin(1, 500, NOW + S, 0)
    assert waits.count == 1025


def test_a_loop_has_room_for_so_many(waits):
    mark = 0
    for line in range(64):
        for _ in range(1024):
            assert waits.begin(line, mark, NOW + S, line)
            mark += 1
    assert not waits.begin(64, mark, NOW + S, 0)
    waits.end(0)
    assert waits.begin(64, mark, NOW + S, 0)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_lists(waits, seed):
    chance = random.Random(seed)
    there: dict[int, tuple[int, int, int]] = {}
    for mark in range(4000):
        if there and chance.random() < 0.5:
            gone = chance.choice(list(there))
            waits.end(gone)
            del there[gone]
        else:
            line, bucket, due = chance.randrange(20), chance.randrange(256), NOW + chance.randrange(60 * S)
            if waits.begin(line, mark, due, bucket):
                there[mark] = line, bucket, min(due, NOW + 50 * S)
        if mark % 50 == 0:
            for line in range(20):
                assert sorted(waits.of(line)) == [one for one, (of, *_) in there.items() if of == line]
            for bucket in range(0, 256, 16):
                marks = [one for one, (_, of, _) in there.items() if of == bucket]
                assert (sorted(waits.at(bucket)), waits.watched(bucket)) == (marks, len(marks))
            first = min((due for *_, due in there.values()), default=0)
            # A wait on a tick that is over already has the next one.
            assert not there or max(first - waits.tick_us, 0) < waits.due() <= max(first, NOW + waits.tick_us)
    assert waits.count == len(there)
