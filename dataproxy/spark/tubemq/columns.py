"""The columns of the source: messages as they are in a topic, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from dataproxy._core.consumer.arrowbatch import ArrowBatch
from dataproxy.spark.shape import MICROS, schema_of_columns

if TYPE_CHECKING:
    from dataproxy.consumer.ranges.reader import Piece
    from dataproxy.spark.shape import Shape

__all__ = ["RAW_SCHEMA", "raw_batch"]

RAW_SCHEMA: Final = schema_of_columns(
    topic="text", partition="text", pack_offset="long", index="int", offset="long", id="long", time="time",
    attributes="texts", body="bytes",
)  # fmt: skip
"""The columns of a message."""


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
