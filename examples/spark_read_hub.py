"""Write rows into a hub, read back what it holds, and count by stream.

python examples/spark_read_hub.py [http://host:8083]
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from pyspark.sql import functions as f
from spark_local import command_line, ended, local_session

from dataproxy.hub import Hub

ROWS = 10_000


def main() -> int:
    """Write, read, and compare."""
    given = command_line(__doc__).parse_args().target
    spark = local_session("read")
    rows = spark.range(ROWS).select(
        f.to_json(f.struct("id")).alias("value"),
        f.concat(
            f.lit("orders_"), f.element_at(f.array(f.lit("web"), f.lit("shop")), (f.col("id") % 2 + 1).cast("int"))
        ).alias("stream_id"),
        f.timestamp_seconds(f.lit(1_700_000_000) + f.col("id")).alias("dt"),
    )
    with nullcontext(given) if given else Hub() as hub:
        manager = hub.manager_url if isinstance(hub, Hub) else hub  # for writes and reads
        options = {"target": manager, "groupId": "sales"}
        rows.write.format("dataproxy").mode("append").options(**options).save()

        held = spark.read.format("dataproxy").options(**options).load()  # the rows of now, and no later ones
        orders = held.select("stream_id", "dt", f.from_json(f.col("value").cast("string"), "id long").alias("order"))
        found = orders.groupBy("stream_id").agg(f.count("*").alias("n"), f.max("order.id").alias("last")).collect()
    for row in sorted(found):
        print(f"{row.stream_id}: {row.n:,} orders, the last one {row.last}")
    spark.stop()
    return 0 if sum(row.n for row in found) >= ROWS else 1


if __name__ == "__main__":
    sys.exit(ended(main))
