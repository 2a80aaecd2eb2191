"""Seeds in portions, for one process or several."""

from __future__ import annotations

from collections import Counter

from tests.simclients.world import LawError, play

__all__ = ["PORTION", "portion"]

PORTION = 50  #: seeds that a process plays before it tells


def portion(seeds: range) -> tuple[Counter[str], list[str]]:
    """Play some seeds; return the counts and what broke."""
    counts: Counter[str] = Counter()
    broken = []
    for seed in seeds:
        try:
            world = play(seed)
        except LawError as error:
            broken.append(str(error))
            continue
        counts.update(
            faults=len(world.log), locks=world.grants, notices=world.notices, commits=world.commits, late=world.late
        )
    return counts, broken
