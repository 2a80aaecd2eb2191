"""Lines that run in turn: sizes of bodies, medians, and figures that are kept."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["SIZES", "Fields", "Runs", "in_turn", "keep", "measure_sizes", "median"]

SIZES = {100: "100 B", 1000: "1 KB"}

Fields = dict[str, float]
Runs = dict[str, list[Fields]]


def in_turn(ways: Mapping[str, Callable[[], Fields]], rounds: int, title: str = "") -> Runs:
    """Run every way once a round; the first one of each round is another one."""
    names, runs = list(ways), {way: list[Fields]() for way in ways}
    for i in range(rounds):
        for way in (*names[i % len(names) :], *names[: i % len(names)]):
            runs[way].append(ways[way]())
            print(f"{title}round {i + 1}: {way}: {runs[way][-1]}", flush=True)
    return runs


def median(runs: list[Fields], figure: Callable[[Fields], float]) -> tuple[float, float, float]:
    """Return the median of a figure, the lowest and the highest."""
    values = sorted(map(figure, runs))
    return statistics.median(values), values[0], values[-1]


def measure_sizes(
    parser: argparse.ArgumentParser, results: Path, measure: Callable[[int, argparse.Namespace], Runs],
    report: Callable[[int, Runs], None],
) -> None:  # fmt: skip
    """Measure each size of bodies, or the one of ``--only``, print the tables, and keep the figures of a whole run."""
    parser.add_argument("--only", type=int, choices=list(SIZES), help="one size of bodies; nothing is written")
    given = parser.parse_args()
    found = {size: measure(size, given) for size in ([given.only] if given.only else SIZES)}
    for size, runs in found.items():
        report(size, runs)
    if not given.only:
        keep(results, {SIZES[size]: runs for size, runs in found.items()})


def keep(results: Path, figures: Mapping[str, Runs] | Runs) -> None:
    """Write the figures of a whole run."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(figures, indent=1) + "\n")
