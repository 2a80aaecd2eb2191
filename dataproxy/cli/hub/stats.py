"""``dataproxy stats``: what a running hub has taken and holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["stats"]


def stats(
    hub: Annotated[str, typer.Option(metavar="URL", help="URL of the hub's Manager port.")] = "http://127.0.0.1:8083",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    secret_id: Annotated[str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_ID", help="Secret id.")] = "",
    secret_key: Annotated[
        str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_KEY", help="Secret key.", show_default=False)
    ] = "",
) -> None:
    """Print the counts per stream and the counters of a running hub."""
    with outcome():
        from dataproxy.cli.hub.client import HubClient

        client = HubClient(hub, secret_id, secret_key)
        streams = client.counts()
        counters = client.get("/hub/stats")
        if json:
            typer.echo(json_text({"streams": streams, "hub": counters}, indent=2))
            return
        from rich.console import Console

        console = Console()
        console.print(_stream_table(streams))
        console.print(_counter_table(counters))


def _stream_table(streams: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="streams", title_justify="left")
    for name in ("group", "stream"):
        table.add_column(name)
    for name in ("entries", "records", "bytes"):
        table.add_column(name, justify="right")
    for row in streams:
        names = [Text(printable(row[name])) for name in ("group", "stream")]  # a Text: "[/x]" in a name is not markup
        table.add_row(*names, *(f"{row[name]:,}" for name in ("entries", "records", "bytes")))
    return table


def _counter_table(counters: dict[str, Any], prefix: str = "") -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="hub", title_justify="left", show_header=False)
    table.add_column("counter")
    table.add_column("value", justify="right")
    for name, value in _flat(counters, prefix):
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(str(value))
        table.add_row(Text(printable(name)), Text(shown))
    return table


def _flat(values: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    """Return nested counters as a list with dotted names."""
    rows: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", value))
    return rows
