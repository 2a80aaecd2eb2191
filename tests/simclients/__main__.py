"""Play runs of clients: ``python -m tests.simclients [SEEDS] [--seed N]``."""

from __future__ import annotations

import argparse
import time

from tests.simclients.world import play


def main() -> None:
    """Play so many seeds, or one, whose faults are shown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", nargs="?", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        world = play(given.seed)
        for at, text in world.log:
            print(f"{at:8.3f} {text}")
        print(f"{world.steps} steps, {world.grants} locks, {world.commits} commits, {world.late} that came too late")
        return
    begin, faults, grants, commits, late, notices = time.monotonic(), 0, 0, 0, 0, 0
    for seed in range(given.first, given.first + given.seeds):
        world = play(seed)
        faults, grants, notices = faults + len(world.log), grants + world.grants, notices + world.notices
        commits, late = commits + world.commits, late + world.late
    print(
        f"{given.seeds} runs in {time.monotonic() - begin:.0f} s: {faults} faults, {grants} locks, {notices}"
        f" notifications, {commits} commits and {late} that came too late, 0 violations"
    )


if __name__ == "__main__":
    main()
