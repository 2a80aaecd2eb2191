"""Where Spark finds the format ``dataproxy``.

Spark imports every top-level module whose name starts with ``pyspark_`` and takes its ``DefaultSource``.  A
module that fails to import hides the data sources of all such packages, so this one imports nothing but
PySpark; the rest of ``dataproxy`` and its compiled core are loaded when a write is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):  # type: ignore[misc]  # mypy does not follow pyspark
    """Write DataFrames with ``df.write.format("dataproxy").mode("append")``, streams with ``df.writeStream``.

    Thread rule: Spark makes and uses one object for each planned write, in a process of its own.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "dataproxy"

    def schema(self) -> str:
        """Refuse to name columns: Spark asks for them when it should read, or in SQL when none were given.

        Raises ConfigError.
        """
        from dataproxy.errors import ConfigError

        raise ConfigError(
            "the format dataproxy can be written, not read, and has no columns of its own",
            hint="in SQL name the columns: CREATE TEMPORARY VIEW sink (value STRING) USING dataproxy OPTIONS (...)",
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """Refuse to read.  Raises ConfigError."""
        from dataproxy.errors import ConfigError

        raise ConfigError(
            "the format dataproxy can be written, not read",
            hint="read a hub's store with dataproxy.hub.open_store",
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Plan a batch write.

        Raises ConfigError for a bad option, column, mode or target, before any task starts, and ImportError
        when the compiled core cannot be loaded.
        """
        from dataproxy.spark.sink import plan_writer

        return plan_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Plan a micro-batch of a streaming write.

        Raises ConfigError for a bad option, column, output mode or target, and ImportError when the compiled core
        cannot be loaded; Spark shows them as StreamingQueryException.
        """
        from dataproxy.spark.stream import plan_stream_writer

        return plan_stream_writer(self.options, schema, overwrite)
