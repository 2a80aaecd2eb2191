"""The columns of the source: messages as they are in a topic, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

from dataproxy._core.consumer.arrowbatch import ArrowBatch
from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy.consumer.ranges.reader import Piece

__all__ = ["MICROS", "RAW_SCHEMA", "TEXTS", "Shape", "raw_batch"]

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
        return self.of([column(name) for name in self.names])

    def of(self, columns: list[pa.Array]) -> pa.RecordBatch:
        """Return a batch of all columns."""
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def raw_batch(piece: Piece, shape: Shape, time_zone: str) -> pa.RecordBatch:
    """Return the wanted columns of a piece; times are to the minute, null without one and for what is none."""
    wanted = tuple("time_utc" if name == "time" and time_zone == "UTC" else name for name in shape.names)
    made = pa.record_batch(ArrowBatch(piece.pack, wanted, piece.rows, piece.first))
    columns = made.columns
    if "time" in wanted:
        at = wanted.index("time")
        times = pc.assume_timezone(columns[at], time_zone, ambiguous="earliest", nonexistent="earliest")
        columns[at] = times.cast(MICROS)
    return shape.of(columns)
