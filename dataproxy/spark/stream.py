"""The streaming sink: ``df.writeStream.format("dataproxy")``, one plan, one write and one commit a micro-batch."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from dataproxy.errors import ConfigError
from dataproxy.logs import logger
from dataproxy.spark.badrecords import keep_committed
from dataproxy.spark.driverlog import open_log
from dataproxy.spark.planning.places import say_what_ids_name
from dataproxy.spark.planning.plan import PROXIES, plan_write
from dataproxy.spark.planning.runs import new_run, stream_run
from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan
from dataproxy.spark.reporting.attempts import LAST_WORDS, RoomReader, of_batch
from dataproxy.spark.reporting.datatimes import warn_once
from dataproxy.spark.reporting.reports import JobReport, PartitionReport, check_accounting
from dataproxy.spark.reporting.room import make_room, stream_name
from dataproxy.spark.wording import sparks_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter
    from pyspark.sql.types import StructType

    from dataproxy.spark.reporting.counters import Tally

__all__ = ["DataProxyStreamWriter", "plan_stream_writer", "refuse_complete", "refuse_name"]

_log = logger("spark.stream")

# Spark 4.0 has no streaming writer by that name, and hands record batches to whatever is an Arrow writer.
_ARROW: Any = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceArrowWriter)


def plan_stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool, tally: Tally | None = None
) -> DataSourceStreamWriter:
    """Check a streaming write and return its writer; Spark asks twice for each micro-batch.

    Raises ConfigError for options, columns, output mode or target, InvalidMessageError for the group or stream,
    DiscoveryError and TransportError when no proxy is found or none answers.
    """
    refuse_complete(overwrite)
    plan = plan_write(options, schema, job="", proxies=PROXIES)
    refuse_name(plan)
    say_what_ids_name(plan, stream=True)
    return DataProxyStreamWriter(replace(plan, tally=tally, room=make_room(plan.outlets.room, stream_name(options))))


def refuse_complete(complete: bool) -> None:
    """Raise ConfigError for the output mode complete."""
    if complete:
        raise ConfigError(
            'outputMode("complete") would have to replace messages that were sent before, which a proxy cannot do',
            hint='use outputMode("append"), or foreachBatch to write each result with df.write',
        )


def refuse_name(plan: WritePlan) -> None:
    """Raise ConfigError for a streaming query with the name of one write."""
    if plan.id_run:
        raise ConfigError(
            "option runId names one write, and a streaming query makes many",
            hint="leave it out: micro-batches have names of their own, by the checkpoint and their number",
        )


def task_run() -> TaskPlace:
    """Return where this task stands: the query, the micro-batch, the partition and the attempt.

    The query's id is that of its checkpoint, and the batch's number that of its plan: a micro-batch that is run
    again after a restart has the same ones.  Where Spark does not tell them, rows get ids of this attempt alone, so
    that a filter keeps a copy and never drops another micro-batch's row.
    """
    context = TaskContext.get()
    assert context is not None  # Spark calls writers in tasks only
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if not query or not batch:
        _notice_unknown()
    run = stream_run(query, batch) if query and batch else new_run()
    return TaskPlace(context.partitionId(), context.attemptNumber(), run)


def _refuse_continuous(messages: list[WriterCommitMessage | None], batch: int) -> None:
    """Raise ConfigError where tasks have ended and none of them has called `write`: its rows were dropped.

    Spark tells no Python sink its trigger.  Under ``continuous`` it plans the write, drops the rows, and then commits.
    """
    if messages and not any(isinstance(message, PartitionReport) for message in messages):
        raise ConfigError(
            f"Spark gave the sink no row of epoch {batch}: trigger(continuous=...) does not work with sinks in Python",
            hint="stop the query and start it with trigger(processingTime=...) or without a trigger",
        )


@functools.cache
def _notice_unknown() -> None:
    """Say once in a process that ids cannot be the same in a replay."""
    _log.warning("Spark does not tell the task its query and micro-batch: when they run again, rows get other ids")


class _Commits:
    """Commit and abort of both writers."""

    _plan: WritePlan

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Sum up the accounting of a micro-batch, log one line, add it to the report file.

        Raises ConfigError for the trigger ``continuous``, which shows here first, LocalProtocolError when the
        accounting does not balance, OSError when the file cannot be written.
        """
        with sparks_words():
            _refuse_continuous(messages, batchId)
        parts = check_accounting(f"batch {batchId}", messages)
        found = RoomReader(self._plan.room, of_batch(batchId))
        attempts = found.of_one_run({part.run for part in parts})
        report = JobReport.of(parts[0].run if parts else f"batch {batchId}", parts, attempts)
        keep_committed(self._plan.bad_records, parts)
        open_log(self._plan.outlets.log)
        _log.info("%s", report.line())
        warn_once(f"query {report.job.partition('.')[0]}", report.times)
        self._plan.outlets.publish(report, stream=True)
        found.clear({part.run for part in parts})

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Log and report which rows are out although the micro-batch failed; it will be run again with the same ids."""
        open_log(self._plan.outlets.log)
        found = RoomReader(self._plan.room, of_batch(batchId), patience=LAST_WORDS)
        attempts = found.of_one_run({message.run for message in messages if isinstance(message, PartitionReport)})
        run = next((attempt.run for attempt in attempts), f"batch {batchId}")
        report = JobReport.of_aborted(run, messages, attempts)
        _log.warning("micro-batch %s aborted; %s", batchId, report.aborted_line())
        self._plan.outlets.publish_aborted(report, stream=True)
        found.clear({attempt.run for attempt in attempts})


class DataProxyStreamWriter(_Commits, _ARROW):  # type: ignore[misc]  # mypy does not follow pyspark
    """Write the partitions of a micro-batch from record batches.

    Thread rule: Spark pickles it into tasks and uses a copy of its own in each process.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Send one partition; return its accounting once every row is acknowledged or skipped by policy.

        Raises what `write_batches` raises; Spark then runs the partition again.
        """
        from dataproxy.spark.writing.partition import write_batches  # the driver, which never sends, does without it

        return write_batches(iterator, self._plan, task_run())
