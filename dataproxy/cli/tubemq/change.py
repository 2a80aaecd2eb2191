"""The commands that change a hub as TubeMQ: offsets, flow rules, rights, who holds a partition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.cli.tubemq.tables import show_table
from dataproxy.errors import ConfigError
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from dataproxy.cli.hub.client import HubClient

__all__ = [
    "DEFAULT_HUB", "HUB", "JSON", "KEY", "SECRET", "asked_reset", "client_of", "move", "reset", "rights", "rules",
    "show_reset",
]  # fmt: skip

DEFAULT_HUB: Final = "http://127.0.0.1:8083"
HUB = Annotated[str, typer.Option("--hub", metavar="URL", help="URL of the hub's Manager port.")]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SECRET = Annotated[str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_ID", help="Secret id.")]
KEY = Annotated[
    str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_KEY", help="Secret key.", show_default=False)
]  # fmt: skip


def client_of(hub: str, secret_id: str, secret_key: str) -> HubClient:
    """Return a client of a hub's HTTP API."""
    from dataproxy.cli.hub.client import HubClient

    return HubClient(hub, secret_id, secret_key)


def reset(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help="first, next, or an offset of one partition.")],
    topic: Annotated[str, typer.Option("--topic", help="This topic alone, with all its partitions.")] = "",
    partition: Annotated[int | None, typer.Option("--partition", help="This partition of the topic alone.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this it is only shown.")] = False,
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
) -> None:
    """Let a group read from another place on, also while it is reading.

    Without --execute nothing is changed. Without --topic all partitions are meant in which the group has an offset.
    The hub's token is needed: it is found on this machine, or in DATAPROXY_HUB_TOKEN.
    """
    with outcome():
        fields = {"topic": topic, "partition": partition, "execute": execute}
        found = asked_reset(hub, "/hub/tubemq/offsets", group, to, fields)
        title = f"group {group}: {'done' if execute else 'nothing is changed without --execute'}"
        show_reset(title, found, as_json=json)


def asked_reset(hub: str, path: str, group: str, to: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Ask a hub for a reset, and return what it says; of the fields, those that are empty or None were not given."""
    given = {name: value for name, value in fields.items() if value not in ("", None)}
    place: str | int = int(to) if to.isascii() and to.isdigit() and len(to) < 20 else to
    return client_of(hub, "", "").change("POST", path, {"group": group, "to": place, **given})


def show_reset(title: str, found: dict[str, Any], *, as_json: bool) -> None:
    """Print what a reset has done, or would do."""
    if as_json:
        typer.echo(json_text(found, indent=2))
        return
    columns = ("partition", "before", "after")
    rows = [(row["topic"], row["member"], *(row[name] for name in columns)) for row in found["offsets"]]
    show_table(title, ("topic", "member"), columns, rows)


def rules(
    group: Annotated[str, typer.Argument(help="Name of a group; without it the rules of the cluster are set.")] = "",
    set_: Annotated[str, typer.Option("--set", metavar="JSON", help="Set these rules; @FILE reads a file.")] = "",
    delete: Annotated[bool, typer.Option("--delete", help="Remove the rules.")] = False,
    hub: HUB = DEFAULT_HUB,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print the flow rules of the cluster and of groups as JSON, or change those of one.

    They are TubeMQ's own lists of JSON, and are told to clients with the next heartbeat. They hold until the hub ends;
    those of a cluster of hubs are kept at ZooKeeper.
    """
    with outcome():
        if set_ and delete:
            raise ConfigError("--set and --delete were both given", hint="choose one")
        client = client_of(hub, secret_id, secret_key)
        if set_:
            text = _file(set_[1:]) if set_.startswith("@") else set_
            found = client.change("POST", "/hub/tubemq/rules", {"group": group or None, "rules": text})
        elif delete:
            fields = {"group": group} if group else {}
            found = client.change("DELETE", "/hub/tubemq/rules", **fields)
        else:
            found = client.get("/hub/tubemq/rules")
            if group:
                found = {"cluster": found["cluster"], "groups": {group: found["groups"].get(group)}}
        typer.echo(json_text(found, indent=2))


def _file(name: str) -> str:
    try:
        return Path(name).read_text()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file {name!r} cannot be read: {error}", hint="give @FILE or the rules") from None


def rights(
    topic: Annotated[str, typer.Argument(help="Name of a topic, to change its rights.")] = "",
    group: Annotated[str, typer.Argument(help="Name of a group, to change its right to the topic.")] = "",
    control: Annotated[
        bool | None, typer.Option("--control/--open", help="The topic is for its groups alone, or for all.")
    ] = None,
    allow: Annotated[bool | None, typer.Option("--allow/--deny", help="The group may read the topic, or not.")] = None,
    items: Annotated[str, typer.Option("--items", metavar="A,B", help="With these filter items alone.")] = "",
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print which groups may read topics that are not open to all, or change that.

    A change holds for members that register from then on, until the hub ends; in a cluster of hubs it is kept at
    ZooKeeper.
    """
    with outcome():
        client = client_of(hub, secret_id, secret_key)
        body: dict[str, Any] = {"topic": topic}
        if group and allow is not None and control is None:
            body |= {"group": group, "allow": allow}
            if items:
                body["items"] = items.split(",")
            found = client.change("POST", "/hub/tubemq/rights", body)
        elif topic and not group and control is not None and allow is None and not items:
            found = client.change("POST", "/hub/tubemq/rights", {**body, "controlled": control})
        elif topic or items or control is not None or allow is not None:
            raise ConfigError(
                "this is neither a topic with --control or --open, nor a topic and a group with --allow or --deny",
                hint="without arguments all rights are printed",
            )
        else:
            found = client.get("/hub/tubemq/rights")
        if json:
            typer.echo(json_text(found, indent=2))
            return
        rows = [
            (row["topic"], "its groups" if row["controlled"] else "all", one["group"], _items(one["items"]))
            for row in found["topics"]
            for one in row["groups"] or [{"group": None, "items": None}]
        ]
        show_table("rights", ("topic", "open to", "group", "filter items"), (), rows)


def _items(items: list[str] | None) -> str:
    return "any" if items is None else ",".join(items)


def move(
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    topic: Annotated[str, typer.Argument(help="Name of the topic.")],
    partition: Annotated[int, typer.Argument(help="Number of the partition.")],
    member: Annotated[str, typer.Argument(help="The member that shall have it, as `members` shows it.")],
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
) -> None:
    """Give a partition to a member of a group with the next balance, whoever holds it.

    It stays there as long as shares differ by no more than one partition.
    """
    with outcome():
        body = {"group": group, "topic": topic, "partition": partition, "member": member}
        found = client_of(hub, "", "").change("POST", "/hub/tubemq/moves", body)
        typer.echo(json_text(found, indent=2) if json else f"{topic}:{partition} goes to {member} of group {group}")
