"""Spark's source of TubeMQ topics beside an Arrow reader that has the same rows in memory.

``python -m benchmarks.spark_source [--rows 4000000] [--size 100] [--rounds 5]`` prints medians of both, in turn, and
their ratios: in seconds, and in CPU seconds of the JVM and its Python workers, which a busy machine disturbs less.  All
give all columns to ``noop``, in as many tasks.  The reader with rows in memory gives batches of one pack each, as they
come from a broker, and in a line of its own batches as large as the source makes of them.  The server, which makes its
packs beforehand, is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.clients.spark_job import session, tree_cpu_seconds
from benchmarks.floors import ROOT
from benchmarks.servers.tubemq_canned import ATTRIBUTE, PACK, TASKS
from dataproxy.spark.shape import MICROS, TEXTS
from dataproxy.spark.tubemq.columns import RAW_SCHEMA
from dataproxy.spark.tubemq.joined import BATCH_ROWS

__all__ = ["main"]

#: Packs in a batch of the source.
JOINED = -(-BATCH_ROWS // PACK)
LARGE = "memory, large batches"


def rows_in_memory(size: int, packs: int) -> pa.RecordBatch:
    """Return a batch of the rows that so many packs have."""
    pairs = [tuple(pair.split("=")) for pair in ATTRIBUTE.split(",")]
    numbers = pa.array(range(PACK), pa.int64())
    columns = [
        pa.array(["bench"] * PACK), pa.array(["1:bench:0"] * PACK), pa.array([0] * PACK, pa.int64()),
        numbers.cast(pa.int32()), numbers, numbers, pa.array([0] * PACK, MICROS), pa.array([pairs] * PACK, TEXTS),
        pa.array([bytes(size)] * PACK, pa.binary()),
    ]  # fmt: skip
    pack = pa.RecordBatch.from_arrays(columns, names=RAW_SCHEMA.names)
    return pa.Table.from_batches([pack] * packs).combine_chunks().to_batches()[0]


class MemoryReader(DataSourceReader):  # type: ignore[misc]  # mypy does not follow pyspark
    """Gives the same batch again and again."""

    def __init__(self, rows: int, size: int, packs: int) -> None:
        self.batches, self.size, self.packs = rows // (PACK * packs), size, packs

    def partitions(self) -> list[InputPartition]:
        """Return the number of each task's batches."""
        cuts = [self.batches * task // TASKS for task in range(TASKS + 1)]
        return [InputPartition(cuts[task + 1] - cuts[task]) for task in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batch."""
        batch = rows_in_memory(self.size, self.packs)
        for _ in range(partition.value):
            yield batch


class MemorySource(DataSource):  # type: ignore[misc]
    """Rows that a task has in memory."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "rows_in_memory"

    def schema(self) -> Any:
        """Return the columns of the source of TubeMQ."""
        return RAW_SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        """Return the reader."""
        return MemoryReader(*(int(self.options[name]) for name in ("rows", "size", "packs")))


def measured(spark: SparkSession, server: int, source: str, options: dict[str, str]) -> tuple[float, float, float]:
    """Return seconds of one read, CPU seconds without those of the server, and the server's."""
    ours, its, began = tree_cpu_seconds(os.getpid()), tree_cpu_seconds(server), time.monotonic()
    spark.read.format(source).options(**options).load().write.format("noop").mode("append").save()
    seconds = time.monotonic() - began
    its = tree_cpu_seconds(server) - its
    return seconds, tree_cpu_seconds(os.getpid()) - ours - its, its


def main() -> None:
    """Measure both in turn and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    words = ["--rows", str(given.rows), "--size", str(given.size)]
    command = [sys.executable, "-m", "benchmarks.servers.tubemq_canned", *words]
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark = session()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        spark.dataSource.register(MemorySource)
        jobs = {
            name: ("rows_in_memory", {"rows": str(said["rows"]), "size": str(given.size), "packs": str(packs)})
            for name, packs in (("memory", 1), (LARGE, JOINED))
        }
        jobs |= {
            "tubemq": ("tubemq", {"target": said["target"], "topics": said["topic"], "group": "bench",
                                  "minPartitions": str(TASKS)}),
        }  # fmt: skip
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in jobs}
        for number in range(given.rounds + 1):
            for name in (*list(jobs)[number % len(jobs) :], *list(jobs)[: number % len(jobs)]):
                result = measured(spark, server.pid, *jobs[name])
                if number:  # the first round warms up
                    found[name].append(result)
        assert server.stdin is not None
        server.stdin.close()
    spark.stop()
    medians = {name: [statistics.median(one[i] for one in runs) for i in range(3)] for name, runs in found.items()}
    for name, (seconds, cpu, server_cpu) in medians.items():
        own, its = (figure / said["rows"] * 1e6 for figure in (cpu, server_cpu))
        print(f"{name}: {said['rows'] / seconds / 1e6:.2f} M rows/s, {own:.2f} CPU-s per M rows, the server {its:.2f}")
    own_wall, own_cpu, _ = medians["tubemq"]
    for name in ("memory", LARGE):
        wall, cpu, _ = medians[name]
        print(f"tubemq of {name}: {wall / own_wall:.2f} by seconds, {cpu / own_cpu:.2f} by CPU seconds")


if __name__ == "__main__":
    main()
