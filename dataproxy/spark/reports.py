"""What a write counted: one report for each partition, summed up for the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from dataproxy.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["JobReport", "PartitionReport", "check_books"]


@dataclass(frozen=True, slots=True)
class PartitionReport(WriterCommitMessage):  # type: ignore[misc]  # mypy does not follow pyspark
    """The books of one finished task: ``acked + skipped == rows``.

    Times are seconds, `bytes` those of acknowledged bodies, `retries` frames that were sent again.  `run` names
    the write: a job, or a query and its micro-batch.
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

    @property
    def balanced(self) -> bool:
        """Tell whether every row was acknowledged or skipped by policy."""
        return self.acked + self.skipped == self.rows


@dataclass(frozen=True, slots=True)
class JobReport:
    """The books of one write, summed over its partitions.

    `seconds` is the longest task's time and `resent_partitions` counts partitions that a later attempt wrote,
    so that rows of the earlier attempt may be there twice.
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

    @classmethod
    def of(cls, job: str, parts: Iterable[PartitionReport]) -> JobReport:
        """Sum up the partitions of a job."""
        reports = list(parts)
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
        )

    def line(self) -> str:
        """Return the report as one line of text."""
        return (
            f"job {self.job}: {self.rows} rows in {self.partitions} partitions, {self.acked} acknowledged "
            f"({self.bytes} bytes), {self.skipped} skipped, {self.retries} frames sent again, "
            f"{self.resent_partitions} partitions written by a later attempt, longest task {self.seconds:.2f} s"
        )


def check_books(run: str, messages: Sequence[WriterCommitMessage | None]) -> list[PartitionReport]:
    """Return the reports of all partitions.

    Raises LocalProtocolError when one is missing or does not balance.
    """
    parts = [message for message in messages if isinstance(message, PartitionReport)]
    open_books = [part for part in parts if not part.balanced]
    if open_books or len(parts) != len(messages):
        raise LocalProtocolError(
            f"job {run}: {len(parts)} of {len(messages)} partitions reported, these do not balance: {open_books!r}",
            hint="rows may be missing; write the DataFrame again",
        )
    return parts
