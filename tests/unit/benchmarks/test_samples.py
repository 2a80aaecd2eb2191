"""The runner's statistics on series whose answers are known."""

import pytest

from benchmarks.samples import noise_floor, summarise


def test_median_range_and_spread():
    summary = summarise([3.0, 1.0, 2.0])
    assert (summary.median, summary.low, summary.high) == (2.0, 1.0, 3.0)
    assert summary.spread == 1.0
    assert summary.points == (3.0, 1.0, 2.0)


def test_median_of_an_even_number_of_points_is_between():
    assert summarise([1.0, 2.0, 10.0, 4.0]).median == 3.0


def test_interval_lies_in_the_range_holds_the_median_and_is_repeatable():
    points = [9.0, 10.0, 10.5, 11.0, 9.5, 10.2, 14.0]
    summary = summarise(points)
    low, high = summary.interval
    assert 9.0 <= low <= summary.median <= high <= 14.0
    assert summarise(points).interval == summary.interval


def test_one_point_is_its_own_interval():
    assert summarise([5.0]).interval == (5.0, 5.0)


def test_no_points_are_refused():
    with pytest.raises(ValueError, match="no points"):
        summarise([])


def test_noise_is_the_distance_of_the_medians():
    assert noise_floor([10.0, 10.0, 10.0], [9.0, 9.0, 12.0]) == pytest.approx(0.1)
