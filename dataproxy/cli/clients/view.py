"""``dataproxy clients``, ``groups``, ``locks`` and ``transactions``: what a running hub knows of clients."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dataproxy.cli.outcome import outcome
from dataproxy.cli.tubemq.change import DEFAULT_HUB, HUB, JSON, KEY, SECRET, client_of
from dataproxy.cli.tubemq.tables import held, show_table
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataproxy.cli.hub.client import HubClient

__all__ = ["clients", "groups", "locks", "transactions"]

_PAGE: Final = "1000"
_STREAMS: Final = 3  # that a row shows
_ROOM: Final = 120  # columns of a terminal that shows all of a client
_WIDE: Final = frozenset(("address", "version", "streams", "messages"))  # what others leave out


def clients(
    protocol: Annotated[
        str,
        typer.Option("--protocol", metavar="NAME", help="Of this protocol alone: dataproxy, http, tubemq, rocketmq."),
    ] = "",
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print who is connected to a running hub, by every protocol.

    Silent: seconds since its last frame or heartbeat. Lag: messages that its group has not confirmed in the queues that
    it holds. A client whose state is "idle" holds queues with messages and does not ask for them. A terminal of less
    than 120 columns has no room for address, version, streams and messages.
    """
    with outcome():
        rows = [row for row in _rows(client_of(hub, secret_id, secret_key), "clients")
                if protocol in ("", row["protocol"])]  # fmt: skip
        if json:
            typer.echo(json_text({"clients": rows}, indent=2))
            return
        names: tuple[str, ...] = ("protocol", "role", "client", "group", "address", "version", "state", "streams")
        numbers: tuple[str, ...] = ("silent_s", "messages", "queues", "lag")
        if sys.stdout.isatty() and get_terminal_size().columns < _ROOM:
            names = tuple(name for name in names if name not in _WIDE)
            numbers = tuple(name for name in numbers if name not in _WIDE)
        shown = [(*(_named(row, name) for name in names), *(row.get(name) for name in numbers)) for row in rows]
        show_table("clients", names, [name.removesuffix("_s") for name in numbers], shown)


def groups(
    group: Annotated[str, typer.Argument(help="Name of a group, to see its members.")] = "",
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print the groups of consumers that have members or offsets, of every protocol; of one group, its members.

    Lag: messages that the group has not confirmed. Idle: members that hold queues with messages and do not
    ask for them.
    """
    with outcome():
        client = client_of(hub, secret_id, secret_key)
        found = list(_rows(client, "groups", **({"group": group} if group else {})))
        if json:
            typer.echo(json_text({"groups": found}, indent=2))
            return
        if not group:
            rows = [
                (row["group"], row["protocol"], row["kind"], " ".join(row["topics"]), len(row["members"]), row["idle"],
                 row["lag"])
                for row in found
            ]  # fmt: skip
            show_table("groups", ("group", "protocol", "kind", "topics"), ("members", "idle", "lag"), rows)
            return
        for row in found:
            title = f"group {row['group']} of {row['protocol']}, {row['kind']}, lag {row['lag']:,}"
            names = ("client", "address", "language", "version", "state")
            members = [
                (*(one[name] or None for name in names), held(one["holds"]), one["lag"]) for one in row["members"]
            ]
            show_table(title, (*names, "holds"), ("lag",), members)


def locks(hub: HUB = DEFAULT_HUB, json: JSON = False, secret_id: SECRET = "", secret_key: KEY = "") -> None:
    """Print which queues orderly consumers of RocketMQ have locked.

    Age and granted: seconds since the owner got the lock, and since it was renewed. The owner of an orphan is gone; its
    queue is free soon.
    """
    with outcome():
        found = list(_rows(client_of(hub, secret_id, secret_key), "locks"))
        if json:
            typer.echo(json_text({"locks": found}, indent=2))
            return
        _show("locks", ("group", "topic", "client", "orphan"), ("queue", "age_s", "granted_s"), found)


def transactions(hub: HUB = DEFAULT_HUB, json: JSON = False, secret_id: SECRET = "", secret_key: KEY = "") -> None:
    """Print the transactions of RocketMQ's producers that have not ended.

    Checks: how often a producer was asked what became of it.
    """
    with outcome():
        found = list(_rows(client_of(hub, secret_id, secret_key), "transactions"))
        if json:
            typer.echo(json_text({"transactions": found}, indent=2))
            return
        _show("transactions", ("group", "client"), ("offset", "age_s", "checks"), found)


def _rows(client: HubClient, what: str, **fields: str) -> Iterator[dict[str, Any]]:
    """Return the rows of all pages."""
    return client.rows(f"/hub/{what}", what, limit=_PAGE, **fields)


def _show(title: str, names: Sequence[str], numbers: Sequence[str], rows: list[dict[str, Any]]) -> None:
    shown = [[row[name] for name in (*names, *numbers)] for row in rows]
    show_table(title, names, [name.removesuffix("_s") for name in numbers], shown)


def _named(row: dict[str, Any], name: str) -> str | None:
    if name != "streams":
        return row.get(name) or None
    streams = [f"{one['group']}/{one['stream']}" for one in row.get("streams", ())]
    more = f" and {len(streams) - _STREAMS} more" if len(streams) > _STREAMS else ""
    return f"{' '.join(streams[:_STREAMS])}{more}" or None
