"""``dataproxy explain``: what a code or an error means and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.outcome import ExitCode, complain, outcome
from dataproxy.explain import every_topic, explain
from dataproxy.problems import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.config.option import Option, OptionTable
    from dataproxy.explain import Explanation

__all__ = ["explain_code"]


def explain_code(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE", help="A number, a code's name, the class of an error, or the name of an option."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--list", help="List all codes and classes.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a code, an error or an option means, what the producer does about it, and what you can do."""
    with outcome():
        if everything == (code is not None):
            complain("name one code, e.g. dataproxy explain 114, or give --list")
            raise typer.Exit(ExitCode.USAGE)
        if code is None:
            _show_all(json)
            return
        if _show_options(code, json):
            return
        told = explain(code)
        if told is None:
            complain(_unknown(code))
            raise typer.Exit(ExitCode.USAGE)
        _show(told, json)


def _unknown(word: str) -> str:
    from dataproxy.config.suggestion import nearest_name

    names = {text for told in every_topic() for text in (str(told.topic), told.name)}
    names |= {option.name for _, option in _options()}
    near = nearest_name(word, names)
    return f"{shown(word)} is no code, no error class and no option" + (
        f"; did you mean {near}?" if near else "; dataproxy explain --list has the codes, CONFIGURATION.md the options"
    )


def _options() -> Iterator[tuple[OptionTable, Option]]:
    from dataproxy.config.hub import HUB
    from dataproxy.config.producer import PRODUCER

    return ((table, option) for table in (PRODUCER, HUB) for option in table.options)


def _show_options(word: str, json: bool) -> bool:
    """Show the options of this name, also as Spark or the environment spell it; tell whether there is one.

    Capitals count: ``store`` is an option, ``STORE`` a code.
    """
    from dataproxy.config.spark import camel_case

    name = word.strip().removeprefix("dataproxy.")
    found = [
        (table, option)
        for table, option in _options()
        if name in (option.name, camel_case(option.name), table.env_prefix + option.name.upper())
    ]
    facts = [_option_facts(table, option) for table, option in found]
    if json and facts:
        import json as encoder

        typer.echo(encoder.dumps(facts, indent=2))
        return True
    for one in facts:
        typer.echo(f"{one['option']}  (option of the {one['part']})\n")
        typer.echo(one["meaning"])
        limits = f"   Range: {one['range']}" if one["range"] else ""
        typer.echo(f"Type: {one['type']}   Default: {one['default'] or 'none'}{limits}")
        typer.echo(f"Environment: {one['environment']}   Page: CONFIGURATION.md\n")
    return bool(facts)


def _option_facts(table: OptionTable, option: Option) -> dict[str, str]:
    return {
        "option": option.name,
        "part": table.section,
        "meaning": option.doc,
        "type": option.type_text.replace("\\|", "|"),
        "default": option.format(option.default),
        "range": option.range_text(),
        "environment": f"{table.env_prefix}{option.name.upper()}",
    }


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
