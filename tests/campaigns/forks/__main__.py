"""``python -m tests.campaigns.forks``: children by fork, forkserver, spawn and a pre-forking server."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict

from tests.campaigns.counters import keep
from tests.campaigns.forks.rounds import KINDS, run_rounds

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds, print a line for each kind, and return 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.forks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="rounds in all, spread over the kinds")
    parser.add_argument("--children", type=int, default=8, help="children of each round")
    parser.add_argument("--messages", type=int, default=200, help="messages of each child")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    kinds = []
    for at, kind in enumerate(KINDS):
        rounds = chosen.rounds // len(KINDS) + (at < chosen.rounds % len(KINDS))
        figures = run_rounds(kind, rounds, children=chosen.children, messages=chosen.messages)
        kinds.append(figures)
        print(
            f"{kind:10} {figures.rounds:4} rounds  {figures.children:5} children  {figures.sent:10,} messages  "
            f"{figures.lost} lost  {figures.twice} twice  {len(figures.violations)} violations",
            flush=True,
        )
        for text in figures.violations[:5]:
            print(f"    {text}", flush=True)
    violations = sum(len(figures.violations) for figures in kinds)
    facts = {"kinds": [asdict(figures) for figures in kinds], "violations": violations}
    file = keep("forks", {**facts, "seconds": round(time.monotonic() - began, 1)})
    children = sum(figures.children for figures in kinds)
    print(f"forks: {chosen.rounds} rounds, {children} children, {violations} violations; {file}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
