"""The figures of the tuning guide: what options give and take, measured in turn and written into ``docs/tuning.md``.

``python -m benchmarks.tuning [--rounds 5] [--quick]``

Each table of the guide stands between two markers, ``<!-- tuning: NAME -->`` and ``<!-- end -->``.  Its rows are
measured one after the other, round after round, each in a fresh process; a cell holds the median, and the range in
brackets.  ``--quick`` measures each row once and very shortly but for Spark, prints the tables and writes nothing.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import bodies
from benchmarks.contest import TEXT_BODIES, TEXT_COUNT, Conditions, Contestant
from benchmarks.floors import BUILT, CFLAGS, ROOT, build
from benchmarks.lines.describe import PORT, TIMES, module
from benchmarks.machine import BUSY_SHARE
from benchmarks.run import Book, cores, run_rounds, run_spark
from benchmarks.samples import summarise

__all__ = [
    "GUIDE",
    "PARTS",
    "Part",
    "Row",
    "cells_in",
    "main",
    "medians_in",
    "options_of",
    "placed",
    "rows_in",
    "table",
]

GUIDE = ROOT / "docs" / "tuning.md"
BLOCK = re.compile(r"(<!-- tuning: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = {  # by metric: heading, divisor, decimals
    "rate": ("million messages/s", 1e6, 2),
    "body_rate": ("MB/s", 1e6, 0),
    "cpu_per_million": ("CPU-s per million", 1, 3),
    "packed": ("messages a frame", 1, 0),
    "p50_us": ("p50, µs", 1, 0),
    "p99_us": ("p99, µs", 1, 0),
    "above_mib": ("memory, MiB", 1, 0),
}
SPARK_TABLE = "dataproxy sink, 100 B strings"
ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
SPREAD_SECONDS = 3.0  # of a row with streams: as long for any option, so that the flush at the end weighs little


@dataclass(frozen=True)
class Row:
    """Hold one row: what is done, the options that differ from their defaults, and the client's arguments."""

    what: str
    options: tuple[str, ...] = ()  # OPTION=VALUE
    words: tuple[str, ...] = ()
    server: str = "sink"
    cores: str = "one"

    @property
    def shown(self) -> str:
        """Return the options as the table shows them."""
        return ", ".join(f"`{option}`" for option in self.options) or "defaults"


@dataclass(frozen=True)
class Part:
    """Hold one table: the client program, the metrics that it shows, and its rows."""

    name: str
    client: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]

    def contestant(self, row: Row) -> Contestant:
        """Describe a row for the runner."""
        name = f"{self.name}: {row.what}, {row.shown}"
        if self.client == "spark_job":
            name = ", ".join((SPARK_TABLE, *row.options))
        sets = tuple(word for option in row.options for word in ("--set", option))
        command = module(f"clients.{self.client}", *PORT, *row.words, *(sets if self.client != "spark_job" else ()))
        return Contestant(name, self.name, "ours", command, server=row.server, cores=row.cores)


def sending(what: str, mode: str, *options: str, body: int = 100, text: bool = False, cores: str = "one") -> Row:
    """Describe messages as fast as they go."""
    size = ("--body", str(body), *(("--block", "2000") if body > 100 else ()), *(("--text",) if text else ()))
    return Row(what, options, ("--mode", mode, *TIMES, *size), cores=cores)


def at_rate(rate: int, *options: str) -> Row:
    """Describe messages that are due at a fixed rate."""
    return Row(f"{rate:,} messages/s", options, ("--rate", str(rate), *TIMES))


def spread(streams: int, *options: str) -> Row:
    """Describe messages to streams in random order, for so long that a linger of a second ends several times."""
    what = f"{streams:,} stream{'s' if streams > 1 else ''}"
    words = ("--mode", "send_nowait", "--streams", str(streams), "--seconds", str(SPREAD_SECONDS), "--defaults")
    return Row(what, options, words)


def filled(size: str) -> Row:
    """Describe a buffer that is full because answers are late."""
    words = ("--mode", "send_batch", "--seconds", "1.5")
    return Row("`send_batch`, acks 500 ms late", (f"buffer_bytes={size}",), words, server="sink, acks 500 ms late")


PARTS = (
    Part(
        "throughput",
        "ours",
        ("rate", "body_rate", "cpu_per_million", "packed"),
        (
            sending("`send(...)`, then `result()` of each", "send_await"),
            sending("`send_nowait`", "send_nowait"),
            sending("`stream(...).send_nowait`", "stream_nowait"),
            sending("`send_batch`, list of bytes", "send_batch"),
            sending("`send_batch`, NumPy", "send_numpy"),
            sending("`send_arrow`", "send_arrow"),
            sending("`send_batch`, 1 KB text", "send_batch", body=1024, text=True),
            sending("`send_batch`, 1 KB text", "send_batch", "batch_bytes=32KiB", body=1024, text=True),
            sending("`send_batch`, 1 KB text", "send_batch", "compression=snappy", body=1024, text=True),
            sending(
                "`send_batch`, 1 KB text, all cores",
                "send_batch",
                "compression=snappy",
                "executors=2",
                body=1024,
                text=True,
                cores="all",
            ),
        ),
    ),
    Part(
        "latency",
        "openloop",
        ("p50_us", "p99_us", "cpu_per_million", "packed"),
        tuple(
            at_rate(rate, f"linger={linger}")
            for rate in (1_000, 50_000, 500_000)
            for linger in ("0ms", "1ms", "5ms", "20ms")
        ),
    ),
    Part(
        "oneatatime",
        "roundtrip",
        ("p50_us", "p99_us", "cpu_per_million"),
        tuple(Row("`send`, `result()`, the next", (f"linger={linger}",), TIMES) for linger in ("0ms", "5ms")),
    ),
    Part(
        "streams",
        "spread",
        ("rate", "cpu_per_million", "packed"),
        (
            *(spread(streams) for streams in (1, 100, 1_000, 10_000)),
            spread(10_000, "linger=100ms"),
            spread(10_000, "linger=1s", "buffer_bytes=256MiB"),
            spread(10_000, "linger=1s", "buffer_bytes=256MiB", "batch_bytes=16KiB"),
        ),
    ),
    Part(
        "memory",
        "memory",
        ("above_mib", "rate"),
        tuple(filled(size) for size in ("4MiB", "16MiB", "64MiB", "256MiB")),
    ),
    Part(
        "spark",
        "spark_job",
        ("rate", "cpu_per_million"),
        tuple(
            Row("100 B strings, `local[2]`", options)
            for options in (
                (),
                ("rowIds=false",),
                ("compression=snappy",),
                ("batchBytes=32KiB",),
                ("linger=5ms",),
                (f"{ROWS_A_BATCH}=1000",),
                (f"{ROWS_A_BATCH}=100000",),
                ("partitions=1",),
                ("partitions=2",),
                ("partitions=16",),
            )
        ),
    ),
)


def options_of(part: Part) -> dict[str, list[str]]:
    """Return the values that the rows of a table give to options."""
    found: dict[str, list[str]] = {}
    for row in part.rows:
        for option in row.options:
            name, value = option.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def rows_in(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the first two cells of each row of the tables in a guide, by the table's name."""
    return {name: [(cells[0], cells[1]) for cells in rows] for name, rows in cells_in(text).items()}


def cells_in(text: str) -> dict[str, list[list[str]]]:
    """Return all cells of each row of the tables in a guide, by the table's name."""
    return {
        found[2]: [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in found[0].splitlines()
            if line.startswith("|")
        ][2:]
        for found in BLOCK.finditer(text)
    }


def medians_in(text: str, name: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the medians that one table shows, by metric, of each row: what is done, options."""
    (part,) = (part for part in PARTS if part.name == name)
    return {
        (what, shown): {
            metric: float(cell.split()[0])
            for metric, cell in zip(part.metrics, cells, strict=True)
            if cell[0].isdigit()
        }
        for what, shown, *cells in cells_in(text)[name]
    }


def table(part: Part, points: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    """Yield the lines of one table."""
    yield "| what | options | " + " | ".join(COLUMNS[metric][0] for metric in part.metrics) + " |"
    yield "|---|---|" + "---|" * len(part.metrics)
    for row in part.rows:
        series = points.get(part.contestant(row).name, {})
        cells = [cell(metric, series[metric]) if metric in series else "not measured" for metric in part.metrics]
        yield "| " + " | ".join((row.what, row.shown, *cells)) + " |"


def cell(metric: str, values: Sequence[float]) -> str:
    """Return median and range."""
    _, divisor, decimals = COLUMNS[metric]
    figures = summarise([value / divisor for value in values])
    return f"{figures.median:.{decimals}f} ({figures.low:.{decimals}f}..{figures.high:.{decimals}f})"


def placed(text: str, tables: dict[str, str]) -> str:
    """Return a guide with its tables replaced.  Raises ValueError for a table without its markers."""
    seen = {found[2] for found in BLOCK.finditer(text)}
    if seen != set(tables):
        raise ValueError(f"the markers name {sorted(seen)}, measured were {sorted(tables)}")
    return BLOCK.sub(lambda found: found[1] + tables[found[2]] + found[3], text)


def conditions_line(content: dict[str, Any]) -> str:
    """Return where and how the run was made."""
    machine, settings = content["machine"], content["settings"]
    shares = [value for series in content["points"].values() for value in series.get("others", ())]
    busy = sum(value > BUSY_SHARE for value in shares)
    packages = machine["packages"]
    return (
        f"Run of {content['started']}, commit {machine['commit']}: {machine['cpu']}, {machine['cores']} cores, kernel "
        f"{machine['kernel']}, Python {machine['python']}, PySpark {packages.get('pyspark', 'absent')}; "
        f"{settings['rounds']} rounds, {settings['seconds']} s each, {SPREAD_SECONDS:g} s of many streams; "
        "client on one core, server (a C program that acknowledges) on the other; "
        f"in {busy} of {len(shares)} runs other programs used more than {BUSY_SHARE:.0%} "
        "of a core.\n"
    )


def measured(asked: argparse.Namespace, parts: Sequence[Part]) -> dict[str, Any]:
    """Measure the rows of some tables; return the content of a run."""
    build()
    if not TEXT_BODIES.exists():
        bodies.write_text(TEXT_BODIES, 1024, TEXT_COUNT)
    client, server = cores()
    settings = {"rounds": asked.rounds, "seconds": asked.seconds, "floor_cflags": " ".join(CFLAGS)}
    book = Book(settings)
    with tempfile.TemporaryDirectory(prefix="tuning-", dir=BUILT) as folder:
        conditions = Conditions(asked.seconds, asked.seconds / 2, client, server, Path(folder))
        lines = [part.contestant(row) for part in parts if part.client != "spark_job" for row in part.rows]
        run_rounds(lines, asked, conditions, book)
        jobs = [part.contestant(row) for part in parts if part.client == "spark_job" for row in part.rows]
        run_spark([] if asked.quick else jobs, asked.rounds, conditions, book)
    book.content["machine"]["load_after"] = os.getloadavg()[0]
    return book.content


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the guide; return 1 when a measurement failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time of one run")
    parser.add_argument("--minutes", type=float, default=10, help="begin no measurement after so long; Spark follows")
    parser.add_argument("--quick", action="store_true", help="each row once and shortly, no Spark; writes nothing")
    parser.add_argument("--only", action="append", choices=[part.name for part in PARTS], help="with --quick: a table")
    asked = parser.parse_args(argv)
    if asked.only and not asked.quick:
        parser.error("--only is for --quick: the guide's tables are of one run")
    parts = [part for part in PARTS if part.name in (asked.only or [part.name])]
    if asked.quick:
        asked.rounds, asked.seconds = 1, 0.05
    content = measured(asked, parts)
    tables = {part.name: "\n".join((*table(part, content["points"]), "")) for part in parts}
    tables["machine"] = conditions_line(content)
    for name, text in tables.items():
        print(f"{name}\n{text}")
    if content["failures"]:
        print(json.dumps(content["failures"], indent=1), file=sys.stderr)
        return 1
    if not asked.quick:
        GUIDE.write_text(placed(GUIDE.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
