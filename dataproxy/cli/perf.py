"""``dataproxy perf``: load tests, and what is made of their results."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.outcome import ExitCode, complain, outcome, say
from dataproxy.cli.settings import named_options
from dataproxy.errors import ConfigError
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataproxy.perf import Load, Result, Second
    from dataproxy.perf.hub import HubFigures

__all__ = ["app"]

app = typer.Typer(name="perf", help="Load tests that count latencies from planned times.", no_args_is_help=True)

_TARGET = typer.Argument(metavar="[TARGET]", help="tcp://host:port,... or http://manager:8083.")
_HUB = typer.Option("--hub", help="Start a hub (in memory, a process of its own) and test that.")
_HUB_URL = typer.Option(metavar="URL", help="Manager door of the hub at TARGET: counts what it stored.")
_PLAN = typer.Option(metavar="PLAN", help="RATE[-RATE][+COUNT/PERIOD]:TIME,...; in place of --rate and --duration.")
_RATE = typer.Option(metavar="N", help="Messages a second.")
_DURATION = typer.Option(metavar="TIME", help="For so long.")
_ARRIVALS = typer.Option(metavar="KIND", help="constant or poisson gaps.")
_SEED = typer.Option(metavar="N", help="For drawn gaps and bodies.")
_PATH = typer.Option(metavar="CALL", help="send_nowait (without the interpreter), send, send_batch, send_arrow.")
_THREADS = typer.Option(min=1, max=64, metavar="N", help="Sending threads.")
_STREAMS = typer.Option(min=1, max=100_000, metavar="N", help="Streams, used in turn.")
_KEYS = typer.Option(min=0, max=100_000, metavar="N", help="Keys, used in turn; needs -o ordering=key.")
_SIZE = typer.Option(metavar="SIZE", help="Bytes of a body: N, N-M (drawn), exp:MEAN (a long tail).")
_LINES = typer.Option(metavar="FILE", help="Send the lines of this file in place of made bodies.")
_BATCH = typer.Option(min=1, max=100_000, metavar="N", help="Messages that are due together and go in one call.")
_GROUP = typer.Option("--group", "-g", metavar="ID", help="Group id; streams are ID_0, ID_1, ...")
_CLOSED = typer.Option("--closed-loop", help="Each thread waits for an answer before it sends again.")
_MAX_LAG = typer.Option(metavar="TIME", help="Lateness of the generator that is allowed at p50, p90 and p99.")
_OPTION = typer.Option("--option", "-o", metavar="NAME=VALUE", help="Any producer option; may be repeated.")
_JSON = typer.Option("--json", metavar="FILE", help="Write the whole result there, - for stdout.")
_QUIET = typer.Option("--quiet", "-q", help="No line for each second.")
_MAX_P = typer.Option("--max", metavar="pN=TIME", help="Exit 1 if that percentile is larger; may be repeated.")
_MIN_RATE = typer.Option(metavar="N", help="Exit 1 if fewer messages a second were delivered.")


@app.command("run")
def run_command(
    target: Annotated[str | None, _TARGET] = None,
    hub: Annotated[bool, _HUB] = False,
    hub_url: Annotated[str, _HUB_URL] = "",
    plan: Annotated[str, _PLAN] = "",
    rate: Annotated[str, _RATE] = "10k",
    duration: Annotated[str, _DURATION] = "10s",
    arrivals: Annotated[str, _ARRIVALS] = "constant",
    seed: Annotated[int, _SEED] = 1,
    path: Annotated[str, _PATH] = "send_nowait",
    threads: Annotated[int, _THREADS] = 1,
    streams: Annotated[int, _STREAMS] = 1,
    keys: Annotated[int, _KEYS] = 0,
    size: Annotated[str, _SIZE] = "100",
    lines: Annotated[str, _LINES] = "",
    batch: Annotated[int, _BATCH] = 1,
    group: Annotated[str, _GROUP] = "perf",
    closed_loop: Annotated[bool, _CLOSED] = False,
    max_lag: Annotated[str, _MAX_LAG] = "1ms",
    option: Annotated[list[str] | None, _OPTION] = None,
    json: Annotated[str, _JSON] = "",
    quiet: Annotated[bool, _QUIET] = False,
    max_: Annotated[list[str] | None, _MAX_P] = None,
    min_rate: Annotated[float, _MIN_RATE] = 0.0,
) -> None:
    """Send by a plan and report what became of it.

    The load is open: messages are due at their times, whatever became of those before, and each latency counts from
    there. Exit code 1: a message was not delivered, the run is not valid, or a threshold was passed.
    """
    with outcome():
        from dataproxy.perf import Load, parse_plan
        from dataproxy.perf.thresholds import parse_thresholds

        if plan and (duration, rate) != ("10s", "10k"):
            raise ConfigError("--plan was given beside --rate or --duration", hint="a plan has its own")
        thresholds = parse_thresholds(max_ or [], min_rate)
        settled = parse_plan(plan or f"{rate}:{duration}", arrivals=arrivals, seed=seed)
        with _target(target, hub=hub, hub_url=hub_url) as (address, figures):
            load = Load(
                target=address, plan=settled, group=group, path=path, threads=threads, streams=streams, keys=keys,
                size=size, lines=lines, batch=batch, closed_loop=closed_loop, max_lag=_duration("--max-lag", max_lag),
                options=_producer_options(option),
            )  # fmt: skip
            result = _run(load, figures, quiet=quiet)
        raise typer.Exit(_report(result, json, thresholds.problems(result)))


@app.command("report")
def report_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A result that `perf run --json FILE` wrote.")],
) -> None:
    """Make the report of a run again, from its result."""
    with outcome():
        raise typer.Exit(_report(load_result(file), "", []))


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
        raise ConfigError(f"{file!r}: {error}") from None


def _duration(name: str, text: str) -> float:
    from dataproxy.config.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{name} {text!r} {error}") from None


def _producer_options(pairs: list[str] | None) -> dict[str, Any]:
    found = named_options(pairs or [])
    for name in ("target", "group_id"):
        if name in found:
            raise ConfigError(f"-o {name} has an option of its own here", hint="give TARGET, or --group")
    return found


@contextlib.contextmanager
def _target(target: str | None, *, hub: bool, hub_url: str) -> Iterator[tuple[str, HubFigures | None]]:
    """Yield the address to send to and the hub that is asked what it stored."""
    from dataproxy.perf.hub import HubFigures, hub_process

    if hub == (target is not None):
        raise ConfigError("nothing says where to send" if target is None else "both TARGET and --hub were given",
                          hint="give TARGET, or --hub for one that is started here")  # fmt: skip
    if target is not None:
        figures = HubFigures(hub_url) if hub_url else None
        yield target, figures
        return
    with hub_process() as running:
        yield running.target, HubFigures(running.manager_url, running.pid)


def _run(load: Load, figures: HubFigures | None, *, quiet: bool) -> Result:
    from dataproxy.perf import run_load

    try:
        with _live(quiet=quiet) as watch:
            return run_load(load, hub=figures, watch=watch)
    finally:
        if figures is not None:
            figures.end()


@contextlib.contextmanager
def _live(*, quiet: bool) -> Iterator[Callable[[Second], object] | None]:
    """Yield what shows each second: one line that changes on a terminal, a line each elsewhere."""
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


def _report(result: Result, json: str, problems: list[str]) -> ExitCode:
    """Print the report, write the result, and return the exit code."""
    from dataproxy.perf import text_report

    if json == "-":
        typer.echo(json_text(result.as_json()))
        say(text_report(result))
    else:
        if json:
            Path(json).write_text(json_text(result.as_json()) + "\n")
        typer.echo(text_report(result))
    for problem in problems:
        complain(problem)
    if result.stopped:
        return ExitCode.INTERRUPTED
    failed = problems or result.invalid or result.lost or result.counts["refused"]
    return ExitCode.FAILED if failed else ExitCode.OK
