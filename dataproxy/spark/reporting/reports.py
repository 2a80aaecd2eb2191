"""What a write counted: one report for each partition, summed up for the job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from dataproxy.errors import LocalProtocolError
from dataproxy.spark.interfaces import WriterCommitMessage
from dataproxy.spark.reporting.attempts import Attempt, Uncommitted
from dataproxy.spark.reporting.copies import copies_in_job, copies_in_task
from dataproxy.spark.reporting.datatimes import joined
from dataproxy.spark.reporting.latency import Steps, added, percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ABORTED", "COMMITTED", "JobReport", "PartitionReport", "check_accounting", "latency_text"]

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"


@dataclass(frozen=True, slots=True)
class PartitionReport(WriterCommitMessage):  # type: ignore[misc]  # mypy does not follow pyspark
    """The counts of one finished task: ``acked + sent + skipped + refused == rows``.

    Times are seconds, `bytes` those of acknowledged bodies, `retries` frames that were sent again.  `copies_possible`
    counts rows in frames that were sent again though an earlier attempt may be stored, `duplicates_filtered` rows that
    a server had stored before and did not store again, `conflicts` rows whose id it knew with another body.
    `remembered` tells that every server still remembers all that this write has sent.  `known_since` (seconds since
    1970) is the time from which on all servers remember messages; None if a server does not say it.  `run` names the
    write: a job, or a query and its micro-batch.  `latencies` are microseconds from a pack's first message to its ack,
    and messages.  `refused` counts bad records, `reasons` has their codes, `bad_file` names the file that got them.
    `times` are the earliest and the latest data time of the column ``dt`` in milliseconds; None without one.  `record`
    names the file of the attempt in the report folder.  `sent` counts rows that were written with ``ack=none``.
    """

    run: str
    partition: int
    attempt: int
    rows: int
    bytes: int
    acked: int
    skipped: int
    retries: int
    seconds: float
    copies_possible: int = 0
    duplicates_filtered: int = 0
    conflicts: int = 0
    remembered: bool = False
    known_since: float | None = None
    latencies: Steps = ()
    refused: int = 0
    reasons: tuple[tuple[str | int, int], ...] = ()
    bad_file: str = ""
    times: tuple[int, int] | None = None
    record: str = ""
    sent: int = 0

    @property
    def duplicates_possible(self) -> int:
        """Return how many rows this task may have stored twice by itself; those of other attempts are not in it."""
        return copies_in_task(self)

    @property
    def balanced(self) -> bool:
        """Tell whether every row was acknowledged (or sent), skipped by policy or refused as a bad record."""
        return self.acked + self.sent + self.skipped + self.refused == self.rows

    @property
    def latency_p50(self) -> float | None:
        """Return the median of the ack latency in seconds; None without messages."""
        return percentile(self.latencies, 50)

    @property
    def latency_p99(self) -> float | None:
        """Return the 99th percentile of the ack latency in seconds; None without messages."""
        return percentile(self.latencies, 99)

    def line(self) -> str:
        """Return the report as one line of text."""
        return (
            f"{self.rows} rows, {self.acked} acknowledged ({self.bytes} bytes), {_sent_text(self.sent)}"
            f"{self.skipped} skipped, "
            f"{self.refused} refused, {self.retries} frames sent again, {self.duplicates_filtered} rows were stored "
            f"already, {latency_text(self.latency_p50, self.latency_p99)}, {self.seconds:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class JobReport:
    """The counts of one write, summed over its partitions.

    `seconds` is the longest task's time and `resent_partitions` counts partitions that a later attempt wrote,
    so that rows of the earlier attempt may be stored twice: at most `resent_rows` for each earlier attempt.
    `duplicates_filtered` counts rows that a server had stored before and did not store again, and `conflicts` rows
    whose id it knew with another body; only hubs with the option ``dedupe`` say so.  `duplicates_possible` counts rows
    that may be stored twice: those of earlier attempts and of frames that were sent again, without what was filtered;
    0 if every server still remembered all that the write had sent.  A `named` write (option ``runId``) may repeat an
    earlier one: rows that the earlier one stored before `known_since` (seconds since 1970; None if a server does not
    say it) are not in that number.  Latencies are seconds from a pack's first message to its ack, over the messages of
    all tasks; None without messages.  `refused` counts bad records, `reasons` by code, and `bad_files` names what they
    were written to.  `earliest_dt` and `latest_dt` are the ends of the column ``dt`` in milliseconds since 1970; None
    without one.  `sent` counts rows that were written with ``ack=none``: nobody knows whether they arrived.

    `outcome` is ``committed`` or ``aborted``.  All counts above are those of partitions that were written to their end;
    `uncommitted` has those of all other attempts, `unfinished_partitions` counts the partitions that were not, and
    `unknown_partitions` those among them without a report of any attempt.
    """

    job: str
    partitions: int
    rows: int
    bytes: int
    acked: int
    skipped: int
    retries: int
    seconds: float
    resent_partitions: int
    resent_rows: int = 0
    duplicates_possible: int = 0
    duplicates_filtered: int = 0
    conflicts: int = 0
    latency_p50: float | None = None
    latency_p99: float | None = None
    refused: int = 0
    reasons: dict[str | int, int] = field(default_factory=dict)
    bad_files: tuple[str, ...] = ()
    earliest_dt: int | None = None
    latest_dt: int | None = None
    outcome: str = COMMITTED
    uncommitted: Uncommitted = field(default_factory=Uncommitted)
    unfinished_partitions: int = 0
    unknown_partitions: int = 0
    named: bool = False
    known_since: float | None = None
    sent: int = 0

    @classmethod
    def of(
        cls, job: str, parts: Iterable[PartitionReport], attempts: Iterable[Attempt] = (), *, named: bool = False
    ) -> JobReport:
        """Sum up the partitions of a job, and what its ``attempts`` left."""
        reports = list(parts)
        others = list(attempts)
        latencies = added(part.latencies for part in reports)
        first, last = joined(part.times for part in reports) or (None, None)
        return cls(
            job=job,
            partitions=len(reports),
            rows=sum(part.rows for part in reports),
            bytes=sum(part.bytes for part in reports),
            acked=sum(part.acked for part in reports),
            skipped=sum(part.skipped for part in reports),
            retries=sum(part.retries for part in reports),
            seconds=max((part.seconds for part in reports), default=0.0),
            resent_partitions=sum(part.attempt > 0 for part in reports),
            resent_rows=sum(part.rows for part in reports if part.attempt > 0),
            duplicates_possible=copies_in_job(reports, others),
            duplicates_filtered=sum(part.duplicates_filtered for part in reports),
            conflicts=sum(part.conflicts for part in reports),
            latency_p50=percentile(latencies, 50),
            latency_p99=percentile(latencies, 99),
            refused=sum(part.refused for part in reports),
            reasons=_summed(part.reasons for part in reports),
            bad_files=tuple(part.bad_file for part in reports if part.bad_file),
            earliest_dt=first,
            latest_dt=last,
            uncommitted=Uncommitted.of(others, reports),
            named=named,
            known_since=_known_since(reports),
            sent=sum(part.sent for part in reports),
        )

    @classmethod
    def of_aborted(
        cls,
        job: str,
        messages: Sequence[WriterCommitMessage | None],
        attempts: Sequence[Attempt],
        *,
        named: bool = False,
    ) -> JobReport:
        """Sum up a job that failed: Spark gives no message for partitions that were not written to their end."""
        parts = [message for message in messages if isinstance(message, PartitionReport)]
        finished = {part.partition for part in parts}
        told = {attempt.partition for attempt in attempts} - finished
        return replace(
            cls.of(job, parts, attempts, named=named),
            outcome=ABORTED,
            unfinished_partitions=len(messages) - len(parts),
            unknown_partitions=len(messages) - len(parts) - len(told),
        )

    @property
    def times(self) -> tuple[int, int] | None:
        """Return the earliest and the latest data time; None without a column ``dt``."""
        return None if self.earliest_dt is None or self.latest_dt is None else (self.earliest_dt, self.latest_dt)

    def line(self) -> str:
        """Return the report as one line of text."""
        line = (
            f"job {self.job}: {self.rows} rows in {self.partitions} partitions, {self.acked} acknowledged "
            f"({self.bytes} bytes), {_sent_text(self.sent)}{self.skipped} skipped, {self.refused} refused, "
            f"{self.retries} frames sent again, "
            f"{self.resent_partitions} partitions ({self.resent_rows} rows) written by a later attempt, "
            f"{self.duplicates_filtered} rows were stored already, {self.duplicates_possible} rows possibly stored "
            f"twice, {latency_text(self.latency_p50, self.latency_p99)}, longest task {self.seconds:.2f} s"
        )
        conflicts = f"{self.conflicts} rows have ids that are stored with another body" if self.conflicts else ""
        return "; ".join(part for part in (line, conflicts, self._earlier(), self.uncommitted.line()) if part)

    def _earlier(self) -> str:
        """Return what an earlier write with this name may have left, in words; empty if all rows were known."""
        if not self.named or self.duplicates_filtered >= self.acked:
            return ""
        if self.known_since is None:
            return (
                "rows that an earlier write with this runId stored may be stored twice: not every server remembers ids"
            )
        since = datetime.fromtimestamp(self.known_since, UTC).isoformat(timespec="seconds")
        return f"rows that an earlier write with this runId stored before {since} may be stored twice"

    def aborted_line(self) -> str:
        """Return what is known about a failed job as one line of text."""
        uncommitted, finished = self.uncommitted, self.partitions
        out = (
            f"at least {self.acked + uncommitted.acked} rows were acknowledged and {uncommitted.possibly_stored} "
            "others are possibly stored, counted over all attempts"
        )
        stay = (
            f"{finished} of {finished + self.unfinished_partitions} partitions had finished; their rows stay delivered"
        )
        words = [out, stay, self.line() if finished else uncommitted.line()]
        if self.unknown_partitions:
            words.append(f"of {self.unknown_partitions} partitions no attempt left a report; what they sent is unknown")
        return "; ".join(part for part in words if part)


def _known_since(parts: Sequence[PartitionReport]) -> float | None:
    """Return since when all servers remember messages; None where one did not say."""
    times = [part.known_since for part in parts if part.acked]
    return None if None in times else max((time for time in times if time is not None), default=None)


def _summed(reasons: Iterable[Iterable[tuple[str | int, int]]]) -> dict[str | int, int]:
    """Return how many bad records there are of each code."""
    total: Counter[str | int] = Counter()
    for part in reasons:
        total.update(dict(part))
    return dict(total)


def _sent_text(sent: int) -> str:
    return f"{sent} sent without an ack, " if sent else ""


def latency_text(p50: float | None, p99: float | None) -> str:
    """Return two percentiles in words."""
    if p50 is None or p99 is None:
        return "no ack latency"
    return f"ack latency p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms"


def check_accounting(run: str, messages: Sequence[WriterCommitMessage | None]) -> list[PartitionReport]:
    """Return the reports of all partitions.

    Raises LocalProtocolError when one is missing or does not balance.
    """
    parts = [message for message in messages if isinstance(message, PartitionReport)]
    unbalanced = [part for part in parts if not part.balanced]
    if unbalanced or len(parts) != len(messages):
        raise LocalProtocolError(
            f"job {run}: {len(parts)} of {len(messages)} partitions reported; the counts of these are inconsistent:"
            f" {unbalanced!r}",
            hint="rows may be missing; write the DataFrame again",
        )
    return parts
