"""The reader of a stream: Spark's checkpoint has the offsets, the group's stored ones follow a batch behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from dataproxy.errors import ConfigError
from dataproxy.spark.driverlog import end_in_order
from dataproxy.spark.tubemq.following import Following
from dataproxy.spark.tubemq.options import source_settings
from dataproxy.spark.tubemq.ranges import TopicRange, read_range, shape_of
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from dataproxy.spark.tubemq.options import SourceSettings

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # Spark 4.0 and 4.1
    HAS_LIMITS = False

__all__ = ["HAS_LIMITS", "stream_reader"]

_Offsets = dict[str, int]


def stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Check the options and return the reader; nothing is asked of any server.

    Raises ConfigError for a bad option or column, and for ``maxOffsetsPerTrigger`` before Spark 4.2.
    """
    with sparks_words():
        settings = source_settings(options, stream=True)
        if settings.max_offsets and not HAS_LIMITS:
            raise ConfigError(
                "option maxOffsetsPerTrigger needs Spark 4.2: older ones do not tell a source where a batch begins",
                hint="leave it out, or update Spark",
            )
    return _READER(settings, schema)


class TubeMQStream(DataSourceStreamReader):  # type: ignore[misc]  # mypy does not follow pyspark
    """Read topics as a stream, with any Spark that has such readers.

    Thread rule: Spark keeps one on the driver, which asks servers, and pickles copies into tasks, which only read.
    """

    def __init__(self, settings: SourceSettings, schema: StructType) -> None:
        self._settings, self._shape = settings, shape_of(settings, schema)
        self._following: Following | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_following": None}

    @property
    def _driver(self) -> Following:
        if self._following is None:
            end_in_order()
            self._following = Following(self._settings)
        return self._following

    def initialOffset(self) -> _Offsets:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint begins.

        Raises ConfigError for topics and offsets, GroupRefusedError if another reader has the group, TransportError and
        RemoteProtocolError.
        """
        with sparks_words():
            return self._driver.initial()

    def latestOffset(self) -> _Offsets:  # noqa: N802 - Spark's name
        """Return where the topics end.  Raises what `initialOffset` raises."""
        with sparks_words():
            return self._driver.latest(None, 0)

    def reportLatestOffset(self) -> _Offsets | None:  # noqa: N802 - Spark's name
        """Return where the topics ended when they were last looked at; for the progress of the query."""
        return self._driver.newest

    def partitions(self, start: _Offsets, end: _Offsets) -> list[InputPartition]:
        """Return the ranges between two offsets of the checkpoint.

        Raises TransportError (NO_BROKER) for a partition that no master tells, and ConfigError.
        """
        with sparks_words():
            return list(self._driver.ranges(start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range.  Raises what `read_range` raises."""
        if not isinstance(partition, TopicRange):
            return iter(())
        return read_range(self._settings, self._shape, partition)

    def commit(self, end: _Offsets) -> None:
        """Let the group's stored offsets follow; a failure is logged, and the next commit tries again."""
        self._driver.store(end)

    def stop(self) -> None:
        """Give the group back."""
        if self._following is not None:
            self._following.close()
            self._following = None


_READER: type[TubeMQStream] = TubeMQStream

if HAS_LIMITS:

    class LimitedTubeMQStream(TubeMQStream, SupportsTriggerAvailableNow):  # type: ignore[misc]
        """Read topics as a stream, with limits and ``trigger(availableNow=True)``."""

        def latestOffset(self, start: _Offsets, limit: ReadLimit) -> _Offsets:  # type: ignore[override]  # noqa: N802
            """Return where the next batch ends.  Raises what `initialOffset` raises, OffsetsLostError."""
            with sparks_words():
                return self._driver.latest(start, limit.max_rows if isinstance(limit, ReadMaxRows) else 0)

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
            """Return what ``maxOffsetsPerTrigger`` says."""
            most = self._settings.max_offsets
            return ReadMaxRows(most) if most else ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            """Remember where the topics end: the query ends there.  Raises what `initialOffset` raises."""
            with sparks_words():
                self._driver.stop_at_newest()

    _READER = LimitedTubeMQStream
