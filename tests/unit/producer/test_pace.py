"""When producers ask: spread over the interval, sooner where something is missing, and never in a crowd."""

import random
from collections import Counter

import pytest

from dataproxy.producer.discovery.pace import Schedule

INTERVAL = 120.0
PRODUCERS = 1000


def asked(schedule, now, until, known=("g",), answers=True):
    """Return the times at which a producer asks from ``now`` on, if each question is answered at once, or none is."""
    times = []
    while now < until:
        groups, whole = schedule.due(now, known if answers else ())
        if whole:
            schedule.round_begins(now)
            schedule.round_ended(now)
        for group in groups:
            times.append(now)
            if answers:
                schedule.answered(group)
            else:
                schedule.failed(group, now)
        now += max(schedule.wait(now), 1e-6)
    return times


def test_a_thousand_producers_that_start_in_a_second_ask_at_a_spread_rate():
    rand = random.Random(5)
    seconds = Counter()
    for _ in range(PRODUCERS):
        start = rand.random()
        schedule = Schedule(INTERVAL, rand.random)
        schedule.begin(start, None)
        times = asked(schedule, start, 20 * INTERVAL)
        assert 18 <= len(times) <= 23
        seconds.update(int(time) for time in times)
    usual = PRODUCERS / INTERVAL  # 8.3 questions a second if they were perfectly even
    assert max(seconds.values()) <= 4 * usual
    later = [seconds[second] for second in range(int(INTERVAL), 20 * int(INTERVAL))]
    assert sum(later) / len(later) == pytest.approx(usual, rel=0.05)


def test_a_thousand_producers_without_a_manager_do_not_ask_together():
    rand = random.Random(6)
    seconds = Counter()
    for _ in range(PRODUCERS):
        start = rand.random()
        schedule = Schedule(INTERVAL, rand.random)
        schedule.begin(start, 0.0)
        schedule.want("g", start)
        seconds.update(int(time) for time in asked(schedule, start, 300.0, answers=False))
    assert seconds[0] <= 1.5 * PRODUCERS  # the first question of each, and few seconds ones
    assert max(seconds[second] for second in range(60, 300)) <= PRODUCERS / 3
    assert min(seconds[second] for second in range(60, 300)) > 0  # it goes on


def test_a_group_that_is_wanted_is_asked_about_at_once_and_alone():
    schedule = Schedule(INTERVAL, lambda: 0.5)
    schedule.begin(0.0, None)
    schedule.want("new", 10.0)
    assert schedule.wait(10.0) == 0.0
    assert schedule.due(10.0, ["old"]) == (["new"], False)
    schedule.failed("new", 10.0)
    waits = [schedule.wait(10.0)]
    for _ in range(5):
        schedule.failed("new", 10.0)
        waits.append(schedule.wait(10.0))
    assert waits == pytest.approx([0.55, 1.1, 2.2, 4.4, 5.5, 5.5])
    schedule.answered("new")
    assert schedule.wait(10.0) == pytest.approx(INTERVAL * 0.55 - 10.0)


def test_a_round_asks_about_each_group_once():
    schedule = Schedule(INTERVAL, lambda: 0.5)
    schedule.begin(0.0, 0.0)
    schedule.want("b", 0.0)
    assert schedule.due(0.0, ["a", "b", "c"]) == (["b", "a", "c"], True)


def test_without_a_proxy_it_asks_at_once_and_then_at_growing_intervals():
    schedule = Schedule(INTERVAL, lambda: 1.0)
    schedule.begin(0.0, None)
    now, times = 50.0, []
    for _ in range(6):
        schedule.hurry(now)
        schedule.hurry(now)  # a second loss changes nothing
        now += schedule.wait(now)
        assert schedule.due(now, ["g"]) == (["g"], True)
        times.append(now)
        schedule.round_begins(now)
        schedule.round_ended(now)
    assert times == pytest.approx([50.0, 51.0, 53.0, 57.0, 65.0, 75.0])
    schedule.calm()
    schedule.hurry(80.0)
    assert schedule.wait(80.0) == 0.0


def test_a_short_interval_bounds_all_waits():
    schedule = Schedule(1.0, lambda: 1.0)
    schedule.begin(0.0, None)
    assert schedule.wait(0.0) == 1.0
    for _ in range(5):
        schedule.failed("g", 0.0)
    assert schedule.wait(0.0) == 1.0
    schedule.round_ended(0.0, soon=True)
    assert schedule.wait(0.0) == 1.0
    schedule.answered("g")
    assert schedule.wait(0.0) == pytest.approx(1.1)


def test_after_an_error_nothing_is_due_at_once():
    schedule = Schedule(INTERVAL, lambda: 0.5)
    schedule.begin(0.0, 0.0)
    schedule.want("g", 0.0)
    schedule.put_off(0.0)
    assert schedule.wait(0.0) > 0.0
    assert schedule.due(0.0, ["g"]) == ([], False)
