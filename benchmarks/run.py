"""The runner: every contestant in turn, round after round, then JSON and ``RESULTS.md``.

``python -m benchmarks.run [--rounds 7] [--seconds 2] [--quick] [--only NAME] [--report FILE]``
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

from benchmarks import bodies, machine, report
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
from benchmarks.table import CONTESTANTS, SPARK, SPARK_SINK

__all__ = ["choose", "main"]

RESULTS = ROOT / "benchmarks" / "results"
SPARK_ROWS = 4_000_000
PASSING = ("total_records", "total_crc_sum", "records_per_frame", "frame_bytes", "refused")  # checked, not kept


class Book:
    """Collect what the measurements gave."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Begin with the settings and the machine."""
        self.content: dict[str, Any] = {
            "schema": 1,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "settings": settings,
            "machine": machine.describe(),
            "left_out": {},
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
    """Show progress, apart from the table that goes to stdout."""
    print(text, file=sys.stderr, flush=True)


def choose(contestants: Iterable[Contestant], only: Sequence[str]) -> list[Contestant]:
    """Return the contestants whose name or scenario holds one of the words, with the floors they refer to."""
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
    """Let each of ours send once to the verifying sink; this is the first, uncounted round."""
    for contestant in contestants:
        if contestant.role != "ours" or contestant.server != "sink" or contestant.scenario == "spark":
            continue
        try:
            compared = verify(contestant, conditions)
        except RunFailedError as error:
            book.fail(contestant.name, "verified run", error)
            continue
        if compared:
            book.content["verified"][contestant.name] = compared


def run_rounds(contestants: Sequence[Contestant], rounds: int, conditions: Conditions, book: Book) -> None:
    """Measure all in turn, in reversed order every second round."""
    for number in range(rounds):
        for contestant in contestants if number % 2 == 0 else contestants[::-1]:
            where = f"round {number + 1} of {rounds}"
            try:
                result = measure(contestant, conditions)
            except RunFailedError as error:
                book.fail(contestant.name, where, error)
                continue
            book.add(contestant.name, result)
            say(f"{where}: {contestant.name}: {report.figure(contestant.metric, result[contestant.metric])}")


def run_spark(contestants: Sequence[Contestant], rounds: int, rows: int, conditions: Conditions, book: Book) -> None:
    """Measure the Spark jobs: one session for all rounds, writers in turns, nobody pinned."""
    if not contestants:
        return
    names = ",".join(contestant.name for contestant in contestants)
    extra = ("--rounds", str(rounds), "--rows", str(rows), "--writers", names)
    free = Conditions(**vars(conditions) | {"client_cores": all_cores(), "server_cores": all_cores()})
    try:
        with serve("sink", free) as (port, counts):
            for name, result in stream_results(contestants[0], extra, free, port):
                book.add(name, result)
                say(f"spark: {name}: {report.figure('rate', result['rate'])}")
        if SPARK_SINK in names:
            balance({"total_records": rows * (rounds + 1)}, counts)
    except RunFailedError as error:
        book.fail(names, "spark", error)


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
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of one run")
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.5 s; RESULTS.md is left as it is")
    parser.add_argument("--only", action="append", default=[], help="a scenario or a part of a name; may be repeated")
    parser.add_argument("--report", type=Path, help="write RESULTS.md again from a JSON file and stop")
    parser.add_argument("--folder", type=Path, default=BUILT, help="where durable stores are written")
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.rounds, asked.seconds, asked.warmup = 3, 0.5, 0.2
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
        contestants = present(choose(CONTESTANTS, asked.only), book)
        spark = present(choose(SPARK, asked.only), book)
        run_verified(contestants, short, book)
        run_rounds(contestants, asked.rounds, conditions, book)
        run_spark(spark, asked.rounds, SPARK_ROWS // (4 if asked.quick else 1), conditions, book)
    book.content["machine"]["load_after"] = os.getloadavg()[0]
    return book


def main(argv: Sequence[str] | None = None) -> int:
    """Run, write the JSON, print the table; return 1 when a measurement failed."""
    asked = options(argv)
    if asked.report:
        report.write(json.loads(asked.report.read_text()), asked.report.resolve())
        return 0
    book = execute(asked)
    partial = asked.quick or asked.only
    stamp = book.content["started"].replace(":", "").replace("-", "")
    target = BUILT / "last.json" if partial else RESULTS / f"{stamp}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(report.compact(book.content))
    if not partial:
        report.write(book.content, target)
    print(report.render(book.content, target))
    return 1 if book.content["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
