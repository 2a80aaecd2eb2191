"""``python -m tests.campaigns.spark_chaos``: random ends of tasks, Python workers and executors under load.

Then ends of more than tasks: sessions stopped in the middle of a query, which goes on in another, with as many cores
and with others; tasks that fail as often as they may; stages that run again; speculative copies; clients and
sessions of Spark Connect.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from dataproxy.hub import Hub
from dataproxy.spark import register
from tests.campaigns.counters import keep
from tests.campaigns.spark_chaos import standalone
from tests.campaigns.spark_chaos.connects import connect_round, why_no_client
from tests.campaigns.spark_chaos.endings import Ended, limited_round, speculated_round, stages_round, stopped_round
from tests.campaigns.spark_chaos.killer import Killer
from tests.campaigns.spark_chaos.rounds import Round, batch_round, idle_round, stream_round
from tests.campaigns.spark_chaos.sessions import SETTINGS, borrowed_home, start, worker_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["main"]

_PER_ROUND = 6
_ENDINGS = 50  # for so many kills there is one round of each ending, with the hub's filter and without
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
            ways = ("worker", "task", "executor") if cluster else ("worker", "worker", "task")
            killer = Killer(spark.sparkContext, dice, limit=min(_PER_ROUND, kills - done.total()), ways=ways)
            name = f"{prefix}-{number}"
            result = kind(spark, filtering if filtered else plain, killer, name, folder, filtered=filtered)
            rounds.append(result)
            done += killer.kills
            show(result, f"{kind.__name__[:6]} filter {'on ' if filtered else 'off'}", killer.kills)
        rounds.append(idle_round(spark, (filtering, plain), f"{prefix}-idle"))
        print(f"{rounds[-1].name:12} idle workers, {rounds[-1].violations or 'their connections closed'}", flush=True)
    spark.stop()
    return done, rounds


def endings(dice: random.Random, folder: Path, rounds_each: int) -> tuple[Counter[str], list[Round]]:
    """Run the rounds in which more ends than a task; return what was ended, by kind, and the rounds."""
    ended: Counter[str] = Counter()
    rounds: list[Round] = []

    def keep_round(found: Ended) -> None:
        rounds.append(found)
        ended.update(found.ends)
        show(found, f"filter {'on ' if found.filtered else 'off'}", found.ends)

    with Hub(dedupe="ids") as filtering, Hub() as plain:
        hubs = {True: filtering, False: plain}
        for number in range(rounds_each):
            filtered = number % 2 == 0
            hub = hubs[filtered]
            same, other = ("local[2]",), tuple(dice.sample(["local[1]", "local[2]", "local[3]", "local[4]"], 2))
            for kind, masters in (("session stopped", same), ("session of other parallelism", other)):
                name = f"{kind.replace(' ', '-')}-{number}"
                keep_round(stopped_round(start, hub, name, folder, masters=masters, filtered=filtered, kind=kind))
            keep_round(limited_round(start, hub, f"limited-{number}", folder, filtered=filtered))
            keep_round(stages_round(start, hub, f"stages-{number}", folder, dice, filtered=filtered))
            with standalone.cluster(folder, worker_environment()) as master:
                keep_round(speculated_round(start, master, hub, f"copies-{number}", folder, filtered=filtered))
        if reason := why_no_client():
            print(f"no rounds over Spark Connect: {reason}", flush=True)
            return ended, rounds
        settings = {"spark.master": "local[2,1000]", **SETTINGS}
        with standalone.connect_server(folder, worker_environment(), settings) as server:
            for number, kind in itertools.product(range(rounds_each), ("client killed", "Connect session stopped")):
                filtered = number % 2 == 0
                name = f"{kind.replace(' ', '-')}-{number}"
                keep_round(connect_round(server, hubs[filtered], name, filtered=filtered, kind=kind))
    return ended, rounds


def show(found: Round, what: str, ends: Mapping[str, int]) -> None:
    """Print the line of a round, and its violations."""
    print(
        f"{found.name:16} {what}  {dict(ends)}  {found.rows:,} rows  {found.surplus:,} surplus  "
        f"{found.failures} begun again  {len(found.violations)} violations",
        flush=True,
    )
    for text in found.violations:
        print(f"    {text}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaigns, print a line for each round, and return 1 if a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.spark_chaos", description=__doc__)
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
        ended, found = endings(dice, folder, max(1, chosen.kills // _ENDINGS))
        rounds += found
    violations = sum(len(found.violations) for found in rounds)
    facts = {
        "seed": chosen.seed,
        "spark": pyspark.__version__,
        "kills": dict(kills),
        "ended": dict(ended),
        "rounds": len(rounds),
        "rows": sum(found.rows for found in rounds),
        "surplus": sum(found.surplus for found in rounds),
        "begun_again": sum(found.failures for found in rounds),
        "violations": violations,
        "seconds": round(time.monotonic() - began, 1),
    }
    file = keep(f"spark_chaos-{pyspark.__version__}", facts)
    print(f"spark chaos: {facts}; {file}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
