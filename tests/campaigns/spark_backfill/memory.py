"""The most memory that Spark's Python workers ever held, as the kernel keeps it for each process."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.campaigns.spark_chaos.processes import python_workers

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PeakMemory", "peak_kib"]

_PAUSE = 0.5
_PATIENCE = 30.0


def peak_kib(pid: int) -> int:
    """Return the most memory that a process ever held in KiB.  Raises OSError and ValueError when it has ended."""
    for line in Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise ValueError(f"process {pid} has ended")


class PeakMemory:
    """Note the peak of every Python worker below this process while the ``with`` block runs.

    The kernel's own mark is read, so that nothing is missed between two looks but the last moments of a worker that
    ends.
    """

    def __init__(self) -> None:
        self.by_worker: dict[int, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._look()
        self._done.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while not self._done.wait(_PAUSE):
            self._look()

    def _look(self) -> None:
        for worker in python_workers():
            with contextlib.suppress(OSError, ValueError):
                self.by_worker[worker.pid] = peak_kib(worker.pid)
