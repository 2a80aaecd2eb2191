"""Simulated runs: ``--seeds 100000``; one failing seed again, with its steps and as small as it gets: ``--seed N``.

``--connections`` simulates the connections of one executor alone, against proxies that misbehave.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import time
from collections import Counter

from tests.campaigns.counters import keep
from tests.sim import world
from tests.sim.batches import PORTION, batches, run_batch
from tests.sim.cluster import Broken, Cluster
from tests.sim.minimise import minimise
from tests.sim.plan import make_plan


def replay(seed: int, connections: bool) -> int:
    """Run one seed with its steps; a failing one is made small and shown."""
    try:
        print((world.World(seed, trace=True) if connections else Cluster(make_plan(seed), trace=True)).run())
    except (Broken, world.Broken) as problem:
        print(problem)
    else:
        return 0
    if connections:
        return 1
    small = minimise(make_plan(seed))
    print(f"\nstill fails with {len(small.actions)} of {len(make_plan(seed).actions)} actions:")
    print(f"options {small.options}\nhubs {small.nodes} {small.node_options} first list {small.first_list}")
    for action in small.actions:
        print(f"  {action.at:>8} {action.kind} {action.args}")
    try:
        Cluster(small, trace=True).run()
    except Broken as problem:
        print(problem)
    return 1


def main() -> int:
    """Run the seeds and print totals; 1 when a law did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further seeds after so long")
    parser.add_argument("--connections", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.seed is not None:
        return replay(chosen.seed, chosen.connections)
    totals: Counter[str] = Counter()
    broken: list[str] = []
    began = time.monotonic()
    done = 0
    tasks = batches(chosen.start, chosen.seeds, chosen.connections)
    with contextlib.ExitStack() as stack:
        if chosen.processes > 1:
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(chosen.processes))
            results = pool.imap(run_batch, tasks)
        else:
            results = map(run_batch, tasks)
        for counts, problems in results:
            done = min(done + PORTION, chosen.seeds)
            totals.update(counts)
            broken += problems
            for problem in problems:
                print(problem, flush=True)
            if time.monotonic() - began > chosen.seconds:
                break
    took = time.monotonic() - began
    name = "connections" if chosen.connections else "sim"
    facts = {"seeds": done, "start": chosen.start, "seconds": round(took, 1), "violations": len(broken)}
    keep(name, {**facts, **totals})
    print(
        f"{done} seeds in {took:.1f} s ({done / took:.0f} a second), {len(broken)} violations: "
        + ", ".join(f"{key} {n}" for key, n in sorted(totals.items()))
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
