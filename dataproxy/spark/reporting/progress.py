"""A line on the driver's terminal that tells how far the writes of a block are."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Self, TextIO

from dataproxy.errors import ConfigError
from dataproxy.spark.interfaces import spark_context

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

    from dataproxy.spark.reporting.counters import Counts, SinkCounters

__all__ = ["WriteProgress"]

_CLEAR: Final = "\r\x1b[K"
_BACK: Final = "\r"  # the cursor waits at the start, so that what others write there takes the line's place
_PATIENCE: Final = 10.0  # seconds for the last look at Spark's status


class WriteProgress:
    """Show finished tasks, and with counters rows, while a ``with`` block writes; silent without a terminal.

    Raises ConfigError over Spark Connect.

    Thread rule: one block at a time; a thread of its own asks Spark's status every ``interval`` seconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        counters: SinkCounters | None = None,
        *,
        file: TextIO | None = None,
        interval: float = 0.5,
    ) -> None:
        self._file = sys.stderr if file is None else file
        self._counters = counters
        self._interval = interval
        self._tracker: StatusTracker | None = None
        context = spark_context(spark)
        if context is None:
            raise ConfigError(
                "over Spark Connect the driver's process does not see the tasks and cannot show progress",
                hint="use the server's UI, or leave WriteProgress out",
            )
        if self._file.isatty():
            self._tracker = context.statusTracker()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._tasks: dict[int, tuple[int, int]] = {}
        self._earlier: set[int] = set()

    def __enter__(self) -> Self:
        if self._tracker is not None:
            self._earlier = set(self._tracker.getActiveStageIds())
            self._before = self._counts()
            self._began = time.monotonic()
            self._done.clear()
            self._thread = threading.Thread(target=self._run, name="dataproxy-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join(_PATIENCE)
            self._thread = None
            self._file.write(f"{_CLEAR}{self.line()}\n")
            self._file.flush()

    def line(self) -> str:
        """Return what is known now as one line of text."""
        done = sum(finished for finished, _ in self._tasks.values())
        total = sum(tasks for _, tasks in self._tasks.values())
        words = [f"{done} of {total} tasks"]
        if self._counters is not None:
            rows = self._counts().acked - self._before.acked
            seconds = max(time.monotonic() - self._began, 1e-9)
            words.append(f"{rows:,} rows acknowledged, {rows / seconds:,.0f} rows/s")
        return ", ".join(words)

    def _run(self) -> None:
        while not self._done.wait(self._interval):
            self._look()
            self._file.write(f"{_CLEAR}{self.line()}{_BACK}")
            self._file.flush()
        self._look()

    def _look(self) -> None:
        """Ask Spark about the stages of this block: those that run, and those that ran at the last look."""
        assert self._tracker is not None  # the thread runs with a terminal only
        for stage in {*self._tasks, *self._tracker.getActiveStageIds()} - self._earlier:
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._tasks[stage] = (info.numCompletedTasks, info.numTasks)

    def _counts(self) -> Counts:
        from dataproxy.spark.reporting.counters import Counts

        return Counts() if self._counters is None else self._counters.counts()
