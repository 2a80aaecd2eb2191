"""``dataproxy events``: what has happened at a running hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dataproxy.cli.outcome import complain, outcome
from dataproxy.cli.tubemq.change import DEFAULT_HUB, HUB, JSON, KEY, SECRET, client_of
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.cli.hub.client import HubClient

__all__ = ["events"]

_POLL_S: Final = 0.5
_PAGE: Final = "1000"
_HEAD: Final = ("number", "time_ms", "event")


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more events.")] = False,
    after: Annotated[int, typer.Option("--after", min=0, metavar="N", help="Only events behind this number.")] = 0,
    hub: HUB = DEFAULT_HUB,
    json: JSON = False,
    secret_id: SECRET = "",
    secret_key: KEY = "",
) -> None:
    """Print what has happened at a running hub, a line each: clients that came and went, resets, alarms.

    The hub keeps its newest 4,096 events. Whoever reads more slowly than they come is told how many are missing.
    """
    with outcome():
        for page in _pages(client_of(hub, secret_id, secret_key), after, follow):
            if page["missed"]:
                complain(f"{page['missed']:,} events are missing here: the hub does not keep them any more")
            for row in page["events"]:
                typer.echo(json_text(row) if json else _line(row))


def _pages(client: HubClient, after: int, follow: bool) -> Iterator[dict[str, Any]]:
    """Yield pages of events, without end with ``follow``."""
    import time

    while True:
        page = client.get("/hub/events", {"after": str(after), "limit": _PAGE})
        yield page
        after = page["next"]
        if not page["events"]:
            if not follow:
                return
            time.sleep(_POLL_S)


def _line(row: dict[str, Any]) -> str:
    """Return an event as a line: its time, what it is, and its fields by name."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(row["time_ms"] / 1000, UTC).isoformat(timespec="milliseconds")
    fields = [f"{name}={_text(value)}" for name, value in row.items() if name not in _HEAD]
    return printable(f"{at} {row['number']} {row['event']}: {' '.join(fields)}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    text = str(value)
    return json_text(text) if " " in text else text
