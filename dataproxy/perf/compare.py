"""Comparison of two sets of runs: it finds differences that are larger than those between runs of one set."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataproxy.perf.result import Result

__all__ = ["Comparison", "Difference", "chance", "compare"]

#: Share of comparisons of equal sets that may wrongly report a difference.
LEVEL: Final = 0.05
_EXACT: Final = 20_000  # divisions of the runs that are tried; all of them if there are fewer
_SEED: Final = 1
_MEASURES: Final[dict[str, Callable[[Result], float | None]]] = {
    "p50": lambda result: result.percentile(50),
    "p90": lambda result: result.percentile(90),
    "p99": lambda result: result.percentile(99),
    "p99.9": lambda result: result.percentile(99.9),
    "rate": lambda result: result.rate,
}
#: Fields that may differ between runs of the same load.
_FREE: Final = ("target", "seed", "group")


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold the comparison of one measure: medians, the factor B / A, the noise in the sets, and the p-value.

    ``noise`` is the largest distance of a run from the median of its set, as a share of that.  ``told`` says that the
    difference is more than noise, corrected for the number of measures.
    """

    name: str
    a: float
    b: float
    noise: float
    chance: float
    told: bool

    @property
    def change(self) -> float:
        """Return how much larger B is, as a share of A."""
        return self.b / self.a - 1

    @property
    def worse(self) -> bool:
        """Tell whether B is worse: latencies are larger, or the rate is smaller."""
        return self.told and (self.b < self.a if self.name == "rate" else self.b > self.a)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Hold the differences of two sets of runs, the number of runs in each, and notes on their limits."""

    runs: tuple[int, int]
    differences: list[Difference]
    notes: list[str]

    def worse(self, tolerance: float = 0.0) -> list[Difference]:
        """Return the differences in which B is worse by more than ``tolerance``, a share of A."""
        return [one for one in self.differences if one.worse and abs(one.change) > tolerance]

    def verdict(self, tolerance: float = 0.0) -> str:
        """Return the result in a line."""
        if worse := self.worse(tolerance):
            return f"B is worse: {', '.join(f'{one.name} {one.change:+.1%}' for one in worse)}"
        if better := [one for one in self.differences if one.told and not one.worse]:
            return f"B is better: {', '.join(f'{one.name} {one.change:+.1%}' for one in better)}"
        if any(one.told for one in self.differences):
            return "B differs by less than the tolerance"
        if _attainable(*self.runs) > LEVEL / len(_MEASURES):
            return f"{self.runs[0]} and {self.runs[1]} runs are too few: the comparison needs at least 5 of each"
        return "no difference beyond the noise"

    def lines(self) -> list[str]:
        """Return the comparison as a table of text."""
        out = [f"{'':6} {'A':>14} {'B':>14} {'change':>9} {'noise':>8} {'by chance':>10}"]
        for one in self.differences:
            shown = [f"{value:,.0f}/s" if one.name == "rate" else f"{value * 1000:,.2f} ms" for value in (one.a, one.b)]
            mark = "" if not one.told else ("  worse" if one.worse else "  better")
            told = f"{one.change:>+9.1%} {one.noise:>8.1%} {one.chance:>10.3f}{mark}"
            out.append(f"{one.name:6} {shown[0]:>14} {shown[1]:>14} {told}")
        return [*out, *self.notes]


def compare(a: Sequence[Result], b: Sequence[Result]) -> Comparison:
    """Compare runs of two sets.  Raises ConfigError for a run that is not valid, or of another load than the others."""
    for name, runs in (("A", a), ("B", b)):
        if not runs:
            raise ConfigError(f"{name} has no run")
        for number, run in enumerate(runs, 1):
            if run.invalid:
                raise ConfigError(f"run {number} of {name} is not valid: {'; '.join(run.invalid)}")
    _check_loads([*a, *b])
    found = []
    for name, measure in _MEASURES.items():
        left, right = ([value for run in runs if (value := measure(run))] for runs in (a, b))
        if len(left) == len(a) and len(right) == len(b):
            found.append((name, left, right, chance(left, right)))
    told = _told([one[3] for one in found])
    differences = [
        Difference(name, statistics.median(left), statistics.median(right), max(_noise(left), _noise(right)), p, real)
        for (name, left, right, p), real in zip(found, told, strict=True)
    ]
    notes = [f"{name} lost messages" for name, runs in (("A", a), ("B", b)) if any(run.lost for run in runs)]
    return Comparison((len(a), len(b)), differences, notes)


def _check_loads(runs: list[Result]) -> None:
    first = {name: value for name, value in runs[0].load.items() if name not in _FREE}
    for run in runs[1:]:
        other = {name: value for name, value in run.load.items() if name not in _FREE}
        differing = sorted(name for name in {*first, *other} if first.get(name) != other.get(name))
        if differing:
            raise ConfigError(
                f"the runs have different loads: they differ in {', '.join(differing)}",
                hint="compare runs of the same plan, sizes and path",
            )


def _noise(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return max(abs(value - middle) for value in values) / middle


def _attainable(a: int, b: int) -> float:
    """Return the smallest p-value that is possible with ``a`` and ``b`` runs."""
    return (2 if a == b else 1) / math.comb(a + b, a)


def chance(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the p-value of a permutation test: how often random divisions of the runs differ as much as these.

    The difference is that of the means of the logarithms.  All divisions are tried if there are not too many, else a
    random part of them, drawn with a fixed seed.
    """
    values = [math.log(value) for value in (*left, *right)]
    n, total = len(left), math.fsum(values)
    rest = len(values) - n
    seen = abs(math.fsum(values[:n]) / n - math.fsum(values[n:]) / rest) * (1 - 1e-9)
    if math.comb(len(values), n) <= _EXACT:
        sums = [math.fsum(chosen) for chosen in itertools.combinations(values, n)]
        return sum(abs(part / n - (total - part) / rest) >= seen for part in sums) / len(sums)
    source = random.Random(_SEED)
    sums = [math.fsum(source.sample(values, n)) for _ in range(_EXACT)]
    return (1 + sum(abs(part / n - (total - part) / rest) >= seen for part in sums)) / (1 + len(sums))


def _told(chances: Sequence[float]) -> list[bool]:
    """Return which differences are more than noise, so that any is wrong in at most ``LEVEL`` of cases (Holm)."""
    out = [False] * len(chances)
    for place, (found, number) in enumerate(sorted((found, number) for number, found in enumerate(chances))):
        if found > LEVEL / (len(chances) - place):
            break
        out[number] = True
    return out
