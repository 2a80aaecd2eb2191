"""The Spark sink beside an Arrow writer that only counts, and what tasks, micro-batches and streams cost.

``python -m benchmarks.spark [--rounds 5] [--rows 4000000] [--only NAME]`` prints one line for each comparison and
writes the samples to ``benchmarks/results/spark/newest.json``.

What receives is the plain C sink: the counting writer has no receiver at all, and what a server does with the rows
is no cost of the Spark sink.  It still takes its time from the same cores; its CPU seconds are not counted.  The hub
in its place is printed beside it.  Ten columns are compared with Spark's default settings, and once more where
Spark does not measure its Arrow batches after every row (`UNMEASURED`).  Tasks and micro-batches are held against
``noop``, which starts no Python at all; the counting writer's figure is what every Python writer costs there.  What
a hub holds is read by Spark, and beside it out of the store's files by one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks import machine
from benchmarks.clients.spark_job import session, tree_cpu_seconds
from benchmarks.clients.spark_job import strings as text_rows
from benchmarks.contest import Conditions, serve
from benchmarks.floors import ROOT, build
from dataproxy.hub import open_store

__all__ = ["main"]

RESULT = ROOT / "benchmarks" / "results" / "spark" / "newest.json"
HUB_MEMORY = "512MiB"
MILLION = 1_000_000
SMALL_TASKS = 64
MICRO_BATCH = 1_000
MICRO_BATCHES = 25
STREAMS = 10_000
WARM_UP = 5  # micro-batches
# Checkpoints lie in memory where that is a folder: two writes to a disk take as long as the rest of a micro-batch.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
UNMEASURED = str(2**31 - 1)  # no limit: with it Spark does not compute the batch's size after each row

UNITS = ("seconds", "CPU seconds")

Job = Callable[[], None]


@contextmanager
def hub_process() -> Iterator[str]:
    """Start a hub in memory in its own process; yield its target."""
    with hub_with("--set", f"max_store_bytes={HUB_MEMORY}") as said:
        yield f"tcp://127.0.0.1:{said['port']}"


@contextmanager
def hub_with(*options: str) -> Iterator[dict[str, Any]]:
    """Start a hub in its own process; yield the addresses that it prints."""
    words = [sys.executable, "-m", "benchmarks.servers.hub", *options]
    with Popen(words, stdout=PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate(timeout=60)


def sink(df: DataFrame, target: str, **options: object) -> Job:
    """Return a job that writes with the sink."""
    given = {"target": target, "groupId": "bench", **options}
    if "stream_id" not in df.columns:
        given["streamId"] = "s"
    return lambda: df.write.format("dataproxy").mode("append").options(**given).save()


def counting(df: DataFrame) -> Job:
    """Return a job that hands the same rows to a writer which only counts them."""
    return lambda: df.write.format("bench_counting").mode("append").save()


def unmeasured(spark: SparkSession, job: Job) -> Job:
    """Return the job under a session that does not limit the bytes of an Arrow batch."""

    def run() -> None:
        spark.conf.set(BATCH_LIMIT, UNMEASURED)
        try:
            job()
        finally:
            spark.conf.unset(BATCH_LIMIT)

    return run


def noop(df: DataFrame) -> Job:
    """Return a job that makes the rows and drops them inside the JVM."""
    return lambda: df.write.format("noop").mode("append").save()


def ten_columns(spark: SparkSession, count: int) -> DataFrame:
    """Return rows of ten mixed columns."""
    number = f.col("id")
    return spark.range(0, count, 1, 4).select(
        number.alias("user_id"),
        number.cast("int").alias("n"),
        (number * 0.25).alias("score"),
        (number % 2 == 0).alias("active"),
        f.timestamp_seconds(f.lit(1_700_000_000) + number % 86_400).alias("seen"),
        f.date_add(f.lit("2024-01-01").cast("date"), (number % 365).cast("int")).alias("day"),
        (number % 100_000).cast("decimal(18,2)").alias("amount"),
        f.concat(f.lit("name-"), number).alias("name"),
        f.concat(f.lit("city-"), number % 100).alias("city"),
        f.lit("a constant of some length").alias("note"),
    )


def alternate(jobs: dict[str, Job], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Run the jobs in turn, every second round in reverse; return (seconds, CPU seconds) without the first round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for number in range(-1, rounds):
        for name in list(jobs) if number % 2 else list(jobs)[::-1]:
            cpu, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
            jobs[name]()
            seconds, cpu = time.perf_counter() - began, tree_cpu_seconds(os.getpid()) - cpu
            if number >= 0:
                found[name].append((seconds, cpu))
    return found


def ratio(found: dict[str, list[tuple[float, float]]], over: str, under: str, field: int) -> float:
    """Return one job's time divided by another's, the median over the rounds; ``field`` 0: seconds, 1: CPU seconds."""
    pairs = zip(found[over], found[under], strict=True)
    return statistics.median(a[field] / max(b[field], 1e-9) for a, b in pairs)


def rates(spark: SparkSession, target: str, hub: str, rounds: int, count: int) -> dict[str, Any]:
    """Compare rates: the sink's share of the counting writer's, for one column of 100 bytes and for ten columns."""
    text, wide = text_rows(spark, count), ten_columns(spark, count // 2)
    as_json = wide.select(f.to_json(f.struct(*wide.columns)).alias("value"))
    columns = {
        "counting": counting(wide),
        "sink, csv": sink(wide, target, format="csv"),
        "sink, json": sink(wide, target, format="json"),
        "to_json and sink": sink(as_json, target),
    }
    jobs = {
        "100 bytes, counting": counting(text),
        "100 bytes, sink": sink(text, target),
        "100 bytes, sink into the hub": sink(text, hub),
        "100 bytes, sink, idFrom": sink(text, target, idFrom="value"),
        "100 bytes, sink, no ids": sink(text, target, rowIds="false"),
        **{f"ten columns, {name}": job for name, job in columns.items()},
        **{f"ten columns unmeasured, {name}": unmeasured(spark, job) for name, job in columns.items()},
    }
    found = alternate(jobs, rounds)
    summary = {
        "100 bytes: sink / counting, rate": ratio(found, "100 bytes, counting", "100 bytes, sink", 0),
        "100 bytes: sink / counting, rows per CPU second": ratio(found, "100 bytes, counting", "100 bytes, sink", 1),
        "100 bytes: sink into the hub / counting, rate": ratio(
            found, "100 bytes, counting", "100 bytes, sink into the hub", 0
        ),
        "100 bytes: rows per CPU second, ids of a column (idFrom) / ids of places": ratio(
            found, "100 bytes, sink", "100 bytes, sink, idFrom", 1
        ),
        "100 bytes: rows per CPU second, no ids / ids of places": ratio(
            found, "100 bytes, sink", "100 bytes, sink, no ids", 1
        ),
    }
    for table in ("ten columns", "ten columns unmeasured"):
        for name in ("csv", "json"):
            ours = f"{table}, sink, {name}"
            summary[f"{table} as {name}: sink / counting, rate"] = ratio(found, f"{table}, counting", ours, 0)
            summary[f"{table} as {name}: sink / counting, rows per CPU second"] = ratio(
                found, f"{table}, counting", ours, 1
            )
            summary[f"{table} as {name}: rows per CPU second, sink / to_json and sink"] = ratio(
                found, f"{table}, to_json and sink", ours, 1
            )
    return {"samples": found, "summary": summary}


def small_tasks(spark: SparkSession, target: str, _hub: str, rounds: int, _count: int) -> dict[str, Any]:
    """Measure the extra cost of a task of ten rows over ``noop``, and the part of it that every Python writer has."""
    df = spark.range(0, 10 * SMALL_TASKS, 1, SMALL_TASKS).select(f.col("id").cast("string").alias("value"))
    found = alternate({"noop": noop(df), "counting": counting(df), "sink": sink(df, target)}, rounds)
    summary = {
        f"ms more for each of 64 tasks (two at a time), {name}": statistics.median(
            a[0] - b[0] for a, b in zip(found[name], found["noop"], strict=True)
        )
        * 1e3
        / SMALL_TASKS
        for name in ("sink", "counting")
    }
    return {"samples": found, "summary": summary}


def micro_batches(spark: SparkSession, target: str, _hub: str, _rounds: int, _count: int) -> dict[str, Any]:
    """Measure the extra cost of a micro-batch of 1,000 rows over ``noop``, and the part every Python writer has."""

    def run(name: str, **options: object) -> list[float]:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MICRO_BATCH)
        df = source.option("numPartitions", 2).load().select(f.col("value").cast("string").alias("value"))
        with tempfile.TemporaryDirectory(dir=MEMORY) as checkpoint:
            query = df.writeStream.format(name).options(**options).option("checkpointLocation", checkpoint).start()
            try:
                while len(query.recentProgress) < MICRO_BATCHES + WARM_UP:
                    if query.exception() is not None:
                        raise RuntimeError(f"the query into {name} failed: {query.exception()}")
                    time.sleep(0.05)
                progress = query.recentProgress[WARM_UP:]
            finally:
                query.stop()
        return [float(one["durationMs"]["triggerExecution"]) for one in progress]

    jobs = {
        "noop": lambda: run("noop"),
        "counting": lambda: run("bench_counting"),
        "sink": lambda: run("dataproxy", target=target, groupId="bench", streamId="micro"),
    }
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(4):
        for name in list(jobs) if number % 2 else list(jobs)[::-1]:
            found[name] += jobs[name]()
    summary = {
        f"ms more for a micro-batch of 1,000 rows, {name}": statistics.median(found[name])
        - statistics.median(found["noop"])
        for name in ("sink", "counting")
    }
    return {"samples": found, "summary": summary}


def many_streams(spark: SparkSession, target: str, _hub: str, rounds: int, count: int) -> dict[str, Any]:
    """Compare a job with 10,000 streams, mixed row by row, with the same rows in one stream."""
    text = text_rows(spark, count // 2)
    many = text.withColumn("stream_id", f.concat(f.lit("s"), f.xxhash64("value") % STREAMS))
    one = text.withColumn("stream_id", f.when(f.xxhash64("value") == 0, f.lit("t")).otherwise(f.lit("s")))
    found = alternate({"one": sink(one, target), "many": sink(many, target)}, rounds)
    summary = {f"10,000 streams / one, {what}": ratio(found, "many", "one", at) for at, what in enumerate(UNITS)}
    return {"samples": found, "summary": summary}


def reading(spark: SparkSession, _target: str, _hub: str, rounds: int, count: int) -> dict[str, Any]:
    """Read a durable hub back, to count and into noop, beside the store's own Arrow batches read in one process.

    The rows are read once with ids, as the sink makes them, and once without: attributes are most of the work.
    """
    rows = min(count, MILLION)
    text = text_rows(spark, rows)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, hub_with("--store", folder) as said:
        url = said["manager_url"]
        jobs: dict[str, Job] = {}
        for group, ids in (("with ids", "true"), ("without", "false")):
            sink(text, url, groupId=group.replace(" ", "_"), rowIds=ids)()
            options = {"target": url, "groupId": group.replace(" ", "_"), "maxPartitionBytes": "4MiB"}
            jobs[f"count, {group}"] = counted(spark, options, rows)
            jobs[f"noop, {group}"] = dropped(spark, options)
            jobs[f"record_batches, {group}"] = arrow_batches(folder, options["groupId"], rows)
        found = alternate(jobs, rounds)
    summary = {
        f"million rows/s, {name}": rows / statistics.median(one[0] for one in taken) / MILLION
        for name, taken in found.items()
    }
    return {"samples": found, "summary": summary}


def held(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Return a DataFrame of the group's rows in the hub."""
    return spark.read.format("dataproxy").options(**options).load()


def counted(spark: SparkSession, options: dict[str, str], rows: int) -> Job:
    """Return a job that counts the rows in the hub and checks that there are ``rows``."""

    def run() -> None:
        found = held(spark, options).count()
        if found != rows:
            raise RuntimeError(f"{found} rows of {rows} were read")

    return run


def dropped(spark: SparkSession, options: dict[str, str]) -> Job:
    """Return a job that reads every column and drops it inside the JVM."""
    return lambda: noop(held(spark, options))()


def arrow_batches(folder: str, group: str, rows: int) -> Job:
    """Return a job that reads a group's batches out of the store's files."""

    def run() -> None:
        with open_store(folder) as store:
            found = sum(batch.num_rows for batch in store.record_batches(group))
        if found != rows:
            raise RuntimeError(f"{found} rows of {rows} were read")

    return run


PARTS = {
    "rates": rates,
    "tasks": small_tasks,
    "micro-batches": micro_batches,
    "streams": many_streams,
    "reading": reading,
}


def measure(asked: argparse.Namespace) -> None:
    """Run the parts against receivers that run, print their summaries and write the samples."""
    spark = session()
    book: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": asked.rounds,
        "rows": asked.rows,
        "machine": machine.describe(),
    }
    for name in asked.only or PARTS:
        book[name] = PARTS[name](spark, *asked.receivers, asked.rounds, asked.rows)
        for what, figure in book[name]["summary"].items():
            print(f"{what}: {figure:.3f}", flush=True)
    spark.stop()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(book, indent=1) + "\n")
    print(f"samples: {asked.out}")


def main(argv: Sequence[str] | None = None) -> None:
    """Start the receivers, and the measurement in a process of its own, so that their CPU seconds stay apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4 * MILLION, help="of 100 bytes; half as many of ten columns")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--receivers", nargs=2, help=argparse.SUPPRESS)
    words = list(sys.argv[1:] if argv is None else argv)
    asked = parser.parse_args(words)
    if asked.receivers:
        measure(asked)
        return
    build()
    cores = frozenset(os.sched_getaffinity(0))
    with (
        tempfile.TemporaryDirectory() as folder,
        serve("sink", Conditions(0, 0, cores, cores, Path(folder))) as (port, _),
        hub_process() as hub,
    ):
        receivers = ("--receivers", f"tcp://127.0.0.1:{port}", hub)
        subprocess.run((sys.executable, "-m", "benchmarks.spark", *words, *receivers), cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
