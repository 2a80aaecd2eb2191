"""``python -m tests.campaigns.spark_backfill``: the backfill example in a local cluster, into a durable hub.

Afterwards every row is looked for in the store, and the most memory that a Python worker ever held is told.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dataproxy.hub import Hub
from tests.campaigns.counters import keep
from tests.campaigns.spark_backfill.census import take_census
from tests.campaigns.spark_backfill.memory import PeakMemory
from tests.campaigns.spark_chaos.sessions import borrowed_home, start

__all__ = ["backfill", "main"]

ROWS, MASTER, WORKER_MB = 10_000_000, "local-cluster[2,1,1024]", 400
GROUP, STREAM = "plant", "readings"


def backfill(master: str, rows: int, folder: Path) -> dict[str, Any]:
    """Write the readings of the example through ``master`` into a durable hub below ``folder``; return the figures."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
    from spark_backfill import readings

    os.environ["SPARK_HOME"] = str(borrowed_home(folder))
    spark = start(master, **{"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"})
    store, report = folder / "store", folder / "report.json"
    with Hub(store, max_store_bytes="16GiB") as hub, PeakMemory() as memory:
        options = {"target": hub.target, "groupId": GROUP, "streamId": STREAM, "reportFile": str(report)}
        began = time.monotonic()
        messages = readings(spark, rows)
        messages.write.format("dataproxy").mode("append").options(**options, packSeconds="3600").save()
        seconds = time.monotonic() - began
    spark.stop()
    accounting = json.loads(report.read_text())
    census = take_census(store, rows, GROUP, STREAM)
    return {
        "rows": rows,
        "acked": accounting["acked"],
        **census._asdict(),
        "resent_partitions": accounting["resent_partitions"],
        "duplicates_possible": accounting["duplicates_possible"],
        "partitions": accounting["partitions"],
        "seconds": round(seconds, 1),
        "workers": len(memory.by_worker),
        "worker_peak_mb": round(max(memory.by_worker.values()) * 1024 / 1e6, 1),
        "store_mb": round(sum(file.stat().st_blocks for file in store.iterdir()) * 512 / 1e6),
    }


def violations(facts: dict[str, Any]) -> list[str]:
    """Return what is wrong with the figures; copies are right where the sink told that there may be some."""
    told = facts["resent_partitions"] or facts["duplicates_possible"]
    return [
        name
        for name, wrong in {
            "rows are missing": facts["missing"] or facts["acked"] != facts["rows"],
            "rows were never sent": facts["strange"],
            "rows are there twice, and nobody said so": facts["doubled"] and not told,
            f"a worker held more than {WORKER_MB} MB": facts["worker_peak_mb"] > WORKER_MB,
        }.items()
        if wrong
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the backfill, print the figures, and return 1 if something is missing or a worker grew too large."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.spark_backfill", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--master", default=MASTER)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        facts = {"master": chosen.master, **backfill(chosen.master, chosen.rows, Path(name))}
    wrong = violations(facts)
    file = keep("spark_backfill", {**facts, "violations": wrong})
    print(
        f"{facts['rows']:,} rows, {facts['missing']:,} missing, {facts['doubled']:,} doubled, "
        f"{facts['strange']:,} strange, {facts['seconds']} s, {facts['rows'] / facts['seconds']:,.0f} rows/s; "
        f"{facts['workers']} Python workers, the largest {facts['worker_peak_mb']} MB; {file}"
    )
    for text in wrong:
        print(f"    {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
