"""What the driver hands to the tasks of a write: it is pickled, and imports nothing that sends.

Spark plans and commits each write in new processes, which would pay for the import of the producer and never use it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataproxy.rows.bodies import RAW_FORMAT, BodyFormat
from dataproxy.spark.badrecords import FAIL

if TYPE_CHECKING:
    from dataproxy.spark.planning.columns import ColumnPlan
    from dataproxy.spark.planning.options import SinkOptions
    from dataproxy.spark.reporting.counters import Tally
    from dataproxy.spark.reporting.outlets import Outlets

__all__ = ["TaskPlace", "WritePlan"]


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What the driver decided once for all tasks of a write.  Holds no secrets.

    ``job`` names a batch write; it is empty for streaming, where a task learns its query and micro-batch itself.
    ``id_run`` is what ids of rows name instead, where the user has named the write, so that they are the same when it
    is done again.  ``tally`` is the accumulator of `register`, ``room`` the folder in which attempts leave their
    counts.  ``began`` is when it was planned, in seconds since 1970.
    """

    job: str
    options: SinkOptions
    columns: ColumnPlan
    outlets: Outlets
    row_ids: bool = False
    tally: Tally | None = None
    body: BodyFormat = RAW_FORMAT
    bad_records: str = FAIL
    room: str = ""
    id_run: str = ""
    began: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where a task stands: its partition, the attempt counted from 0, and the run that it belongs to."""

    partition: int
    attempt: int
    run: str

    def id_prefix(self, run: str = "") -> bytes:
        """Return what the ids of this task's rows by their places begin with; equal for all attempts."""
        return f"{run or self.run}.{self.partition}.".encode()

    def key_prefix(self, run: str = "") -> bytes:
        """Return what ids made of columns begin with; equal for all tasks.

        The micro-batch is in it: before its first task runs, Spark has written down which part of the source belongs
        to it, so that a row comes again in the same one, however partitions are cut.  And a row of another
        micro-batch with the same values is another row.
        """
        return f"{run or self.run}.~".encode()

    def __str__(self) -> str:
        return f"partition {self.partition} (attempt {self.attempt})"
