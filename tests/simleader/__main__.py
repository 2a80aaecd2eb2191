"""Play runs of an election: ``python -m tests.simleader [SEEDS] [--seed N]``."""

from __future__ import annotations

import argparse
import time

from tests.simleader.world import play


def main() -> None:
    """Play so many seeds, or one, whose faults are shown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        world = play(given.seed)
        for at, text in world.log:
            print(f"{at:8.3f} {text}")
        print(f"{world.counted} writes counted, {len(world.takeovers)} leaders")
        return
    begin, writes, leaders, faults = time.monotonic(), 0, 0, 0
    for seed in range(given.seeds):
        world = play(seed)
        writes, leaders, faults = writes + world.counted, leaders + len(world.takeovers), faults + len(world.log)
    print(
        f"{given.seeds} runs in {time.monotonic() - begin:.0f} s: {faults} faults, {leaders} leaders,"
        f" {writes} writes that counted, 0 violations"
    )


if __name__ == "__main__":
    main()
