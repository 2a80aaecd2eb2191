"""Columns of a read: types of Spark as those of Arrow, and columns in the order of a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
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

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MICROS", "TEXTS", "Shape", "schema_of_columns", "timestamps"]

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
_SPARK: Final[dict[str, DataType]] = {
    "text": StringType(),
    "bytes": BinaryType(),
    "time": TimestampType(),
    "texts": MapType(StringType(), StringType()),
    "int": IntegerType(),
    "long": LongType(),
}


def schema_of_columns(**kinds: str) -> StructType:
    """Return a schema of columns that may be null; kinds are text, bytes, time, texts, int and long."""
    return StructType([StructField(name, _SPARK[kind]) for name, kind in kinds.items()])


class Shape:
    """Put columns into the order of a schema, which names some of those that there are.

    ``reader``: what an error calls who has the columns.  Raises ConfigError for a column that there is not, or that has
    another type.  Any thread.
    """

    def __init__(self, schema: StructType, full: StructType, reader: str) -> None:
        known = {field.name: field for field in full}
        self.names: list[str] = []
        fields = []
        for field in schema:
            name = field.name.lower()
            if name not in known or known[name].dataType != field.dataType:
                has = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in full)
                raise ConfigError(
                    f"{reader} has no column {field.name!r} of type {field.dataType.simpleString()}",
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


def timestamps(millis: pa.Array) -> pa.Array:
    """Return timestamps of milliseconds since 1970."""
    return millis.cast(pa.timestamp("ms", tz="UTC")).cast(MICROS)
