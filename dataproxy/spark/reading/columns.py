"""The columns of a read, made from batches of decoded records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproxy.producer.ingest.reserved import RESERVED_ATTRS
from dataproxy.spark.shape import schema_of_columns, timestamps

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READ_SCHEMA", "own_attrs", "record_columns"]

READ_SCHEMA: Final = schema_of_columns(
    group_id="text", stream_id="text", value="bytes", dt="time", attrs="texts", msg_id="text", partition="int",
    offset="long", index="int", receive_time="time", source="text",
)  # fmt: skip
"""The columns of a read: those of the sink, then a record's place, receive time and source address."""

_RESERVED: Final = pa.array(sorted(RESERVED_ATTRS), pa.string())


def record_columns(records: pa.RecordBatch) -> Callable[[str], pa.Array]:
    """Return a function that makes the columns of a batch of `ArrowRows` by their names."""

    def column(name: str) -> pa.Array:
        if name == "value":
            return records.column("body")
        if name == "dt":
            return timestamps(records.column("dt"))
        if name == "receive_time":
            return timestamps(records.column("receive_ms"))
        if name == "attrs":
            return own_attrs(records)
        return _message_id(records) if name == "msg_id" else records.column(name)

    return column


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
