"""The batch sink: writing in tasks, summing up at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.spark.badrecords import keep_committed, remove_all
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.planning.places import say_what_ids_name
from dataproxy.spark.planning.plan import plan_write
from dataproxy.spark.planning.runs import new_run
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.attempts import LAST_WORDS, RoomReader
from dataproxy.spark.reporting.datatimes import warn_once
from dataproxy.spark.reporting.reports import JobReport, PartitionReport, check_accounting
from dataproxy.spark.reporting.room import make_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from dataproxy.spark.reporting.counters import Tally

__all__ = ["DataProxyWriter", "plan_writer"]

_log = logger("spark.sink")


def plan_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool, tally: Tally | None = None
) -> DataProxyWriter:
    """Check everything that can be checked before a task starts, find the proxies, and return the writer.

    Raises ConfigError for options, columns, mode or target, InvalidMessageError for the group or stream,
    DiscoveryError and TransportError when no proxy is found or none answers.
    """
    if overwrite:
        raise ConfigError(
            'mode("overwrite") would have to delete messages that were sent before, which a proxy cannot do',
            hint='use mode("append")',
        )
    plan = plan_write(options, schema, job=new_run())
    say_what_ids_name(plan, stream=False)
    return DataProxyWriter(replace(plan, tally=tally, room=make_room(plan.outlets.room, plan.job)))


class DataProxyWriter(DataSourceArrowWriter):  # type: ignore[misc]  # mypy does not follow pyspark
    """Write the partitions of one DataFrame.

    Thread rule: Spark pickles it into tasks and uses a copy of its own in each process.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Send one partition; return its accounting once every row is acknowledged or skipped by policy.

        Raises what `write_batches` raises; Spark then runs the partition again.
        """
        from dataproxy.spark.writing.partition import write_batches  # the driver, which never sends, does without it

        context = TaskContext.get()
        assert context is not None  # Spark calls this in tasks only
        place = TaskPlace(context.partitionId(), context.attemptNumber(), self._plan.job)
        return write_batches(iterator, self._plan, place)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Sum up the accounting of all partitions, log one line, save the report file.

        Raises LocalProtocolError when the accounting does not balance, OSError when the file cannot be written.
        """
        parts = check_accounting(self._plan.job, messages)
        found = self._found()
        report = JobReport.of(self._plan.job, parts, found.attempts, named=bool(self._plan.id_run))
        keep_committed(self._plan.bad_records, parts)
        open_log(self._plan.outlets.log)
        _log.info("%s", report.line())
        warn_once(f"job {report.job}", report.times)
        self._plan.outlets.publish(report)
        found.clear()

    def _found(self, patience: float = 0.0) -> RoomReader:
        """Return what the attempts of this write have left."""
        return RoomReader(self._plan.room, lambda run: run == self._plan.job, patience=patience)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log and report which rows are out although the write failed; nothing can be taken back."""
        remove_all(self._plan.bad_records, self._plan.job)
        open_log(self._plan.outlets.log)
        found = self._found(LAST_WORDS)
        report = JobReport.of_aborted(self._plan.job, messages, found.attempts, named=bool(self._plan.id_run))
        _log.warning("write aborted; %s", report.aborted_line())
        self._plan.outlets.publish_aborted(report)
        found.clear()
