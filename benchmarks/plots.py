"""Pictures of a run, as PNG in ``docs/images``: throughput by body size, latency by load, scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.floors import ROOT
from benchmarks.lines.latency import LOADS, load_name
from benchmarks.lines.spread import CONNECTION_COUNTS, STREAM_COUNTS, connections_name, streams_name
from benchmarks.samples import summarise

__all__ = ["IMAGES", "OURS", "SECOND", "STYLE", "caption", "draw"]

IMAGES = ROOT / "docs" / "images"
INK, MUTED, GRID = "#1f2933", "#7b8794", "#e4e7eb"
FLOOR, OURS, SECOND, PEER = "#9aa5b1", "#0b6e99", "#e07a1f", "#b23a48"
STYLE = {
    "font.size": 10,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
}
Points = Mapping[str, Mapping[str, Sequence[float]]]
# size in the table: label of the axis, and the lines of floor, ours and peer
BY_SIZE = (
    ("100 B", "blast", "send_batch, list of bytes", "confluent-kafka produce_batch"),
    *(
        (n, f"blast {n}", f"send_batch {n}", f"confluent-kafka produce_batch {n}")
        for n in ("1 KB", "10 KB", "100 KB", "1 MB")
    ),
)


def draw(points: Points, folder: Path = IMAGES) -> list[Path]:
    """Write every picture whose lines were measured; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(STYLE):
        for name, make in (("throughput.png", throughput), ("latency.png", latency), ("scaling.png", scaling)):
            picture = make(points)
            if picture is not None:
                picture.savefig(folder / name, dpi=150, facecolor="white", metadata={"Software": ""})
                written.append(folder / name)
    return written


def middle(points: Points, name: str, metric: str) -> tuple[float, float, float] | None:
    """Return median, minimum and maximum of a series, None when it was not measured."""
    series = points.get(name, {}).get(metric)
    if not series:
        return None
    summary = summarise(series)
    return summary.median, summary.low, summary.high


def throughput(points: Points) -> Figure | None:
    """Draw bytes of bodies a second by body size: floor, ours, peer."""
    sizes = [row for row in BY_SIZE if all(middle(points, name, "body_rate") for name in row[1:3])]
    if not sizes:
        return None
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    bars = (
        ("blast, plain C, same frames again and again", FLOOR),
        ("dataproxy send_batch", OURS),
        ("confluent-kafka produce_batch", PEER),
    )
    for number, (label, colour) in enumerate(bars):
        for at, row in enumerate(sizes):
            found = middle(points, row[1 + number], "body_rate")
            if found is None:
                continue
            median, low, high = (value / 1e9 for value in found)
            x = at + (number - 1) * 0.27
            axes.bar(x, median, 0.25, color=colour, label=label if at == 0 else None, zorder=2)
            axes.errorbar(x, median, [[median - low], [high - median]], color=INK, linewidth=0.9, capsize=2.5, zorder=3)
            axes.annotate(f"{median:.2f}", (x, high), (0, 3), textcoords="offset points", ha="center", fontsize=8.5)
    axes.set_xticks(range(len(sizes)), [f"{row[0]} bodies" for row in sizes])
    axes.set_ylabel("GB/s of bodies, acknowledged")
    axes.grid(visible=False, axis="x")
    axes.tick_params(length=0)
    axes.set_title("Throughput by body size: client on one core, no compression")
    axes.legend(loc="upper center", ncols=3, fontsize=9, columnspacing=1.2, handlelength=1.4)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.2)
    caption(figure, "medians; whiskers are the range of the rounds")
    return figure


def latency(points: Points) -> Figure | None:
    """Draw percentiles of the open loop by load, to the ack and to the callback."""
    loads = [load for load in LOADS if middle(points, load_name(load), "p99_us")]
    if len(loads) < 2:
        return None
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for metric, label, colour in (("p999_us", "99.9 %", PEER), ("p99_us", "99 %", SECOND), ("p50_us", "50 %", OURS)):
        for kind, look, words in (("", "o-", "to the ack"), ("callback_", ":", "to the callback")):
            found = [(load * 100, middle(points, load_name(load), kind + metric)) for load in loads]
            kept = [(x, value[0] / 1e3) for x, value in found if value]
            width = 2.2 if not kind else 1.6
            if kept:
                axes.plot(*zip(*kept, strict=True), look, color=colour, linewidth=width, label=f"{label} {words}")
    axes.axhline(1.0, color=MUTED, linewidth=1, linestyle="--")
    axes.annotate("linger", (loads[0] * 100, 1.0), (0, 4), textcoords="offset points", fontsize=8.5, color=MUTED)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _at: f"{value:g}")
    axes.set_ylabel("ms from when a message was due")
    axes.set_xlabel("load, % of what is acknowledged at full speed")
    axes.set_xticks([load * 100 for load in loads])
    axes.set_title("Latency by load: messages due at a fixed rate, linger 1 ms, one core")
    axes.legend(loc="upper left", ncols=3, fontsize=9)
    axes.set_ylim(axes.get_ylim()[0] * 0.8, axes.get_ylim()[1] * 3)
    caption(figure, "medians of the rounds' percentiles; 100 B bodies")
    return figure


def scaling(points: Points) -> Figure | None:
    """Draw the CPU of a record by number of streams and of connections."""
    ways = (("send_nowait", "send_nowait", OURS), ("send_arrow", "Arrow with a stream column", SECOND))
    by_streams: list[tuple[str, str, list[Any]]] = [
        (label, colour, [(n, middle(points, streams_name(mode, n), "cpu_per_million")) for n in STREAM_COUNTS[mode]])
        for mode, label, colour in ways
    ]
    by_connections = [(n, middle(points, connections_name(n), "cpu_per_million")) for n in CONNECTION_COUNTS]
    if not any(found for _n, found in by_connections) and not any(f for *_, rows in by_streams for _n, f in rows):
        return None
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for label, colour, rows in by_streams:
        line(left, rows, colour, label)
    line(right, by_connections, OURS, "stream().send_nowait")
    for axes, words in ((left, "streams, messages at random"), (right, "connections to one server")):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _at: f"{value:,.0f}")
        axes.minorticks_off()
        axes.set_xlabel(words)
        axes.set_ylim(bottom=0)
        if axes.has_data():
            axes.legend(loc="upper left", fontsize=9)
    left.set_ylabel("CPU seconds per million records")
    left.set_title("Scaling: what a record costs")
    caption(figure, "100 B bodies, client on one core; bars are the range of the rounds")
    return figure


def line(axes: Any, rows: Sequence[tuple[int, tuple[float, float, float] | None]], colour: str, label: str) -> None:
    """Draw one series with the range of its rounds."""
    kept = [(n, found) for n, found in rows if found]
    if not kept:
        return
    x, y = [n for n, _ in kept], [found[0] for _, found in kept]
    spread = [[found[0] - found[1] for _, found in kept], [found[2] - found[0] for _, found in kept]]
    axes.errorbar(x, y, spread, fmt="o-", color=colour, label=label, capsize=2.5, elinewidth=0.9)


def caption(figure: Figure, text: str) -> None:
    """Write one small line below a picture."""
    figure.supxlabel(text, fontsize=8, color=MUTED, x=0.99, ha="right")
