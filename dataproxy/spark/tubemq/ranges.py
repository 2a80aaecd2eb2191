"""One range in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.reader import Lost, RangeReader
from dataproxy.errors import OffsetsLostError
from dataproxy.logs import logger
from dataproxy.spark.shape import Shape
from dataproxy.spark.tubemq.columns import RAW_SCHEMA, raw_batch
from dataproxy.spark.tubemq.unpacked import INLONG_SCHEMA, Unpacker, inlong_columns
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from dataproxy.consumer.ranges.places import Place
    from dataproxy.spark.tubemq.options import SourceSettings

__all__ = ["TopicRange", "read_range", "schema_of", "shape_of", "tell_lost"]

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

    def lost(what: Lost) -> None:
        tell_lost(what, fail=settings.fail_on_loss)

    unpacker = Unpacker(skip_malformed=settings.skip_malformed) if settings.inlong else None
    with sparks_words(), Calls(settings.config) as calls:
        for piece in RangeReader(calls, settings.config, lost).read(wanted.place, wanted.begin, wanted.end):
            if unpacker is None:
                yield raw_batch(piece, shape, settings.time_zone)
                continue
            for records in unpacker.add(piece):
                yield shape.batch(inlong_columns(records, wanted.place.topic))
        if unpacker is not None:
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
