"""Spark: ``df.write.format("dataproxy")``, ``df.writeStream``, ``spark.read``; ``spark.read.format("tubemq")``.

Spark finds the formats by itself through the modules ``pyspark_dataproxy`` and ``pyspark_tubemq``.  Where that look-up
does not work (another package's module is broken, or the package was installed after Spark had started), call
`register`.

What lives here.  `source`, `sink`, `stream`, `foreach`: the four interfaces by which Spark calls.  `frames`, `once`:
functions over DataFrames.  `badrecords`, `wording`, `folders`, `driverlog`, `interfaces`, `shape`: what all steps
share.  A write goes through `planning` (driver) and `writing` (tasks), and `reporting` counts it; `reading` is
`spark.read` of a hub, and `tubemq` the source of TubeMQ's topics.
Folders import one way: `writing`, `planning`, `reporting`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from dataproxy.spark.frames import to_messages, with_json_value
from dataproxy.spark.interfaces import HAS_DATA_SOURCES, schema_of, spark_context
from dataproxy.spark.once import without_copies
from dataproxy.spark.reporting.progress import WriteProgress
from dataproxy.spark.reporting.reports import JobReport, PartitionReport

if HAS_DATA_SOURCES:
    from dataproxy.spark.source import DataProxyDataSource
    from dataproxy.spark.tubemq.source import TubeMQDataSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from dataproxy.spark.foreach import PartitionWriter
    from dataproxy.spark.reporting.counters import SinkCounters

__all__ = [
    "DataProxyDataSource",
    "JobReport",
    "PartitionReport",
    "TubeMQDataSource",
    "WriteProgress",
    "check",
    "register",
    "to_messages",
    "with_json_value",
    "without_copies",
    "writer",
]


_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_LIMIT: Final = str(2**31 - 1)  # Spark's value for no limit


def register(spark: SparkSession, *, unmeasured_batches: bool = False) -> SinkCounters | None:
    """Make the formats ``dataproxy`` and ``tubemq`` known to one Spark session; return counters of writes.

    Harmless where Spark has found the formats by itself.  ``unmeasured_batches`` ends the limit of bytes for an Arrow
    batch in this session, for all that it does: Spark then does not measure all columns after every row, half of
    the JVM's CPU in a write of ten columns, and ``spark.sql.execution.arrow.maxRecordsPerBatch`` alone bounds a batch.
    The counters are an accumulator: they grow while a write
    runs, and count a task that ran twice two times.  None over Spark Connect, which has no accumulators, and on Spark
    4.0 where the format was known already.  Raises ConfigError on Spark 3.5, and what ``spark.dataSource.register``
    raises.  Thread rule: call it where the session was made.
    """
    if not HAS_DATA_SOURCES:
        from dataproxy.errors import ConfigError

        raise ConfigError(
            "this version of Spark has no Python data sources",
            hint="use Spark 4.0 or newer, or df.foreachPartition(dataproxy.spark.writer(df, ...))",
        )
    if unmeasured_batches:
        spark.conf.set(_BATCH_BYTES, _NO_LIMIT)
    _add(spark, TubeMQDataSource)
    context = spark_context(spark)
    if context is None:
        spark.dataSource.register(DataProxyDataSource)
        return None
    from dataproxy.spark.reporting.counters import SinkCounters
    from dataproxy.spark.source import counting_source

    counters = SinkCounters(context)
    return counters if _add(spark, counting_source(counters.tally)) else None


def _add(spark: SparkSession, source: Any) -> bool:
    """Register a source; False where Spark 4.0 knows it already: it refuses what later versions replace."""
    try:
        spark.dataSource.register(source)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        return False
    return True


def writer(df: DataFrame, **options: Any) -> PartitionWriter:
    """Plan a write of ``df`` and return the function for ``df.foreachPartition``.

    For Spark 3.5; newer versions have ``df.write.format("dataproxy")``, which costs a fraction.  Raises what `check`
    raises, and ConfigError for maps with timestamps among their keys, of which rows of Python may lose one.
    Thread rule: call it on the driver.
    """
    from dataproxy.spark.foreach import PartitionWriter
    from dataproxy.spark.planning.places import say_what_ids_name
    from dataproxy.spark.planning.plan import plan_write
    from dataproxy.spark.planning.runs import new_run
    from dataproxy.spark.writing.rows import check_row_types

    schema = schema_of(df)
    check_row_types(schema)
    plan = plan_write(_texts(options), schema, job=new_run())
    say_what_ids_name(plan, stream=False)
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return PartitionWriter(replace(plan, body=plan.body.in_zone(zone)), schema, spark_context(df.sparkSession))


def check(df: DataFrame, *, output_mode: str = "append", **options: Any) -> None:
    """Check a write, batch or streaming, as its planning would: options, columns, output mode, proxies.

    A streaming query shows such errors only after ``start()``, as StreamingQueryException; this raises them at once:
    ConfigError, InvalidMessageError, DiscoveryError, TransportError.  Logs a warning where rows that come again in
    partitions cut otherwise would be stored twice (see the option ``idFrom``).  ``options`` are those of the write.
    Runs in the driver's own process; ``reportCallback`` is looked for there.
    """
    from dataproxy.errors import ConfigError
    from dataproxy.spark.planning.places import say_what_ids_name
    from dataproxy.spark.planning.plan import plan_write
    from dataproxy.spark.stream import refuse_complete, refuse_name

    mode = str(output_mode).lower()
    if mode not in ("append", "complete"):
        raise ConfigError(
            f"output_mode={output_mode!r} is not supported by Python sinks",
            hint='use "append"; for updates use foreachBatch and df.write',
        )
    refuse_complete(mode == "complete")
    plan = plan_write(_texts(options), schema_of(df), job="")
    if df.isStreaming:
        refuse_name(plan)
    say_what_ids_name(plan, stream=df.isStreaming, again=True)


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return the options as Spark hands them over; it leaves out what is None."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in options.items()
        if value is not None
    }
