"""Read topics of TubeMQ as a stream, transform the messages, and write them to proxies or a hub; each message once.

python examples/spark_tubemq.py [tcp://host:46801] --masters tubemq://host:8715 --topic orders --checkpoint FOLDER

Run it again with the same checkpoint, and it goes on where it stopped, however it was stopped.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from local_hub import target_or_hub
from spark_local import command_line, ended, local_session

import dataproxy.spark


def main() -> int:
    """Run the query until it has read what the topic had at its start, or until Ctrl-C."""
    parser = command_line(__doc__)
    parser.add_argument("--masters", default="tubemq://127.0.0.1:8715", help="TubeMQ's masters (default: %(default)s)")
    parser.add_argument("--topic", default="orders", help="topics, with commas between them (default: %(default)s)")
    parser.add_argument("--group", default="spark_orders", help="a group of the query's own (default: %(default)s)")
    parser.add_argument("--checkpoint", help="folder that keeps the offsets (default: a temporary one)")
    parser.add_argument("--follow", action="store_true", help="go on with new messages until Ctrl-C")
    given = parser.parse_args()
    spark = local_session("tubemq to hub")
    with tempfile.TemporaryDirectory() as name, target_or_hub(given.target) as target:
        report = Path(name, "report.jsonl")
        read = (
            spark.readStream.format("tubemq")
            .option("target", given.masters)
            .option("topics", given.topic)
            .option("group", given.group)
            .option("startingOffsets", "earliest")
            .load()
        )
        messages = read.selectExpr(
            "upper(cast(body as string)) as value",
            "coalesce(attributes['$msgType$'], topic) as stream_id",
            "partition",
            "id",
        )
        options = {"target": target, "groupId": "orders", "idFrom": "partition,id", "reportFile": str(report)}
        dataproxy.spark.check(messages, **options)
        writer = messages.writeStream.format("dataproxy").options(**options)
        writer = writer.option("checkpointLocation", given.checkpoint or str(Path(name, "checkpoint")))
        query = (
            writer.trigger(processingTime="2 seconds") if given.follow else writer.trigger(availableNow=True)
        ).start()
        query.awaitTermination()
        lines = report.read_text().splitlines() if report.exists() else []
        print(f"{sum(json.loads(line)['acked'] for line in lines)} messages read and written")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
