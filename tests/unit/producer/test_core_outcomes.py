"""Results that are made by the core equal those that ``dataproxy.outcomes`` makes."""

import gc
import sys

import pytest

from dataproxy._core.producer.results.outcomes import results
from dataproxy.outcomes import Watch, delivery_result
from dataproxy.producer.results.callbacks import _parts

DELIVERED = (1, 0, "", 2, False, "[::1]:46801", 0.0125, 4294967295, "abcdefghijklm-1f", 0)
FAILED = (2, 3, "no", 1, False, "[::1]:46801", 0.5, 7, "abcdefghijklm-20", 3)


@pytest.mark.parametrize("fields", [DELIVERED, (*DELIVERED[:8], "größer-1", 0)])
@pytest.mark.parametrize("first", [0, 9, 99, 4294967290])
def test_equal_to_those_of_outcomes(fields, first):
    watch = Watch(print, None, "g", "s", first, 5, None)
    made = results(watch, fields, 1, 4)
    assert made == [delivery_result(watch, number, fields) for number in range(1, 5)]
    assert made[0].delivered.id == f"{fields[8]}.{first + 1}"
    assert type(made[0]) is type(delivery_result(watch, 1, fields))
    assert not gc.is_tracked(made[0])


def test_own_ids_are_kept():
    watch = Watch(print, None, "g", "s", 3, 2, ["one", None])
    assert [result.delivered.id for result in results(watch, DELIVERED, 0, 2)] == ["one", f"{DELIVERED[8]}.4"]


def test_errors_are_those_of_outcomes():
    watch = Watch(print, None, "g", "s", 0, 2, None)
    made = results(watch, FAILED, 0, 2)
    assert [str(result.error) for result in made] == [str(delivery_result(watch, n, FAILED).error) for n in range(2)]
    assert [result.delivered for result in made] == [None, None]


def test_results_never_change_and_none_is_given_twice():
    watch = Watch(print, None, "g", "s", 0, 6, None)
    made = results(watch, DELIVERED, 0, 6)
    seen = [(tuple(result), tuple(result.delivered)) for result in made]
    numbers = [id(result) for result in made]
    later = results(Watch(print, None, "other", "t", 5, 6, None), (*DELIVERED[:7], 8, "abcdefghijklm-21", 0), 0, 6)
    assert [(tuple(result), tuple(result.delivered)) for result in made] == seen
    assert not {id(result) for result in later} & set(numbers)


def test_no_reference_is_lost_or_left():
    fields = (*DELIVERED[:5], "a node", 0.25, 7, "pack-1")
    watch = Watch(print, None, "some group", "some stream", 0, 200, None)
    things = [watch.group_id, watch.stream_id, *fields[5:], None]
    results(watch, fields, 0, 200)
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(50):
        results(watch, fields, 0, 200)
    assert all(abs(sys.getrefcount(thing) - was) < 50 for thing, was in zip(things, before, strict=True))


@pytest.mark.parametrize("sizes", [[], [1], [100], [101], [60, 60, 250, 1, 0, 40]])
def test_callbacks_are_divided_in_their_order(sizes):
    calls = [(number, list(range(size))) for number, size in enumerate(sizes)]
    parts = list(_parts(calls))
    assert [(f, a) for part in parts for f, some in part for a in some] == [(f, a) for f, some in calls for a in some]
    assert all(0 < sum(len(some) for _, some in part) <= 100 for part in parts)
