"""``python -m tests.campaigns.results --messages 1000000``: refusals counted, and the time limit under each fault."""

from __future__ import annotations

import argparse
import sys

from tests.campaigns.counters import keep
from tests.campaigns.results.limits import limits
from tests.campaigns.results.refusals import refusals

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run both, print and keep the figures; 1 when something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.results", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=1.0, help="delivery_timeout in seconds")
    chosen = parser.parse_args(arguments)
    counted, problems = refusals(chosen.messages)
    bounded, late = limits(chosen.limit)
    problems += late
    for name, value in (*counted.items(), *bounded.items()):
        print(f"{name}: {value}")
    for problem in problems:
        print(f"VIOLATION {problem}")
    facts = {"refusals": counted, "limits": bounded, "delivery_timeout": chosen.limit, "problems": problems}
    print(f"written to {keep('results', facts)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
