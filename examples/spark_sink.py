"""Write a Spark DataFrame: whole rows as JSON, one stream for each country.

python examples/spark_sink.py [tcp://host:46801]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from local_hub import target_or_hub

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers use this interpreter

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROWS = 10_000


def main() -> int:
    """Make a DataFrame, write it, and print what the sink counted."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("dataproxy sink example")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    visits = spark.range(ROWS).select(
        f.col("id"),
        f.element_at(f.array(f.lit("pl"), f.lit("de"), f.lit("jp")), (f.col("id") % 3 + 1).cast("int")).alias(
            "country"
        ),
        (f.rand(seed=1) * 100).alias("seconds"),
    )
    messages = visits.select(
        f.to_json(f.struct(*visits.columns)).alias("value"),  # the body: string or binary
        f.concat(f.lit("visits_"), "country").alias("stream_id"),  # where each row goes
        f.create_map(f.lit("schema"), f.lit("v1")).alias("attrs"),  # attributes travel beside the body
    )
    with tempfile.TemporaryDirectory() as folder, target_or_hub(given) as target:
        report = Path(folder, "report.json")
        (
            messages.write.format("dataproxy")
            .mode("append")  # Spark's default mode is refused: nothing can be replaced in a stream
            .option("target", target)
            .option("groupId", "web")
            .option("reportFile", str(report))
            .save()
        )
        books = json.loads(report.read_text())
        print(f"{books['rows']:,} rows = {books['acked']:,} acknowledged + {books['skipped']:,} skipped")
    spark.stop()
    return 0 if books["acked"] == ROWS else 1


if __name__ == "__main__":
    sys.exit(main())
