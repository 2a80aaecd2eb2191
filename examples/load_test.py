"""Load a proxy at a planned rate and print latencies from each message's planned time; `dataproxy perf` as a call.

The load is open: every message has a planned time that does not depend on earlier answers, and what it waits for from
then on counts.  Where this program itself was late, the report says INVALID and shows no percentiles.

    python examples/load_test.py --rate 200000 --threads 2 --size 200 --duration 10
    python examples/load_test.py --rate 5000 --arrivals poisson --target tcp://host:46801 --html report.html
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path

from local_hub import target_or_hub

from dataproxy import ConfigError
from dataproxy.perf import Load, Result, parse_plan, run_load, text_report
from dataproxy.perf.html import html_report


def load(target: str, chosen: argparse.Namespace) -> Result:
    """Run the load and return its result."""
    plan = parse_plan(f"{chosen.rate:f}:{chosen.duration:f}", arrivals=chosen.arrivals, seed=chosen.seed)
    asked = Load(
        target, plan, group=chosen.group, threads=chosen.threads, streams=chosen.threads, size=str(chosen.size),
        max_lag=chosen.max_lag, options={"connections": chosen.connections},
    )  # fmt: skip
    return run_load(asked)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="tcp://host:port,... or http://manager:port; without it a hub is started")
    parser.add_argument("--group", default="load", help="group id")
    parser.add_argument("--rate", type=float, default=50_000, help="messages a second in all")
    parser.add_argument("--arrivals", choices=["constant", "poisson"], default="constant", help="gaps between messages")
    parser.add_argument("--seed", type=int, default=1, help="for drawn gaps")
    parser.add_argument("--threads", type=int, default=1, help="sending threads, one stream each")
    parser.add_argument("--size", type=int, default=100, help="bytes of one body")
    parser.add_argument("--duration", type=float, default=5.0, help="seconds")
    parser.add_argument("--connections", type=int, default=0, help="connections in all; 0 is one for each proxy")
    parser.add_argument("--max-lag", type=float, default=0.001, help="seconds that this program may be late")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--html", type=Path, help="write the report as a page, too")
    chosen = parser.parse_args()
    if chosen.rate <= 0 or chosen.threads < 1 or chosen.size < 1 or chosen.duration <= 0:
        parser.error("--threads and --size must be at least 1, --duration and --rate above 0")
    return chosen


def main() -> int:
    """Run the load test; the status is 1 when a message was not delivered."""
    chosen = arguments()
    with target_or_hub(chosen.target) as target:
        try:
            found = load(target, chosen)
        except ConfigError as error:
            sys.stderr.write(f"load_test: {error}\n")
            return 2
        sys.stdout.write((json.dumps(found.as_json()) if chosen.json else text_report(found)) + "\n")
        if chosen.html:
            chosen.html.write_text(html_report(found))
    return 1 if found.lost else 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
