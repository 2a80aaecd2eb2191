"""``dataproxy config``: what the options are and where their values come from."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.cli.settings import named_options
from dataproxy.config import load_consumer_config, load_hub_config, load_producer_config
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from dataproxy.config.model import Config

__all__ = ["Part", "app", "show"]

app = typer.Typer(help="Look at the configuration.", no_args_is_help=True)


class Part(StrEnum):
    """Name the part whose options are shown."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    HUB = "hub"


@app.callback()
def group() -> None:
    """Look at the configuration."""


@app.command()
def show(
    part: Annotated[Part, typer.Argument(help="Whose options.")] = Part.PRODUCER,
    file: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="Read this TOML or JSON file.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="Set an option; may be repeated.")
    ] = None,
    origin: Annotated[bool, typer.Option("--origin", help="Also say where each value comes from.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Only values that are not the default.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print every option with the value that a producer (or consumer, or hub) would use now.

    The output is valid TOML. Secrets are shown as stars.
    """
    with outcome():
        given = named_options(option or [])
        settled: Config
        if part is Part.HUB:
            settled = load_hub_config(given.pop("store", None), file=file, **given)
        elif part is Part.CONSUMER:
            settled = load_consumer_config(file=file, complete=False, **given)
        else:
            settled = load_producer_config(given.pop("target", None), file=file, require_target=False, **given)
        rows = [row for row in settled.shown() if not changed or row[2] != "default"]
        if json:
            shown = {name: {"value": value, "origin": source} for name, value, source in rows}
            typer.echo(json_text(shown, indent=2))
            return
        for name, value, source in rows:
            line = f"{name} = {_toml_text(value)}"
            typer.echo(f"{line:<48}  # {printable(source)}" if origin else line)


def _toml_text(value: str) -> str:
    if value in ("true", "false") or value.isdecimal():
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in quoted) + '"'
