"""The module in which Spark finds the format ``dataproxy``, and what ``pyspark_tubemq`` shares with it.

Spark imports every top-level module whose name starts with ``pyspark_`` and takes its ``DefaultSource``.  A
module that fails to import hides the data sources of all such packages, so this one imports nothing but
PySpark; ``dataproxy`` is loaded when a write or a read is planned.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource", "LaterSource"]


class LaterSource(DataSource):  # type: ignore[misc]  # mypy does not follow pyspark
    """Hand each call of a read on to the source that `_made` makes, which says what it does and raises.

    Every call but `name` raises ImportError when ``dataproxy`` cannot be loaded.  Thread rule: as there.
    """

    def schema(self) -> StructType:
        """Return the columns."""
        return self._source.schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        return self._source.reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream, or refuse to read as a stream."""
        return self._source.streamReader(schema)

    @cached_property
    def _source(self) -> Any:
        """The object that does the work; Spark pickles it with this one, after a read was planned."""
        return self._made()

    @abstractmethod
    def _made(self) -> DataSource:
        """Return the object that does the work.  Raises ImportError."""


class DefaultSource(LaterSource):
    """Hand each call on to `dataproxy.spark.DataProxyDataSource`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "dataproxy"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Plan a batch write."""
        return self._source.writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Plan a micro-batch of a streaming write."""
        return self._source.streamWriter(schema, overwrite)

    def _made(self) -> DataSource:
        from dataproxy.spark.source import DataProxyDataSource

        return DataProxyDataSource(self.options)
