"""The charts of a result as PNG files; needs matplotlib (``pip install 'dataproxy-sdk[plot]'``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dataproxy.perf.html import charts_of

if TYPE_CHECKING:
    from dataproxy.perf.charts import Chart
    from dataproxy.perf.result import Result

__all__ = ["write_pictures"]


def write_pictures(result: Result, folder: str) -> list[Path]:
    """Write a PNG file for each chart into a folder, which is made, and return their names.  Raises OSError."""
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
