"""``python -m tests.campaigns.endings``: six ways of ending a process, with the hub up, slow and down."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict

from tests.campaigns.counters import keep
from tests.campaigns.endings.cases import ENDINGS, HUBS, run_case

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run all cases, print a line for each, and return 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.endings", description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="runs of each case")
    parser.add_argument("--messages", type=int, default=10_000, help="messages of each run")
    parser.add_argument("--jobs", type=int, default=4, help="processes at a time")
    parser.add_argument("--hub", choices=HUBS, action="append", help="only with the hub in this state")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    cases = []
    for state in chosen.hub or HUBS:
        for ending in ENDINGS:
            figures = run_case(ending, state, chosen.runs, chosen.messages, jobs=chosen.jobs)
            cases.append(figures)
            print(
                f"{ending:10} hub {state:5} {figures.runs:4} runs  {figures.sent:9,} sent  "
                f"{figures.delivered:9,} delivered  {figures.lost} lost  {figures.twice} twice  "
                f"slowest close {figures.slowest_close:5.2f} s, end {figures.slowest_end:5.2f} s  "
                f"{len(figures.violations)} violations",
                flush=True,
            )
            for text in figures.violations[:5]:
                print(f"    {text}", flush=True)
    violations = sum(len(figures.violations) for figures in cases)
    facts = {"cases": [asdict(figures) for figures in cases], "violations": violations}
    file = keep("endings", {**facts, "seconds": round(time.monotonic() - began, 1)})
    runs = sum(figures.runs for figures in cases)
    sent = sum(figures.sent for figures in cases)
    print(f"endings: {len(cases)} cases, {runs} runs, {sent:,} messages, {violations} violations; {file}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
