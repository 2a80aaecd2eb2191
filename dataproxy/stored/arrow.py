"""Arrow record batches of stored entries: columns in Arrow's memory, without an object for each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dataproxy._core.base.column import Bytes, Numbers
from dataproxy.stored.entry import StoredEntry, time_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowRows"]

_TEXTS: Final = ("group_id", "stream_id", "topic", "source")
#: Columns of integers, with their width in bytes.
_NUMBERS: Final = {"dt": 8, "partition": 4, "offset": 8, "index": 4, "receive_ms": 8}
_ORDER: Final = (
    "group_id",
    "stream_id",
    "body",
    "attrs",
    "dt",
    "topic",
    "partition",
    "offset",
    "index",
    "receive_ms",
    "source",
)
#: Bytes of bodies and attributes with which a batch ends, even with fewer rows.
_MUCH: Final = 64 << 20


#: Group, stream, topic, source, data time, partition, offset, receive time.
_Shared = tuple[str, str, str, str, int, int, int, int]


class ArrowRows:
    """Collect the records of entries until ``take`` turns them into record batches.

    A batch ends at ``most_bytes`` of bodies and attributes, or after the bodies of one entry, if these are more.
    One thread at a time.
    """

    def __init__(self, most_bytes: int = _MUCH) -> None:
        self._most = most_bytes
        self._bodies = Bytes()
        self._keys = Bytes()
        self._values = Bytes()
        self._pairs = Numbers(4)  # end of the attributes of each record
        self._pairs.add(0)
        self._texts = {name: Bytes() for name in _TEXTS}
        self._numbers = {name: Numbers(width) for name, width in _NUMBERS.items()}
        # The common values of the last records, which are not in the columns yet.  Rows with ids are runs of one record
        # each, and have everything in common except their attributes.
        self._shared: _Shared = ("", "", "", "", 0, 0, 0, 0)
        self._index = 0  # index of the first of these records
        self._pending = 0

        self._rows = 0
        self._rest: pa.Array | None = None  # bodies of the present run that are not in a batch yet

    def __len__(self) -> int:
        return self._rows

    def is_full(self, max_rows: int) -> bool:
        """Tell whether ``take`` is due: enough rows, or enough bytes, including attributes."""
        return self._rows >= max_rows or self._bodies.nbytes + self._pair_bytes() >= self._most

    def _pair_bytes(self) -> int:
        return self._keys.nbytes + self._values.nbytes

    def add(self, entry: StoredEntry, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Add the records of an entry; yield batches if its attributes are too large for one.

        Raises StoreError if it is damaged; ``take`` then yields the records before it, and must be the last call.
        """
        index = 0
        for attrs, count in entry.runs(self._bodies):
            left = count
            while left:
                piece = left if left == 1 else min(left, self._room_for(attrs))
                self._add_run(entry, attrs, piece, index)
                index += piece
                left -= piece
                if left or self._pair_bytes() >= self._most:
                    yield from self.take(max_rows)
            if self._rest is not None:
                yield from self.take(max_rows)

    def _room_for(self, attrs: dict[str, str]) -> int:
        """Return how many more records with these attributes fit into the batch, at least one."""
        size = 1 + sum(len(text.encode()) for pair in attrs.items() for text in pair)
        return max(1, (self._most - self._pair_bytes()) // size)

    def _add_run(self, entry: StoredEntry, attrs: dict[str, str], count: int, index: int) -> None:
        self._pairs.count(len(self._keys) + len(attrs), count, len(attrs))
        self._keys.add(list(attrs), count)
        self._values.add(list(attrs.values()), count)
        shared = (
            attrs.get("groupId", entry.topic), attrs.get("streamId", entry.stream_id), entry.topic, entry.source,
            time_of(attrs, entry.data_time_ms), entry.partition, entry.offset, entry.receive_ms,
        )  # fmt: skip
        if shared != self._shared:
            self._settle()
            self._shared = shared
        if not self._pending:
            self._index = index
        self._pending += count
        self._rows += count

    def _settle(self) -> None:
        """Write the common values of the last records into the columns."""
        count, self._pending = self._pending, 0
        if not count:
            return
        group, stream, topic, source, dt_ms, partition, offset, receive_ms = self._shared
        texts, numbers = self._texts, self._numbers
        texts["group_id"].add([group], count)
        texts["stream_id"].add([stream], count)
        texts["topic"].add([topic], count)
        texts["source"].add([source], count)
        numbers["dt"].add(dt_ms, count)
        numbers["partition"].add(partition, count)
        numbers["offset"].add(offset, count)
        numbers["index"].count(self._index, count)
        numbers["receive_ms"].add(receive_ms, count)

    def take(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the collected records in batches of up to ``max_rows`` rows, and start again without any."""
        if not self._rows:
            return
        batch = self._batch()
        for start in range(0, batch.num_rows, max_rows):
            yield batch.slice(start, max_rows)

    def _batch(self) -> pa.RecordBatch:
        import pyarrow as pa

        self._settle()
        count = self._rows
        self._rows = 0
        types = {4: pa.int32(), 8: pa.int64()}

        def texts(column: Bytes, kind: pa.DataType) -> pa.Array:
            size = len(column)
            return pa.Array.from_buffers(kind, size, [None, *map(pa.py_buffer, column.take())])

        def numbers(column: Numbers, kind: pa.DataType) -> pa.Array:
            return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(column.take())])

        bodies = self._rest if self._rest is not None else texts(self._bodies, pa.binary())
        self._rest = bodies.slice(count) if len(bodies) > count else None
        keys, values = texts(self._keys, pa.string()), texts(self._values, pa.string())
        pairs = pa.StructArray.from_arrays(
            [keys, values], fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())]
        )
        attrs = pa.Array.from_buffers(
            pa.map_(pa.string(), pa.string()), count, [None, pa.py_buffer(self._pairs.take())], children=[pairs]
        )
        self._pairs.add(0)
        columns = {
            "body": bodies.slice(0, count),
            "attrs": attrs,
            **{name: texts(column, pa.string()) for name, column in self._texts.items()},
            **{name: numbers(column, types[_NUMBERS[name]]) for name, column in self._numbers.items()},
        }
        return pa.RecordBatch.from_pydict({name: columns[name] for name in _ORDER})
