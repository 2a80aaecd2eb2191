"""``dataproxy explain``: what a code or an error means and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.optionwords import every_option, find_options, foreign_answer, foreign_names, plain_option
from dataproxy.cli.outcome import ExitCode, complain, outcome
from dataproxy.explain import every_topic, explain
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy.explain import Explanation

__all__ = ["explain_code"]


def explain_code(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="A number, a code's name, the class of an error, or the name of an option, of Kafka's clients too.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--list", help="List all codes and classes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a code, an error or an option: what it means, what the producer does, and what you can do."""
    with outcome():
        if everything == (code is not None):
            complain("name one code, e.g. dataproxy explain 114, or give --list")
            raise typer.Exit(ExitCode.USAGE)
        if code is None:
            _show_all(json)
            return
        if _show_options(code, json) or _show_foreign(code, json):
            return
        told = explain(code)
        if told is None:
            complain(_unknown(code))
            raise typer.Exit(ExitCode.USAGE)
        _show(told, json)


def _unknown(word: str) -> str:
    from dataproxy.config.suggestion import nearest_name
    from dataproxy.config.tables import TABLES

    names = {text for told in every_topic() for text in (str(told.topic), told.name) if not text.isdecimal()}
    names |= {one.name for one in every_option()}
    others = {name for table in TABLES for name, _ in foreign_names(table)}
    near = None if word.strip("-[] ").isdecimal() else nearest_name(plain_option(word), names, others)
    said = f"{shown(word)} is not a code, an error class or an option"
    if near:
        return f"{said}; did you mean {near}?"
    return f"{said}; dataproxy explain --list has the codes, CONFIGURATION.md the options"


def _show_options(word: str, json: bool) -> bool:
    """Show the options with this name, in any spelling (Spark's, the environment's); tell whether there is one."""
    facts = [one.facts() for one in find_options(word)]
    if json and facts:
        import json as encoder

        typer.echo(encoder.dumps(facts, indent=2))
        return True
    for one in facts:
        typer.echo(f"{one['option']}  (option of the {one['part']})\n")
        typer.echo(one["meaning"])
        limits = f"   Range: {one['range']}" if one["range"] else ""
        typer.echo(f"Type: {one['type']}   Default: {one['default'] or 'none'}{limits}")
        where = f"Environment: {one['environment']}   " if one["environment"] else ""
        typer.echo(f"{where}Page: {one['page']}\n")
    return bool(facts)


def _show_foreign(word: str, json: bool) -> bool:
    """Show which option here replaces an option of another client; tell whether ``word`` is such an option."""
    answer = foreign_answer(word)
    if answer is None:
        return False
    name, whose, said = answer
    if json:
        import json as encoder

        typer.echo(
            encoder.dumps({"option": name, "part": whose, "meaning": said, "page": "CONFIGURATION.md"}, indent=2)
        )
        return True
    typer.echo(f"{name}  (option of {whose})\n\n{said[:1].upper()}{said[1:]}.\nPage: CONFIGURATION.md")
    return True


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
