"""``dataproxy topics``: what a TubeMQ cluster has of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.outcome import ExitCode, complain, outcome
from dataproxy.cli.settings import named_options
from dataproxy.config import load_consumer_config
from dataproxy.errors import ConfigError
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from rich.table import Table

    from dataproxy.consumer.listing.topics import Listing, TopicPlace

__all__ = ["topics"]


def topics(
    names: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", help="Names to ask for: a master describes no others.")
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="ADDRESS", help="Masters: tubemq://host:port,... (with TLS tubemqs://...)."
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="Consumer options as TOML or JSON.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="NAME=VALUE", help="Any consumer option (CONFIGURATION.md); may be repeated."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print where topics of a TubeMQ cluster take messages: brokers, stores, partitions, largest message.

    A producer is registered at the first master that answers, and leaves again; nothing is sent to a topic. Exit code
    1: a topic is unknown, or takes no messages.
    """
    with outcome():
        options = named_options(option or [])
        for name, value in {"target": target, "topics": ",".join(names)}.items():
            if value is not None and name in options:
                raise ConfigError(f"{name} is given twice", hint="keep one")
            if value is not None:
                options[name] = value
        settled = load_consumer_config(file=config, complete=False, **options)
        if not settled.target:
            raise ConfigError("there is no target", hint="give --target tubemq://master1:8715,master2:8715")
        if any(items for _, items in settled.topics):
            raise ConfigError("a TOPIC has filter items", hint="give names only")
        from dataproxy.consumer.listing.topics import list_topics

        listing = list_topics(settled)
        if json:
            typer.echo(json_text(_as_dict(listing), indent=2))
        elif listing.topics:
            from rich.console import Console

            Console().print(_table(listing))
        if listing.missing:
            word = "topic" if len(listing.missing) == 1 else "topics"
            shown = ", ".join(repr(name) for name in listing.missing)
            complain(f"master {listing.master} has no {word} {shown}, or no broker that takes its messages now")
            raise typer.Exit(ExitCode.FAILED)


def _as_dict(listing: Listing) -> dict[str, Any]:
    return {
        "master": listing.master,
        "largest_message": listing.largest,
        "topics": [
            {
                "topic": topic.name,
                "partitions": sum(place.partitions for place in topic.places),
                "largest_message": topic.largest,
                "brokers": [
                    {
                        "broker": place.broker, "host": place.host or None, "port": place.port or None,
                        "stores": place.stores, "partitions_per_store": place.partitions_per_store,
                        "partitions": place.partitions,
                    }
                    for place in topic.places
                ],
            }
            for topic in listing.topics
        ],
        "missing": list(listing.missing),
    }  # fmt: skip


def _table(listing: Listing) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="topics", title_justify="left")
    for name in ("topic", "broker"):
        table.add_column(name, overflow="fold")
    for name in ("stores", "partitions", "largest message"):
        table.add_column(name, justify="right")
    for topic in listing.topics:
        largest = topic.largest if topic.largest is not None else listing.largest
        shown = "default" if largest is None else f"{largest:,}"
        for place in topic.places:
            names = (Text(printable(topic.name)), Text(printable(_address(place))))  # a Text: no markup in names
            table.add_row(*names, f"{place.stores:,}", f"{place.partitions:,}", shown)
    return table


def _address(place: TopicPlace) -> str:
    if not place.host:
        return f"{place.broker}"
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{place.broker} at {host}:{place.port}"
