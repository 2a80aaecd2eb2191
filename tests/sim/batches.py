"""Seeds in portions, for one process or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.sim import world
from tests.sim.cluster import Broken, Cluster
from tests.sim.plan import make_plan

__all__ = ["PORTION", "batches", "run_batch"]

PORTION = 200

Found = tuple[Counter[str], list[str]]


def run_batch(task: tuple[int, int, bool]) -> Found:
    """Run the seeds from the first number up to, not including, the second; return counts and problems."""
    totals: Counter[str] = Counter()
    broken: list[str] = []
    for seed in range(task[0], task[1]):
        try:
            totals.update(world.World(seed).run() if task[2] else Cluster(make_plan(seed)).run())
        except (Broken, world.Broken) as problem:
            broken.append(str(problem))
    return totals, broken


def batches(start: int, seeds: int, connections: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield portions of so many seeds."""
    for first in range(start, start + seeds, PORTION):
        yield first, min(first + PORTION, start + seeds), connections
