"""Results that are made by the core equal those that ``dataproxy.outcomes`` makes."""

import gc

import pytest

from dataproxy._core.client.receipts import results
from dataproxy.client.callbacks import _parts
from dataproxy.outcomes import Watch, delivery_result

DELIVERED = (1, 0, "", 2, False, "[::1]:46801", 0.0125, 4294967295, "abcdefghijklm-1f")
FAILED = (2, 3, "no", 1, False, "[::1]:46801", 0.5, 7, "abcdefghijklm-20")


@pytest.mark.parametrize("facts", [DELIVERED, (*DELIVERED[:8], "größer-1")])
@pytest.mark.parametrize("first", [0, 9, 99, 4294967290])
def test_equal_to_those_of_outcomes(facts, first):
    watch = Watch(print, None, "g", "s", first, 5, None)
    made = results(watch, facts, 1, 4)
    assert made == [delivery_result(watch, number, facts) for number in range(1, 5)]
    assert made[0].delivered.id == f"{facts[8]}.{first + 1}"
    assert type(made[0]) is type(delivery_result(watch, 1, facts))
    assert not gc.is_tracked(made[0])


def test_own_ids_are_kept():
    watch = Watch(print, None, "g", "s", 3, 2, ["one", None])
    assert [result.delivered.id for result in results(watch, DELIVERED, 0, 2)] == ["one", f"{DELIVERED[8]}.4"]


def test_errors_are_those_of_outcomes():
    watch = Watch(print, None, "g", "s", 0, 2, None)
    made = results(watch, FAILED, 0, 2)
    assert [str(result.error) for result in made] == [str(delivery_result(watch, n, FAILED).error) for n in range(2)]
    assert [result.delivered for result in made] == [None, None]


@pytest.mark.parametrize("sizes", [[], [1], [100], [101], [60, 60, 250, 1, 0, 40]])
def test_callbacks_are_divided_in_their_order(sizes):
    calls = [(number, list(range(size))) for number, size in enumerate(sizes)]
    parts = list(_parts(calls))
    assert [(f, a) for part in parts for f, some in part for a in some] == [(f, a) for f, some in calls for a in some]
    assert all(0 < sum(len(some) for _, some in part) <= 100 for part in parts)
