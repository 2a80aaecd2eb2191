"""Arrow record batches of stored entries, built column by column without an object for each record."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dataproxy.hub.records import StoredEntry, time_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowRows"]

#: Columns that every record of an entry shares, by their field in StoredEntry.
_OF_ENTRY: Final = ("topic", "partition", "offset", "receive_ms", "source")


@cache
def _numbers(size: int) -> bytes:
    return array("i", range(size)).tobytes()


def _first_numbers(count: int) -> bytes:
    """Return 0 up to ``count`` - 1 as int32, the way Arrow keeps them."""
    size = 1 << max(count - 1, 1023).bit_length()
    return _numbers(size)[: 4 * count]


class ArrowRows:
    """Collect the records of entries until ``take`` turns them into record batches."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._bodies: list[bytes] = []
        self._index: list[bytes] = []
        # One item for each run of records with the same attributes, and where each run ends.
        self._ends: list[int] = []
        self._attrs: list[list[tuple[str, str]]] = []
        self._by_run: dict[str, list[Any]] = {
            name: [] for name in ("group_id", "stream_id", "dt", "topic", "partition", "offset", "receive_ms", "source")
        }

    def __len__(self) -> int:
        return len(self._bodies)

    def add(self, entry: StoredEntry) -> None:
        """Add the records of an entry.  Raises StoreError when it is damaged."""
        count = 0
        for attrs, bodies in entry.runs():
            self._add_run(entry, attrs)
            self._bodies += bodies
            self._ends.append(len(self._bodies))
            count += len(bodies)
        self._index.append(_first_numbers(count))

    def _add_run(self, entry: StoredEntry, attrs: dict[str, str]) -> None:
        self._attrs.append(list(attrs.items()))
        run = self._by_run
        run["group_id"].append(attrs.get("groupId", entry.topic))
        run["stream_id"].append(attrs.get("streamId", entry.stream_id))
        run["dt"].append(time_of(attrs, entry.data_time_ms))
        for name in _OF_ENTRY:
            run[name].append(getattr(entry, name))

    def take(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield what was collected in batches of up to ``max_rows`` rows and start anew."""
        if not self._bodies:
            return
        batch = self._batch()
        self._clear()
        for start in range(0, batch.num_rows, max_rows):
            yield batch.slice(start, max_rows)

    def _batch(self) -> pa.RecordBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        text, long, small = pa.string(), pa.int64(), pa.int32()
        numbers = pa.array(range(len(self._ends)), small)
        runs = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(self._ends, small), numbers))

        def of_run(name: str, kind: pa.DataType) -> pa.Array:
            return pa.array(self._by_run[name], kind).take(runs)

        return pa.RecordBatch.from_pydict(
            {
                "group_id": of_run("group_id", text),
                "stream_id": of_run("stream_id", text),
                "body": pa.array(self._bodies, pa.binary()),
                "attrs": pa.array(self._attrs, pa.map_(text, text)).take(runs),
                "dt": of_run("dt", long),
                "topic": of_run("topic", text),
                "partition": of_run("partition", small),
                "offset": of_run("offset", long),
                "index": pa.Array.from_buffers(small, len(self), [None, pa.py_buffer(b"".join(self._index))]),
                "receive_ms": of_run("receive_ms", long),
                "source": of_run("source", text),
            }
        )
