"""``python -m tests.lab.spark_chaos``: random ends of tasks, Python workers and executors under batch and streaming."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from dataproxy.hub import Hub
from dataproxy.spark import register
from tests.lab.counters import keep
from tests.lab.spark_chaos.killer import Killer
from tests.lab.spark_chaos.rounds import Round, batch_round, idle_round, stream_round
from tests.lab.spark_chaos.sessions import borrowed_home, start

__all__ = ["main"]

_PER_ROUND = 6
_IN_CLUSTER = 5  # one kill in so many happens to a local cluster, whose executors die too


def campaign(master: str, kills: int, dice: random.Random, folder: Path) -> tuple[Counter[str], list[Round]]:
    """Run rounds, batch and streaming in turn, with the hub's filter on and off, until there were enough kills.

    At last workers that idle must leave the hubs.
    """
    spark = start(master)
    register(spark)  # Spark looks for formats once; a kill in that moment would hide this one for ever
    done: Counter[str] = Counter()
    rounds: list[Round] = []
    cluster = "cluster" in master
    prefix = "cluster" if cluster else "local"
    with Hub(dedupe="ids") as filtering, Hub() as plain:
        while done.total() < kills:
            number = len(rounds)
            kind, filtered = (batch_round, stream_round)[number % 2], number // 2 % 2 == 0
            killer = Killer(
                spark.sparkContext, dice, limit=min(_PER_ROUND, kills - done.total()), with_executors=cluster
            )
            name = f"{prefix}-{number}"
            result = kind(spark, filtering if filtered else plain, killer, name, folder, filtered=filtered)
            rounds.append(result)
            done += killer.kills
            print(
                f"{name:12} {'batch' if number % 2 == 0 else 'stream':6} filter {'on ' if filtered else 'off'}  "
                f"{dict(killer.kills)}  {result.rows:,} rows  {result.surplus:,} surplus  "
                f"{result.failures} begun again  {len(result.violations)} violations",
                flush=True,
            )
            for text in result.violations:
                print(f"    {text}", flush=True)
        rounds.append(idle_round(spark, (filtering, plain), f"{prefix}-idle"))
        print(f"{rounds[-1].name:12} idle workers, {rounds[-1].violations or 'their connections closed'}", flush=True)
    spark.stop()
    return done, rounds


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns, print a line for each round, and return 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.spark_chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    dice = random.Random(chosen.seed)
    began = time.monotonic()
    kills: Counter[str] = Counter()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["SPARK_HOME"] = str(borrowed_home(folder))
        in_cluster = chosen.kills // _IN_CLUSTER
        for master, share in (("local[2,1000]", chosen.kills - in_cluster), ("local-cluster[2,1,1024]", in_cluster)):
            if share:
                done, found = campaign(master, share, dice, folder)
                kills += done
                rounds += found
    violations = sum(len(found.violations) for found in rounds)
    facts = {
        "seed": chosen.seed,
        "kills": dict(kills),
        "rounds": len(rounds),
        "rows": sum(found.rows for found in rounds),
        "surplus": sum(found.surplus for found in rounds),
        "begun_again": sum(found.failures for found in rounds),
        "violations": violations,
        "seconds": round(time.monotonic() - began, 1),
    }
    file = keep("spark_chaos", facts)
    print(f"spark chaos: {facts}; {file}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
