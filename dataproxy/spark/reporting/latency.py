"""Latencies of tasks and jobs: small histograms in commit messages, which can be added."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Steps", "added", "percentile", "since"]

Steps = tuple[tuple[int, int], ...]
"""Pairs (upper bound in microseconds, messages), ascending; a bound is at most 3.2 % above the true value."""


def since(now: Mapping[int, int], before: Mapping[int, int]) -> Steps:
    """Return the difference of two states of a histogram."""
    return tuple((bound, count - before.get(bound, 0)) for bound, count in now.items() if count > before.get(bound, 0))


def added(parts: Iterable[Steps]) -> Steps:
    """Return the histogram of all parts together."""
    total: Counter[int] = Counter()
    for part in parts:
        for bound, count in part:
            total[bound] += count
    return tuple(sorted(total.items()))


def percentile(steps: Steps, percent: float) -> float | None:
    """Return the latency in seconds that ``percent`` of the messages did not exceed; None without messages."""
    rank = percent / 100 * sum(count for _, count in steps)
    seen = 0
    for bound, count in steps:
        seen += count
        if seen >= rank:
            return bound / 1e6
    return None
