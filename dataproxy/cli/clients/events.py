"""``dataproxy events``: what has happened at a running hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dataproxy.cli.outcome import check_output, complain, outcome
from dataproxy.cli.tubemq.change import DEFAULT_HUB, HUB, JSON, KEY, SECRET, client_of
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.cli.hub.client import HubClient

__all__ = ["events"]

_PAGE: Final = "1000"
_HEAD: Final[dict[str, type]] = {"number": int, "time_ms": int, "event": str}
_YEAR_9999_MS: Final = 253_370_764_800_000


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
        if follow:
            check_output("events")
        client = client_of(hub, secret_id, secret_key)
        for row in _followed(client, after) if follow else _kept(client, after):
            typer.echo(json_text(row) if json else _line(row))


def _kept(client: HubClient, after: int) -> Iterator[dict[str, Any]]:
    """Yield the events that the hub keeps."""
    while True:
        page = client.get("/hub/events", {"after": str(after), "limit": _PAGE})
        _tell_missed(client, page["missed"])
        for row in client.objects(page, "events"):
            yield _checked(client, row)
        if not page["events"]:
            return
        found = page["next"]
        if type(found) is not int or found <= after:
            raise client.no_place(found)
        after = found


def _followed(client: HubClient, after: int) -> Iterator[dict[str, Any]]:
    """Yield events as they happen, without end."""
    import json

    from dataproxy.cli import ending

    ending.heed_reader()
    run = ""
    number = after
    for message in client.follow("/hub/events/stream", after, complain):
        try:
            value = json.loads(message.data)
        except (ValueError, RecursionError):
            raise client.no_event(message.data) from None
        if message.kind == "missed":
            _tell_missed(client, value.get("missed") if isinstance(value, dict) else value)
            continue
        row = _checked(client, value)
        before, run = run, message.id.rpartition("-")[0]
        if before not in ("", run):
            complain(
                "the hub was started again: its numbers begin with 1, and what happened at the one before behind number"
                f" {number} is missing"
            )
        number = row["number"]
        yield row


def _checked(client: HubClient, row: Any) -> dict[str, Any]:
    """Return an event if it is one.  Raises HubError."""
    if not (isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in _HEAD.items())):
        raise client.no_event(row)
    if not 0 <= row["time_ms"] < _YEAR_9999_MS:
        raise client.no_event(row)
    return row


def _tell_missed(client: HubClient, count: object) -> None:
    """Say how many events are missing.  Raises HubError if it is no number."""
    if type(count) is not int:
        raise client.no_event(count)
    if count:
        complain(f"{count:,} events are missing here: the hub does not keep them any more")


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
