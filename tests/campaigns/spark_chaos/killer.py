"""A thread that ends Python workers, tasks and executors at random moments."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

from tests.campaigns.spark_chaos.processes import executors, kill, python_workers

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Killer"]

_TASKS = 100  # looked at for one to kill
_PLANNERS = 0.1  # share of kills that happen although no task runs
_PATIENCE = 30.0


class Killer:
    """End something every now and then while the ``with`` block runs, and count what was ended."""

    def __init__(
        self, context: Any, dice: random.Random, *, limit: int, ways: tuple[str, ...] = ("worker", "worker", "task")
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._scala = context._jsc.sc()
        self._dice = dice
        self._limit = limit
        self._ways = ways
        self._tracker = context.statusTracker()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._done.clear()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        assert self._thread is not None
        self._thread.join(_PATIENCE)

    @property
    def total(self) -> int:
        """Return how many were ended."""
        return self.kills.total()

    def _run(self) -> None:
        while self.total < self._limit and not self._done.wait(self._dice.uniform(0.1, 1.2)):
            way = self._dice.choice(self._ways)
            if self._kill(way):
                self.kills[way] += 1

    def _kill(self, way: str) -> bool:
        """End one of a kind; tell whether something was ended.

        Mostly while tasks run: Spark gives a job up, and tells so, when the process that plans it dies.
        """
        stages = self._tracker.getActiveStageIds()
        if not stages and self._dice.random() > _PLANNERS:
            return False
        if way == "task":
            return any(self._kill_task(stage) for stage in stages)
        found = executors() if way == "executor" else python_workers()
        return bool(found) and kill(self._dice.choice(found))

    def _kill_task(self, stage: int) -> bool:
        """End a running task of a stage; tell whether there was one."""
        tasks = self._scala.statusStore().taskList(stage, 0, _TASKS)
        running = [tasks.apply(i).taskId() for i in range(tasks.size()) if tasks.apply(i).status() == "RUNNING"]
        return bool(running) and self._scala.killTaskAttempt(
            self._dice.choice(running), True, "killed in the laboratory"
        )
