"""Observation of a running load: the figures of every second, and a description of the machine."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.perf.histogram import Histogram
from dataproxy._version import __version__
from dataproxy.perf.result import Second

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy import AsyncProducer, Producer
    from dataproxy._core.perf.generator import Generator
    from dataproxy.perf.hub import HubFigures

__all__ = ["Watch", "describe_machine", "resident_bytes"]

_SECOND: Final = 1.0
_MARK: Final = 99.0  # percentile of the generator's lateness that the series shows


def resident_bytes(process: str = "self") -> int:
    """Return the resident memory of a process in bytes, 0 if it is not known."""
    try:
        pages = int(Path("/proc", process, "statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory (bytes), kernel, versions, and the present load average."""
    return {
        "processor": _first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "dataproxy": __version__,
        "load_average": os.getloadavg()[0],
    }


def _first(file: str, name: str) -> str:
    """Return the value of the first line ``name : value`` of a file of the system, "" without one."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


class Watch:
    """Check a running load often, and note a Second when it is over.  Thread: the one that made the object."""

    def __init__(
        self,
        producer: Producer | AsyncProducer,
        generators: list[Generator],
        hub: HubFigures | None,
        told: Callable[[Second], object] | None,
    ) -> None:
        self.series: list[Second] = []
        self._producer = producer
        self._generators = generators
        self._hub = hub
        self._told = told
        self._recent = Histogram()
        self._began = self._noted = 0.0
        self._before: dict[str, Any] = {"due": 0, "accepted": 0, "results": 0, "cpu": 0.0, "hub_cpu": None}
        self._lags = Histogram()

    def begin(self, at: float) -> None:
        """Count seconds from a moment of ``time.monotonic()``."""
        self._began = self._noted = at
        self._before["cpu"] = time.process_time()
        if self._hub is not None:
            self._hub.begin()
            self._before["hub_cpu"] = self._hub.cpu()

    def look(self) -> None:
        """Collect results, and note the second if it is over."""
        for generator in self._generators:
            generator.collect()
        now = time.monotonic()
        if now - self._noted >= _SECOND:
            self._note(now)

    def end(self) -> None:
        """Collect the last results and note what is left of the last second."""
        for generator in self._generators:
            generator.collect()
        self._note(max(time.monotonic(), self._noted + 1e-3))

    def counts(self) -> dict[str, Any]:
        """Return the counts of all threads together."""
        out: dict[str, Any] = {}
        for generator in self._generators:
            for name, value in generator.counts().items():
                out[name] = out.get(name, 0) + value
        return out

    def _note(self, now: float) -> None:
        self._recent.clear()
        for generator in self._generators:
            generator.take_recent(self._recent)
        counts, stats = self.counts(), self._producer.stats()
        results = sum(counts[name] for name in ("delivered", "sent", "failed", "expired", "dropped"))
        cpu, seconds = time.process_time(), now - self._noted
        hub_cpu = self._hub.cpu() if self._hub is not None else None
        second = Second(
            at=now - self._began, seconds=seconds, due=counts["due"] - self._before["due"],
            accepted=counts["accepted"] - self._before["accepted"], results=results - self._before["results"],
            p50=_seconds(self._recent, 50), p99=_seconds(self._recent, 99), p999=_seconds(self._recent, 99.9),
            max=_seconds(self._recent, 100), lag=self._lag(), in_flight=stats.pending, retries=stats.retries,
            cpu=(cpu - self._before["cpu"]) / seconds, memory=resident_bytes(),
            hub_stored=self._hub.stored() if self._hub is not None else None,
            hub_cpu=None if hub_cpu is None else (hub_cpu - self._before["hub_cpu"]) / seconds,
            hub_memory=self._hub.memory() if self._hub is not None else None,
        )  # fmt: skip
        self._before = {
            "due": counts["due"], "accepted": counts["accepted"], "results": results, "cpu": cpu, "hub_cpu": hub_cpu,
        }  # fmt: skip
        self._noted = now
        self.series.append(second)
        if self._told is not None:
            self._told(second)

    def _lag(self) -> float | None:
        """Return the generator's lateness in seconds at p99 since the start; None without messages."""
        self._lags.clear()
        for generator in self._generators:
            generator.add_lags(self._lags)
        return _seconds(self._lags, _MARK)


def _seconds(histogram: Histogram, percent: float) -> float | None:
    found = histogram.percentile(percent)
    return None if found is None else found / 1e6
