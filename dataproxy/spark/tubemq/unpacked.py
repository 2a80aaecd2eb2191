"""Records out of the containers that InLong's DataProxies write as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from dataproxy._core.wire.inlong import message
from dataproxy.errors import RemoteProtocolError, StoreError
from dataproxy.logs import logger
from dataproxy.spark.reading.columns import own_attrs
from dataproxy.spark.shape import schema_of_columns, timestamps
from dataproxy.spark.tubemq.joined import BATCH_BYTES, BATCH_ROWS
from dataproxy.stored.arrow import ArrowRows
from dataproxy.stored.entry import StoredEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataproxy._core.consumer.pack import Record
    from dataproxy.consumer.ranges.reader import Piece

__all__ = ["INLONG_SCHEMA", "Unpacker", "inlong_columns"]

INLONG_SCHEMA: Final = schema_of_columns(
    group_id="text", stream_id="text", dt="time", msg_id="text", attrs="texts", body="bytes", topic="text",
    partition="text", pack_offset="long", index="int", number="int",
)  # fmt: skip
"""The columns of a record: those of the sink, then its place.  ``number`` is its place in the message."""

_log = logger("spark.tubemq")
#: Columns of `ArrowRows`, which belong to entries of a hub, and what they hold here.
_HOMES: Final = {"partition": "source", "pack_offset": "offset", "number": "index"}


class Unpacker:
    """Turn pieces into batches of records.  One thread at a time."""

    def __init__(self, *, skip_malformed: bool) -> None:
        self._skip, self.skipped = skip_malformed, 0
        self._rows = ArrowRows(BATCH_BYTES)

    def add(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Take the messages of a piece, and yield batches that are full.

        Raises RemoteProtocolError for a message that is no container, or a damaged one, if such are not skipped.
        """
        for index in range(piece.rows):
            one = piece.pack[index]
            try:
                yield from self._rows.add(_entry(piece, one), BATCH_ROWS)
            except (RemoteProtocolError, StoreError) as error:
                self._malformed(piece, one, error)
                yield from self.rest()  # the records before the damage
                self._rows = ArrowRows(BATCH_BYTES)
            if self._rows.is_full(BATCH_ROWS):
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left."""
        return self._rows.take(BATCH_ROWS)

    def _malformed(self, piece: Piece, one: Record, error: RemoteProtocolError | StoreError) -> None:
        pack = piece.pack
        cause = error.__cause__ if isinstance(error.__cause__, RemoteProtocolError) else error
        text = (
            f"message {one.index} of the pack at {pack.offset} of {pack.partition} is no container of InLong:"
            f" {cause.message}"
        )
        if not self._skip:
            raise RemoteProtocolError(
                text,
                retriable=False,
                hint="read with malformed=skip, or with records=raw",
                details={
                    "topic": pack.topic, "partition": pack.partition, "offset": pack.offset, "index": one.index,
                    "id": one.id,
                },
            ) from None  # fmt: skip
        if not self.skipped:
            _log.warning("%s; malformed=skip: such messages are counted", text)
        self.skipped += 1


def _entry(piece: Piece, one: Record) -> StoredEntry:
    """Return a message in the form of a hub's entry: its index stands in the place of the receive time."""
    pack, body = piece.pack, one.body
    created = message.records(body).create_time_ms
    return StoredEntry("", 0, pack.offset, one.index, created, "", pack.partition, body)


def inlong_columns(records: pa.RecordBatch, topic: str) -> Callable[[str], pa.Array]:
    """Return a function that makes the columns of a batch of records by their names."""

    def column(name: str) -> pa.Array:
        if name == "topic":
            return pa.repeat(pa.scalar(topic, pa.string()), records.num_rows)
        if name == "index":
            return records.column("receive_ms").cast(pa.int32())
        if name == "dt":
            return timestamps(records.column("dt"))
        if name == "attrs":
            return own_attrs(records)
        if name == "msg_id":
            return pc.map_lookup(records.column("attrs"), "msgid", "first")
        return records.column(_HOMES.get(name, name))

    return column
