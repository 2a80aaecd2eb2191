"""``dataproxy explain``: what a code or an error means and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.outcome import ExitCode, complain, outcome
from dataproxy.explain import every_topic, explain
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy.explain import Explanation

__all__ = ["explain_code"]


def explain_code(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A number, a code's name, or the class of an error.")
    ] = None,
    everything: Annotated[bool, typer.Option("--list", help="List all codes and classes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a code means, what the producer does about it, and what you can do."""
    with outcome():
        if everything == (code is not None):
            complain("name one code, e.g. dataproxy explain 114, or give --list")
            raise typer.Exit(ExitCode.USAGE)
        if code is None:
            _show_all(json)
            return
        told = explain(code)
        if told is None:
            complain(_unknown(code))
            raise typer.Exit(ExitCode.USAGE)
        _show(told, json)


def _unknown(word: str) -> str:
    from dataproxy.config.suggestion import nearest_name

    names = {text for told in every_topic() for text in (str(told.topic), told.name)}
    near = nearest_name(word, names)
    return f"{shown(word)} is no code and no error class" + (
        f"; did you mean {near}?" if near else "; dataproxy explain --list has them all"
    )


def _show(told: Explanation, json: bool) -> None:
    if json:
        import json as encoder

        typer.echo(encoder.dumps(told._asdict(), indent=2))
        return
    title = told.name if told.topic == told.name else f"{told.topic} {told.name}"
    typer.echo(f"{title}  ({told.kind})\n")
    typer.echo(f"{told.meaning[:1].upper()}{told.meaning[1:]}.".replace("..", "."))
    if told.action:
        typer.echo(told.action)
    if told.hint:
        typer.echo(f"What to do: {told.hint}")
    typer.echo(f"Class: {told.error}   Page: {told.page}")


def _show_all(json: bool) -> None:
    if json:
        import json as encoder

        typer.echo(encoder.dumps([told._asdict() for told in every_topic()], indent=2))
        return
    for told in every_topic():
        word = told.name if told.topic == told.name else f"{told.topic} {told.name}"
        typer.echo(f"{word:<46} {told.kind:<18} {told.meaning}")
