"""Spark sink: ``df.write.format("dataproxy")``.

Spark finds the format by itself through the module ``pyspark_dataproxy``.  Where that look-up does not work
(another package's module is broken, or the package was installed after Spark had started), call `register`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dataproxy.spark.reports import JobReport, PartitionReport
from pyspark_dataproxy import DefaultSource as DataProxyDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DataProxyDataSource", "JobReport", "PartitionReport", "register"]


def register(spark: SparkSession) -> None:
    """Make the format ``dataproxy`` known to one Spark session.

    Harmless where Spark has found the format by itself.  Raises what ``spark.dataSource.register`` raises.  Thread
    rule: call it where the session was made.
    """
    try:
        spark.dataSource.register(DataProxyDataSource)
    except AnalysisException as error:  # Spark 4.0 refuses what later versions replace
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
