"""``dataproxy perf find-max`` and ``compare``: commands that look at several runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dataproxy.cli.outcome import ExitCode, outcome, say
from dataproxy.cli.perf import single
from dataproxy.errors import ConfigError
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from dataproxy.perf import Result
    from dataproxy.perf.search import Found, Step

__all__ = ["app"]

#: The group ``perf`` with all its commands.
app = single.app

#: A run needs at least so many messages to judge a rate.
_FEWEST: Final = 20
_P99 = typer.Option("--max-p99", metavar="TIME", help="The largest p99 that is allowed.")
_MAX = typer.Option("--max", metavar="pN=TIME", help="A bound on another percentile; may be repeated.")
_FROM = typer.Option("--from", metavar="N", help="Rate of the first run (messages a second).")
_TO = typer.Option("--to", metavar="N", help="Stop the search at this rate (messages a second).")
_STEP = typer.Option("--duration", metavar="TIME", help="Duration of each run.")
_WITHIN = typer.Option(min=0.01, max=0.5, metavar="SHARE", help="Precision of the result.")
_TRIES = typer.Option(min=1, max=10, metavar="N", help="Runs that have to fail before a rate has failed.")
_RUNS = "A result, or a folder with results (*.json) of repeated runs."
_TOLERANCE = typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Exit 1 only if B is worse by more than that.")


@app.command("find-max")
def find_max_command(
    target: Annotated[str | None, single.TARGET] = None,
    hub: Annotated[bool, single.HUB] = False,
    hub_url: Annotated[str, single.HUB_URL] = "",
    max_p99: Annotated[str, _P99] = "",
    max_: Annotated[list[str] | None, _MAX] = None,
    first: Annotated[float, _FROM] = 1000,
    most: Annotated[float, _TO] = 2_000_000,
    duration: Annotated[str, _STEP] = "5s",
    within: Annotated[float, _WITHIN] = 0.1,
    tries: Annotated[int, _TRIES] = 2,
    arrivals: Annotated[str, single.ARRIVALS] = "poisson",
    seed: Annotated[int, single.SEED] = 1,
    path: Annotated[str, single.PATH] = "send_nowait",
    threads: Annotated[int, single.THREADS] = 1,
    streams: Annotated[int, single.STREAMS] = 1,
    size: Annotated[str, single.SIZE] = "100",
    batch: Annotated[int, single.BATCH] = 1,
    group: Annotated[str, single.GROUP] = "perf",
    max_lag: Annotated[str, single.MAX_LAG] = "1ms",
    option: Annotated[list[str] | None, single.OPTION] = None,
    json: Annotated[str, single.JSON] = "",
) -> None:
    """Search for the largest rate at which latencies stay within their bounds and everything is delivered.

    The rate doubles until it fails, then the interval is halved. The rate is printed on stdout, each run on stderr.
    """
    with outcome():
        from dataproxy.perf import Load, parse_plan
        from dataproxy.perf.search import find_max
        from dataproxy.perf.thresholds import parse_thresholds

        bounds = parse_thresholds([*([f"p99={max_p99}"] if max_p99 else []), *(max_ or [])]).latencies
        if not bounds:
            raise ConfigError("no bound of the latency was given", hint="give --max-p99 20ms")
        seconds = single.duration_of("--duration", duration)
        least = _least_rate(first, most, seconds)
        with single.open_target(target, hub=hub, hub_url=hub_url) as (address, figures):
            load = Load(
                target=address, plan=parse_plan("1000:1s"), group=group, path=path, threads=threads, streams=streams,
                size=size, batch=batch, max_lag=single.duration_of("--max-lag", max_lag),
                options=single.producer_options(option),
            )  # fmt: skip

            def run(rate: float) -> Result:
                plan = parse_plan(f"{rate:.3f}:{seconds:g}", arrivals=arrivals, seed=seed)
                return single.watched_run(dataclasses.replace(load, plan=plan), figures, quiet=True)

            found = find_max(run, bounds, first=first, most=most, least=least, within=within, tries=tries, watch=_show)
        if json:
            Path(json).write_text(json_text(_as_json(found, bounds)) + "\n")
        raise typer.Exit(_told(found, most))


def _least_rate(first: float, most: float, seconds: float) -> float:
    """Return the smallest rate (messages/s) that a run of ``seconds`` can judge.  Raises ConfigError for bad limits."""
    if not 0 < first < 1e9 or not 0 < most < 1e9:
        raise ConfigError("--from and --to are rates above 0", hint="e.g. --from 1000 --to 1000000")
    if first > most:
        raise ConfigError(f"--from {first:g} is above --to {most:g}", hint="e.g. --from 1000 --to 1000000")
    least = _FEWEST / max(seconds, 1e-9)
    if first < least:
        raise ConfigError(
            f"--from {first:g} makes fewer than {_FEWEST} messages due in {seconds:g} s",
            hint="give a longer --duration",
        )
    return least


def _show(step: Step) -> None:
    from dataproxy.perf.report import milliseconds

    p99 = "-" if step.result.invalid else milliseconds(step.result.percentile(99))
    say(f"{step.rate:>12,.0f}/s  p99 {p99:>12}  {step.reason or 'passed'}")


def _told(found: Found, most: float) -> ExitCode:
    if not found.rate:
        typer.echo("no rate stays within the bounds")
        return ExitCode.FAILED
    typer.echo(f"{found.rate:.0f}")
    if found.generator_limits:
        say(
            "above this rate the generator itself was late: the target may accept more"
            " (use --threads, or a machine with less load)"
        )
    elif found.rate >= most:
        say("the search stopped at --to: the target may accept more")
    return ExitCode.OK


def _as_json(found: Found, bounds: dict[float, float]) -> dict[str, object]:
    return {
        "schema": "dataproxy.perf.search/1",
        "rate": found.rate,
        "generator_limits": found.generator_limits,
        "bounds": {f"p{percent:g}": seconds for percent, seconds in bounds.items()},
        "steps": [{"rate": s.rate, "reason": s.reason, "result": s.result.as_json()} for s in found.steps],
    }


@app.command("compare")
def compare_command(
    a: Annotated[str, typer.Argument(metavar="A", help=_RUNS)],
    b: Annotated[str, typer.Argument(metavar="B", help=_RUNS)],
    tolerance: Annotated[float, _TOLERANCE] = 0.0,
) -> None:
    """Compare two sets of runs, and tell whether B is worse beyond the noise.

    Exit code 1: B is worse, beyond --tolerance.
    """
    with outcome():
        from dataproxy.perf.compare import compare

        found = compare(_results(a), _results(b))
        typer.echo(printable(found.verdict(tolerance)))
        for line in found.lines():
            typer.echo(line)
        raise typer.Exit(ExitCode.FAILED if found.worse(tolerance) else ExitCode.OK)


def _results(place: str) -> list[Result]:
    """Return the result in a file, or all results in a folder.  Raises ConfigError."""
    folder = Path(place)
    if not folder.is_dir():
        return [single.load_result(place)]
    files = sorted(folder.glob("*.json"))
    if not files:
        raise ConfigError(f"{place!r} holds no *.json", hint="write results with perf run --repeat 5 --json FOLDER")
    return [single.load_result(str(file)) for file in files]
