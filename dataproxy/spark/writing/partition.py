"""Writing one partition: every record batch through one native call, then flush and check the accounting.

Batch and streaming sinks share `write_batches`.  When it returns, every row is acknowledged or was skipped by
policy, and nothing waits in the worker process.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

from dataproxy._core.producer.ingest.columnar.rowkeys import RowKeys
from dataproxy.codes import describe
from dataproxy.errors import BufferFullError, DataProxyError, InvalidMessageError, UndeliveredError
from dataproxy.logs import logger
from dataproxy.spark.badrecords import FAIL, BadRecords
from dataproxy.spark.planning.columns import ABSENT
from dataproxy.spark.reporting.attempts import AttemptRecord
from dataproxy.spark.reporting.datatimes import TimeSpan
from dataproxy.spark.reporting.reports import PartitionReport
from dataproxy.spark.wording import causes_in_words, sparks_words
from dataproxy.spark.writing.blocks import whole_blocks
from dataproxy.spark.writing.inputs import to_the_end
from dataproxy.spark.writing.nodelay import no_delay
from dataproxy.spark.writing.producers import PRODUCERS, Accounting, TaskProducer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from dataproxy.spark.planning.writeplan import TaskPlace, WritePlan

__all__ = ["write_batches"]

_log = logger("spark.partition")


def write_batches(batches: Iterator[pa.RecordBatch], plan: WritePlan, place: TaskPlace) -> PartitionReport:
    """Send all rows of a partition and return its accounting once every row is acknowledged or skipped.

    Raises InvalidMessageError for a row that may not be sent, UndeliveredError with counts when a row was not
    acknowledged in time, BufferFullError when no room came within ``maxBlock``, and what the producer raises.  After an
    error the worker's producer is given up.
    Thread rule: one call at a time in a process, as Spark's workers do.
    """
    with sparks_words():
        return _write(batches, plan, place)


def _write(batches: Iterator[pa.RecordBatch], plan: WritePlan, place: TaskPlace) -> PartitionReport:
    started = time.monotonic()
    no_delay()
    producer = PRODUCERS.lease(plan.options)
    record = AttemptRecord(plan.room, run=place.run, partition=place.partition, attempt=place.attempt)
    bad = BadRecords(plan.bad_records, run=place.run, partition=place.partition, attempt=place.attempt)
    times = TimeSpan(plan.columns.dt)
    try:
        rows, skipped, size = _send(times.seen(batches), plan, place, producer, bad)
        accounting = producer.settle()
        if accounting.delivered + accounting.sent + skipped + bad.count != rows:
            raise _undelivered(plan, place, rows, skipped + bad.count, accounting, producer.proxies())
        bad_file = bad.close()
    except BaseException as error:
        record.end(producer.accounting())  # Spark may kill this worker at any moment
        bad.abandon()
        PRODUCERS.drop(producer)  # from here on nothing of this attempt is sent
        _leave_counts(error, record, producer.accounting(), plan)
        raise
    record.end(accounting)
    known_since = _known_since(accounting, plan, producer)
    report = PartitionReport(
        run=place.run,
        partition=place.partition,
        attempt=place.attempt,
        rows=rows,
        bytes=size,
        acked=accounting.delivered,
        skipped=skipped,
        retries=accounting.retries,
        seconds=time.monotonic() - started,
        copies_possible=accounting.copies_possible,
        duplicates_filtered=accounting.duplicates_filtered,
        conflicts=accounting.conflicts,
        remembered=known_since is not None and known_since <= plan.began,
        known_since=known_since,
        latencies=producer.latencies(),
        refused=bad.count,
        reasons=tuple(sorted(bad.reasons.items())),
        bad_file=bad_file,
        times=times.milliseconds,
        record=record.token,
        sent=accounting.sent,
    )
    _log.debug("%s: %s", place, report.line())
    if plan.tally is not None:
        plan.tally.add(report)
    return report


def _known_since(accounting: Accounting, plan: WritePlan, producer: TaskProducer) -> float | None:
    """Return since when the server remembers messages with their ids, in seconds since 1970; None where it does not.

    Of several servers none knows what another one has.
    """
    named = plan.row_ids or plan.columns.msg_id != ABSENT
    if not named or accounting.remembered is None or producer.servers() != 1:
        return None
    return time.time() - accounting.remembered


def _send(
    batches: Iterator[pa.RecordBatch], plan: WritePlan, place: TaskPlace, producer: TaskProducer, bad: BadRecords
) -> tuple[int, int, int]:
    """Hand every batch to the producer; return rows read, rows skipped, and bytes of bodies."""
    rows = skipped = size = 0
    encoder = plan.body.encoder()
    ids = _ids(plan, place)
    for batch in whole_blocks(to_the_end(batches)) if isinstance(ids, bytes) else batches:
        refused: list[tuple[int, str, str]] | None = None if plan.bad_records == FAIL else []
        try:
            left_out, sent = producer.send(batch, plan.columns, ids, rows, encoder=encoder, refused=refused)
        except InvalidMessageError as error:
            _refuse_row(error, place, rows)
        except BufferFullError as error:
            _no_room(error, place, rows, producer.proxies())
        if refused:
            bad.add(batch, rows, refused)
        rows += batch.num_rows
        skipped += left_out
        size += sent
        if producer.lost():  # more rows cannot save this attempt
            raise _undelivered(plan, place, rows, skipped + bad.count, producer.settle(), producer.proxies())
    return rows, skipped, size


def _ids(plan: WritePlan, place: TaskPlace) -> bytes | RowKeys | None:
    """Return what makes the ids of a task's rows: columns, or the prefix of ids by their places; None for no ids."""
    if plan.columns.id_from:
        return RowKeys(place.key_prefix(plan.id_run), plan.columns.id_from)
    return place.id_prefix(plan.id_run) if plan.row_ids else None


def _leave_counts(error: BaseException, record: AttemptRecord, accounting: Accounting, plan: WritePlan) -> None:
    """Leave the counts of a failed attempt where the driver finds them, and tell of them in its error."""
    record.end(accounting)
    possible = accounting.maybe_delivered + accounting.pending + accounting.sent
    words = (
        f"when this attempt had ended, {accounting.delivered} rows of it were acknowledged and "
        f"{possible} others are possibly stored; {record.so_far()}"
    ).removesuffix("; ")
    if plan.room and not record.token:
        words += f"; the report lacks these counts, since the task's machine cannot reach the folder {plan.room!r}"
    if isinstance(error, DataProxyError):
        error.message = f"{error.message}; {words}"
        error.args = (error.message,)
    else:
        error.add_note(f"dataproxy: {words}")


def _refuse_row(error: InvalidMessageError, place: TaskPlace, rows_before: int) -> NoReturn:
    """Raise `error` again with the partition and the row's number in it."""
    row = error.details.get("item")
    where = f"{place}, row {rows_before + row}" if isinstance(row, int) else f"{place}, after row {rows_before}"
    raise InvalidMessageError(
        f"{where}: {error.message.replace(f' (item {row})', '').replace(f' of row {row}', '')}",
        code=error.code,
        hint=error.hint,
        details={**error.details, "partition": place.partition, "attempt": place.attempt},
    ) from error


def _no_room(error: BufferFullError, place: TaskPlace, rows_before: int, proxies: str) -> NoReturn:
    """Raise `error` again with the partition and what is known of each proxy."""
    raise BufferFullError(
        f"{place}, in the batch after row {rows_before}: {error.message}; proxies: {proxies}",
        hint="check that the proxies answer, raise max_block (delivery_timeout and a second where it is left out) or"
        " buffer_bytes",
        details={**error.details, "partition": place.partition, "attempt": place.attempt},
    ) from error


def _undelivered(
    plan: WritePlan, place: TaskPlace, rows: int, left_out: int, accounting: Accounting, proxies: str
) -> UndeliveredError:
    """Return the error for rows without an acknowledgement; it begins with what went wrong where."""
    group = plan.options.group_name or "of the column group_id"
    missing = rows - left_out - accounting.delivered - accounting.sent
    unsent = missing - accounting.failed - accounting.expired - accounting.dropped - accounting.pending
    worst = max(accounting.errors, key=accounting.errors.__getitem__, default="")
    advice = describe(worst)[1]
    return UndeliveredError(
        accounting,
        f"{missing} of {rows} rows for the group {group} were not delivered: {causes_in_words(accounting.errors)}; "
        f"{place}: of {rows} rows {accounting.delivered} were acknowledged, {left_out} skipped, "
        f"{accounting.failed} refused, {accounting.expired} not acknowledged in time, {accounting.dropped} dropped, "
        f"{accounting.pending} still open, "
        f"{unsent} not sent; proxies: {proxies}",
        hint=f"{advice}{'; ' if advice else ''}when Spark runs the partition again, the acknowledged rows are sent a"
        " second time",
        details={"partition": place.partition, "attempt": place.attempt, "rows": rows, "group": group},
    )
