"""The batch sink: planning on the driver, writing in tasks, summing up at the end."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from dataproxy.client.names import check_name
from dataproxy.errors import ConfigError, LocalProtocolError
from dataproxy.logs import logger
from dataproxy.spark.columns import plan_columns
from dataproxy.spark.options import read_options
from dataproxy.spark.partition import TaskPlace, WritePlan, write_batches
from dataproxy.spark.reports import JobReport, PartitionReport
from dataproxy.spark.target import check_connection, find_proxies, static_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["DataProxyWriter", "plan_writer"]

_log = logger("spark.sink")


def plan_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataProxyWriter:
    """Check everything that can be checked before a task starts, find the proxies, and return the writer.

    Raises ConfigError for options, columns, mode or target, InvalidMessageError for the group or stream,
    DiscoveryError and TransportError when no proxy is found or none answers.
    """
    if overwrite:
        raise ConfigError(
            'mode("overwrite") would have to delete what was sent before, which no proxy can do',
            hint='use mode("append")',
        )
    settings = read_options(options)
    config, stream_id = settings.config, settings.stream_id
    columns = plan_columns(schema, group_given=bool(config.group_id), stream_given=bool(stream_id))
    if config.group_id:
        check_name("group", config.group_id, message_type=config.message_type)
    if stream_id:
        check_name("stream", stream_id, message_type=config.message_type)
    proxies = find_proxies(config)
    if settings.connect_check:
        check_connection(proxies, config.connect_timeout)
    plan = WritePlan(uuid.uuid4().hex[:12], settings.for_tasks(static_target(proxies)), columns)
    _log.debug("job %s: %d proxies, %r", plan.job, len(proxies), columns)
    return DataProxyWriter(plan, settings.report_file)


class DataProxyWriter(DataSourceArrowWriter):  # type: ignore[misc]  # mypy does not follow pyspark
    """Write the partitions of one DataFrame.

    Thread rule: Spark pickles it into tasks and uses a copy of its own in each process.
    """

    def __init__(self, plan: WritePlan, report_file: Path | None = None) -> None:
        self._plan = plan
        self._report_file = report_file

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Send one partition; return its books once every row is acknowledged or skipped by policy.

        Raises what `write_batches` raises; Spark then runs the partition again.
        """
        context = TaskContext.get()
        assert context is not None  # Spark calls this in tasks only
        return write_batches(iterator, self._plan, TaskPlace(context.partitionId(), context.attemptNumber()))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Sum up the books of all partitions, log one line, save the report file.

        Raises LocalProtocolError when the books do not balance, OSError when the file cannot be written.
        """
        parts = [message for message in messages if isinstance(message, PartitionReport)]
        open_books = [part for part in parts if not part.balanced]
        if open_books or len(parts) != len(messages):
            raise LocalProtocolError(
                f"job {self._plan.job}: {len(parts)} of {len(messages)} partitions reported, these do not balance: "
                f"{open_books!r}",
                hint="rows may be missing; write the DataFrame again",
            )
        report = JobReport.of(self._plan.job, parts)
        _log.info("%s", report.line())
        if self._report_file is not None:
            report.save(self._report_file)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log which rows are out although the write failed; nothing can be taken back."""
        parts = [message for message in messages if isinstance(message, PartitionReport)]
        _log.warning(
            "write aborted; %d of %d partitions had finished and stay delivered: %s",
            len(parts),
            len(messages),
            JobReport.of(self._plan.job, parts).line(),
        )
