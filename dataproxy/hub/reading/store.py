"""Reading a durable store from a directory, beside a running hub or without one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from dataproxy._core.server.store.view import StoreView
from dataproxy.errors import ConfigError, StoreError
from dataproxy.hub.reading.records import LogInfo, Record, StreamCount, read_entries, read_records
from dataproxy.hub.reading.verify import check_pages
from dataproxy.stored.arrow import ArrowRows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoreReader", "open_store"]

_BATCH_ROWS: Final = 16384


def open_store(path: str | os.PathLike[str]) -> StoreReader:
    """Open the durable store in a directory for reading, also while a hub writes to it.

    Raises StoreError when there is no store, or a damaged one or one of another version.
    """
    place = os.fspath(path)
    check_pages(place, to_read=True)
    return StoreReader(StoreView.open(place))


class StoreReader:
    """Read a durable store; made by ``open_store``.  Any thread; each iterator is used by one thread at a time."""

    def __init__(self, view: StoreView) -> None:
        self._view = view

    def records(
        self,
        group_id: str,
        stream_id: str | None = None,
        *,
        start: int = 0,
        at: Mapping[int, int] | None = None,
        follow: bool = False,
    ) -> Iterator[Record]:
        """Yield decoded records of a group, or of one of its streams, from offset ``start`` of each log on.

        ``at`` gives the first offset of single partitions, where ``start`` does not hold for them.  With
        ``follow`` the iterator waits for new records until the reader is closed.  Raises StoreError.
        """
        return read_records(self._view, group_id, stream_id, start=start, at=at, follow=follow)

    def record_batches(
        self,
        group_id: str | None = None,
        stream_id: str | None = None,
        *,
        start: int = 0,
        at: Mapping[int, int] | None = None,
        max_rows: int = _BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of a group (None: of all groups) as Arrow record batches of up to ``max_rows`` rows.

        ``at`` gives the first offset of single partitions of the group, where ``start`` does not hold for them.  A
        batch ends early if its bodies and attributes are large.  Columns: group_id, stream_id, body, attrs, dt,
        topic, partition, offset, index, receive_ms, source.  Needs pyarrow.  Raises ConfigError for a negative start,
        and for ``at`` without a group; StoreError for a damaged entry, after everything before it was returned:
        its ``details`` name the entry's place, so that reading can continue after it.
        """
        if start < 0:
            raise ConfigError(f"start {start!r} is not an offset", hint="give 0 or more")
        if at is not None and group_id is None:
            raise ConfigError("at gives places in the partitions of a group, but no group was given", hint="name it")
        logs: dict[str, list[LogInfo]] = {}
        for log in self._view.logs(group_id):
            logs.setdefault(log[0], []).append(LogInfo(*log))
        return self._batches(dict(sorted(logs.items())), stream_id, start, dict(at or {}), max_rows)

    def _batches(
        self,
        logs: dict[str, list[LogInfo]],
        stream_id: str | None,
        start: int,
        at: Mapping[int, int],
        max_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        rows = ArrowRows()
        try:
            for group, own in logs.items():
                for entry in read_entries(self._view, group, stream_id, start=start, at=at, logs=own):
                    yield from rows.add(entry, max_rows)
                    if rows.is_full(max_rows):
                        yield from rows.take(max_rows)
        except StoreError:
            yield from rows.take(max_rows)
            raise
        yield from rows.take(max_rows)

    def counts(self) -> dict[tuple[str, str], StreamCount]:
        """Return what is stored by (group, stream).  Raises StoreError."""
        return {key: StreamCount(*numbers) for key, numbers in self._view.counts().items()}

    def logs(self) -> list[LogInfo]:
        """Return the logs with their offsets and counts.  Raises StoreError."""
        return [LogInfo(*numbers) for numbers in self._view.logs()]

    def close(self) -> None:
        """Close the store; idempotent.  Iterators that follow it end."""
        self._view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
