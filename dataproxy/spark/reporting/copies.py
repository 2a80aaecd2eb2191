"""The number of rows of a write that may be stored twice, from the counts of its attempts and of the servers.

A server that does not store copies (the hub with ``dedupe``) says in each answer how many messages were copies, and for
how long it remembers messages.  Other servers say nothing: all rows that may have been sent twice to them may be stored
twice.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dataproxy.spark.reporting.attempts import Attempt
    from dataproxy.spark.reporting.reports import PartitionReport

__all__ = ["copies_in_job", "copies_in_task"]


def copies_in_task(part: PartitionReport) -> int:
    """Return how many rows a task may have stored twice because it sent frames again itself."""
    return 0 if part.remembered else max(0, part.copies_possible - part.duplicates_filtered)


def copies_in_job(parts: Sequence[PartitionReport], attempts: Iterable[Attempt]) -> int:
    """Return how many rows may be stored twice; an upper bound if attempts ended without counts.

    If every server still remembered all rows that the write had sent before (`PartitionReport.remembered`), a row that
    an earlier attempt stored and that was not filtered in this attempt had another id, and is stored twice.
    """
    committed = {part.record for part in parts if part.record}
    others: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.token not in committed:
            others[attempt.partition].append(attempt)
    return sum(_copies(part, others[part.partition]) for part in parts)


def _copies(part: PartitionReport, others: Sequence[Attempt]) -> int:
    """Return how many rows of one partition may be stored twice."""
    ended = [attempt for attempt in others if attempt.ended]
    numbers = {part.attempt, *(attempt.attempt for attempt in others)}
    silent = max(numbers) + 1 - len(numbers) + len(others) - len(ended)  # Spark counts attempts from 0
    stored = sum(attempt.acked - attempt.filtered for attempt in ended)
    if part.remembered:
        unknown = part.rows if silent and part.duplicates_filtered == 0 else 0
        return max(stored - part.duplicates_filtered, unknown, 0)
    possible = part.copies_possible + stored + sum(attempt.possibly_stored for attempt in ended) + silent * part.rows
    return max(0, possible - part.duplicates_filtered)
