"""Percentiles of the histogram against the sorted values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_base import Histogram

ERROR = 1 / 31  # one step of 32 in a power of two


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=200), st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_a_percentile_is_within_one_step_of_the_true_one(values: list[int], percent: float) -> None:
    hist = Histogram()
    for value in values:
        hist.add(value)
    rank = min(int(percent / 100 * len(values)), len(values) - 1)
    true = sorted(values)[rank]
    assert true <= hist.percentile(percent) <= true * (1 + ERROR)
    assert hist.percentile(percent) <= max(values)


@pytest.mark.parametrize("percent", [50, 90, 99, 99.9])
def test_against_numpy_on_a_long_tail(percent: float) -> None:
    values = np.random.default_rng(7).lognormal(8, 2, 50_000).astype(np.int64)
    hist = Histogram()
    for value in values.tolist():
        hist.add(value)
    true = np.percentile(values, percent, method="higher")
    assert hist.percentile(percent) == pytest.approx(true, rel=2 * ERROR)


def test_weights_count_like_repetition() -> None:
    weighed, repeated = Histogram(), Histogram()
    for value, weight in ((10, 3), (1000, 1), (50_000, 96)):
        weighed.add(value, weight)
        for _ in range(weight):
            repeated.add(value)
    assert [weighed.percentile(p) for p in (1, 3.5, 50, 100)] == [repeated.percentile(p) for p in (1, 3.5, 50, 100)]
    assert len(weighed) == len(repeated) == 100


def test_small_values_are_exact_and_large_ones_are_kept() -> None:
    hist = Histogram()
    assert hist.percentile(50) == -1
    for value in range(32):
        hist.add(value)
        hist.clear()
        hist.add(value)
        assert hist.percentile(50) == value
    for value in (-5, 1 << 41, 1 << 62):
        hist.clear()
        hist.add(value)
        assert (len(hist), hist.percentile(100)) == (1, max(value, 0))


@given(st.lists(st.integers(0, 1 << 40), max_size=100), st.integers(0, 1 << 40))
def test_counts_up_to_a_bound_err_by_less_than_one_step(values: list[int], bound: int) -> None:
    hist = Histogram()
    for value in values:
        hist.add(value)
    low = sum(value <= bound / (1 + ERROR) - 1 for value in values)
    assert low <= hist.up_to(bound) <= sum(value <= bound for value in values)
    assert hist.total() == sum(values)
