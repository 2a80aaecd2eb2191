"""Batch: CSV files to a hub, one message for each row, one stream for each kind of row.

python examples/spark_files_to_hub.py [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from local_hub import target_or_hub
from spark_local import command_line, ended, local_session

FILES, ROWS = 4, 2_500
CHANNELS = ("web", "shop", "phone")


def make_files(folder: Path) -> None:
    """Write some CSV files of orders."""
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        lines = [
            f"{row},{('web', 'shop', 'phone')[row % 3]},{row * 0.5},2024-05-{row % 28 + 1:02} 10:00:00" for row in rows
        ]
        (folder / f"orders-{number}.csv").write_text("id,channel,price,placed\n" + "\n".join(lines) + "\n")


def main() -> int:
    """Read the files, write every row, print the counts."""
    given = command_line(__doc__).parse_args().target
    spark = local_session("files to hub")
    with tempfile.TemporaryDirectory() as name, target_or_hub(given) as target:
        folder = Path(name)
        make_files(folder)
        schema = "id bigint, channel string, price double, placed timestamp"
        orders = spark.read.csv(f"{folder}/*.csv", header=True, schema=schema, mode="FAILFAST")
        messages = orders.selectExpr(
            "to_json(struct(*)) as value",
            "concat('orders_', channel) as stream_id",
            "placed as dt",  # the data time: the row's own, not the time of sending
            "concat('order-', id) as msg_id",  # the row's own id, also when the whole job runs again
        )
        report = folder / "report.json"
        options = {"target": target, "groupId": "sales", "packSeconds": "3600", "reportFile": str(report)}
        messages.write.format("dataproxy").mode("append").options(**options).save()
        accounting = json.loads(report.read_text())
        print(f"{accounting['rows']:,} rows = {accounting['acked']:,} acknowledged + {accounting['skipped']:,} skipped")
        print(f"ack latency p99: {accounting['latency_p99'] * 1e3:.1f} ms")
    spark.stop()
    return 0 if accounting["acked"] == FILES * ROWS else 1


if __name__ == "__main__":
    sys.exit(ended(main))
