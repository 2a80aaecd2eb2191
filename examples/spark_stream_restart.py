"""Streaming: a source of ticks to a hub, stopped and begun again from its checkpoint; nothing is lost or doubled.

python examples/spark_stream_restart.py [tcp://host:46801]
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
    from pyspark.sql import SparkSession

ROWS_PER_BATCH, BATCHES, PATIENCE = 500, 3, 120.0


def run_for(spark: SparkSession, options: dict[str, str], batches: int) -> int:
    """Run the query until it has done so many micro-batches; return the last one's number."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS_PER_BATCH).load()
    ticks = source.selectExpr("concat('tick-', value) as value", "timestamp as dt")
    dataproxy.spark.check(ticks, **options)  # a mistake in the options shows here, not inside the query
    query = ticks.writeStream.format("dataproxy").options(**options).trigger(processingTime="200 milliseconds").start()
    end = time.monotonic() + PATIENCE
    while len(query.recentProgress) < batches and query.isActive and time.monotonic() < end:
        time.sleep(0.05)
    query.stop()  # possibly in the middle of a micro-batch
    if query.exception() is not None:
        raise RuntimeError(f"the query failed: {query.exception()}")
    return int(query.lastProgress["batchId"])


def main() -> int:
    """Run the query twice on one checkpoint and print what was committed."""
    given = command_line(__doc__).parse_args().target
    spark = local_session("stream with restart")
    with tempfile.TemporaryDirectory() as name, target_or_hub(given, dedupe="ids") as target:
        report = Path(name, "report.jsonl")
        options = {"target": target, "groupId": "clock", "streamId": "ticks", "reportFile": str(report)}
        options["checkpointLocation"] = str(Path(name, "checkpoint"))
        first = run_for(spark, options, BATCHES)
        second = run_for(spark, options, BATCHES)
        reports = [json.loads(line) for line in report.read_text().splitlines()]
        print(f"stopped in micro-batch {first} or after it, went on to {second}")
        print(f"{sum(found['acked'] for found in reports):,} rows acknowledged in {len(reports)} micro-batches")
    spark.stop()
    return 0 if second > first else 1


if __name__ == "__main__":
    sys.exit(ended(main))
