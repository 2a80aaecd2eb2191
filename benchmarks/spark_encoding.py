"""What whole rows cost in Spark: bodies made natively from Arrow columns, beside ``to_json`` and one column.

``python -m benchmarks.spark_encoding [--rounds 5] [--rows 1000000]`` writes ten mixed columns to the C sink, all ways
in turns in one session, and prints the medians: rows a second, and rows for a CPU second of the job's processes
(driver, JVM, Python workers; not the sink).  All is done twice: with Spark's default settings, and without a limit of
bytes for an Arrow batch, which spares Spark the measuring of all columns after every row.  ``--encoder`` measures the
encoders alone, in one thread without Spark.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contest import Conditions, serve
from benchmarks.floors import ROOT, build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

MIX = [
    "id",
    "cast(id % 1000 as int) as n",
    "id / 7.0D as x",
    "id % 3 = 0 as flag",
    "timestamp_micros(1700000000000000 + id * 1000) as t",
    "date_add(date'2020-01-01', cast(id % 3000 as int)) as day",
    "cast(id / 100 as decimal(18, 2)) as amount",
    "concat('user-', id % 100000) as user",
    "concat('page/', id % 977, '/index.html') as page",
    "'Mozilla/5.0' as agent",
]
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "noop": ("*", {}),
    "columns counted": ("*", {}),
    "to_json + raw": ("to_json(struct(*)) as value", {}),
    "format=json": ("*", {"format": "json"}),
    "to_csv + raw": ("to_csv(struct(*)) as value", {}),
    "format=csv": ("*", {"format": "csv"}),
    "format=kv": ("*", {"format": "kv"}),
}

FORMATS = {"noop": "noop", "columns counted": "bench_counting"}
"""What the other ways are compared with: rows that are only made, and columns that a Python worker only counts."""


def measure(port: int, rows: int, rounds: int) -> Iterator[tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Run the ways with each of the settings; yield a setting's title and (rows a second, rows a CPU second)."""
    from benchmarks.clients.spark_job import session
    from benchmarks.spark import BATCH_LIMIT, UNMEASURED

    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    yield "default settings", run(spark, port, rows, rounds)
    spark.conf.set(BATCH_LIMIT, UNMEASURED)
    yield f"{BATCH_LIMIT}={UNMEASURED}", run(spark, port, rows, rounds)
    spark.stop()


def run(spark: "SparkSession", port: int, rows: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Run the ways in turn, after one round that is not counted; return (rows a second, rows a CPU second)."""
    from benchmarks.clients.spark_job import tree_cpu_seconds

    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    target = {"target": f"tcp://127.0.0.1:{port}", "groupId": "b_bench", "streamId": "s_bench", "rowIds": "false"}
    frame = spark.range(0, rows, 1, 4).selectExpr(*MIX)
    for number in range(-1, rounds):
        for name in list(WAYS) if number % 2 else reversed(list(WAYS)):
            expression, options = WAYS[name]
            write = frame.selectExpr(expression).write.mode("append").format(FORMATS.get(name, "dataproxy"))
            if name not in FORMATS:
                write = write.options(**target, **options)
            cpu, began = tree_cpu_seconds(os.getpid()), time.perf_counter()
            write.save()
            seconds, cpu = time.perf_counter() - began, tree_cpu_seconds(os.getpid()) - cpu
            if number >= 0:
                found[name].append((rows / seconds, rows / cpu))
    return found


def client(port: int, rows: int, rounds: int) -> None:
    """Measure against a running sink, and print the result."""
    for title, found in measure(port, rows, rounds):
        print(f"{title}:", flush=True)
        report(found)


def report(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians of the ways, and what native bodies gain."""
    base = {name: statistics.median(cpu for _, cpu in points) for name, points in found.items()}
    for name, points in found.items():
        cpu = [point[1] for point in points]
        rate = statistics.median(point[0] for point in points)
        print(f"{name:<16}{rate / 1e6:7.2f} M rows/s; {base[name] / 1e6:.2f} M rows a CPU second, ", end="")
        print(f"{min(cpu) / 1e6:.2f} to {max(cpu) / 1e6:.2f}")
    for form in ("json", "csv"):
        ours, theirs = base[f"format={form}"], base[f"to_{form} + raw"]
        net = (1 / theirs - 1 / base["noop"]) / (1 / ours - 1 / base["noop"])
        bound = base["columns counted"] / theirs
        print(f"format={form} over to_{form} + raw, by CPU: {ours / theirs:.2f}; {net:.2f} without the making of rows;"
              f" an encoder that costs nothing would have {bound:.2f}")  # fmt: skip


def encoders(rounds: int) -> None:
    """Print what a row of ten columns costs in the encoders, and in pyarrow's CSV writer."""
    import pyarrow as pa
    from pyarrow import csv

    from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
    from dataproxy.rows.zones import zone_table

    n = 10_000
    numbers = range(n)
    batch = pa.record_batch({
        "id": pa.array(numbers), "n": pa.array([i % 1000 for i in numbers], pa.int32()),
        "x": pa.array([i / 7 for i in numbers]), "flag": pa.array([i % 3 == 0 for i in numbers]),
        "t": pa.array([1_700_000_000_000_000 + i * 1000 for i in numbers], pa.timestamp("us", "UTC")),
        "day": pa.array([18262 + i % 3000 for i in numbers], pa.date32()),
        "amount": pa.array([Decimal(i) / 100 for i in numbers], pa.decimal128(18, 2)),
        "user": pa.array([f"user-{i}" for i in numbers]), "page": pa.array([f"page/{i}/index.html" for i in numbers]),
        "agent": pa.array(["Mozilla/5.0"] * n),
    })  # fmt: skip
    ways = {form: BodyEncoder(form, range(10), zone_table=zone_table).measure for form in ("json", "csv", "kv")}
    ways["pyarrow csv"] = lambda batch: csv.write_csv(batch, pa.BufferOutputStream())
    for name, way in ways.items():
        points = []
        for _ in range(rounds * 10):
            began = time.perf_counter()
            way(batch)
            points.append((time.perf_counter() - began) / n * 1e9)
        print(f"{name:<12}{statistics.median(points):6.0f} ns a row, at best {min(points):.0f}")


def main(argv: Sequence[str] | None = None) -> None:
    """Start the sink and a client of it, or measure the encoders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--encoder", action="store_true")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.encoder:
        encoders(asked.rounds)
    elif asked.port:
        client(asked.port, asked.rows, asked.rounds)
    else:
        build()
        cores = frozenset(os.sched_getaffinity(0))
        with (
            tempfile.TemporaryDirectory() as folder,
            serve("sink", Conditions(0, 0, cores, cores, Path(folder))) as (port, _),
        ):
            sizes = ["--rows", str(asked.rows), "--rounds", str(asked.rounds)]
            command = [sys.executable, "-m", "benchmarks.spark_encoding", "--port", str(port), *sizes]
            subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
