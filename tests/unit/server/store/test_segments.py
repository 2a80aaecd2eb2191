"""Small values of the store in memory share segments: nobody writes over another's, and segments are used again."""

import random
from collections import deque

import pytest

from dataproxy._core.server.store.core import StoreCore
from tests.native.probe_feed import append_entries, retain_once
from tests.native.probe_segments import MOST, SIZE, Taker, held_by


@pytest.mark.parametrize("seed", range(5))
def test_what_is_taken_is_nobody_elses_in_whatever_order_it_is_given_back(seed):
    play = random.Random(seed)
    taker = Taker()
    held = []
    for _ in range(5000):
        if held and play.random() < 0.49:
            taker.give(held.pop(play.choice([0, 0, 0, play.randrange(len(held))])))
        else:
            held.append(taker.take(play.choice([1, 16, 100, 200, MOST, play.randint(1, MOST)]))[0])
    for number in held:
        taker.give(number)


def test_values_that_go_in_their_order_need_one_segment_more_than_they_fill():
    play = random.Random(1)
    taker = Taker()
    held = deque()
    size = 0
    seen = set()
    for turn in range(50_000):
        n = play.randint(1, 600)
        held.append((taker.take(n), n))
        size += n
        if turn > 20_000:
            seen.add(held[-1][0][1])
        while size > 4 * SIZE:
            (number, _), n = held.popleft()
            taker.give(number)
            size -= n
        if turn % 500 == 0:
            assert len({whose for (_, whose), _ in held}) <= 4 + 2, "a thirtieth is lost by alignment, and at both ends"
    assert len(seen) <= 8, "the allocator gave the same ones again, or the spare was taken"


def test_the_open_segment_begins_again_when_all_of_it_is_back():
    taker = Taker()
    first = None
    for _ in range(10 * SIZE // MOST):
        number, whose = taker.take(MOST)
        first = first or whose
        assert whose == first
        taker.give(number)
    assert taker.kept() == (True, False)


def test_one_value_that_stays_keeps_its_segment_and_no_other():
    taker = Taker()
    stays, kept = taker.take(100)
    others = [taker.take(MOST) for _ in range(3 * SIZE // MOST)]
    for number, _ in others:
        taker.give(number)
    later = {taker.take(MOST)[1] for _ in range(SIZE // MOST)}
    assert kept not in later
    taker.give(stays)


@pytest.mark.parametrize("limits", [{}, {"retention_ms": 1000}, {"retention_bytes": 60_000}], ids=str)
def test_a_full_store_in_memory_has_the_youngest_values_as_they_came(limits):
    """Values on both sides of the bound, of topics that come at different rates."""
    play = random.Random(7)
    store = StoreCore(None, max_bytes=900_000, **limits)
    held = {"busy": [], "slow": []}
    for turn in range(3000):
        topic = "slow" if turn % 100 == 0 else "busy"
        value = play.randbytes(play.choice([20, 100, 1000, MOST - 200, MOST, 20_000]))
        offset, status = append_entries(store, [(topic, "s", value)], receive_ms=turn)[0]
        assert status == "ok"
        held[topic].append((offset, value))
        retain_once(store, turn)
    for topic, sent in held.items():
        found = [(offset, value) for offset, _, value in store.read(topic, 0, 0, max_bytes=1 << 30)]
        assert found == sent[len(sent) - len(found) :]
        assert found
    store.close()


@pytest.mark.parametrize("limits", [{}, {"retention_ms": 10}, {"retention_bytes": 60_000}], ids=str)
def test_values_that_stay_keep_little_more_than_their_own_memory(limits):
    """Each topic of a hundred has one value, and a segment of another topic's values comes between two of them."""
    store = StoreCore(None, max_bytes=10_000_000, **limits)
    between = [("busy", "s", bytes(1000))] * (SIZE // 1000)
    for turn in range(100):
        append_entries(store, [(f"slow{turn}", "s", b"x"), *between], receive_ms=turn)
        retain_once(store, turn)
    held, segments = held_by(store)
    assert held > 60_000
    assert segments < 1.1 * held + 2 * SIZE
    store.close()
