"""The machine of a run, in a few facts that help to read its figures."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from dataproxy._version import __version__

__all__ = ["describe_machine"]


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory (bytes), kernel, versions, and the load average before the run's end."""
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
    """Return the value of the first line ``name : value`` of a file of the system's, "" without one."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
