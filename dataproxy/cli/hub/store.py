"""``dataproxy store``: look after the directory of a durable store."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.outcome import ExitCode, outcome, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.hub import StoreReport

__all__ = ["app", "verify"]

app = typer.Typer(help="Check the directory of a durable store.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Check the directory of a durable store."""


@app.command()
def verify(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Directory of a store that no hub has open.")],
    json: Annotated[bool, typer.Option("--json", help="Print what was found as one JSON object.")] = False,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Progress on stderr. [default: on a terminal]")
    ] = None,
) -> None:
    """Compare everything in a store with its checksums and counts; nothing is changed.

    The exit code is 0 if everything is intact, 1 if something is damaged or the store cannot be read.
    """
    with outcome():
        from dataproxy.hub import verify_store

        shown = sys.stderr.isatty() if progress is None else progress
        report = verify_store(directory, _shower() if shown else _silent)
        if shown:
            say("")
        try:
            _print(report, json=json)
        finally:
            if not report.ok:  # also if the reader of the output closes the pipe
                raise typer.Exit(ExitCode.FAILED)


def _silent(_done: int, _all: int) -> None:
    pass


def _shower() -> Callable[[int, int], None]:
    """Return a function that rewrites a line on stderr after each percent."""
    last = -1

    def show(done: int, pages: int) -> None:
        nonlocal last
        percent = done * 100 // max(pages, 1)
        if percent != last:
            last = percent
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"\r{percent:3d} % of {pages:,} pages")
                sys.stderr.flush()

    return show


def _print(report: StoreReport, *, json: bool) -> None:
    if json:
        import dataclasses
        import json as encoder

        typer.echo(encoder.dumps({**dataclasses.asdict(report), "ok": report.ok}))
    else:
        for one in report.damage:
            typer.echo(f"{one.where}\t{one.what}")
    found = f"{report.entries:,} entries, {report.records:,} records, {report.logs:,} logs, {report.pages:,} pages"
    verdict = "no damage" if report.ok else f"{report.damages:,} damages"
    say(f"store {report.path}: {found}: {verdict}")
