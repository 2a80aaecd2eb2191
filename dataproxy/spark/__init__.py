"""Spark sink: ``df.write.format("dataproxy")`` and ``df.writeStream.format("dataproxy")``.

Spark finds the format by itself through the module ``pyspark_dataproxy``.  Where that look-up does not work
(another package's module is broken, or the package was installed after Spark had started), call `register`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from dataproxy.spark.reports import JobReport, PartitionReport
from pyspark_dataproxy import DefaultSource as DataProxyDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataProxyDataSource", "JobReport", "PartitionReport", "check", "register"]


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


def check(df: DataFrame, *, output_mode: str = "append", **options: Any) -> None:
    """Check a write, batch or streaming, as its planning would: options, columns, output mode, proxies.

    A streaming query shows such errors only after ``start()``, as StreamingQueryException; this raises them at once:
    ConfigError, InvalidMessageError, DiscoveryError, TransportError.  ``options`` are those of the write.  Runs in
    the driver's own process; ``reportCallback`` is looked for there.
    """
    from dataproxy.errors import ConfigError
    from dataproxy.spark.planning import plan_write
    from dataproxy.spark.stream import refuse_complete

    if output_mode not in ("append", "complete"):
        raise ConfigError(
            f"output_mode={output_mode!r} is not known to Python sinks",
            hint='use "append"; for updates use foreachBatch and df.write',
        )
    refuse_complete(output_mode == "complete")
    plan_write({key: _text(value) for key, value in options.items()}, df.schema, job="")


def _text(value: object) -> str:
    """Return an option's value as Spark hands it over."""
    return str(value).lower() if isinstance(value, bool) else str(value)
