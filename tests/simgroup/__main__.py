"""Simulated runs of a group: ``--seeds 10000``; one seed again, told line by line, and made small: ``--seed N``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from tests.campaigns.counters import keep
from tests.sim.minimise import minimise
from tests.simgroup.plan import Plan, make_plan
from tests.simgroup.portions import PORTION, portion
from tests.simgroup.world import LawError, World


def fails(plan: Plan, **more: Any) -> str:
    """Return what breaks in a run of the plan, empty when nothing does."""
    try:
        World(plan, **more).run()
    except LawError as error:
        return str(error)
    return ""


def show(plan: Plan, **more: Any) -> bool:
    """Play a plan and print what happens; return whether the laws hold."""
    world = World(plan, trace=True, **more)
    try:
        end, holds = f"{dict(world.run())}", True
    except LawError as error:
        end, holds = str(error), False
    for line in world.trace:
        print(line[:240])
    print(end)
    return holds


def replay(seed: int, **more: Any) -> int:
    """Play one seed; a failing one is made small and shown."""
    plan = make_plan(seed, hub=bool(more.get("hub")))
    if not fails(plan, **more):
        show(plan, **more)
        return 0
    small = minimise(plan, broken=partial(fails, **more), tries=200)
    print(f"fails with {len(small.actions)} of {len(plan.actions)} actions:\n{small}\n")
    show(small, **more)
    return 1


def main() -> int:
    """Play the seeds and print totals; return 1 if a law does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simgroup", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--hub", action="store_true", help="the hub's master and brokers in the place of the models")
    given = parser.parse_args()
    if given.seed is not None:
        return replay(given.seed, hub=given.hub)
    end = given.start + given.seeds
    portions = [range(at, min(at + PORTION, end)) for at in range(given.start, end, PORTION)]
    begin = time.monotonic()
    if given.processes > 1:
        with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
            totals, broken = _gather(pool.imap(partial(portion, hub=given.hub), portions))
    else:
        totals, broken = _gather(map(partial(portion, hub=given.hub), portions))
    seconds = time.monotonic() - begin
    keep(
        "simgroup-hub" if given.hub else "simgroup",
        {"seeds": given.seeds, "start": given.start, "seconds": round(seconds, 1), **totals},
    )
    told = ", ".join(f"{key} {n}" for key, n in sorted(totals.items()) if key != "runs")
    rate = given.seeds / seconds
    print(f"{given.seeds} seeds in {seconds:.1f} s ({rate:.0f} a second), {len(broken)} violations: {told}")
    return 1 if broken else 0


def _gather(results: Iterable[tuple[Counter[str], list[str]]]) -> tuple[Counter[str], list[str]]:
    totals: Counter[str] = Counter()
    broken: list[str] = []
    for counts, problems in results:
        slowest = max(totals["slowest_ms"], counts["slowest_ms"])
        totals += counts
        totals["slowest_ms"] = slowest
        broken += problems
        for problem in problems:
            print(problem, flush=True)
    return totals, broken


if __name__ == "__main__":
    sys.exit(main())
