"""Pages of stored requests, not decoded, for readers on other machines: an Arrow stream, which the reader decodes.

Nothing is unpacked here, so that a page costs the hub no more than a copy of its bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dataproxy.errors import HubError
from dataproxy.hub.reading.records import LogInfo, offset_at
from dataproxy.hub.web.pages.served import Served
from dataproxy.problems import shown
from dataproxy.shown import json_text

__all__ = ["ARROW_STREAM", "Range", "entries_page", "logs_page"]

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
"""The content type of a page of requests."""
#: A page ends after the entry with which it reaches so many bytes of the store.
_PAGE_BYTES: Final = 2 << 20
_PAGE_ENTRIES: Final = 16384
_Row = tuple[int, tuple[int, int, int, str, str, str], bytes]


class Range(NamedTuple):
    """Name entries of one log: offsets from ``start`` up to, not including, ``end``; of one stream, or of all."""

    group: str
    stream: str | None
    partition: int
    start: int
    end: int


def logs_page(hub: Served, group: str, time_ms: int | None) -> bytes:
    """Return as JSON the logs of a group, all as of one moment, and the name of their store.

    With ``time_ms`` each log has the ``offset`` of the first entry that the hub received at that time or later.
    Locality: a reading thread.  Raises StoreError, ClosedError.
    """
    view = hub._view()
    rows = []
    for log in (LogInfo(*numbers) for numbers in view.logs(group)):
        row: dict[str, object] = {name: value for name, value in log._asdict().items() if name != "topic"}
        if time_ms is not None:
            row["offset"] = offset_at(view, log, time_ms)
        rows.append(row)
    return json_text({"store": hub._store_name, "logs": rows}).encode()


def entries_page(hub: Served, wanted: Range) -> bytes:
    """Return the first entries of a range as a stream of Arrow with one record batch.

    Columns: offset, receive_ms, data_time_ms, stream_id, source, value (the InLongMsg).  Metadata of the schema:
    ``store``, the name of the store; ``entries``, their number; ``next``, the offset to ask for next (the end of the
    range if there are no more entries); ``lost``, ``FROM-TO`` without TO, the entries before the first one that
    retention has dropped (for one stream: those that may have been dropped).
    Locality: a reading thread.  Raises ValueError for a range that the log does not have, StoreError, ClosedError, and
    HubError without pyarrow.
    """
    view = hub._view()
    rows: list[_Row] = []
    if wanted.start < wanted.end:
        rows = view.read(wanted.group, wanted.partition, wanted.start, _PAGE_ENTRIES, _PAGE_BYTES, wanted.stream)
    # After the read, so that entries that were dropped before it are known.
    log = next((LogInfo(*row) for row in view.logs(wanted.group) if row[1] == wanted.partition), None)
    if log is not None and wanted.end > log.next_offset:
        raise ValueError(
            f"log {wanted.partition} of group {shown(wanted.group)} ends at offset {log.next_offset}:"
            f" to={wanted.end} is after it"
        )
    inside = [row for row in rows if row[0] < wanted.end]
    follows = inside[-1][0] + 1 if inside and len(inside) == len(rows) else wanted.end
    facts = {"store": hub._store_name, "entries": str(len(inside)), "next": str(follows)}
    there = inside[0][0] if inside else wanted.end
    lost = there if log is None else min(there, log.first_offset)
    if lost > wanted.start:
        facts["lost"] = f"{wanted.start}-{lost}"
    return _stream(inside, facts)


def _stream(rows: list[_Row], facts: dict[str, str]) -> bytes:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise HubError(
            "pages of Arrow need a package that is not installed where the hub runs: pyarrow",
            hint="pip install pyarrow on that machine",
        ) from error
    schema = pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("receive_ms", pa.int64(), nullable=False),
            pa.field("data_time_ms", pa.int64(), nullable=False),
            pa.field("stream_id", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ],
        metadata=facts,
    )
    columns = [
        pa.array([row[0] for row in rows], pa.int64()),
        *(pa.array([row[1][at] for row in rows], pa.int64()) for at in (0, 1)),
        pa.array([_text(row[1][3]) for row in rows], pa.string()),
        pa.array([_text(row[1][4]) for row in rows], pa.string()),
        pa.array([row[2] for row in rows], pa.binary()),
    ]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _text(name: str) -> str:
    """Return a name as valid UTF-8; a stored name may contain other bytes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
