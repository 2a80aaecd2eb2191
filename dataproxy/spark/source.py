"""The class behind the format ``dataproxy``, for the data source API of Spark 4.0 and newer.

It imports nothing but PySpark; what plans, and the compiled core, are loaded when a write or a read is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from dataproxy.spark.reading.plan import ReadPlan
    from dataproxy.spark.reporting.counters import Tally

__all__ = ["DataProxyDataSource", "counting_source"]


class DataProxyDataSource(DataSource):  # type: ignore[misc]  # mypy does not follow pyspark
    """Write DataFrames with ``df.write.format("dataproxy").mode("append")``, streams with ``df.writeStream``.

    ``spark.read`` reads what a hub holds.  Thread rule: Spark makes and uses one object for each planned write or read,
    in processes of its own.
    """

    _read_plan: ReadPlan | None = None
    _tally: Tally | None = None  # of a class that `counting_source` made

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "dataproxy"

    def schema(self) -> StructType:
        """Plan a read and return its columns: Spark asks for them when it loads, and never for a write.

        The plan is kept in this object, so that all actions on one DataFrame read the same rows.  Raises ConfigError
        for a bad option, StoreError for dropped offsets, TransportError and HubError when the hub cannot be asked, and
        ImportError when the compiled core cannot be loaded.
        """
        from dataproxy.spark.reading.columns import READ_SCHEMA
        from dataproxy.spark.reading.plan import plan_read

        self._read_plan = plan_read(self.options)
        return READ_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the plan.  If the user named columns, Spark has not called `schema`, and this plans.

        Raises what `schema` raises, and ConfigError for columns that a read does not have.
        """
        from dataproxy.spark.reading.plan import plan_read
        from dataproxy.spark.reading.source import HubReader

        return HubReader(self._read_plan or plan_read(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Refuse to read as a stream.  Raises ConfigError."""
        from dataproxy.errors import ConfigError

        # The traceback is not hidden here, unlike for other errors: without it Spark shows only the chain's last error.
        raise ConfigError(
            "the format dataproxy can be read in batches, and not by readStream",
            hint='use spark.read.format("dataproxy"), again and again with startingOffsets',
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Plan a batch write.

        Raises ConfigError for a bad option, column, mode or target, before any task starts, and ImportError
        when the compiled core cannot be loaded.
        """
        from dataproxy.spark.sink import plan_writer

        return plan_writer(self.options, schema, overwrite, self._tally)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Plan a micro-batch of a streaming write.

        Raises ConfigError for a bad option, column, output mode or target, and ImportError when the compiled core
        cannot be loaded; Spark shows them as StreamingQueryException.
        """
        from dataproxy.spark.stream import plan_stream_writer

        return plan_stream_writer(self.options, schema, overwrite, self._tally)


def counting_source(tally: Tally) -> type[DataProxyDataSource]:
    """Return the format's class with an accumulator; Spark pickles the whole class, since no import can find it."""

    class CountingDataProxySource(DataProxyDataSource):
        _tally = tally

    return CountingDataProxySource
