"""The measured section of a client program: wall time, CPU time of the process, peak memory."""

import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Section", "memory_kb", "repeat", "report", "status_kb"]


class Section:
    """Measure from creation to ``end``."""

    def __init__(self) -> None:
        """Start the clocks."""
        self._usage = resource.getrusage(resource.RUSAGE_SELF)
        self._began = time.perf_counter()

    def end(self, records: int, size: int) -> dict[str, float]:
        """Stop and return the fields that every client prints; ``size`` is that of one body in bytes."""
        seconds = time.perf_counter() - self._began
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "records": records,
            "bytes": records * size,
            "seconds": seconds,
            "cpu_user": usage.ru_utime - self._usage.ru_utime,
            "cpu_sys": usage.ru_stime - self._usage.ru_stime,
            "peak_rss_kb": memory_kb("VmHWM"),
        }


def repeat(step: Callable[[], object], seconds: float) -> int:
    """Call ``step`` for ``seconds``, at least once, and return the number of calls."""
    calls = 0
    until = time.perf_counter() + seconds
    while True:
        step()
        calls += 1
        if time.perf_counter() >= until:
            return calls


def report(fields: dict[str, float]) -> None:
    """Print the result as one line of JSON."""
    print(json.dumps(fields), flush=True)


def status_kb(status: str, field: str) -> int:
    """Return one size in KiB from the text of ``/proc/self/status``."""
    for line in status.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise ValueError(f"no field {field!r} in /proc/self/status")


def memory_kb(field: str) -> int:
    """Return one size of this process in KiB; ``getrusage`` would still have the parent's peak after exec."""
    return status_kb(Path("/proc/self/status").read_text(), field)
