"""The module in which Spark finds the format ``tubemq``.

Spark imports every top-level module whose name starts with ``pyspark_`` and takes its ``DefaultSource``.  A
module that fails to import hides the data sources of all such packages, so this one imports nothing but
PySpark and its neighbour; ``dataproxy`` is loaded when a read is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_dataproxy import LaterSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]


class DefaultSource(LaterSource):
    """Hand each call on to `dataproxy.spark.TubeMQDataSource`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tubemq"

    def _made(self) -> DataSource:
        from dataproxy.spark.tubemq.source import TubeMQDataSource

        return TubeMQDataSource(self.options)
