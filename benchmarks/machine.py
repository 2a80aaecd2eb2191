"""The machine that the measurements ran on, and whether other programs used it during the run."""

import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import dataproxy

__all__ = ["BUSY_SHARE", "Watch", "busy_jiffies", "describe"]

BUSY_SHARE = 0.10  # of one core, used by other processes during a run; with more the report warns
PACKAGES = ("confluent-kafka", "aiokafka", "uvloop", "pyspark", "pyarrow", "numpy", "cython", "msgspec")


def busy_jiffies(stat: str) -> int:
    """Return the jiffies that were not idle, from the text of ``/proc/stat``."""
    first = stat.splitlines()[0].split()
    if first[0] != "cpu":
        raise ValueError(f"the first line of /proc/stat reads {stat.splitlines()[0]!r}")
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in first[1:9])
    return user + nice + system + irq + softirq + steal


class Watch:
    """Measure the CPU that other processes used between its creation and ``others()``."""

    def __init__(self) -> None:
        """Start watching."""
        self._began = time.monotonic()
        self._busy = busy_jiffies(Path("/proc/stat").read_text())
        self._own = own_cpu_seconds()

    def others(self) -> float:
        """Return the share of one core that neither this process nor its ended children used."""
        seconds = time.monotonic() - self._began
        tick = os.sysconf("SC_CLK_TCK")
        busy = (busy_jiffies(Path("/proc/stat").read_text()) - self._busy) / tick
        return max(0.0, (busy - (own_cpu_seconds() - self._own)) / seconds)


def own_cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children it has waited for."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def describe() -> dict[str, object]:
    """Return machine, kernel, interpreter, compiler, packages and commit as plain data."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": sorted(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "governor": first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) or "not exposed",
        "python": sys.version.split()[0],
        "compiler": output("gcc", "--version").splitlines()[0],
        "java": java_version(),
        "packages": {"dataproxy": dataproxy.__version__} | {name: version(name) for name in PACKAGES},
        "commit": commit(),
        "load_before": os.getloadavg()[0],
    }


def cpu_model() -> str:
    """Return the processor's name as the kernel reports it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def version(package: str) -> str:
    """Return the installed version of a distribution, or that it is absent."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def java_version() -> str:
    """Return the first line of ``java -version``."""
    try:
        ran = subprocess.run(("java", "-version"), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return ran.stderr.splitlines()[0]


def commit() -> str:
    """Return the short commit of the checkout, marked when files differ from it."""
    name = output("git", "rev-parse", "--short", "HEAD").strip()
    if not name:
        return "unknown"
    changed = output("git", "status", "--porcelain", "--untracked-files=no").strip()
    return f"{name} with local changes" if changed else name


def output(*command: str) -> str:
    """Return what a command prints, or nothing when it cannot be run."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return "\n"
    return ran.stdout


def first_line(path: Path) -> str:
    """Return the first line of a file, empty when there is none."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
