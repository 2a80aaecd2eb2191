"""``dataproxy tubemq``: what a hub has as TubeMQ; `change` has the commands that change something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.cli.tubemq import change
from dataproxy.cli.tubemq.change import HUB, JSON, KEY, SECRET, client_of
from dataproxy.cli.tubemq.tables import held, show_table
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.cli.hub.client import HubClient

__all__ = ["app"]

_PAGE = 1000

app = typer.Typer(
    name="tubemq",
    help="Look into a hub that listens as TubeMQ (`dataproxy hub --tubemq PORT`): its topics, groups, members and"
    " offsets; reset offsets, set flow rules and rights, move partitions. `--hub` is the URL of its Manager port.",
    no_args_is_help=True,
)


@app.command()
def topics(hub: HUB = change.DEFAULT_HUB, json: JSON = False, secret_id: SECRET = "", secret_key: KEY = "") -> None:
    """Print the topics, and where they are."""
    with outcome():
        found = list(_pages(client_of(hub, secret_id, secret_key), "topics"))
        if json:
            typer.echo(json_text({"topics": found}, indent=2))
            return
        rows = [
            (topic["topic"], f"{one['broker']} at {one['host']}:{one['port']}", one["stores"], one["partitions"])
            for topic in found
            for one in topic["brokers"]
        ]
        show_table("topics", ("topic", "broker"), ("stores", "partitions"), rows)


@app.command()
def partitions(
    topic: Annotated[str, typer.Argument(help="Name of the topic.")],
    hub: HUB = change.DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print the partitions of a topic, with the offsets of their oldest and next messages."""
    with outcome():
        found = client_of(hub, secret_id, secret_key).get("/hub/tubemq/partitions", {"topic": topic})
        if json:
            typer.echo(json_text(found, indent=2))
            return
        columns = ("partition", "first", "next", "messages")
        show_table(f"topic {topic}", (), columns, [[row[name] for name in columns] for row in found["partitions"]])


@app.command()
def groups(hub: HUB = change.DEFAULT_HUB, json: JSON = False, secret_id: SECRET = "", secret_key: KEY = "") -> None:
    """Print the groups that have members or offsets, and how many messages they have not confirmed.

    Kinds: the master divides the partitions among the members (divided), they choose them (chosen), or there are
    none now (idle).
    """
    with outcome():
        found = list(_pages(client_of(hub, secret_id, secret_key), "groups"))
        if json:
            typer.echo(json_text({"groups": found}, indent=2))
            return
        columns = ("members", "partitions", "owned", "lag")
        rows = [(row["group"], row["kind"], " ".join(row["topics"]), *(row[name] for name in columns)) for row in found]
        show_table("groups", ("group", "kind", "topics"), columns, rows)


@app.command()
def members(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    hub: HUB = change.DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print the members of a group: what each holds by its own word, what it reads, and its lag in messages."""
    with outcome():
        found = client_of(hub, secret_id, secret_key).get("/hub/tubemq/members", {"group": group})
        if json:
            typer.echo(json_text(found, indent=2))
            return
        rows = [
            (row["member"], row["address"], held(row["held"]), row["reads"], row["events"], row["lag"])
            for row in found["members"]
        ]
        title = f"group {group}, {found['kind']}"
        show_table(title, ("member", "address", "holds"), ("reads", "events", "lag"), rows)


@app.command()
def offsets(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    topic: Annotated[str, typer.Option("--topic", help="Of this topic alone.")] = "",
    hub: HUB = change.DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print where a group is: its confirmed offsets, and how many messages are behind them."""
    with outcome():
        fields = {"group": group, "topic": topic}
        found = client_of(hub, secret_id, secret_key).get("/hub/tubemq/offsets", fields)
        if json:
            typer.echo(json_text(found, indent=2))
            return
        columns = ("partition", "offset", "unconfirmed", "first", "next", "lag")
        rows = [(row["topic"], row["member"], *(row[name] for name in columns)) for row in found["offsets"]]
        show_table(f"group {group}", ("topic", "member"), columns, rows)


app.command("reset")(change.reset)
app.command("rules")(change.rules)
app.command("rights")(change.rights)
app.command("move")(change.move)


def _pages(client: HubClient, what: str) -> Iterator[dict[str, Any]]:
    """Return the rows of all pages."""
    return client.rows(f"/hub/tubemq/{what}", what, limit=str(_PAGE))
