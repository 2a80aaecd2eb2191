"""Reading a durable store from a directory, beside a running hub or without one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from dataproxy._core.hub.storeview import StoreView
from dataproxy.hub.records import LogInfo, Record, StreamCount, read_records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoreReader", "open_store"]

_BATCH_ROWS: Final = 16384


def open_store(path: str | os.PathLike[str]) -> StoreReader:
    """Open the durable store in a directory for reading, also while a hub writes to it.

    Raises StoreError when there is no store, or a damaged one or one of another version.
    """
    return StoreReader(StoreView.open(os.fspath(path)))


class StoreReader:
    """Read a durable store; made by ``open_store``.  Any thread may call any method, an iterator stays on one."""

    def __init__(self, view: StoreView) -> None:
        self._view = view

    def records(
        self, group_id: str, stream_id: str | None = None, *, start: int = 0, follow: bool = False
    ) -> Iterator[Record]:
        """Yield decoded records of a group, or of one of its streams, from offset ``start`` of each log on.

        With ``follow`` the iterator waits for new records until the reader is closed.  Raises StoreError.
        """
        return read_records(self._view, group_id, stream_id, start=start, follow=follow)

    def record_batches(
        self,
        group_id: str | None = None,
        stream_id: str | None = None,
        *,
        start: int = 0,
        max_rows: int = _BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of a group (None: of all groups) as Arrow record batches of up to ``max_rows`` rows.

        Columns: group_id, stream_id, body, attrs, dt, topic, partition, offset, index, receive_ms, source.
        Needs pyarrow.  Raises StoreError.
        """
        groups = sorted({log.topic for log in self.logs()}) if group_id is None else [group_id]
        for group in groups:
            rows: list[Record] = []
            for record in self.records(group, stream_id, start=start):
                rows.append(record)
                if len(rows) >= max_rows:
                    yield _record_batch(rows)
                    rows = []
            if rows:
                yield _record_batch(rows)

    def counts(self) -> dict[tuple[str, str], StreamCount]:
        """Return what is stored by (group, stream).  Raises StoreError."""
        return {key: StreamCount(*numbers) for key, numbers in self._view.counts().items()}

    def logs(self) -> list[LogInfo]:
        """Return the logs with their offsets and counts.  Raises StoreError."""
        return [LogInfo(*numbers) for numbers in self._view.logs()]

    def close(self) -> None:
        """Give the store up; idempotent.  Iterators that follow it end."""
        self._view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _record_batch(rows: list[Record]) -> pa.RecordBatch:
    """Return Arrow columns of the records; equal attribute maps are converted once."""
    import pyarrow as pa

    maps: dict[int, int] = {}
    attrs: list[list[tuple[str, str]]] = []
    places: list[int] = []
    for row in rows:
        place = maps.setdefault(id(row.attrs), len(attrs))
        if place == len(attrs):
            attrs.append(list(row.attrs.items()))
        places.append(place)
    map_type = pa.map_(pa.string(), pa.string())
    columns: dict[str, Any] = {
        "group_id": pa.array([row.group_id for row in rows], pa.string()),
        "stream_id": pa.array([row.stream_id for row in rows], pa.string()),
        "body": pa.array([row.body for row in rows], pa.binary()),
        "attrs": pa.array(attrs, map_type).take(pa.array(places, pa.int32())),
        "dt": pa.array([row.dt_ms for row in rows], pa.int64()),
        "topic": pa.array([row.topic for row in rows], pa.string()),
        "partition": pa.array([row.partition for row in rows], pa.int32()),
        "offset": pa.array([row.offset for row in rows], pa.int64()),
        "index": pa.array([row.index for row in rows], pa.int32()),
        "receive_ms": pa.array([row.receive_ms for row in rows], pa.int64()),
        "source": pa.array([row.source for row in rows], pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)
