"""The columns of the source: messages as they are in a topic, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from dataproxy._core.consumer.gotpack import pack_minutes
from dataproxy.consumer.ranges.reader import INDEX_BYTES
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.consumer.ranges.reader import Piece

__all__ = ["MICROS", "RAW_SCHEMA", "TEXTS", "Shape", "raw_columns"]

_MAP: Final = MapType(StringType(), StringType())
RAW_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", StringType()),
        StructField("pack_offset", LongType()),
        StructField("index", IntegerType()),
        StructField("offset", LongType()),
        StructField("id", LongType()),
        StructField("time", TimestampType()),
        StructField("attributes", _MAP),
        StructField("body", BinaryType()),
    ]
)
"""The columns of a message."""

MICROS: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.map_(pa.string(), pa.string())
_ARROW: Final[dict[type[DataType], pa.DataType]] = {
    StringType: pa.string(),
    BinaryType: pa.binary(),
    TimestampType: MICROS,
    MapType: TEXTS,
    IntegerType: pa.int32(),
    LongType: pa.int64(),
}


class Shape:
    """Put columns into the order of a schema, which names some of those that there are.

    Raises ConfigError for a column that there is not, or that has another type.  Any thread.
    """

    def __init__(self, schema: StructType, full: StructType) -> None:
        known = {field.name: field for field in full}
        self.names: list[str] = []
        fields = []
        for field in schema:
            name = field.name.lower()
            if name not in known or known[name].dataType != field.dataType:
                has = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in full)
                raise ConfigError(
                    f"the source has no column {field.name!r} of type {field.dataType.simpleString()}",
                    hint=f"leave schema() out, or name some of {has}",
                )
            self.names.append(name)
            fields.append(pa.field(field.name, _ARROW[type(field.dataType)], nullable=field.nullable))
        self._schema = pa.schema(fields)

    def batch(self, column: Callable[[str], pa.Array]) -> pa.RecordBatch:
        """Return a batch; ``column`` makes the column of a name."""
        return pa.RecordBatch.from_arrays([column(name) for name in self.names], schema=self._schema)


def raw_columns(piece: Piece, time_zone: str) -> Callable[[str], pa.Array]:
    """Return a function that makes the columns of a piece by their names."""
    batch = pa.record_batch(piece.pack.to_arrow()).slice(0, piece.rows)

    def column(name: str) -> pa.Array:
        if name == "offset":
            return _offsets(piece)
        if name == "time":
            return _times(piece, time_zone)
        return batch.column("offset" if name == "pack_offset" else name)

    return column


def _offsets(piece: Piece) -> pa.Array:
    if piece.first is None:
        return pa.nulls(piece.rows, pa.int64())
    return pa.array(np.arange(piece.first, piece.first + piece.rows * INDEX_BYTES, INDEX_BYTES, dtype=np.int64))


def _times(piece: Piece, time_zone: str) -> pa.Array:
    """Return the times of messages, to the minute; null without one, and for what is none."""
    times, bits, missing = pack_minutes(piece.pack)
    if missing == len(piece.pack):
        return pa.nulls(piece.rows, MICROS)
    buffers = [pa.py_buffer(bits) if missing else None, pa.py_buffer(times)]
    if time_zone == "UTC":
        return pa.Array.from_buffers(MICROS, piece.rows, buffers)
    clock = pa.Array.from_buffers(pa.timestamp("us"), piece.rows, buffers)
    return pc.assume_timezone(clock, time_zone, ambiguous="earliest", nonexistent="earliest").cast(MICROS)
