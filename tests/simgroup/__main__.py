"""``python -m tests.simgroup``: runs of TubeMQ groups on virtual time: calm, with faults, of members that choose."""

from __future__ import annotations

import argparse
import functools
import sys
import time

from tests.simgroup.chosen import play_chosen
from tests.simgroup.run import LawError, play

_RUNS = {"calm": functools.partial(play, faulty=False), "faulty": play, "chosen": play_chosen}


def main() -> int:
    """Play the runs; return the exit status: 1 if a law does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="runs of each kind, from seed 0")
    parser.add_argument("--seed", type=int, help="one run of each kind")
    given = parser.parse_args()
    seeds = range(given.seeds) if given.seed is None else [given.seed]
    begin = shown = time.monotonic()
    holds = broken = 0
    for number, seed in enumerate(seeds, 1):
        for name, run in _RUNS.items():
            try:
                holds += run(seed).holds
            except LawError as error:
                broken += 1
                sys.stdout.write(f"{name}: {error}\n")
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            sys.stderr.write(f"\r{number} of {len(seeds)} seeds, {broken} laws broken")
            sys.stderr.flush()
    seconds = time.monotonic() - begin
    sys.stdout.write(
        f"{len(_RUNS) * len(seeds)} runs, {holds} partitions taken, {broken} laws broken, {seconds:.1f} s\n"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
