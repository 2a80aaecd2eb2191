"""``dataproxy tail``: the records of a stream, from a hub or from its store."""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dataproxy.cli import ending
from dataproxy.cli.outcome import ExitCode, check_output, complain, outcome
from dataproxy.errors import ConfigError, StoreError
from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataproxy.hub.web.pages.records import Place

__all__ = ["tail"]

_POLL_S: Final = 0.5
_NAMES_HINT: Final = "dataproxy stats lists the names that a hub has"
_FIELDS: Final = (
    "group_id", "stream_id", "partition", "offset", "index", "dt_ms", "receive_ms", "source", "attrs",
)  # fmt: skip


def tail(
    group: Annotated[str, typer.Argument(help="Group id.")],
    stream: Annotated[str, typer.Argument(help="Stream id.")],
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Read this store's directory.")] = None,
    hub: Annotated[
        str | None, typer.Option(metavar="URL", help="Read from a running hub (default: http://127.0.0.1:8083).")
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="PLACE", help="First offset of each log, or a place such as 0,3:17 for partition 3.")
    ] = "0",
    last: Annotated[
        int | None,
        typer.Option(
            "--last", "-n", min=0, metavar="N", help="Print only the last N records; not with --max or --count."
        ),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", min=0, metavar="N", help="Stop after the first N records.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more records.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Print only the number of records.")] = False,
    null: Annotated[
        bool, typer.Option("--null", "-0", help="End bodies with a NUL byte instead of a line feed.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per record.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print bodies to a terminal without escapes; control characters take effect.")
    ] = False,
    secret_id: Annotated[str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_ID", help="Secret id for --hub.")] = "",
    secret_key: Annotated[
        str, typer.Option(envvar="DATAPROXY_MANAGER_SECRET_KEY", help="Secret key for --hub.", show_default=False)
    ] = "",
) -> None:
    """Print the bodies of a stream's records, one per line: raw bytes, or with escapes on a terminal.

    With --follow, stderr says how many requests a hub's store has dropped before they could be read.
    """
    with outcome():
        if store is not None and hub is not None:
            raise ConfigError("both --store and --hub are given", hint="keep one")
        if count and follow:
            raise ConfigError("--count and --follow do not go together", hint="keep one")
        if last is not None and (count or most is not None):
            raise ConfigError("--last does not go with --max or --count", hint="keep one")
        place = _place(start)
        if follow:
            check_output("records")
            ending.heed_reader()
        if store is not None:
            records = _from_store(store, group, stream, place, follow)
        else:
            records = _from_hub(hub, group, stream, place, follow, (secret_id, secret_key))
        lines = _plain_lines(b"\0" if null else b"\n", escaped=sys.stdout.isatty() and not raw)
        if last is not None:
            records = _only_last(records, last)
        found = _print(_at_most(records, most), _json_line if json else lines, count=count)
        if not found and start == "0" and most != 0 and last != 0:
            complain(f"there is no record of group {group!r} and stream {stream!r}; {_NAMES_HINT}")
            raise typer.Exit(ExitCode.OK if count else ExitCode.FAILED)


def _place(text: str) -> Place:
    """Return the place that ``--start`` names.  Raises ConfigError."""
    from dataproxy.hub.web.pages.records import Place

    try:
        return Place.parse(text)
    except ValueError:
        raise ConfigError(
            f"--start {text!r} is not a place", hint="give an offset, or a place that a hub returned, such as 0,3:17"
        ) from None


def _from_store(path: str, group: str, stream: str, place: Place, follow: bool) -> Iterator[dict[str, Any] | None]:
    import time

    from dataproxy.hub.reading.store import open_store
    from dataproxy.hub.web.pages.records import passed

    with open_store(path) as reader:
        while True:
            at, skip = dict(place.at), dict(place.skip)
            try:
                for record in reader.records(group, stream, start=place.start, at=at):
                    if record.offset == at.get(record.partition) and record.index < skip.get(record.partition, 0):
                        continue
                    yield {name: getattr(record, name) for name in ("body", *_FIELDS)}
                    place.move(record.partition, record.offset + 1)
            except StoreError as error:
                raise passed(error, place) from None
            yield None
            if not follow:
                return
            time.sleep(_POLL_S)


def _from_hub(
    url: str | None, group: str, stream: str, place: Place, follow: bool, secret: tuple[str, str]
) -> Iterator[dict[str, Any] | None]:
    import time

    from dataproxy.cli.hub.client import DEFAULT_HUB, HubClient

    client = HubClient(url or DEFAULT_HUB, *secret)
    for record in client.records(group, stream, str(place), complain if follow else None):
        yield record
        if record is None:
            if not follow:
                return
            time.sleep(_POLL_S)


def _at_most(records: Iterator[dict[str, Any] | None], most: int | None) -> Iterator[dict[str, Any] | None]:
    """Cut after ``most`` records; pauses (None) do not count."""
    left = most
    while left is None or left > 0:
        try:
            record = next(records)
        except StopIteration:
            return
        yield record
        if record is not None and left is not None:
            left -= 1


def _only_last(records: Iterator[dict[str, Any] | None], last: int) -> Iterator[dict[str, Any] | None]:
    """Yield the ``last`` of the records that are there already, then all that come after them."""
    kept: deque[dict[str, Any]] = deque(maxlen=last)
    for record in records:
        if record is None:
            break
        kept.append(record)
    yield from kept
    yield None
    yield from records


def _print(records: Iterator[dict[str, Any] | None], show: Callable[[dict[str, Any]], bytes], *, count: bool) -> int:
    """Print records, or with ``count`` their number; return it."""
    out = sys.stdout.buffer
    found = 0
    for record in records:
        if record is None:
            out.flush()
            continue
        found += 1
        if not count:
            out.write(show(record))
    if count:
        typer.echo(found)
    out.flush()
    return found


def _plain_lines(end: bytes, *, escaped: bool) -> Callable[[dict[str, Any]], bytes]:
    """Return a function that makes a line from a record: its body unchanged, or with escapes for a terminal."""
    if escaped:
        return lambda record: printable(record["body"].decode("utf-8", "backslashreplace")).encode() + end
    return lambda record: bytes(record["body"]) + end


def _json_line(record: dict[str, Any]) -> bytes:
    """Return a record as one line of JSON; a body that is not UTF-8 goes to ``body_base64``."""
    import base64

    shown = {name: record[name] for name in _FIELDS}
    try:
        shown["body"] = record["body"].decode()
    except UnicodeDecodeError:
        shown["body_base64"] = base64.b64encode(record["body"]).decode("ascii")
    return json_text(shown).encode() + b"\n"
