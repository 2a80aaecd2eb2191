"""The search for the largest rate, on targets whose limit is known."""

import pytest

from dataproxy.perf import Result
from dataproxy.perf.search import find_max
from tests.unit.perf.test_result import COUNTS, result_of


def target(limit: float, **other: object) -> object:
    """Return a run against a target that is slow above its limit."""

    def run(rate: float) -> Result:
        slow = rate > limit
        return result_of([(50_000 if slow else 1000, 1000)], [(10, 1000)], **other)  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize("limit", [150, 1000, 5321, 77_000])
def test_the_limit_is_found_to_within_what_was_asked(limit: float) -> None:
    found = find_max(target(limit), {99.0: 0.02}, first=1000, most=1e6, within=0.05)  # type: ignore[arg-type]
    assert limit * 0.94 <= found.rate <= limit
    assert not found.generator_limits


def test_what_passes_everywhere_ends_at_the_most() -> None:
    found = find_max(target(1e9), {99.0: 0.02}, first=1000, most=50_000)  # type: ignore[arg-type]
    assert found.rate == 50_000
    assert [step.rate for step in found.steps] == [1000, 2000, 4000, 8000, 16_000, 32_000, 50_000]


def test_what_never_passes_has_no_rate() -> None:
    found = find_max(target(0), {99.0: 0.02}, first=1000, most=50_000)  # type: ignore[arg-type]
    assert found.rate == 0 and len(found.steps) < 40


def test_one_bad_run_is_tried_again() -> None:
    seen: list[float] = []

    def run(rate: float) -> Result:
        seen.append(rate)
        return result_of([(50_000 if len(seen) == 1 else 1000, 1000)], [(10, 1000)])

    found = find_max(run, {99.0: 0.02}, first=1000, most=1000)
    assert found.rate == 1000 and [step.reason for step in found.steps] == ["p99 above its bound", ""]


def test_a_generator_that_is_late_is_not_taken_for_a_slow_target() -> None:
    def run(rate: float) -> Result:
        return result_of([(20_000, 1000)], [(19_000 if rate > 3000 else 10, 1000)])

    found = find_max(run, {99.0: 0.05}, first=1000, most=1e6)
    assert found.generator_limits and 2700 <= found.rate <= 3000


def test_lost_messages_fail_a_rate() -> None:
    found = find_max(target(1e9, counts={**COUNTS, "delivered": 999}), {99.0: 1.0}, first=1000, most=1000)  # type: ignore[arg-type]
    assert found.rate == 0 and found.steps[0].reason == "1 not delivered"


def test_a_run_that_was_stopped_ends_the_search() -> None:
    with pytest.raises(KeyboardInterrupt):
        find_max(target(1e9, stopped="KeyboardInterrupt"), {99.0: 1.0}, first=1000, most=1e6)  # type: ignore[arg-type]
