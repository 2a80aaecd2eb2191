"""Features of this PySpark and this session; substitutes for the Data Source API, which Spark 3.5 does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["HAS_DATA_SOURCES", "WriterCommitMessage", "schema_of", "spark_context"]

try:
    from pyspark.sql.datasource import WriterCommitMessage

    HAS_DATA_SOURCES = True
except ImportError:
    HAS_DATA_SOURCES = False

    class WriterCommitMessage:  # type: ignore[no-redef]
        """Replace the base class of a task's report."""

        __slots__ = ()


def spark_context(spark: SparkSession) -> SparkContext | None:
    """Return the session's SparkContext; None over Spark Connect."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def schema_of(df: object) -> StructType:
    """Return a DataFrame's schema.  Raises ConfigError if ``df`` is not a DataFrame."""
    schema = getattr(df, "schema", None)
    if schema is None or not hasattr(df, "sparkSession"):
        raise ConfigError(f"{type(df).__name__!r} is not a Spark DataFrame", hint="pass the DataFrame that is written")
    return schema
