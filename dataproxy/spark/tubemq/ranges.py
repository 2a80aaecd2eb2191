"""One range in a task."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.reader import Damaged, Lost, RangeReader
from dataproxy.errors import OffsetsLostError
from dataproxy.logs import logger
from dataproxy.spark.shape import Shape
from dataproxy.spark.tubemq.columns import RAW_SCHEMA, raw_batch
from dataproxy.spark.tubemq.joined import joined
from dataproxy.spark.tubemq.unpacked import INLONG_SCHEMA, Unpacker, inlong_columns
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from dataproxy.consumer.ranges.places import Place
    from dataproxy.consumer.ranges.reader import Piece
    from dataproxy.spark.tubemq.options import SourceSettings

__all__ = ["TopicRange", "read_range", "schema_of", "shape_of", "tell_damaged", "tell_lost"]

_log = logger("spark.tubemq")


class TopicRange(InputPartition):  # type: ignore[misc]  # mypy does not follow pyspark
    """Hold the range for one task: offsets of a partition from ``begin`` up to, without, ``end``.

    ``begin`` None: from the oldest message.
    """

    def __init__(self, place: Place, begin: int | None, end: int) -> None:
        self.place = place
        self.begin = begin
        self.end = end

    def __repr__(self) -> str:
        return f"TopicRange({self.place.key}, {self.begin}, {self.end})"


def schema_of(*, inlong: bool) -> StructType:
    """Return all columns that there are."""
    return INLONG_SCHEMA if inlong else RAW_SCHEMA


def shape_of(settings: SourceSettings, schema: StructType) -> Shape:
    """Return the columns that are wanted.  Raises ConfigError."""
    with sparks_words():
        return Shape(schema, schema_of(inlong=settings.inlong), "the source")


def read_range(settings: SourceSettings, shape: Shape, wanted: TopicRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, oldest first; all of them, or an error.

    Raises OffsetsLostError, TransportError, GroupRefusedError, RemoteProtocolError.
    """

    def lost(what: Lost | Damaged) -> None:
        if isinstance(what, Damaged):
            tell_damaged(what, fail=settings.fail_on_loss)
        else:
            tell_lost(what, fail=settings.fail_on_loss)

    with (
        sparks_words(), Calls(settings.config) as calls,
        # Closed before the calls are: whoever stops in the middle gives the partition back by a call.
        closing(RangeReader(calls, settings.config, lost).read(wanted.place, wanted.begin, wanted.end)) as pieces,
    ):  # fmt: skip
        if settings.inlong:
            yield from _records(pieces, settings, shape, wanted)
        else:
            yield from joined(raw_batch(piece, shape, settings.time_zone) for piece in pieces)


def _records(
    pieces: Iterator[Piece], settings: SourceSettings, shape: Shape, wanted: TopicRange
) -> Iterator[pa.RecordBatch]:
    unpacker = Unpacker(skip_malformed=settings.skip_malformed)
    for piece in pieces:
        for records in unpacker.add(piece):
            yield shape.batch(inlong_columns(records, wanted.place.topic))
    for records in unpacker.rest():
        yield shape.batch(inlong_columns(records, wanted.place.topic))
    if unpacker.skipped:
        _log.warning("%d messages of %r were no containers and were skipped", unpacker.skipped, wanted)


def tell_lost(what: Lost, *, fail: bool) -> None:
    """Raise OffsetsLostError for offsets that are not there; without ``fail`` only log it."""
    place = what.place
    gone = min(max(what.first - what.begin, 0), what.end - what.begin) or max(what.end - max(what.last, what.begin), 0)
    text = (
        f"the offsets {what.begin} to {what.end} of partition {place.key} of topic {place.topic!r} are not all there:"
        f" its store has those from {what.first} to {what.last}"
    )
    if fail:
        raise OffsetsLostError(
            text,
            hint="let the topic keep messages for longer, or read the rest with failOnDataLoss=false",
            details={
                "topic": place.topic, "partition": place.key, "begin": what.begin, "end": what.end,
                "store_begin": what.first, "store_end": what.last,
            },
        )  # fmt: skip
    _log.warning("%s; failOnDataLoss=false: %d bytes of offsets are passed over", text, gone)


def tell_damaged(what: Damaged, *, fail: bool) -> None:
    """Raise OffsetsLostError for messages whose bytes are not those that were sent; without ``fail`` only log it."""
    place = what.place
    text = (
        f"{what.messages} messages at offset {what.offset} of partition {place.key} of topic {place.topic!r}, or soon"
        " behind it, have a wrong checksum, also when they are read again"
    )
    if fail:
        raise OffsetsLostError(
            text,
            hint="look at the broker's disk, or read the others with failOnDataLoss=false",
            details={
                "topic": place.topic, "partition": place.key, "begin": what.offset, "messages": what.messages,
            },
        )  # fmt: skip
    _log.warning("%s; failOnDataLoss=false: they are skipped", text)
