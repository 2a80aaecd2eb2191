"""Counters of a session's writes, which the driver can read while they run: one accumulator of five numbers.

Spark adds the numbers of a task when the task has succeeded.  So a task that runs again after it had succeeded (a lost
executor), a speculative copy and a replayed micro-batch are counted twice.  The report of the commit is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator

    from dataproxy.spark.reporting.reports import PartitionReport

__all__ = ["Counts", "SinkCounters", "Tally"]


class Counts(NamedTuple):
    """Sums over finished tasks; `retries` counts frames, `duplicates_possible` and `duplicates_filtered` rows."""

    tasks: int = 0
    rows: int = 0
    acked: int = 0
    bytes: int = 0
    retries: int = 0
    duplicates_possible: int = 0
    duplicates_filtered: int = 0
    conflicts: int = 0


class _Sums(AccumulatorParam[Counts]):  # type: ignore[misc]  # mypy does not follow pyspark
    """Add `Counts` field by field."""

    def zero(self, value: Counts) -> Counts:
        return Counts()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        return Counts(*(left + right for left, right in zip(value1, value2, strict=True)))


class Tally:
    """Carry the accumulator into tasks, which only add to it."""

    def __init__(self, accumulator: Accumulator[Counts]) -> None:
        self._accumulator = accumulator

    def add(self, report: PartitionReport) -> None:
        """Add the counts of a finished task.  Thread rule: the worker's one task thread."""
        self._accumulator.add(
            Counts(
                1,
                report.rows,
                report.acked,
                report.bytes,
                report.retries,
                report.duplicates_possible,
                report.duplicates_filtered,
                report.conflicts,
            )
        )


class SinkCounters:
    """Read what the writes of a registered session have done so far.

    Every finished task counts, so one that ran again counts twice.  Thread rule: any thread of the driver.
    """

    def __init__(self, context: SparkContext) -> None:
        self._accumulator: Accumulator[Counts] = context.accumulator(Counts(), _Sums())

    def __repr__(self) -> str:
        return f"SinkCounters{tuple(self.counts())!r}"

    def counts(self) -> Counts:
        """Return the sums over the tasks that have ended."""
        return Counts(*self._accumulator.value)

    @property
    def tally(self) -> Tally:
        """Return the object that carries the accumulator into tasks."""
        return Tally(self._accumulator)
