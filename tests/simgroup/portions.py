"""Seeds in portions, for one process or several."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.simgroup.world import LawError, play

__all__ = ["PORTION", "portion"]

PORTION = 50  #: seeds that a process plays before it tells


def portion(seeds: range, **more: Any) -> tuple[Counter[str], list[str]]:
    """Play some seeds; return the counts and what broke."""
    counts: Counter[str] = Counter()
    broken = []
    for seed in seeds:
        try:
            found = play(seed, **more)
            slowest = max(counts["slowest_ms"], found["settled_ms"])
            counts += found
            counts["slowest_ms"] = slowest
        except LawError as error:
            broken.append(str(error))
    return counts, broken
