"""The answers of the HTTP API whose size grows with the store: pages of JSON, made row by row on a reading thread.

A page is bounded in bytes of the answer, including the escapes of JSON.  It is made in steps of one row, so that other
threads get the GIL in between.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from dataproxy.hub.web.pages.records import Place, read_page
from dataproxy.hub.web.pages.served import Served, StreamPlace
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from dataproxy.hub.reading.records import Record

__all__ = ["counts_page", "records_page"]

#: A page ends when it has so many bytes of JSON.
_PAGE_BYTES: Final = 1 << 20
#: Streams that are counted at a time; with the longest names they fill a quarter of a page.
_STREAMS: Final = 100
_HEAD: Final = struct.Struct(">IIIB")
_NUMBER_MOST: Final = 2**32 - 1
_NAME_MOST: Final = 255


def records_page(hub: Served, group: str, stream: str | None, place: Place, limit: int) -> bytes:
    """Return a page of records from ``place`` on, and move ``place`` behind them.  Raises StoreError, ClosedError.

    Locality: a reading thread, as the work grows with the page.
    """
    rows = read_page(hub, group, stream, place, limit, _PAGE_BYTES)
    return _page("records", _rows(rows), str(place), store=hub._store_name)


def counts_page(hub: Served, start: str, limit: int) -> bytes:
    """Return a page of up to ``limit`` counts of streams.  ``start`` is ``next`` of the page before, "" for the first.

    A stream has a row for each partition that it is in.  The last page has no ``next``.
    Locality: a reading thread, as the work grows with the page.
    Raises ValueError if ``start`` is not a place, StoreError, ClosedError.
    """
    place = _parse(start) if start else None
    rows: list[str] = []
    left = _PAGE_BYTES
    while left > 0 and len(rows) < limit:
        found, place = hub._count_page(place, min(_STREAMS, limit - len(rows)))
        for group, partition, stream, entries, records, size in found:
            row = {"group": group, "stream": stream, "partition": partition}
            rows.append(json_text({**row, "entries": entries, "records": records, "bytes": size}))
            left -= len(rows[-1])
        if place is None:
            break
    return _page("streams", rows, None if place is None else _text(place))


def _page(name: str, rows: Iterable[str], place: str | None, **more: object) -> bytes:
    return f'{{"{name}": [{", ".join(rows)}], {json_text({"next": place, **more})[1:]}'.encode()


def _rows(records: Iterable[Record]) -> Iterator[str]:
    """Yield records as JSON; the values that all records of a request share are encoded once."""
    last: Record | None = None
    names = attrs = place = source = ""
    for record in records:
        if last is None or record.attrs is not last.attrs or record.offset != last.offset:
            last = record
            names = json_text({"group_id": record.group_id, "stream_id": record.stream_id})[:-1]
            attrs = json_text({"attrs": record.attrs, "dt_ms": record.dt_ms})[1:-1]
            place = f'"partition": {record.partition}, "offset": {record.offset}'
            source = json_text({"receive_ms": record.receive_ms, "source": record.source})[1:]
        body = base64.b64encode(record.body).decode()
        yield f'{names}, "body": "{body}", {attrs}, {place}, "index": {record.index}, {source}'


def _text(place: StreamPlace) -> str:
    """Return a place among the streams as a text for a URL."""
    group, stream = (name.encode("utf-8", "surrogateescape") for name in place[3:])
    return base64.urlsafe_b64encode(_HEAD.pack(*place[:3], len(group)) + group + stream).decode()


def _parse(text: str) -> StreamPlace:
    """Return the place of a text.  Raises ValueError."""
    wrong = ValueError(f"the parameter start={text[:80]!r} is not a place: leave it out, or give the value of next")
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
        log, partition, number, size = _HEAD.unpack_from(raw)
    except (ValueError, struct.error):
        raise wrong from None
    group, stream = raw[_HEAD.size : _HEAD.size + size], raw[_HEAD.size + size :]
    if number == _NUMBER_MOST or len(group) != size or len(stream) > _NAME_MOST:
        raise wrong
    return log, partition, number, group.decode("utf-8", "surrogateescape"), stream.decode("utf-8", "surrogateescape")
