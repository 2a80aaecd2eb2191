"""Read topics of TubeMQ, transform the messages, and write them to proxies or a hub; as a stream, each message once.

python examples/spark_tubemq.py                   # out of a hub in this process, and into it again
python examples/spark_tubemq.py tcp://host:46801 --masters tubemq://host:8715 --topic orders --checkpoint FOLDER

Run it again with the same checkpoint, and it goes on where it stopped, however it was stopped.  With --batch it reads
all that the topics have now, and keeps no offsets.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from local_hub import target_or_hub
from spark_local import command_line, ended, local_session

import dataproxy.spark

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ORDERS = 10_000


@contextmanager
def servers(masters: str | None, target: str | None, topic: str) -> Iterator[tuple[str, str]]:
    """Yield masters and proxies; without masters those of a hub that has some orders and takes what has no target."""
    if masters is not None:
        with target_or_hub(target) as proxies:
            yield masters, proxies
        return
    from dataproxy.hub import Hub

    with Hub(tubemq_port=0, partitions=2) as hub:
        with dataproxy.Producer(hub.tubemq_target) as producer:
            for number in range(ORDERS):
                producer.send_nowait(topic, b"order %d" % number, attrs={"$msgType$": ("web", "shop")[number % 2]})
        yield hub.tubemq_target, target or hub.target
        for (group, stream), count in sorted(hub.counts().items()):
            if group == "invoices":
                sys.stderr.write(f"hub has {count.records:,} records of {group}/{stream}\n")


def transformed(orders: DataFrame) -> DataFrame:
    """Return the messages to write: a body, the stream it goes to, and what makes it unique."""
    return orders.selectExpr(
        "upper(cast(body as string)) as value",
        "coalesce(attributes['$msgType$'], topic) as stream_id",
        "partition",
        "id",
    )


def copy(spark: SparkSession, given: Namespace, masters: str, target: str, folder: Path) -> int:
    """Read, transform and write, and return how many messages were acknowledged."""
    report = folder / "report.jsonl"
    source = {"target": masters, "topics": given.topic, "group": given.group, "startingOffsets": "earliest"}
    sink = {"target": target, "groupId": "invoices", "idFrom": "partition,id", "reportFile": str(report)}
    reader = spark.read if given.batch else spark.readStream
    messages = transformed(reader.format("tubemq").options(**source).load())
    dataproxy.spark.check(messages, **sink)
    if given.batch:
        messages.write.format("dataproxy").options(**sink).mode("append").save()
        return int(json.loads(report.read_text())["acked"])
    stream = messages.writeStream.format("dataproxy").options(**sink)
    stream = stream.option("checkpointLocation", given.checkpoint or str(folder / "checkpoint"))
    stream = stream.trigger(processingTime="2 seconds") if given.follow else stream.trigger(availableNow=True)
    stream.start().awaitTermination()
    batches = report.read_text().splitlines() if report.exists() else []  # a line for each
    return sum(json.loads(batch)["acked"] for batch in batches)


def main() -> int:
    """Run the query until it has read what the topics had at its start, or until Ctrl-C."""
    parser = command_line(__doc__)
    parser.add_argument("--masters", help="TubeMQ's masters, tubemq://host:8715,... (default: a hub in this process)")
    parser.add_argument("--topic", default="orders", help="topics, with commas between them (default: %(default)s)")
    parser.add_argument("--group", default="spark_orders", help="a group of the query's own (default: %(default)s)")
    parser.add_argument("--checkpoint", help="folder that keeps the offsets (default: a temporary one)")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--follow", action="store_true", help="go on with new messages until Ctrl-C")
    ways.add_argument("--batch", action="store_true", help="one batch of what is there, instead of a stream")
    given = parser.parse_args()
    if given.batch and given.checkpoint:
        parser.error("--batch keeps no offsets; leave --checkpoint out")
    if given.masters is None and "," in given.topic:
        parser.error("the hub in this process has one topic; name --masters for several")
    spark = local_session("tubemq to hub")
    with tempfile.TemporaryDirectory() as name, servers(given.masters, given.target, given.topic) as (masters, target):
        print(f"{copy(spark, given, masters, target, Path(name)):,} messages read and written")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
