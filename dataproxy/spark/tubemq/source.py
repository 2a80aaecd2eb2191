"""The class behind the format ``tubemq``, for the data source API of Spark 4.0 and newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

    from dataproxy.spark.tubemq.plan import BatchPlan

__all__ = ["TubeMQDataSource"]


class TubeMQDataSource(DataSource):  # type: ignore[misc]  # mypy does not follow pyspark
    """Read topics of TubeMQ with ``spark.read.format("tubemq")`` and ``spark.readStream.format("tubemq")``.

    Thread rule: Spark makes and uses one object for each planned read, in processes of its own.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tubemq"

    def schema(self) -> StructType:
        """Return the columns.  Raises ConfigError for a bad option, ImportError where a package is missing."""
        from dataproxy.spark.tubemq.options import named_records
        from dataproxy.spark.tubemq.ranges import schema_of
        from dataproxy.spark.wording import sparks_words

        with sparks_words():
            return schema_of(inlong=named_records(self.options) == "inlong")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan a batch.

        Raises ConfigError for a bad option, topic, offset or column, OffsetsLostError for offsets that are not there,
        TransportError, RemoteProtocolError and GroupRefusedError where servers cannot be asked or refuse, before any
        task starts.
        """
        from dataproxy.spark.tubemq.plan import plan_batch

        return TubeMQReader(plan_batch(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream.  Raises ConfigError for a bad option or column."""
        from dataproxy.spark.tubemq.stream import stream_reader

        return stream_reader(self.options, schema)


class TubeMQReader(DataSourceReader):  # type: ignore[misc]  # mypy does not follow pyspark
    """Read the ranges of a plan, with the columns of a schema.

    Thread rule: Spark pickles it into tasks and uses a copy of its own in each process.
    """

    def __init__(self, plan: BatchPlan, schema: StructType) -> None:
        from dataproxy.spark.tubemq.ranges import shape_of

        self._plan, self._shape = plan, shape_of(plan.settings, schema)

    def partitions(self) -> list[InputPartition]:
        """Return the ranges of the plan, the same ones each time."""
        return list(self._plan.ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range.  Raises what `read_range` raises."""
        from dataproxy.spark.tubemq.ranges import TopicRange, read_range

        if not isinstance(partition, TopicRange):  # Spark's own object for a plan without ranges
            return iter(())
        return read_range(self._plan.settings, self._shape, partition)
