"""Write a Spark DataFrame: whole rows as JSON, one stream for each country.

python examples/spark_sink.py [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from local_hub import target_or_hub
from pyspark.sql import functions as f
from spark_local import command_line, ended, local_session

ROWS = 10_000


def main() -> int:
    """Make a DataFrame, write it, and print what the sink counted."""
    given = command_line(__doc__).parse_args().target
    spark = local_session("sink")
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
        accounting = json.loads(report.read_text())
        print(f"{accounting['rows']:,} rows = {accounting['acked']:,} acknowledged + {accounting['skipped']:,} skipped")
    spark.stop()
    return 0 if accounting["acked"] == ROWS else 1


if __name__ == "__main__":
    sys.exit(ended(main))
