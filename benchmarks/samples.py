"""Statistics of repeated measurements: median, range, and a bootstrap interval of the median."""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Summary", "noise_floor", "summarise"]

BOOTSTRAP_ROUNDS = 2000


@dataclass(frozen=True)
class Summary:
    """Hold the points of one figure and their statistics."""

    points: tuple[float, ...]
    median: float
    low: float
    high: float
    interval: tuple[float, float]

    @property
    def spread(self) -> float:
        """Return the range as a share of the median (0.1 = ten percent)."""
        return (self.high - self.low) / self.median if self.median else 0.0


def summarise(points: Sequence[float]) -> Summary:
    """Return median, minimum, maximum and the 95 % bootstrap interval of the median.

    The resampling is seeded, so that the same points give the same interval. Raises ValueError without points.
    """
    if not points:
        raise ValueError("no points to summarise")
    chance = random.Random(20)
    medians = sorted(statistics.median(chance.choices(points, k=len(points))) for _ in range(BOOTSTRAP_ROUNDS))
    cut = BOOTSTRAP_ROUNDS // 40
    return Summary(
        points=tuple(points),
        median=statistics.median(points),
        low=min(points),
        high=max(points),
        interval=(medians[cut], medians[-cut - 1]),
    )


def noise_floor(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the distance of the medians of two series of the same contestant, as a share of the first median.

    A difference between two contestants that is less than twice this figure may be noise.
    """
    base = statistics.median(first)
    return abs(statistics.median(second) - base) / base
