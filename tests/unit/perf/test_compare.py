"""Comparisons of repeated runs: noise is not claimed as a difference, and a real one is."""

import random
from typing import Any

import pytest

from dataproxy import ConfigError
from dataproxy.perf import Result
from dataproxy.perf.compare import chance, compare
from tests.unit.perf.test_result import COUNTS, LOAD, result_of


def runs(seed: int, factor: float, how_many: int = 5, spread: float = 0.03, **other: Any) -> list[Result]:
    """Return runs whose latencies differ by chance, around those of a load times ``factor``."""
    source = random.Random(seed)
    out = []
    for _ in range(how_many):
        scale = factor * source.lognormvariate(0, spread)
        latencies = [(round(base * scale), times) for base, times in ((10_000, 900), (20_000, 90), (90_000, 10))]
        seconds = 2 * source.lognormvariate(0, 0.001)
        out.append(result_of(latencies, [(10, 1000)], seconds=seconds, **other))
    return out


def test_a_difference_beyond_the_noise_is_told_and_called_worse() -> None:
    found = compare(runs(1, 1.0), runs(2, 1.3))
    assert {one.name for one in found.worse()} == {"p50", "p90", "p99", "p99.9"}
    assert found.verdict().startswith("B is worse: p50 +")
    assert compare(runs(2, 1.3), runs(1, 1.0)).verdict().startswith("B is better: p50 -")


def test_a_lower_rate_is_worse() -> None:
    slow = runs(2, 1.0)
    for run in slow:
        run.seconds *= 1.5
    assert [one.name for one in compare(runs(1, 1.0), slow).worse()] == ["rate"]


def test_noise_is_claimed_as_a_difference_in_few_comparisons() -> None:
    claimed = sum(any(one.told for one in compare(runs(2 * n, 1), runs(2 * n + 1, 1)).differences) for n in range(200))
    assert claimed <= 20  # one in twenty is promised


def test_a_difference_below_the_tolerance_is_let_pass() -> None:
    found = compare(runs(1, 1.0, spread=0.001), runs(2, 1.02, spread=0.001))
    assert found.worse() and not found.worse(0.05)
    assert found.verdict(0.05) == "B differs by less than the tolerance"


@pytest.mark.parametrize("how_many", [1, 2, 4])
def test_few_runs_tell_nothing(how_many: int) -> None:
    found = compare(runs(1, 1.0, how_many), runs(2, 3.0, how_many))
    assert not found.worse()
    assert "at least 5 of each" in found.verdict()
    assert found.differences[0].change == pytest.approx(2, rel=0.2)


def test_runs_of_other_loads_or_not_valid_are_not_compared() -> None:
    with pytest.raises(ConfigError, match="differ in size;"):
        compare(runs(1, 1.0), runs(2, 1.0, load={**LOAD, "size": "1000"}))
    with pytest.raises(ConfigError, match="run 1 of B is not valid"):
        compare(runs(1, 1.0), [result_of([(5000, 10)], [(5000, 10)])])
    with pytest.raises(ConfigError, match="A has no run"):
        compare([], runs(1, 1.0))
    assert compare(runs(1, 1.0), runs(2, 1.0, load={**LOAD, "seed": 7, "target": "tcp://other:1"})).differences


def test_lost_messages_are_noted() -> None:
    found = compare(runs(1, 1.0), runs(2, 1.0, counts={**COUNTS, "delivered": 990, "failed": 10}))
    assert found.lines()[-1] == "B lost messages"


def test_chance_is_the_share_of_divisions_that_differ_as_much() -> None:
    assert chance([1, 2, 3, 4, 5], [10, 20, 30, 40, 50]) == pytest.approx(2 / 252)
    assert chance([1, 2], [1, 2]) == 1
    assert chance([1.0] * 12, [2.0] * 12) < 0.001  # too many divisions to try all
