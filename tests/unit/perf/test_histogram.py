"""The histogram of the load test against HdrHistogram's own, and against the sorted values."""

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from dataproxy._core.perf.histogram import Histogram

PERCENTS = (0, 1, 10, 50, 75, 90, 99, 99.9, 99.99, 100)
LARGEST = (1 << 36) - 1
ERROR = 1 / 1024


def theirs_of(values: list[int]) -> HdrHistogram:
    """Return HdrHistogram's histogram of the values, to three significant digits."""
    out = HdrHistogram(1, LARGEST, 3)
    for value in values:
        assert out.record_value(value)
    return out


def ours_of(values: list[int]) -> Histogram:
    """Return our histogram of the values."""
    out = Histogram()
    for value in values:
        out.record(value)
    return out


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=300))
def test_percentiles_are_those_of_hdrhistogram(values: list[int]) -> None:
    ours, theirs = ours_of(values), theirs_of(values)
    assert [ours.percentile(p) for p in PERCENTS] == [theirs.get_value_at_percentile(p) for p in PERCENTS]
    assert len(ours) == theirs.get_total_count()


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_of_a_long_tail_are_those_of_hdrhistogram(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(9, 2.5, 100_000).astype(np.int64).clip(0, LARGEST).tolist()
    ours, theirs = ours_of(values), theirs_of(values)
    assert [ours.percentile(p) for p in PERCENTS] == [theirs.get_value_at_percentile(p) for p in PERCENTS]


@given(st.lists(st.integers(0, LARGEST), min_size=1, max_size=300), st.sampled_from(PERCENTS[1:]))
def test_a_percentile_is_too_large_by_a_thousandth_at_most(values: list[int], percent: float) -> None:
    rank = max(int(percent / 100 * len(values) + 0.5), 1)
    true = sorted(values)[rank - 1]
    assert true <= (ours_of(values).percentile(percent) or 0) <= true * (1 + ERROR)


@given(st.lists(st.integers(0, LARGEST), max_size=50), st.lists(st.integers(0, LARGEST), max_size=50))
def test_merged_histograms_are_that_of_all_values(one: list[int], other: list[int]) -> None:
    merged = ours_of(one)
    merged.merge(ours_of(other))
    both = ours_of(one + other)
    assert merged.counts() == both.counts()
    assert (merged.least, merged.largest, merged.mean) == (both.least, both.largest, both.mean)


@given(st.lists(st.integers(0, LARGEST), max_size=100))
def test_counts_make_the_same_histogram_again(values: list[int]) -> None:
    ours = ours_of(values)
    again = Histogram.of_counts(ours.counts())
    assert again.counts() == ours.counts()
    assert [again.percentile(p) for p in PERCENTS] == [ours.percentile(p) for p in PERCENTS]


@given(st.lists(st.integers(0, LARGEST), max_size=100), st.integers(0, LARGEST))
def test_values_above_a_bound_are_counted_to_within_a_slot(values: list[int], bound: int) -> None:
    above = ours_of(values).above(bound)
    assert sum(value > bound * (1 + ERROR) + 1 for value in values) <= above <= sum(value > bound for value in values)


def test_without_values_there_is_nothing_to_tell() -> None:
    empty = Histogram()
    empty.record(5)
    empty.clear()
    assert (len(empty), empty.percentile(50), empty.least, empty.largest, empty.mean) == (0, None, None, None, None)
    assert empty.counts() == [] and empty.beyond == 0


def test_values_without_a_slot_of_their_own_are_counted_and_told() -> None:
    ours = ours_of([-7, 1 << 36, 1 << 62])
    assert (ours.least, ours.largest, ours.beyond) == (0, 1 << 62, 2)
    assert ours.percentile(1) == 0
    assert ours.percentile(100) == LARGEST


def test_a_value_counts_as_often_as_is_said() -> None:
    ours = Histogram()
    ours.record(7, 99)
    ours.record(900, 1)
    ours.record(1_000_000, 0)
    assert (len(ours), ours.percentile(99), ours.percentile(99.9)) == (100, 7, 900)
    with pytest.raises(ValueError, match="not -1"):
        ours.record(1, -1)
