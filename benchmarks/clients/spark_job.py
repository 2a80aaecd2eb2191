"""Client program for Spark: the same job written by the counting writer and by our sink, in turns, in one session.

``python -m benchmarks.clients.spark_job --port N --rounds 7 --rows 4000000`` prints one JSON object a measured job.
Options of the sink follow the name of a writer: ``--writers "dataproxy sink, 100 B strings, rowIds=false"``.  So do
settings of the session, whose names begin with ``spark.``, and ``partitions=N``, the number of tasks of the job.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.clients.counting import CountingSource
from benchmarks.floors import ROOT

__all__ = ["TABLES", "main", "tree_cpu_seconds"]

BODY = 100
PARTITIONS = 4
ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def stat_fields(pid: str) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the name; empty when the process is gone."""
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def tree_cpu_seconds(root: int) -> float:
    """Return the CPU seconds of a process, of all its descendants, and of their children that have ended."""
    parents: dict[str, str] = {}
    ticks: dict[str, int] = {}
    for pid in (path.name for path in Path("/proc").iterdir() if path.name.isdigit()):
        fields = stat_fields(pid)
        if fields:
            parents[pid] = fields[1]
            ticks[pid] = sum(int(field) for field in fields[11:15])
    family = set(descendants(str(root), parents))
    return sum(ticks[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def descendants(root: str, parents: dict[str, str]) -> Iterator[str]:
    """Yield the ids of a process and of all its descendants."""
    yield root
    for pid, parent in parents.items():
        if parent == root:
            yield from descendants(pid, parents)


def session() -> SparkSession:
    """Return a local session without progress output, with the counting writer registered."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config(ROWS_A_BATCH, "10000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(CountingSource)
    return spark


def strings(spark: SparkSession, count: int, partitions: int = PARTITIONS) -> DataFrame:
    """Return one string column of 100 bytes that differ by row."""
    tail = f.lit("abcdefghijklmnopqrstuvwxyz" * 4)
    return spark.range(0, count, 1, partitions).select(
        f.concat(f.lpad(f.col("id").cast("string"), 10, "0"), tail).substr(1, BODY).alias("value")
    )


def mixed(spark: SparkSession, count: int, partitions: int = PARTITIONS) -> DataFrame:
    """Return ten columns of several types as one JSON text, the way rows with many columns are sent."""
    number = f.col("id")
    columns = (
        number.alias("id"),
        (number % 7).cast("int").alias("kind"),
        (number * 0.25).alias("price"),
        (number % 2 == 0).alias("paid"),
        f.concat(f.lit("user-"), number % 1000).alias("user"),
        f.timestamp_seconds(number + 1_700_000_000).alias("seen"),
        f.date_add(f.lit("2026-01-01").cast("date"), (number % 365).cast("int")).alias("day"),
        (number % 100).cast("decimal(10,2)").alias("tax"),
        f.when(number % 3 == 0, f.lit(None)).otherwise(f.lit("a note")).alias("note"),
        f.array(number % 5, number % 3).alias("tags"),
    )
    return spark.range(0, count, 1, partitions).select(f.to_json(f.struct(*columns)).alias("value"))


# name in the table: the input, and the divisor of the number of rows, since rows of many columns cost more
TABLES = {"100 B strings": (strings, 1), "ten mixed columns": (mixed, 4)}


def write(frame: DataFrame, name: str, port: int, extra: dict[str, str]) -> None:
    """Run the job once with one of the writers; ``extra`` are options of the sink."""
    if name.startswith("counting writer"):
        frame.write.format("bench_counting").mode("append").save()
        return
    options = {"target": f"tcp://127.0.0.1:{port}", "groupId": "b_bench", "streamId": "s_bench"} | extra
    frame.write.format("dataproxy").options(**options).mode("append").save()


def divided(words: Sequence[str]) -> tuple[dict[str, str], dict[str, str], int]:
    """Return what follows a writer's name as options of the sink, settings of the session, number of partitions."""
    given = dict(word.split("=", 1) for word in words)
    partitions = int(given.pop("partitions", PARTITIONS))
    settings = {name: given.pop(name) for name in list(given) if name.startswith("spark.")}
    return given, {ROWS_A_BATCH: "10000"} | settings, partitions


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rounds; a first round of each job is not counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--writers", default="counting writer, 100 B strings;dataproxy sink, 100 B strings")
    asked = parser.parse_args(argv)
    spark = session()
    writers = asked.writers.split(";")
    for number in range(-1, asked.rounds):
        for name in writers if number % 2 else writers[::-1]:
            table, *words = name.split(", ")[1:]
            extra, settings, partitions = divided(words)
            for key, value in settings.items():
                spark.conf.set(key, value)
            make, part = TABLES[table]
            count = asked.rows // part
            frame = make(spark, count, partitions)
            cpu, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
            write(frame, name, asked.port, extra)
            seconds, cpu = time.perf_counter() - began, tree_cpu_seconds(os.getpid()) - cpu
            if number >= 0:
                point = {
                    "records": count,
                    "bytes": count * BODY,
                    "seconds": seconds,
                    "cpu_user": cpu,
                    "cpu_sys": 0.0,
                }
                print(json.dumps({"name": name} | point), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
