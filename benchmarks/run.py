"""The runner: every contestant in turn, round after round, then JSON and ``RESULTS.md``.

``python -m benchmarks.run [--rounds 9] [--minutes 16] [--quick] [--only NAME] [--report FILE]``
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import bodies, machine, plots, report
from benchmarks.contest import (
    TEXT_BODIES,
    TEXT_COUNT,
    Conditions,
    Contestant,
    RunFailedError,
    balance,
    measure,
    missing,
    serve,
    stream_results,
    verify,
)
from benchmarks.floors import BUILT, CFLAGS, ROOT, build
from benchmarks.lines.process import SPARK_SINK
from benchmarks.table import CONTESTANTS, LEFT_OUT, SPARK

__all__ = ["choose", "main"]

RESULTS = ROOT / "benchmarks" / "results"
SPARK_ROWS = 2_000_000
SPARK_ROUNDS = 5
PASSING = ("total_records", "total_crc_sum", "records_per_frame", "frame_bytes", "refused")  # checked, not kept


class Book:
    """Collect the figures and the failures of all measurements."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Begin with the settings and the machine."""
        self.content: dict[str, Any] = {
            "schema": 1,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "settings": settings,
            "machine": machine.describe(),
            "left_out": dict(LEFT_OUT),
            "verified": {},
            "failures": [],
            "points": {},
        }

    def add(self, name: str, result: dict[str, float]) -> None:
        """Add one run's figures to a contestant's series."""
        series = self.content["points"].setdefault(name, {})
        for metric, figure in result.items():
            if metric not in PASSING:
                series.setdefault(metric, []).append(float(f"{figure:.6g}"))

    def fail(self, name: str, where: str, error: RunFailedError) -> None:
        """Write down a run that failed."""
        self.content["failures"].append({"name": name, "where": where, "error": str(error)})
        say(f"{where}: {name} FAILED: {error}")


def say(text: str) -> None:
    """Print progress on stderr; the table goes to stdout."""
    print(text, file=sys.stderr, flush=True)


def choose(contestants: Iterable[Contestant], only: Sequence[str]) -> list[Contestant]:
    """Return the contestants whose name or scenario contains one of the words, and the floors they refer to."""
    everyone = list(contestants)
    if not only:
        return everyone
    wanted = {c.name for c in everyone if any(word == c.scenario or word in c.name for word in only)}
    wanted |= {c.floor for c in everyone if c.name in wanted}
    return [c for c in everyone if c.name in wanted]


def present(contestants: Iterable[Contestant], book: Book) -> list[Contestant]:
    """Return those that can be run here; write down why the others cannot."""
    found = []
    for contestant in contestants:
        reason = missing(contestant)
        if reason:
            book.content["left_out"][contestant.name] = reason
            say(f"left out: {contestant.name}: {reason}")
        else:
            found.append(contestant)
    return found


def run_verified(contestants: Iterable[Contestant], conditions: Conditions, book: Book) -> None:
    """Send once with each of our contestants to the verifying sink; this is the first round and is not counted."""
    for contestant in contestants:
        if not contestant.verify:
            continue
        try:
            compared = verify(contestant, conditions)
        except RunFailedError as error:
            book.fail(contestant.name, "verified run", error)
            continue
        if compared:
            book.content["verified"][contestant.name] = compared


def run_rounds(
    contestants: Sequence[Contestant], asked: argparse.Namespace, conditions: Conditions, book: Book
) -> None:
    """Measure all contestants in turn, every second round in reverse order, until the rounds or the minutes are over.

    Every contestant is measured once, however long that takes.
    """
    until = time.monotonic() + asked.minutes * 60
    for number in range(asked.rounds):
        due = [contestant for contestant in contestants if number % contestant.every == 0]
        for contestant in due if number % 2 == 0 else due[::-1]:
            where = f"round {number + 1} of {asked.rounds}"
            if number > 0 and time.monotonic() > until:
                book.content["settings"]["stopped"] = f"in {where}, after {asked.minutes:g} minutes"
                return
            try:
                result = measure(contestant, conditions)
            except RunFailedError as error:
                book.fail(contestant.name, where, error)
                continue
            book.add(contestant.name, result)
            say(f"{where}: {contestant.name}: {report.figure(contestant.metric, result[contestant.metric])}")


def run_spark(contestants: Sequence[Contestant], rounds: int, conditions: Conditions, book: Book) -> None:
    """Measure the Spark jobs: one session for all rounds, the writers in turn, no process bound to a core."""
    if not contestants:
        return
    names = ";".join(contestant.name for contestant in contestants)
    extra = ("--rounds", str(rounds), "--rows", str(SPARK_ROWS), "--writers", names)
    free = Conditions(**vars(conditions) | {"client_cores": all_cores(), "server_cores": all_cores()})
    sent = 0.0
    try:
        with serve("sink", free) as (port, counts):
            for name, result in stream_results(contestants[0], extra, free, port):
                book.add(name, result)
                sent += result["records"] * (rounds + 1) / rounds if name.startswith(SPARK_SINK) else 0
                say(f"spark: {name}: {report.figure('rate', result['rate'])}")
        balance({"total_records": round(sent)}, counts)
    except RunFailedError as error:
        book.fail("the Spark jobs", "spark", error)


def all_cores() -> frozenset[int]:
    """Return the cores this process may use."""
    return frozenset(os.sched_getaffinity(0))


def cores() -> tuple[frozenset[int], frozenset[int]]:
    """Return the client's core and the server's; the same one when there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return frozenset(allowed[:1]), frozenset(allowed[1:2] or allowed[:1])


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--minutes", type=float, default=16, help="begin no measurement after so long; Spark follows")
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time of one run")
    parser.add_argument("--warmup", type=float, default=0.25)
    parser.add_argument("--quick", action="store_true", help="the important lines, under a minute; nothing is written")
    parser.add_argument("--only", action="append", default=[], help="a scenario or a part of a name; may be repeated")
    parser.add_argument("--report", type=Path, help="write RESULTS.md again from a JSON file and stop")
    parser.add_argument("--folder", type=Path, default=BUILT, help="where durable stores are written")
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.rounds, asked.minutes, asked.seconds, asked.warmup = 3, 0.6, 0.25, 0.1
    return asked


def execute(asked: argparse.Namespace) -> Book:
    """Run what was asked for and return the book."""
    build()
    if not TEXT_BODIES.exists():
        bodies.write_text(TEXT_BODIES, 1024, TEXT_COUNT)
    client_cores, server_cores = cores()
    settings = {
        "rounds": asked.rounds,
        "seconds": asked.seconds,
        "warmup": asked.warmup,
        "client_cores": sorted(client_cores),
        "server_cores": sorted(server_cores),
        "floor_cflags": " ".join(CFLAGS),
    }
    book = Book(settings)
    with tempfile.TemporaryDirectory(prefix="run-", dir=asked.folder) as folder:
        conditions = Conditions(asked.seconds, asked.warmup, client_cores, server_cores, Path(folder))
        short = Conditions(0.2, 0.05, client_cores, server_cores, Path(folder))
        wanted = [line for line in CONTESTANTS if line.quick or not asked.quick]
        contestants = present(choose(wanted, asked.only), book)
        spark = present(choose(() if asked.quick else SPARK, asked.only), book)
        run_verified([line for line in contestants if line.scenario == "small" or not asked.quick], short, book)
        run_rounds(contestants, asked, conditions, book)
        run_spark(spark, min(asked.rounds, SPARK_ROUNDS), conditions, book)
    book.content["machine"]["load_after"] = os.getloadavg()[0]
    return book


def main(argv: Sequence[str] | None = None) -> int:
    """Run, write the JSON, print the table; return 1 when a measurement failed."""
    asked = options(argv)
    if asked.report:
        content = json.loads(asked.report.read_text())
        plots.draw(content["points"])
        report.write(content, asked.report.resolve())
        return 0
    book = execute(asked)
    partial = asked.quick or asked.only
    stamp = book.content["started"].replace(":", "").replace("-", "")
    target = BUILT / "last.json" if partial else RESULTS / f"{stamp}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(report.compact(book.content))
    if not partial:
        plots.draw(book.content["points"])
        report.write(book.content, target)
    print(report.render(book.content, target))
    return 1 if book.content["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
