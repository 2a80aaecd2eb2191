"""What rows of a DataFrame cost as JSON messages: ``send_rows``, beside the writers of Polars and pandas.

``python -m benchmarks.tables [--rounds 9] [--rows 100000] [--json FILE]`` sends ten mixed columns to the C sink, all
ways in turns in one process, and prints the medians and ranges: rows for a CPU second of the process, all threads and
the kernel, from the first call to the return of ``flush()``.  The other ways write lines of JSON into memory, cut them,
and hand them to ``send_batch``.  Before the first round each way's rows are compared with those of the table.
"""

import argparse
import io
import json
import os
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl

from benchmarks.clients.section import Section
from benchmarks.contest import Conditions, serve
from benchmarks.floors import build
from benchmarks.machine import Watch
from dataproxy import Producer
from dataproxy.hub import Hub

__all__ = ["main"]

STREAM = "s_bench"
COLUMNS = 10


def table(rows: int) -> pl.DataFrame:
    """Return ten mixed columns: numbers, texts, times, a category and one with nulls."""
    draw = random.Random(1)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    columns: dict[str, Any] = {
        "id": range(10**9, 10**9 + rows),
        "user": [f"user-{draw.randrange(50_000)}" for _ in range(rows)],
        "page": [f"/shop/category/{draw.randrange(999)}/item/{draw.randrange(9999)}" for _ in range(rows)],
        "price": [round(draw.uniform(0, 500), 2) for _ in range(rows)],
        "count": [draw.randrange(100) for _ in range(rows)],
        "ok": [draw.random() < 0.9 for _ in range(rows)],
        "at": [start + timedelta(microseconds=draw.randrange(10**13)) for _ in range(rows)],
        "day": [start.date() + timedelta(days=draw.randrange(3000)) for _ in range(rows)],
        "country": [draw.choice(["DE", "US", "CN", "FR"]) for _ in range(rows)],
        "note": [draw.choice([None, 'said "yes"', "Zürich"]) for _ in range(rows)],
    }
    frame = pl.DataFrame(columns, schema_overrides={"count": pl.Int32, "country": pl.Categorical})
    assert frame.width == COLUMNS
    return frame


def rows_of_polars(producer: Producer, frame: pl.DataFrame, _pandas: pd.DataFrame) -> None:
    """Send a Polars DataFrame by ``send_rows``."""
    producer.send_rows(STREAM, frame, ignore_null_fields=False)


def lines_of_polars(producer: Producer, frame: pl.DataFrame, _pandas: pd.DataFrame) -> None:
    """Send what ``write_ndjson`` writes."""
    text = io.BytesIO()
    frame.write_ndjson(text)
    producer.send_batch(STREAM, text.getvalue().splitlines())


def rows_of_pandas(producer: Producer, _polars: pl.DataFrame, frame: pd.DataFrame) -> None:
    """Send a pandas DataFrame by ``send_rows``."""
    producer.send_rows(STREAM, frame, ignore_null_fields=False)


def lines_of_pandas(producer: Producer, _polars: pl.DataFrame, frame: pd.DataFrame) -> None:
    """Send what ``to_json`` writes."""
    text = frame.to_json(lines=True, orient="records")
    producer.send_batch(STREAM, text.encode().splitlines())


WAYS: dict[str, Callable[[Producer, pl.DataFrame, pd.DataFrame], None]] = {
    "send_rows, Polars": rows_of_polars,
    "Polars write_ndjson, send_batch": lines_of_polars,
    "send_rows, pandas": rows_of_pandas,
    "pandas to_json, send_batch": lines_of_pandas,
}


def verify(frames: tuple[pl.DataFrame, pd.DataFrame]) -> None:
    """Send some rows each way into a hub and compare the stored rows with the table, except for times."""
    small = (frames[0].head(500), frames[1].head(500))
    wanted = [{name: value for name, value in row.items() if name not in ("at", "day")} for row in small[0].to_dicts()]
    for name, way in WAYS.items():
        with Hub() as hub:
            with Producer(hub.target, group_id="g") as producer:
                way(producer, *small)
            found = [json.loads(record.body) for record in hub.records("g")]
        for row in found:
            assert len(row) == COLUMNS, name
            del row["at"], row["day"]
        assert found == wanted, name


def measure(way: str, port: int, frames: tuple[pl.DataFrame, pd.DataFrame]) -> tuple[float, float]:
    """Return rows a second and rows a CPU second of one way."""
    with Producer(f"tcp://127.0.0.1:{port}", group_id="b_bench") as producer:
        WAYS[way](producer, *frames)
        producer.flush(60)
        section = Section()
        WAYS[way](producer, *frames)
        report = producer.flush(60)
        fields = section.end(len(frames[0]), 1)
    assert report.ok, report
    return fields["records"] / fields["seconds"], fields["records"] / (fields["cpu_user"] + fields["cpu_sys"])


def show(points: dict[str, list[tuple[float, float]]]) -> None:
    """Print medians, ranges and the two ratios."""
    middle = {way: statistics.median(cpu for _, cpu in found) for way, found in points.items()}
    for way, found in points.items():
        cpu = sorted(point[1] for point in found)
        print(f"{way:<33}{middle[way] / 1e6:6.2f} M rows a CPU second, {cpu[0] / 1e6:.2f} to {cpu[-1] / 1e6:.2f};"
              f" {statistics.median(rate for rate, _ in found) / 1e6:.2f} M rows a second")  # fmt: skip
    for library, other in (("Polars", "Polars write_ndjson, send_batch"), ("pandas", "pandas to_json, send_batch")):
        ratios = sorted(
            ours[1] / theirs[1] for ours, theirs in zip(points[f"send_rows, {library}"], points[other], strict=True)
        )
        print(f"send_rows of {other}: {middle[f'send_rows, {library}'] / middle[other]:.2f} times,"
              f" {ratios[0]:.2f} to {ratios[-1]:.2f}")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rounds and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json", type=Path, help="write all points there, too")
    asked = parser.parse_args(argv)
    build()
    polars = table(asked.rows)
    frames = (polars, polars.with_columns(pl.col("country").cast(pl.String)).to_pandas())
    verify(frames)
    points: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    cores = sorted(os.sched_getaffinity(0))
    here, there = frozenset(cores[:-1] or cores), frozenset(cores[-1:])
    os.sched_setaffinity(0, here)
    watch, load = Watch(), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as folder,
        serve("sink", Conditions(1.0, 0.2, here, there, Path(folder))) as (port, _),
    ):
        for n in range(asked.rounds):
            for way in list(WAYS) if n % 2 == 0 else reversed(list(WAYS)):
                points[way].append(measure(way, port, frames))
    show(points)
    print(f"load average {load:.2f} before; others used {watch.others():.2f} of a core, the sink among them")
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"rows": asked.rows, "load_before": load, "points": points}, indent=1) + "\n")


if __name__ == "__main__":
    main()
