"""Streams that die between write and commit while there is a flag, and go on without one.

``python replays.py MASTER TARGET FOLDER NAME...`` runs those of these names in a driver of their own.
"""

import itertools
import os
import signal
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from dataproxy.spark.stream import DataProxyStreamWriter, plan_stream_writer
from pyspark_dataproxy import DefaultSource

ROWS = 1200  # of each stream; two and two of them have the same body
FILES = 4


class DyingWriter(DataProxyStreamWriter):
    """Ends its process in place of the commit while there is a flag."""

    def __init__(self, plan, flag):
        super().__init__(plan)
        self.flag = flag

    def commit(self, messages, batchId):
        if Path(self.flag).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        super().commit(messages, batchId)


class DyingSink(DefaultSource):
    """The sink with such a writer."""

    @classmethod
    def name(cls):
        return "dataproxy_dying"

    def streamWriter(self, schema, overwrite):
        flag = self.options.pop("flag")
        return DyingWriter(plan_stream_writer(self.options, schema, overwrite)._plan, flag)


class Piece(InputPartition):
    """Some offsets of one partition of a queue."""

    def __init__(self, partition, first, last):
        self.place = (partition, first, last)


class QueueReader(DataSourceStreamReader):
    """Reads two partitions of a queue, each in as many pieces as it is told (`minPartitions` of Kafka's source)."""

    def __init__(self, pieces):
        self.pieces = pieces

    def initialOffset(self):
        return {"offset": 0}

    def latestOffset(self):
        return {"offset": ROWS // 2}

    def partitions(self, start, end):
        first, last = start["offset"], end["offset"]
        cuts = [first + (last - first) * piece // self.pieces for piece in range(self.pieces + 1)]
        return [Piece(queue, one, other) for queue in range(2) for one, other in itertools.pairwise(cuts)]

    def read(self, partition):
        queue, first, last = partition.place
        for offset in range(first, last):
            yield (f"row {offset}", "clicks", queue, offset)

    def commit(self, end):
        pass


class Queue(DataSource):
    """A source with topic, partition and offset, as Kafka's."""

    @classmethod
    def name(cls):
        return "queue"

    def schema(self):
        return "value string, topic string, partition int, offset bigint"

    def streamReader(self, schema):
        return QueueReader(int(self.options["pieces"]))


def write_files(spark, folder):
    """Write parquet files in which each body is twice."""
    rows = spark.range(0, ROWS, 1, FILES).selectExpr(f"concat('row ', id % {ROWS // 2}) as value")
    rows.write.parquet(str(folder))


def frames(spark, folder, cores):
    """Return what each stream reads, and the columns that say which row a row is."""
    files = spark.readStream.schema("value string").parquet(str(folder))
    placed = files.select("*", "_metadata.file_path", "_metadata.row_index")
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    queue = spark.readStream.format("queue").option("pieces", cores + 1).load()
    return {
        "by_place": (files, ""),
        "files": (placed, "file_path,row_index"),
        "rate": (rate.selectExpr("concat('row ', value div 2) as value", "value as number"), "number"),
        "queue": (queue, "topic,partition,offset"),
    }


def run(spark, target, folder, *names):
    """Run streams one after the other, each until it has died or ended; return what became of them."""
    spark.dataSource.register(DyingSink)
    spark.dataSource.register(Queue)
    source = Path(folder, "in")
    if not source.exists():
        write_files(spark, source)
    found = frames(spark, source, spark.sparkContext.defaultParallelism)
    ends = []
    for name in names:
        df, columns = found[name]
        options = {"target": target, "groupId": "g", "streamId": name, "flag": str(Path(folder, "flag"))}
        options |= {"idFrom": columns} if columns else {}
        query = (
            df.writeStream.format("dataproxy_dying").options(**options).trigger(availableNow=True)
            .option("checkpointLocation", str(Path(folder, f"checkpoint-{name}"))).start()
        )  # fmt: skip
        try:
            query.awaitTermination()
            ends.append("ended")
        except StreamingQueryException as error:
            ends.append("died" if "crashed" in str(error) else str(error))
    return ends


if __name__ == "__main__":
    from jobs import session

    own = session(sys.argv[1])
    print(*run(own, *sys.argv[2:]), flush=True)
    own.stop()
