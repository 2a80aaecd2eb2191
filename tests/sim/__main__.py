"""Longer runs: ``python -m tests.sim --seeds 100000``; one failing seed again: ``--start SEED --trace``."""

import argparse
import sys
import time
from collections import Counter

from tests.sim.world import Broken, World


def main() -> int:
    """Run the seeds and print totals; 1 when an invariant did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--trace", action="store_true")
    chosen = parser.parse_args()
    totals: Counter[str] = Counter()
    broken = 0
    began = time.monotonic()
    for seed in range(chosen.start, chosen.start + chosen.seeds):
        try:
            totals.update(World(seed, trace=chosen.trace).run())
        except Broken as problem:
            broken += 1
            print(problem)
    print(f"{chosen.seeds} seeds in {time.monotonic() - began:.1f} s, {broken} broken: {dict(totals)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
