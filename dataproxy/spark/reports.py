"""What a write counted: one report for each partition, summed up for the job."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["JobReport", "PartitionReport"]


@dataclass(frozen=True, slots=True)
class PartitionReport(WriterCommitMessage):  # type: ignore[misc]  # mypy does not follow pyspark
    """The books of one finished task: ``acked + skipped == rows``.

    Times are seconds, `bytes` those of acknowledged bodies, `retries` frames that were sent again.
    """

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

    def save(self, path: Path) -> None:
        """Write the report as a JSON file, replacing an older one in one step.

        Raises OSError when the folder cannot be written.
        """
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
