"""Streaming: counts per minute of event time, closed by a watermark, to a hub.

python examples/spark_event_time.py [tcp://host:46801]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from local_hub import target_or_hub
from spark_local import command_line, ended, local_session

MINUTES, CLICKS = 10, 3_000


def make_clicks(folder: Path) -> None:
    """Write clicks of some minutes in three files, and one late click that closes the last window."""
    for part in range(3):
        lines = []
        for number in range(part, CLICKS, 3):
            second = number * MINUTES * 60 // CLICKS
            moment = f"2024-05-01T12:{second // 60:02}:{second % 60:02}Z"
            lines.append(json.dumps({"at": moment, "page": f"page-{number % 4}"}))
        (folder / f"{part}.json").write_text("\n".join(lines) + "\n")
    (folder / "9.json").write_text('{"at": "2024-05-01T14:00:00Z", "page": "page-0"}\n')


def main() -> int:
    """Aggregate the clicks and write each closed window once."""
    given = command_line(__doc__).parse_args().target
    from pyspark.sql import functions as f

    spark = local_session("event time to hub")
    with tempfile.TemporaryDirectory() as name, target_or_hub(given) as target:
        folder = Path(name, "clicks")
        folder.mkdir()
        make_clicks(folder)
        report = Path(name, "report.jsonl")
        clicks = spark.readStream.schema("at timestamp, page string").json(str(folder))
        late = clicks.withWatermark("at", "2 minutes")  # a window is written when so much later data has come
        counts = late.groupBy("page", f.window("at", "1 minute")).count()
        messages = counts.selectExpr(
            "to_json(struct(page, window.start as minute, count)) as value", "page as stream_id", "window.start as dt"
        )
        query = (
            messages.writeStream.format("dataproxy")
            .outputMode("append")  # each window once, when it is closed
            .option("target", target)
            .option("groupId", "counts")
            .option("reportFile", str(report))
            .option("checkpointLocation", str(Path(name, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = sum(json.loads(line)["acked"] for line in report.read_text().splitlines())
        print(f"{rows} windows written")
    spark.stop()
    return 0 if rows == MINUTES * 4 else 1


if __name__ == "__main__":
    sys.exit(ended(main))
