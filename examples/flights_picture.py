"""Sampling a hub while data comes in, and a picture of throughput and in-flight bytes over time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from dataproxy.hub import Hub

INTERVAL = 0.02
MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """The hub's counters at one moment, in seconds since the first sample."""

    seconds: float
    rows: int
    bytes: int
    in_flight: int


class Recorder:
    """Sample a hub's counters on a thread of its own while the block runs."""

    def __init__(self, hub: Hub, progress: Callable[[int], object]) -> None:
        self.samples: list[Sample] = []
        self.marks: list[tuple[float, str]] = []
        self._hub = hub
        self._progress = progress
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._take(time.monotonic())

    def mark(self, text: str) -> None:
        """Add a mark with this text at the present moment."""
        self.marks.append((time.monotonic() - self._started, text))

    def marks_after(self, samples: list[Sample]) -> list[tuple[float, str]]:
        """Return the marks on the time scale of samples that `active` has cut out of this recorder's."""
        last = next(sample for sample in self.samples if sample.rows == samples[-1].rows)
        zero = last.seconds - samples[-1].seconds
        return [(seconds - zero, text) for seconds, text in self.marks]

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL if self.samples else 0):
            self._take(time.monotonic())

    def _take(self, now: float) -> None:
        stats = self._hub.stats()
        if not self.samples:
            self._started = now
        self.samples.append(Sample(now - self._started, stats["records"], stats["bytes_in"], stats["queued_bytes"]))
        self._progress(stats["records"])


def active(samples: list[Sample]) -> list[Sample]:
    """Return the samples from the last one without rows to the first one with all of them, counted from zero."""
    first = max((place for place, sample in enumerate(samples) if sample.rows == 0), default=0)
    last = next(place for place, sample in enumerate(samples) if sample.rows == samples[-1].rows)
    zero = samples[first].seconds
    return [replace(sample, seconds=sample.seconds - zero) for sample in samples[first : max(last, first + 1) + 1]]


def span_of(samples: list[Sample]) -> int:
    """Return the number of samples over which the rate is averaged: about a tenth of them."""
    return max(1, len(samples) // 10)


def window(samples: list[Sample]) -> float:
    """Return the seconds over which the rate is averaged."""
    return (samples[-1].seconds - samples[0].seconds) * span_of(samples) / max(1, len(samples) - 1)


def rates(samples: list[Sample]) -> tuple[list[float], list[float]]:
    """Return moments and rows per second, averaged over about a tenth of the time."""
    span = span_of(samples)
    times, values = [], []
    for before, after in zip(samples, samples[span:], strict=False):
        times.append((before.seconds + after.seconds) / 2)
        values.append((after.rows - before.rows) / max(after.seconds - before.seconds, 1e-9))
    return times, values


def draw(samples: list[Sample], path: Path, *, title: str, marks: Iterable[tuple[float, str]] = ()) -> None:
    """Save a picture of rows per second, rows in all, and in-flight bytes; a mark is a line with a word."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(10, 6.5), sharex=True, height_ratios=[3, 2], layout="constrained"
    )
    moments = [sample.seconds for sample in samples]
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")

    upper.fill_between(*rates(samples), color="#2a78b5", alpha=0.25, linewidth=0)
    upper.plot(*rates(samples), color="#2a78b5", label="rows/s")
    upper.set_ylabel(f"rows per second, mean over {window(samples):.1f} s", color="#2a78b5")
    upper.set_ylim(bottom=0)
    upper.yaxis.set_major_formatter(thousands)
    total = upper.twinx()
    total.plot(moments, [sample.rows for sample in samples], color="#c8553d", linestyle="--", label="rows in all")
    total.set_ylabel("rows in all", color="#c8553d")
    total.set_ylim(bottom=0)
    total.yaxis.set_major_formatter(thousands)
    upper.set_title(title)
    upper.grid(alpha=0.3)
    for moment, text in marks:
        for axes in (upper, lower):
            axes.axvline(moment, color="#8a2be2", linestyle=":")
        upper.annotate(
            text,
            (moment, 0.97),
            xycoords=("data", "axes fraction"),
            color="#8a2be2",
            rotation=90,
            va="top",
            ha="right",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
        )

    lower.fill_between(
        moments, [sample.in_flight / MIB for sample in samples], color="#5a8f4e", alpha=0.35, linewidth=0
    )
    lower.plot(moments, [sample.in_flight / MIB for sample in samples], color="#5a8f4e")
    lower.set_ylabel("in flight, MiB\n(received, not yet on disk)")
    lower.set_xlabel("seconds since the first rows were on their way")
    lower.set_ylim(bottom=0)
    lower.set_xlim(0, max(moments[-1], INTERVAL))
    lower.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)
