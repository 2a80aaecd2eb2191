"""``python -m tests.campaigns.spark_retries``: one partition of many rows whose task is lost again and again.

Each attempt is lost after all of its rows were acknowledged, so the hub gets every row once for each attempt, and has
to know all of them.  Afterwards each row is looked for in the store, and the memory of the hub's process is told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from dataproxy.hub import open_store
from dataproxy.spark.reporting.reports import PartitionReport
from dataproxy.spark.sink import DataProxyWriter, plan_writer
from pyspark_dataproxy import DefaultSource
from tests.campaigns.counters import keep
from tests.campaigns.spark_chaos.sessions import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

__all__ = ["main", "retry"]

ROWS, RETRIES = 10_000_000, 3
GROUP, STREAM = "plant", "readings"


class LostOnPurpose(DataProxyWriter):
    """Loses attempts after their rows were acknowledged; ``retries`` of them."""

    retries = 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionReport:
        report = super().write(iterator)
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() < self.retries:
            raise RuntimeError("lost on purpose")
        return report


class LosingSource(DefaultSource):
    """The format with tasks that are lost."""

    @classmethod
    def name(cls) -> str:
        return "dataproxy_losing"

    def writer(self, schema: StructType, overwrite: bool) -> DataProxyWriter:
        options = dict(self.options)
        writer = LostOnPurpose(plan_writer(options, schema, overwrite)._plan)
        writer.retries = int(os.environ["DATAPROXY_LOST_ATTEMPTS"])
        return writer


@contextmanager
def hub_process(folder: Path, *options: str) -> Iterator[tuple[str, str, int]]:
    """Run a durable hub that knows ids in a process of its own; yield its target, its Manager and its pid."""
    command = [sys.executable, "-m", "dataproxy", "hub", "--store", str(folder / "store"), "--port", "0"]
    command += ["--manager-port", "0", "--print-urls", "-o", "dedupe=ids"]
    for option in options:
        command += ["-o", option]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            yield found["target"], found["manager_url"], process.pid
        finally:
            process.terminate()
            process.wait(60)


def _memory_mb(pid: int) -> float:
    """Return the anonymous memory of a process in MB; pages of the store's file are not in it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024 / 1e6, 1)


def census(store: Path, rows: int) -> tuple[int, int]:
    """Return how many records a store holds, and how many of the numbers below ``rows`` are missing."""
    seen = np.zeros(rows, np.bool_)
    stored = 0
    with open_store(store) as reader:
        for batch in reader.record_batches(GROUP, STREAM, max_rows=262_144):
            stored += batch.num_rows
            seen[batch.column("body").cast(pa.string()).cast(pa.int64()).to_numpy(zero_copy_only=False)] = True
    return stored, rows - int(seen.sum())


def retry(rows: int, retries: int, folder: Path, *options: str) -> dict[str, Any]:
    """Write ``rows`` as one partition whose task is lost ``retries`` times; return the figures."""
    os.environ["DATAPROXY_LOST_ATTEMPTS"] = str(retries)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark = start(f"local[1,{retries + 1}]", **{"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"})
    spark.dataSource.register(LosingSource)
    report = folder / "report.json"
    with hub_process(folder, *options) as (target, manager, pid):
        before = _memory_mb(pid)
        began = time.monotonic()
        numbers = spark.range(0, rows, 1, 1).selectExpr("cast(id as string) as value")
        wanted = {"target": target, "groupId": GROUP, "streamId": STREAM, "reportFile": str(report)}
        numbers.write.format("dataproxy_losing").mode("append").options(**wanted).save()
        seconds = time.monotonic() - began
        with urllib.request.urlopen(f"{manager}/hub/stats", timeout=30) as answer:
            stats = json.load(answer)
        after = _memory_mb(pid)
    spark.stop()
    accounting = json.loads(report.read_text())
    stored, missing = census(folder / "store", rows)
    return {
        "rows": rows,
        "attempts": retries + 1,
        "stored": stored,
        "missing": missing,
        "surplus": stored - (rows - missing),
        "seconds": round(seconds, 1),
        "duplicates_filtered": accounting["duplicates_filtered"],
        "duplicates_possible": accounting["duplicates_possible"],
        "uncommitted_acked": accounting["uncommitted"]["acked"],
        "hub_mb_before": before,
        "hub_mb_after": after,
        "row_blocks": stats["store"]["row_blocks"],
        "forgotten_rows": stats["store"]["forgotten_rows"],
    }


def violations(facts: dict[str, Any]) -> list[str]:
    """Return what is wrong with the figures; copies are right where the hub had to forget, and the sink said so."""
    forgot = facts["forgotten_rows"] > 0
    return [
        name
        for name, wrong in {
            "rows are missing": facts["missing"],
            "rows are there twice": facts["surplus"] and not forgot,
            "more rows are there twice than the sink says": facts["surplus"] > facts["duplicates_possible"],
            "the sink says that rows may be there twice": facts["duplicates_possible"] and not forgot,
        }.items()
        if wrong
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run it, print the figures, and return 1 if something is wrong with them."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.spark_retries", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--retries", type=int, default=RETRIES)
    parser.add_argument("--dedupe-memory", default="256MiB")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        facts = retry(chosen.rows, chosen.retries, Path(folder), f"dedupe_memory={chosen.dedupe_memory}")
    wrong = violations(facts)
    keep("spark_retries", {**facts, "violations": wrong})
    for name, value in facts.items():
        print(f"{name:20} {value:>14,}")
    print("violations: " + (", ".join(wrong) or "none"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
