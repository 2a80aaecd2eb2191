"""A cluster of simulated proxies under faults, by every way to choose: ``python -m tests.simcluster``.

The tables go to the output; the exit status is 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from tests.simcluster.scenarios import POLICIES, SCENARIOS, SPREADS, Cluster, play, smaller

__all__ = ["faults_table", "main", "missed", "spread_table"]

_SLOW = "10 % slow"
_P99_SHARE = 0.5
_SPREAD = 1.2


def faults_table(seconds: int, proxies: int, seed: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Play every scenario with every policy and print a line for each; return the results by scenario and policy."""
    print(f"{proxies} proxies, 20 producers, {seconds} s; times in ms from the sealed pack to its result")
    print(f"{'':26}{'':13}{'p50':>8}{'p99':>9}{'max':>9}{'failed':>8}{'resent':>8}{'copies':>8}  out, swapped")
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for name, cluster in SCENARIOS.items():
        one = smaller(cluster, seconds=seconds, proxies=proxies, seed=seed)
        for policy in POLICIES:
            result = out.setdefault(name, {})[policy] = play(one, POLICIES[policy])
            print(
                f"{name:26}{policy:13}{result['p50']:8.1f}{result['p99']:9.1f}{result['max']:9.1f}"
                f"{result['failed'] + result['pending']:8}{result['resent']:8}{result['copies']:8}"
                f"  {sum(result['outs'])}, {sum(result['swaps'])}",
                flush=True,
            )
    return out


def spread_table(spreads: dict[str, Cluster], seed: int) -> dict[str, dict[str, float]]:
    """Play many producers against one cluster; return the spread by cluster and policy: most over mean of frames."""
    one = next(iter(spreads.values()))
    print(f"\n{one.producers} producers, {one.seconds} s: frames of the busiest proxy over the mean of all")
    print(f"{'':44}" + "".join(f"{policy:>13}" for policy in POLICIES))
    out: dict[str, dict[str, float]] = {}
    for name, cluster in spreads.items():
        out[name] = {policy: play(smaller(cluster, seed=seed), key)["spread"] for policy, key in POLICIES.items()}
        print(f"{name:44}" + "".join(f"{value:13.2f}" for value in out[name].values()), flush=True)
    return out


def missed(faults: dict[str, dict[str, dict[str, Any]]], spreads: dict[str, dict[str, float]]) -> list[str]:
    """Return a line for each goal that is not reached."""
    out = []
    for name, results in faults.items():
        lost = results["ours"]["failed"] + results["ours"]["pending"]
        if lost:
            out.append(f"{name}: {lost} packs have no success, though a path exists")
    ours, turn = (faults[_SLOW][policy]["p99"] for policy in ("ours", "round robin"))
    if ours > _P99_SHARE * turn:
        out.append(f"{_SLOW}: p99 {ours:.1f} ms is more than half of round robin's {turn:.1f} ms")
    name, spread = next((name, results["ours"]) for name, results in spreads.items())
    if spread > _SPREAD:
        out.append(f"{name}: the spread is {spread:.2f}, more than {_SPREAD}")
    return out


def main() -> int:
    """Print the tables; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simcluster")
    parser.add_argument("--seconds", type=int, default=120, help="simulated seconds of the scenarios with faults")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began = time.monotonic()
    faults = faults_table(chosen.seconds, 100, chosen.seed)
    spreads = spread_table(SPREADS, chosen.seed)
    problems = missed(faults, spreads)
    print(f"\n{time.monotonic() - began:.0f} s; " + ("; ".join(problems) or "every goal is reached"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
