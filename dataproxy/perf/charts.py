"""The charts of a result: as inline SVG, without a library, a script or a download, and as PNG files."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dataproxy.perf.result import Result, Second

__all__ = ["Chart", "Line", "charts_of", "nice_ticks", "percentile_curve", "svg", "write_pictures"]

_WIDTH: Final = 720
_HEIGHT: Final = 240
_LEFT: Final = 70
_RIGHT: Final = 16
_TOP: Final = 30
_BOTTOM: Final = 36
#: Colours that can be told apart without red and green (Okabe and Ito).
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
_TICKS: Final = 6
#: Places of the percentile curve, and the texts below it.
_CURVE: Final = (0.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_STEPS: Final = 60
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """Hold the points of one line; the line has a gap where y is None."""

    name: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Describe a chart.  ``ticks`` are places on the x axis with their texts, None for round numbers."""

    title: str
    x_label: str
    lines: Sequence[Line]
    ticks: Sequence[tuple[float, str]] | None = None
    dots: bool = False


def charts_of(result: Result) -> list[Chart]:
    """Return the charts of a result; those that show latencies are left out where the run is not valid."""
    series = result.series

    def line(name: str, value: Callable[[Second], float | None]) -> Line:
        return Line(name, [(second.at, value(second)) for second in series])

    def ms(value: float | None) -> float | None:
        return None if value is None else value * 1000

    out = [
        Chart("messages a second", "seconds", [
            line("due", lambda s: s.due / s.seconds), line("results", lambda s: s.results / s.seconds)]),
    ]  # fmt: skip
    if not result.invalid:
        out += [
            Chart("latency of the results of each second, ms", "seconds", [
                line("p50", lambda s: ms(s.p50)), line("p99", lambda s: ms(s.p99)), line("p99.9", lambda s: ms(s.p999)),
                line("max", lambda s: ms(s.max))]),
            percentile_curve(result),
            Chart("p99 of each second, ms, against its rate", "results a second", [
                Line("p99", [(s.results / s.seconds, ms(s.p99)) for s in series if s.results])], dots=True),
        ]  # fmt: skip
    out += [
        Chart("messages in flight", "seconds", [line("in flight", lambda s: s.in_flight)]),
        Chart("attempts beyond the first, so far", "seconds", [line("retries", lambda s: s.retries)]),
        Chart("processor, cores", "seconds", _with_hub(series, line("sender", lambda s: s.cpu),
              line("hub", lambda s: s.hub_cpu))),
        Chart("memory, MiB", "seconds", _with_hub(series, line("sender", lambda s: s.memory / _MIB),
              line("hub", lambda s: None if s.hub_memory is None else s.hub_memory / _MIB))),
    ]  # fmt: skip
    if any(second.hub_stored is not None for second in series):
        out.append(Chart("stored by the hub, messages", "seconds", [line("stored", lambda s: s.hub_stored)]))
    return out


def _with_hub(series: Iterable[Second], own: Line, hub: Line) -> list[Line]:
    return [own, hub] if any(second.hub_cpu is not None for second in series) else [own]


def percentile_curve(result: Result) -> Chart:
    """Return latency over percentile; each step to the right has a tenth of the samples of the step before it.

    It ends where less than one sample is left.
    """
    n = max(len(result.latencies), 1)
    end = max(math.log10(n), 0.1)
    places = [end * step / _STEPS for step in range(_STEPS + 1)]
    points = [(place, (result.percentile(100 - 100 * 10**-place) or 0) * 1000) for place in places]
    ticks = [(-math.log10(1 - percent / 100), f"{percent:g} %") for percent in _CURVE]
    return Chart("latency by percentile, ms", "percent of the messages", [Line("latency", points)], ticks=ticks)


def nice_ticks(low: float, high: float, most: int = _TICKS) -> list[float]:
    """Return round numbers that cover a range, at most one more than ``most`` of them."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def svg(chart: Chart) -> str:
    """Return the chart as an SVG element."""
    points = [(x, y) for line in chart.lines for x, y in line.points if y is not None]
    if not points:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_ends = (min(xs), max(xs)) if max(xs) > min(xs) else (min(xs) - 0.5, max(xs) + 0.5)
    grid = nice_ticks(0.0, max(ys) * 1.05 if max(ys) > 0 else 1.0)
    frame = _Frame(x_ends, (0.0, max(grid[-1], max(ys)) * 1.02))
    label = escape(f"{chart.title}: {', '.join(line.name for line in chart.lines)}")
    return "\n".join(
        [
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">',
            f'<text x="{_LEFT}" y="16" class="title">{escape(chart.title)}</text>',
            *_grid(frame, grid),
            *_axis(frame, chart),
            *(part for number, line in enumerate(chart.lines) for part in _drawn(frame, line, number, chart.dots)),
            *_legend(chart),
            "</svg>",
        ]
    )


class _Frame:
    """Turn values into coordinates of the drawing."""

    def __init__(self, xs: tuple[float, float], ys: tuple[float, float]) -> None:
        self.xs, self.ys = xs, ys

    def x(self, value: float) -> float:
        low, high = self.xs
        return round(_LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        low, high = self.ys
        return round(_HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _number(value: float) -> str:
    """Return a number for an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"


def _grid(frame: _Frame, values: Sequence[float]) -> Iterator[str]:
    for value in values:
        y = frame.y(value)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_number(value)}</text>'


def _axis(frame: _Frame, chart: Chart) -> Iterator[str]:
    ticks = chart.ticks if chart.ticks is not None else [(x, _number(x)) for x in nice_ticks(*frame.xs, 10)]
    for place, text in ticks:
        if frame.xs[0] <= place <= frame.xs[1]:
            yield f'<text x="{frame.x(place)}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{escape(text)}</text>'
    yield f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 5}" text-anchor="end">{escape(chart.x_label)}</text>'


def _drawn(frame: _Frame, line: Line, number: int, dots: bool) -> Iterator[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    if dots:
        for x, y in line.points:
            if y is not None:
                yield f'<circle cx="{frame.x(x)}" cy="{frame.y(y)}" r="3" fill="{colour}" fill-opacity="0.7"/>'
        return
    path, pen_down = [], False
    for x, y in line.points:
        if y is not None:
            path.append(f"{'L' if pen_down else 'M'}{frame.x(x)} {frame.y(y)}")
        pen_down = y is not None
    drawn = "".join(path)
    yield f'<path d="{drawn}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _legend(chart: Chart) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    for number, line in reversed(list(enumerate(chart.lines))):
        colour = _COLOURS[number % len(_COLOURS)]
        yield f'<text x="{right}" y="16" text-anchor="end" style="fill:{colour}">{escape(line.name)}</text>'
        right -= 7 * len(line.name) + 18


def write_pictures(result: Result, folder: str) -> list[Path]:
    """Write a PNG file for each chart into a folder, which is made, and return their names.

    Needs matplotlib (``pip install 'dataproxy-sdk[plot]'``).  Raises OSError.
    """
    from matplotlib.figure import Figure

    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    out = []
    for number, chart in enumerate(charts_of(result), 1):
        name = re.sub(r"[^a-z0-9]+", "-", chart.title.lower()).strip("-")
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        _draw(figure.subplots(), chart)
        out.append(home / f"{number}-{name}.png")
        figure.savefig(out[-1], dpi=120)
    return out


def _draw(axes: object, chart: Chart) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    for line in chart.lines:
        xs = [x for x, _ in line.points]
        ys = [float("nan") if y is None else y for _, y in line.points]
        axes.plot(xs, ys, "o" if chart.dots else "-", label=line.name)
    axes.set_title(chart.title, loc="left", fontsize=10)
    axes.set_xlabel(chart.x_label)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.4)
    if chart.ticks is not None:
        low, high = axes.get_xlim()
        shown = [(place, text) for place, text in chart.ticks if low <= place <= high]
        axes.set_xticks([place for place, _ in shown], [text for _, text in shown])
    if len(chart.lines) > 1:
        axes.legend(fontsize=8)
