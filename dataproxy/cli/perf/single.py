"""``dataproxy perf run`` and ``report``: one load test, and its report."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.ending import Terminated
from dataproxy.cli.outcome import ExitCode, complain, outcome, say
from dataproxy.cli.settings import named_options
from dataproxy.errors import ConfigError
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataproxy.perf import Load, Result, Second
    from dataproxy.perf.hub import HubFigures

__all__ = [
    "ARRIVALS", "BATCH", "GROUP", "HUB", "HUB_URL", "JSON", "MAX_LAG", "OPTION", "PATH", "SEED", "SIZE", "STREAMS",
    "TARGET", "THREADS", "app", "duration_of", "load_result", "open_target", "producer_options", "watched_run",
]  # fmt: skip

app = typer.Typer(name="perf", help="Load tests that count latencies from planned times.", no_args_is_help=True)

TARGET = typer.Argument(metavar="[TARGET]", help="tcp://host:port,... or http://manager:8083.")
HUB = typer.Option("--hub", help="Start a hub (in memory, in its own process) and test it.")
HUB_URL = typer.Option(metavar="URL", help="Manager port of the hub at TARGET; the report then counts what it stored.")
_PLAN = typer.Option(metavar="PLAN", help="RATE[-RATE][+COUNT/PERIOD]:TIME,...; in place of --rate and --duration.")
_RATE = typer.Option(metavar="N", help="Messages a second.")
_DURATION = typer.Option(metavar="TIME", help="Duration of the load, e.g. 30s.")
ARRIVALS = typer.Option(metavar="KIND", help="Gaps between messages: constant or poisson.")
SEED = typer.Option(metavar="N", help="Seed of random gaps and body sizes.")
PATH = typer.Option(metavar="CALL", help="send_nowait (without interpreter), send, send_batch, send_arrow, asyncio.")
THREADS = typer.Option(min=1, max=64, metavar="N", help="Sending threads.")
STREAMS = typer.Option(min=1, max=100_000, metavar="N", help="Number of streams, used in turn.")
_KEYS = typer.Option(min=0, max=100_000, metavar="N", help="Number of keys, used in turn; needs -o ordering=key.")
SIZE = typer.Option(metavar="SIZE", help="Bytes of a body: N, N-M (drawn), exp:MEAN (a long tail).")
_LINES = typer.Option(metavar="FILE", help="Send the lines of this file instead of generated bodies.")
BATCH = typer.Option(
    min=1, max=100_000, metavar="N", help="Messages that are due at the same time and sent in one call."
)
GROUP = typer.Option("--group", "-g", metavar="ID", help="Group id; streams are ID_0, ID_1, ...")
_CLOSED = typer.Option("--closed-loop", help="Each thread waits for an answer before it sends again.")
MAX_LAG = typer.Option(metavar="TIME", help="Allowed lateness of the generator at p50, p90 and p99.")
OPTION = typer.Option("--option", "-o", metavar="NAME=VALUE", help="Any producer option; may be repeated.")
JSON = typer.Option("--json", metavar="FILE", help="Write the whole result there, - for stdout.")
_QUIET = typer.Option("--quiet", "-q", help="Do not print a line for each second.")
_HTML = typer.Option(metavar="FILE", help="Write the report as one HTML file without external resources.")
_PNG = typer.Option(metavar="DIR", help="Write each chart as a picture to this folder (needs matplotlib).")
_REPEAT = typer.Option(min=1, max=1000, metavar="N", help="Number of runs; --json is then a folder.")
_MAX_P = typer.Option("--max", metavar="pN=TIME", help="Exit 1 if that percentile is larger; may be repeated.")
_MIN_RATE = typer.Option(metavar="N", help="Exit 1 if fewer messages a second were delivered.")


@app.command("run")
def run_command(
    target: Annotated[str | None, TARGET] = None,
    hub: Annotated[bool, HUB] = False,
    hub_url: Annotated[str, HUB_URL] = "",
    plan: Annotated[str, _PLAN] = "",
    rate: Annotated[str, _RATE] = "10k",
    duration: Annotated[str, _DURATION] = "10s",
    arrivals: Annotated[str, ARRIVALS] = "constant",
    seed: Annotated[int, SEED] = 1,
    path: Annotated[str, PATH] = "send_nowait",
    threads: Annotated[int, THREADS] = 1,
    streams: Annotated[int, STREAMS] = 1,
    keys: Annotated[int, _KEYS] = 0,
    size: Annotated[str, SIZE] = "100",
    lines: Annotated[str, _LINES] = "",
    batch: Annotated[int, BATCH] = 1,
    group: Annotated[str, GROUP] = "perf",
    closed_loop: Annotated[bool, _CLOSED] = False,
    max_lag: Annotated[str, MAX_LAG] = "1ms",
    option: Annotated[list[str] | None, OPTION] = None,
    json: Annotated[str, JSON] = "",
    html: Annotated[str, _HTML] = "",
    repeat: Annotated[int, _REPEAT] = 1,
    quiet: Annotated[bool, _QUIET] = False,
    max_: Annotated[list[str] | None, _MAX_P] = None,
    min_rate: Annotated[float, _MIN_RATE] = 0.0,
) -> None:
    """Send messages by a plan and report the results.

    The load is open: each message is due at its planned time, no matter how long earlier ones take, and its latency
    counts from that time. Exit code 1: a message was not delivered, the run is not valid, or a threshold was passed.
    """
    with outcome():
        from dataproxy.perf import Load, parse_plan
        from dataproxy.perf.thresholds import parse_thresholds

        if plan and (duration, rate) != ("10s", "10k"):
            raise ConfigError("--plan was given beside --rate or --duration", hint="a plan has its own")
        thresholds = parse_thresholds(max_ or [], min_rate)
        settled = parse_plan(plan or f"{rate}:{duration}", arrivals=arrivals, seed=seed)
        if repeat > 1 and (html or json == "-"):
            raise ConfigError("--repeat makes several results", hint="give --json a folder, and leave --html out")
        codes = []
        _check_writable(json if repeat == 1 else "", html)
        with open_target(target, hub=hub, hub_url=hub_url) as (address, figures):
            load = Load(
                target=address, plan=settled, group=group, path=path, threads=threads, streams=streams, keys=keys,
                size=size, lines=lines, batch=batch, closed_loop=closed_loop, max_lag=duration_of("--max-lag", max_lag),
                options=producer_options(option),
            )  # fmt: skip
            load.check()
            for number in range(1, repeat + 1):
                result = watched_run(load, figures, quiet=quiet)
                file = _numbered(json, number) if repeat > 1 else json
                codes.append(_report(result, file, html, thresholds.problems(result)))
                if result.stopped:
                    break
        raise typer.Exit(max(codes))


@app.command("report")
def report_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A result that `perf run --json FILE` wrote.")],
    html: Annotated[str, _HTML] = "",
    png: Annotated[str, _PNG] = "",
) -> None:
    """Make the report of a run again from its result."""
    with outcome():
        result = load_result(file)
        if png:
            from dataproxy.perf.charts import write_pictures

            for written in write_pictures(result, png):
                say(f"wrote {written}")
        raise typer.Exit(_report(result, "", html, []))


def load_result(file: str) -> Result:
    """Return the result in a file.  Raises ConfigError."""
    from dataproxy.perf import read_result

    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file!r} cannot be read: {error.strerror or error}") from None
    try:
        return read_result(text)
    except ConfigError as error:
        raise ConfigError(f"{file!r}: {error.message}") from None


def duration_of(name: str, text: str) -> float:
    """Return the duration in ``text`` in seconds; ``name`` is the option's.  Raises ConfigError."""
    from dataproxy.config.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{name} {text!r} {error}") from None


def producer_options(pairs: list[str] | None) -> dict[str, Any]:
    """Return the producer's options from ``-o``.  Raises ConfigError for a name that is an option of the command."""
    found = named_options(pairs or [])
    for name in ("target", "group_id"):
        if name in found:
            raise ConfigError(
                f"-o {name} cannot be given with -o: the command has an option for it", hint="give TARGET, or --group"
            )
    return found


@contextlib.contextmanager
def open_target(target: str | None, *, hub: bool, hub_url: str) -> Iterator[tuple[str, HubFigures | None]]:
    """Yield the target, and the hub that is asked for its counts (None without one).  Raises ConfigError."""
    from dataproxy.perf.hub import HubFigures, hub_process
    from dataproxy.producer.discovery.targets import refuse_masters

    if hub == (target is not None):
        raise ConfigError("no target was given" if target is None else "both TARGET and --hub were given",
                          hint="give TARGET, or --hub to start a hub")  # fmt: skip
    if hub and hub_url:
        raise ConfigError("both --hub and --hub-url were given", hint="the hub that --hub starts is asked anyway")
    if target is not None:
        refuse_masters(target)
        with contextlib.closing(HubFigures(hub_url)) if hub_url else contextlib.nullcontext() as figures:
            yield target, figures
        return
    with hub_process() as running, contextlib.closing(HubFigures(running.manager_url, running.pid)) as figures:
        yield running.target, figures


def watched_run(load: Load, figures: HubFigures | None, *, quiet: bool) -> Result:
    """Run a load and show each second of it on stderr.  Raises what ``run_load`` raises."""
    from dataproxy.perf import run_load

    with _live(quiet=quiet) as watch:
        return run_load(load, hub=figures, watch=watch)


@contextlib.contextmanager
def _live(*, quiet: bool) -> Iterator[Callable[[Second], object] | None]:
    """Yield a function that shows a second: on a terminal in one line that changes, elsewhere in a new line."""
    from dataproxy.perf.report import second_line

    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda second: say(second_line(second))
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def show(second: Second) -> None:
        live.update(Text(second_line(second), no_wrap=True, overflow="ellipsis"))

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield show


def _check_writable(*files: str) -> None:
    """Raise OSError for a file that cannot be written, so that a long run does not fail at its end."""
    for file in files:
        if file not in ("", "-"):
            with open(file, "ab"):  # noqa: PTH123
                pass


def _numbered(folder: str, number: int) -> str:
    """Return the path for one of several results, "" without a folder; the folder is created."""
    if not folder:
        return ""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return str(Path(folder, f"run-{number}.json"))


def _report(result: Result, json: str, html: str, problems: list[str]) -> ExitCode:
    """Print the report, write the result and the page, and return the exit code."""
    from dataproxy.perf import text_report
    from dataproxy.perf.html import html_report

    if json == "-":
        say(text_report(result))
        typer.echo(json_text(result.as_json()))
    else:
        typer.echo(text_report(result))
    for problem in problems:
        complain(problem)
    if json not in ("", "-"):
        Path(json).write_text(json_text(result.as_json()) + "\n")
    if html:
        Path(html).write_text(html_report(result))
    if result.stopped:
        return ExitCode.TERMINATED if result.stopped == Terminated.__name__ else ExitCode.INTERRUPTED
    failed = problems or result.invalid or result.lost or result.counts["refused"] or result.missing
    return ExitCode.FAILED if failed else ExitCode.OK
