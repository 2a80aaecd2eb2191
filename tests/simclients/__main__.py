"""Play runs of clients: ``python -m tests.simclients [SEEDS] [--start N]``; one, with its faults: ``--seed N``."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import time
from collections import Counter

from tests.campaigns.counters import keep
from tests.simclients.portions import PORTION, portion
from tests.simclients.world import LawError, play


def show(seed: int) -> int:
    """Play one seed, and print its faults; return 1 if a law does not hold."""
    try:
        world = play(seed)
    except LawError as error:
        print(error)
        return 1
    for at, text in world.log:
        print(f"{at:8.3f} {text}")
    print(f"{world.steps} steps, {world.grants} locks, {world.commits} commits, {world.late} that came too late")
    return 0


def main() -> int:
    """Play so many seeds and print totals, or one; return 1 if a law does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simclients", description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    if given.seed is not None:
        return show(given.seed)
    end = given.start + given.seeds
    portions = [range(at, min(at + PORTION, end)) for at in range(given.start, end, PORTION)]
    totals: Counter[str] = Counter()
    violations = 0
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        if given.processes > 1:
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(given.processes))
            results = pool.imap(portion, portions)
        else:
            results = map(portion, portions)
        for counts, broken in results:
            totals.update(counts)
            violations += len(broken)
            for problem in broken:
                print(problem, flush=True)
    seconds = time.monotonic() - begin
    keep("simclients", {"seeds": given.seeds, "start": given.start, "seconds": round(seconds, 1), **totals})
    print(
        f"{given.seeds} runs in {seconds:.0f} s: {totals['faults']} faults, {totals['locks']} locks, "
        f"{totals['notices']} notifications, {totals['commits']} commits and {totals['late']} that came too late, "
        f"{violations} violations"
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
