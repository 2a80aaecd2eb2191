"""Writing with ``df.foreachPartition``: for Spark 3.5, which has no Python data sources, and for RDDs of Row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from dataproxy.errors import ConfigError
from dataproxy.spark.planning.runs import new_run
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.datatimes import warn_once
from dataproxy.spark.reporting.reports import JobReport, PartitionReport
from dataproxy.spark.writing.partition import write_batches
from dataproxy.spark.writing.rows import rows_to_batches

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
    """Write the partitions of a DataFrame when Spark calls it with their rows.

    Spark pickles it once for a job, and each pickle gives its rows different ids: all attempts of a task have the
    same ones, and rows that are written again by another job are new messages.  Python handles rows one by one,
    which costs three to seven times the CPU of ``df.write``.  Thread rule: calls are made in tasks; `report` is for
    the driver.
    """

    def __init__(self, plan: WritePlan, schema: StructType, context: SparkContext | None) -> None:
        self._plan = plan
        self._schema = schema
        self._has_folds = context is not None  # rows of Spark Connect have no ``fold``
        self._reports: Accumulator[list[PartitionReport]] | None = None
        if context is not None:
            self._reports = context.accumulator([], _Reports())

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a task."""
        return {**self.__dict__, "_plan": replace(self._plan, job=new_run())}

    def __call__(self, rows: Iterable[Row]) -> None:
        """Send one partition; return once every row is acknowledged or skipped by policy.

        Raises what `write_batches` raises; Spark then runs the partition again.
        """
        context = TaskContext.get()
        assert context is not None  # Spark calls this only in tasks
        place = TaskPlace(context.partitionId(), context.attemptNumber(), self._plan.job)
        report = write_batches(rows_to_batches(rows, self._schema, has_folds=self._has_folds), self._plan, place)
        warn_once(f"job {report.run}", report.times)
        if self._reports is not None:
            self._reports.add([report])

    def report(self) -> JobReport:
        """Return the counts of all partitions that were written, with the name of the last job.

        Raises ConfigError over Spark Connect, which has no accumulators to gather them.
        """
        if self._reports is None:
            raise ConfigError(
                "over Spark Connect foreachPartition has no report",
                hint='use df.write.format("dataproxy") with the option reportFile, which the server writes',
            )
        parts = self._reports.value
        return JobReport.of(parts[-1].run if parts else "", parts)
