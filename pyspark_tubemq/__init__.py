"""The module in which Spark finds the format ``tubemq``.

Spark imports every top-level module whose name starts with ``pyspark_`` and takes its ``DefaultSource``.  A
module that fails to import hides the data sources of all such packages, so this one imports nothing but
PySpark; ``dataproxy`` is loaded when a read is planned.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from dataproxy.spark.tubemq.source import TubeMQDataSource

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):  # type: ignore[misc]  # mypy does not follow pyspark
    """Hand each call on to `dataproxy.spark.TubeMQDataSource`, which says what it does and raises.

    Every call but `name` raises ImportError when ``dataproxy`` cannot be loaded.  Thread rule: as there.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tubemq"

    def schema(self) -> StructType:
        """Return the columns."""
        return self._source.schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        return self._source.reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        return self._source.streamReader(schema)

    @cached_property
    def _source(self) -> TubeMQDataSource:
        """The object that does the work."""
        from dataproxy.spark.tubemq.source import TubeMQDataSource

        return TubeMQDataSource(self.options)
