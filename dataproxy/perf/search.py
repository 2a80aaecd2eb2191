"""The search for the largest rate at which latencies stay within their bounds, by runs of different rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.perf.result import Result

__all__ = ["Found", "Step", "find_max"]

_GROWTH: Final = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """Describe one run of the search; ``reason`` says why it failed, empty if it passed."""

    rate: float
    result: Result
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """Hold the largest rate that passed (0 without one), all steps, and whether the generator ended the search."""

    rate: float
    steps: list[Step]
    generator_limits: bool


def find_max(
    run: Callable[[float], Result],
    bounds: dict[float, float],
    *,
    first: float,
    most: float,
    least: float = 1.0,
    within: float = 0.1,
    tries: int = 2,
    watch: Callable[[Step], object] | None = None,
) -> Found:
    """Search for the largest rate (messages a second) at which each percentile is within its bound (s).

    The rate is doubled from ``first`` on until a rate fails or ``most`` has passed; then the interval is halved until
    it is smaller than ``within`` of the rate, or ``least`` has failed.  A rate fails if ``tries`` runs fail; a run also
    fails if a message is not delivered.  ``run`` makes one run; its exceptions end the search.  Raises
    KeyboardInterrupt for a run that was interrupted.
    """
    steps: list[Step] = []

    def passes(rate: float) -> bool:
        for _ in range(tries):
            result = run(rate)
            step = Step(rate, result, _reason(result, bounds))
            steps.append(step)
            if watch is not None:
                watch(step)
            if result.stopped:
                raise KeyboardInterrupt
            if not step.reason:
                return True
        return False

    good, bad = 0.0, 0.0
    rate = min(first, most)
    while not bad:
        if passes(rate):
            good = rate
            if rate >= most:
                break
            rate = min(rate * _GROWTH, most)
        else:
            bad = rate
    while bad > least and bad - good > within * bad:
        middle = (good + bad) / 2
        if passes(middle):
            good = middle
        else:
            bad = middle
    failed = [step for step in steps if step.reason and step.rate == bad]
    return Found(good, steps, bool(failed) and all(step.result.invalid for step in failed))


def _reason(result: Result, bounds: dict[float, float]) -> str:
    if result.invalid:
        return "not valid"
    if result.lost or result.counts["refused"]:
        return f"{result.lost + result.counts['refused']:,} not delivered"
    for percent, bound in bounds.items():
        found = result.percentile(percent)
        if found is None or found > bound:
            return f"p{percent:g} above its bound"
    return ""
