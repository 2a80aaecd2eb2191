"""Backfill: a year of readings, ten million rows unless told otherwise, with progress on the terminal.

python examples/spark_backfill.py [--rows 10000000] [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from local_hub import target_or_hub
from spark_local import command_line, ended, local_session

import dataproxy.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, PER_TASK, DEVICES = 10_000_000, 250_000, 500
YEAR = 365 * 86_400


def readings(spark: SparkSession, rows: int) -> DataFrame:
    """Return ``rows`` readings as messages, in tasks that take seconds and have a part of the year each.

    Such tasks are small enough to be repeated, and so large that the cost of a task itself does not matter.
    """
    return spark.range(0, rows, 1, max(2, rows // PER_TASK)).selectExpr(
        f"concat_ws(',', id % {DEVICES}, id, round(20 + 5 * sin(id), 2)) as value",
        f"1704067200000 + cast(id * {YEAR}D / {rows} as bigint) * 1000 as dt",
        "concat('reading-', id) as msg_id",  # known again when the backfill is repeated after a failure
    )


def main() -> int:
    """Write the readings day by day of their own time, and print the counts."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="how many (%(default)s)")
    chosen = parser.parse_args()
    if chosen.rows < 1:
        parser.error("--rows must be at least 1")
    spark = local_session("backfill")
    counters = dataproxy.spark.register(spark)
    with tempfile.TemporaryDirectory() as name, target_or_hub(chosen.target, max_store_bytes="2GiB") as target:
        report = Path(name, "report.json")
        options = {"target": target, "groupId": "plant", "streamId": "readings", "reportFile": str(report)}
        began = time.monotonic()
        with dataproxy.spark.WriteProgress(spark, counters):  # a line on the terminal, nothing elsewhere
            rows = readings(spark, chosen.rows)
            rows.write.format("dataproxy").mode("append").options(**options, packSeconds="3600").save()
        seconds = time.monotonic() - began
        accounting = json.loads(report.read_text())
        print(f"{accounting['rows']:,} rows = {accounting['acked']:,} acknowledged + {accounting['skipped']:,} skipped")
        print(f"{accounting['partitions']} tasks, {seconds:.1f} s, {accounting['rows'] / seconds:,.0f} rows/s")
    spark.stop()
    return 0 if accounting["acked"] == chosen.rows else 1


if __name__ == "__main__":
    sys.exit(ended(main))
