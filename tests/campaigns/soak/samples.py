"""Samples of a process, and the straight line through them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Sample", "sample_self", "slope_mib_per_hour"]

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Sample(NamedTuple):
    """What a process holds at one moment."""

    seconds: float
    rss_kib: float
    descriptors: float
    threads: float


def sample_self(seconds: float) -> Sample:
    """Return what this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(seconds, pages * _PAGE_KIB, _entries("fd"), _entries("task"))


def _entries(name: str) -> int:
    return sum(1 for _ in Path("/proc/self", name).iterdir())


def slope_mib_per_hour(samples: list[Sample]) -> float:
    """Return how fast resident memory grows: the median of all slopes between two halves (Theil and Sen)."""
    half = len(samples) // 2
    slopes = sorted(
        (late.rss_kib - early.rss_kib) / (late.seconds - early.seconds)
        for early, late in zip(samples[:half], samples[-half:], strict=True)
        if late.seconds > early.seconds
    )
    return slopes[len(slopes) // 2] * 3600 / 1024 if slopes else 0.0
