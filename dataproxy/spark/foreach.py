"""Writing with ``df.foreachPartition``: for Spark 3.5, which has no Python data sources, and for RDDs of Row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from dataproxy.spark.partition import TaskPlace, WritePlan, write_batches
from dataproxy.spark.reports import JobReport, PartitionReport
from dataproxy.spark.rows import rows_to_batches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

__all__ = ["PartitionWriter"]


class _Reports(AccumulatorParam[list[PartitionReport]]):  # type: ignore[misc]  # mypy does not follow pyspark
    """Gather the reports of partitions."""

    def zero(self, value: list[PartitionReport]) -> list[PartitionReport]:
        return []

    def addInPlace(  # noqa: N802 - Spark's name
        self, value1: list[PartitionReport], value2: list[PartitionReport]
    ) -> list[PartitionReport]:
        value1.extend(value2)
        return value1


class PartitionWriter:
    """Write one DataFrame's partitions when Spark calls it with their rows; make a new one for each write.

    Rows go one by one through Python, which costs three to seven times the CPU of ``df.write``.  Thread rule: Spark
    pickles it into tasks; `report` is for the driver.
    """

    def __init__(self, plan: WritePlan, schema: StructType, context: SparkContext | None) -> None:
        self._plan = plan
        self._schema = schema
        self._reports: Accumulator[list[PartitionReport]] | None = None
        if context is not None:
            self._reports = context.accumulator([], _Reports())

    def __call__(self, rows: Iterable[Row]) -> None:
        """Send one partition; return once every row is acknowledged or skipped by policy.

        Raises what `write_batches` raises; Spark then runs the partition again.
        """
        context = TaskContext.get()
        assert context is not None  # Spark calls this in tasks only
        place = TaskPlace(context.partitionId(), context.attemptNumber(), self._plan.job)
        report = write_batches(rows_to_batches(rows, self._schema), self._plan, place)
        if self._reports is not None:
            self._reports.add([report])

    def report(self) -> JobReport:
        """Return the books of the partitions that have been written; empty over Spark Connect."""
        return JobReport.of(self._plan.job, [] if self._reports is None else self._reports.value)
