"""The columns of a read, made from batches of decoded records."""

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

from dataproxy.errors import ConfigError
from dataproxy.producer.ingest.reserved import RESERVED_ATTRS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READ_SCHEMA", "Shape", "own_attrs"]

_TEXTS: Final = MapType(StringType(), StringType())
READ_SCHEMA: Final = StructType(
    [
        StructField("group_id", StringType()),
        StructField("stream_id", StringType()),
        StructField("value", BinaryType()),
        StructField("dt", TimestampType()),
        StructField("attrs", _TEXTS),
        StructField("msg_id", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("index", IntegerType()),
        StructField("receive_time", TimestampType()),
        StructField("source", StringType()),
    ]
)
"""The columns of a read: those of the sink, then a record's place, receive time and source address."""

_MICROS: Final = pa.timestamp("us", tz="UTC")
_RESERVED: Final = pa.array(sorted(RESERVED_ATTRS), pa.string())
_ARROW: Final[dict[type[DataType], pa.DataType]] = {
    StringType: pa.string(),
    BinaryType: pa.binary(),
    TimestampType: _MICROS,
    MapType: pa.map_(pa.string(), pa.string()),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
}


class Shape:
    """Turn batches of decoded records into batches with the columns of a schema, in its order.

    Raises ConfigError for a column that a read does not have, or that has another type.  Any thread.
    """

    def __init__(self, schema: StructType) -> None:
        known = {field.name: field for field in READ_SCHEMA}
        self._names = []
        fields = []
        for field in schema:
            name = field.name.lower()
            if name not in known or known[name].dataType != field.dataType:
                has = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in READ_SCHEMA)
                raise ConfigError(
                    f"a read has no column {field.name!r} of type {field.dataType.simpleString()}",
                    hint=f"leave schema() out, or name some of {has}",
                )
            self._names.append(name)
            fields.append(pa.field(field.name, _ARROW[type(field.dataType)], nullable=field.nullable))
        self._schema = pa.schema(fields)

    def batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a batch of `ArrowRows`."""
        return pa.RecordBatch.from_arrays([_MAKERS[name](records) for name in self._names], schema=self._schema)


def _same(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda records: records.column(name)


def _time(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that makes timestamps from a column of milliseconds."""
    return lambda records: records.column(name).cast(pa.timestamp("ms", tz="UTC")).cast(_MICROS)


def own_attrs(records: pa.RecordBatch) -> pa.Array:
    """Return the application's attributes, in the form of the sink; attributes of the protocol are left out."""
    attrs = records.column("attrs")
    ends = attrs.offsets.to_numpy()
    first, last = int(ends[0]), int(ends[-1])
    keys, values = attrs.keys.slice(first, last - first), attrs.items.slice(first, last - first)
    own = pc.invert(pc.is_in(keys, value_set=_RESERVED))
    before = np.zeros(last - first + 1, np.int32)
    np.cumsum(own.to_numpy(zero_copy_only=False), out=before[1:])
    return pa.MapArray.from_arrays(pa.array(before[ends - first]), keys.filter(own), values.filter(own))


def _message_id(records: pa.RecordBatch) -> pa.Array:
    """Return the ids of messages as `Record.message_id` does, null for a message without one."""
    attrs = records.column("attrs")
    given, pack = (pc.map_lookup(attrs, name, "first") for name in ("msgid", "sid"))
    made = pc.binary_join_element_wise(_filled(pack), records.column("index").cast(pa.string()), ".")
    return pc.coalesce(_filled(given), made)


def _filled(texts: pa.Array) -> pa.Array:
    """Return texts with null in place of empty ones."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


_MAKERS: Final[dict[str, Callable[[pa.RecordBatch], pa.Array]]] = {
    **{name: _same(name) for name in ("group_id", "stream_id", "partition", "offset", "index", "source")},
    "value": _same("body"),
    "dt": _time("dt"),
    "receive_time": _time("receive_ms"),
    "attrs": own_attrs,
    "msg_id": _message_id,
}
