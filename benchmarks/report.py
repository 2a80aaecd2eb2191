"""Turns the JSON of a run into the Markdown of ``RESULTS.md``."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contest import Contestant, Mark, stated
from benchmarks.floors import ROOT
from benchmarks.machine import BUSY_SHARE
from benchmarks.samples import noise_floor, summarise
from benchmarks.table import ALL, SCENARIOS

__all__ = ["compact", "figure", "render", "verdict", "write"]

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
RUNS = ROOT / "benchmarks" / "results"
HISTORY = (
    "blast",
    "send_nowait",
    "stream().send_nowait",
    "send_batch, list of bytes",
    "send_arrow, binary column",
    "send, result() in bulk",
    "send_batch 1 KB",
    "send_batch 1 KB snappy",
    "send, result, linger 0",
    "hub in memory: 1 KB bodies in 400 KB frames",
    "hub in memory: one 100 B body a frame",
)
# scenario: pictures above its table, with what they show
PICTURES = {
    "sizes": (("throughput.png", "throughput by body size"),),
    "openloop": (("latency.png", "latency percentiles by load"),),
    "streams": (("scaling.png", "cost of a record by streams and by connections"),),
}
REMARKS = ROOT / "benchmarks" / "REMARKS.md"
# metric: (divisor, decimals, unit, whether more is better)
METRICS = {
    "rate": (1e6, 2, "M/s", True),
    "body_rate": (1e9, 2, "GB/s", True),
    "frame_rate": (1e3, 0, "k frames/s", True),
    "ns_per_call": (1, 0, "ns", False),
    "p50_us": (1, 0, "µs", False),
    "p99_us": (1, 0, "µs", False),
    "p999_us": (1, 0, "µs", False),
    "excess_mib": (1, 0, "MiB over the limit", False),
    "import_ms": (1, 1, "ms", False),
    "cpu_per_million": (1, 3, "CPU-s per million", False),
}
Points = Mapping[str, Mapping[str, Sequence[float]]]


def compact(content: Mapping[str, Any]) -> str:
    """Return the JSON text of a run with one line for each metric of each contestant."""
    text = json.dumps(content, indent=1)
    inner = re.compile(r"\[\n\s*([^\[\]{}]*?)\n\s*\]")
    return inner.sub(lambda found: "[" + re.sub(r",\n\s*", ", ", found[1]) + "]", text) + "\n"


def figure(metric: str, value: float) -> str:
    """Return a value with its unit."""
    divisor, decimals, unit, _more = METRICS[metric]
    return f"{value / divisor:.{decimals}f} {unit}"


def medians(points: Points, name: str) -> dict[str, float]:
    """Return the median of each metric of one contestant."""
    return {metric: summarise(series).median for metric, series in points[name].items()}


def share(contestant: Contestant, points: Points) -> float | None:
    """Return the median figure divided by the floor's; None when the floor was not measured."""
    if contestant.floor not in points or contestant.metric not in points[contestant.floor]:
        return None
    own, floor = (summarise(points[name][contestant.metric]).median for name in (contestant.name, contestant.floor))
    return own / floor if floor else None


def cpu_share(contestant: Contestant, points: Points) -> float | None:
    """Return the floor's CPU per record divided by the contestant's, for the side that is compared.

    Other programs on the machine change it less than the share by time.  None when there is nothing to compare.
    """
    metric = "server_cpu_per_million" if contestant.scenario == "hub" else "cpu_per_million"
    names = (contestant.floor, contestant.name)
    if not METRICS[contestant.metric][3] or any(metric not in points.get(name, {}) for name in names):
        return None
    floor, own = (summarise(points[name][metric]).median for name in names)
    return floor / own if own else None


def shares(contestant: Contestant, points: Points) -> str:
    """Return the cell with both shares; for times and sizes, the figure as a multiple of the floor's."""
    ratio = share(contestant, points)
    if ratio is None:
        return ""
    by_cpu = cpu_share(contestant, points)
    text = f"{ratio:.2f}" if METRICS[contestant.metric][3] else f"{ratio:.1f} x"
    return text if by_cpu is None else f"{text} ({by_cpu:.2f})"


def verdict(mark: Mark, figures: Mapping[str, float]) -> str:
    """Return in words whether the figures meet a mark, or that a figure was not measured."""
    known = [bound for bound in mark.bounds if bound.metric in figures]
    if not known:
        return "not measured"
    if any(bound.met(figures[bound.metric]) for bound in known):
        return "met"
    return "**missed**, on a busy machine" if figures.get("others", 0.0) > BUSY_SHARE else "**missed**"


def figures_of(contestant: Contestant, points: Points) -> dict[str, float]:
    """Return the medians and the figures that goals name: shares of the floor's figures, CPU beyond the floor's."""
    figures = medians(points, contestant.name)
    if contestant.floor in points:
        floor = medians(points, contestant.floor)
        figures |= {
            f"{metric}_share": value / floor[metric] for metric, value in figures.items() if floor.get(metric, 0) > 0
        }
        figures["cpu_per_million_more"] = figures["cpu_per_million"] - floor["cpu_per_million"]
    named = (("share", share(contestant, points)), ("cpu_share", cpu_share(contestant, points)))
    return figures | {name: value for name, value in named if value is not None}


def row(contestant: Contestant, points: Points) -> str:
    """Return one line of a table."""
    series = points[contestant.name]
    divisor, decimals, unit, _more = METRICS[contestant.metric]
    own = summarise(series[contestant.metric])
    figures = figures_of(contestant, points)
    rss = figures.get("peak_rss_kb", 0) / 1024
    cells = (
        contestant.name,
        stated(contestant),
        contestant.role,
        f"{own.median / divisor:.{decimals}f} {unit}",
        f"{own.low / divisor:.{decimals}f}..{own.high / divisor:.{decimals}f}",
        shares(contestant, points),
        "" if contestant.scenario == "import" else f"{figures['cpu_per_million']:.3f}",
        f"{figures['server_cpu_per_million']:.3f}" if "server_cpu_per_million" in figures else "",
        f"{rss:.0f}" if rss else "",
        "; ".join(mark.text for mark in contestant.marks),
        "; ".join(verdict(mark, figures) for mark in contestant.marks),
    )
    return "| " + " | ".join(cells) + " |"


def table(scenario: str, points: Points) -> Iterator[str]:
    """Yield the lines of one scenario's table."""
    entries = [contestant for contestant in ALL if contestant.scenario == scenario and contestant.name in points]
    if not entries:
        return
    yield f"## {SCENARIOS[scenario]}"
    yield ""
    for name, text in PICTURES.get(scenario, ()):
        yield f"![{text}](../docs/images/{name})"
        yield ""
    yield "| line | options | role | median | min..max | of floor (CPU) | CPU-s/M | server's | RSS MiB | goal | |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    yield from (row(contestant, points) for contestant in entries)
    yield ""
    for contestant in entries:
        yield from notes(contestant, points)


def notes(contestant: Contestant, points: Points) -> Iterator[str]:
    """Yield the notes of a contestant below its table: percentiles, records in a frame."""
    figures = medians(points, contestant.name)
    if "p99_us" in figures:
        text = ", ".join(f"{p} {figures[f'{p}_us']:.0f} µs" for p in ("p50", "p99", "p999"))
        if "callback_p99_us" in figures:
            text += "; to the callback " + ", ".join(
                f"{p} {figures[f'callback_{p}_us']:.0f} µs" for p in ("p50", "p99", "p999")
            )
        if "planned_rate" in figures:
            text += f"; at {figures['planned_rate'] / 1e6:.2f} M/s"
        if contestant.scenario == "service":
            text += f"; {figures['rate']:,.0f} messages/s were reached"
        yield f"{contestant.name}: {text}."
        yield ""
    if contestant.scenario in ("defaultstreams", "streams") and "packed" in figures:
        yield f"{contestant.name}: {figures['packed']:.0f} records a frame."
        yield ""


def goals(points: Points) -> Iterator[str]:
    """Yield the table of all goals."""
    entries = [contestant for contestant in ALL if contestant.marks and contestant.name in points]
    if not entries:
        return
    rows, met, count = [], 0, 0
    for contestant in entries:
        figures = figures_of(contestant, points)
        floor = ""
        if contestant.floor in points and contestant.metric in points[contestant.floor]:
            floor = figure(contestant.metric, medians(points, contestant.floor)[contestant.metric])
        verdicts = [verdict(mark, figures) for mark in contestant.marks]
        met += verdicts.count("met")
        count += len(verdicts)
        cells = (
            contestant.name,
            stated(contestant),
            figure(contestant.metric, figures[contestant.metric])
            + ("" if contestant.scenario == "import" else f", {figures['cpu_per_million']:.3f} CPU-s/M"),
            floor,
            shares(contestant, points),
            "; ".join(f"{mark.text}: {held(mark, figures)}" for mark in contestant.marks),
            "; ".join(verdicts),
        )
        rows.append("| " + " | ".join(cells) + " |")
    yield f"## Goals: {met} of {count} met"
    yield ""
    yield "| line | options | ours | floor | of floor (CPU) | goal: figure | |"
    yield "|---|---|---|---|---|---|---|"
    yield from rows
    yield ""


def held(mark: Mark, figures: Mapping[str, float]) -> str:
    """Return the figure that a goal is compared with, and its unit if the metric has one."""
    metric = mark.bounds[0].metric
    if metric not in figures:
        return "not measured"
    value = figures[metric]
    if metric.startswith("cpu_per_million") and not metric.endswith("share"):
        return f"{value:.3f}"
    return figure(metric, value) if metric in METRICS else f"{value:.2f}"


def history() -> Iterator[str]:
    """Yield the medians of the important lines in every full run that is kept."""
    runs = [json.loads(path.read_text()) for path in sorted(RUNS.glob("*.json"))]
    lines = {c.name: c for c in ALL if c.name in HISTORY}
    if not runs:
        return
    yield "## History"
    yield ""
    yield "| run | commit | " + " | ".join(lines) + " |"
    yield "|---|---|" + "---|" * len(lines)
    for content in runs:
        cells = []
        for name, contestant in lines.items():
            series = content["points"].get(name, {}).get(contestant.metric)
            cells.append(figure(contestant.metric, summarise(series).median) if series else "")
        yield f"| {content['started']} | {content['machine']['commit']} | " + " | ".join(cells) + " |"
    yield ""


def conditions(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that say where and how the run was made."""
    machine, settings = content["machine"], content["settings"]
    stopped = f", stopped {settings['stopped']}" if "stopped" in settings else ""
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    yield f"- Run of {content['started']}, commit {machine['commit']}."
    yield (
        f"- {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; kernel {machine['kernel']}; "
        f"governor {machine['governor']}."
    )
    yield (
        f"- Python {machine['python']}; {machine['compiler']}, floor built with `{settings['floor_cflags']}`; "
        f"Java: {machine['java']}."
    )
    yield f"- {packages}."
    yield (
        f"- {settings['rounds']} rounds, the lines in turn (order reversed every second round; some only in every "
        f"second to fourth round){stopped}, each run in a fresh process: "
        f"{settings['warmup']} s of warm-up, {settings['seconds']} s measured. "
        f"Client on core {settings['client_cores']}, server on core {settings['server_cores']}."
    )


def quiet(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about other programs on the machine, the noise, and what failed or was left out."""
    points = content["points"]
    shares = [value for series in points.values() for value in series.get("others", ())]
    busy = sum(value > BUSY_SHARE for value in shares)
    state = "The machine was quiet" if not busy else "**The machine was busy**"
    if shares:
        yield (
            f"- {state}: in {busy} of {len(shares)} runs others used more than {BUSY_SHARE:.0%} of a core "
            f"(worst {max(shares):.0%}). Load average {machine_load(content)}."
        )
    again = "blast (again, A/A)"
    if {"blast", again} <= points.keys():
        noise = noise_floor(points["blast"]["rate"], points[again]["rate"])
        yield (
            f"- Noise: the same floor program entered twice differs by {noise:.1%} in its median; "
            "differences under twice that say nothing."
        )
    if content["verified"]:
        yield (
            f"- Verified before the first round, count, bytes and checksum of all bodies equal: "
            f"{len(content['verified'])} lines ({'; '.join(content['verified'])})."
        )
    for name, reason in content["left_out"].items():
        yield f"- Left out: {name}: {reason}."
    for failure in content["failures"]:
        last = (failure["error"].splitlines() or [""])[-1]
        yield f"- **Failed**: {failure['name']} ({failure['where']}): {last}"


def machine_load(content: Mapping[str, Any]) -> str:
    """Return the load averages before and after."""
    machine = content["machine"]
    return f"{machine['load_before']:.2f} before, {machine.get('load_after', 0.0):.2f} after"


def render(content: Mapping[str, Any], source: Path) -> str:
    """Return the whole page."""
    origin = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name
    lines = [
        "# Benchmark results",
        "",
        f"Written by `python -m benchmarks.run` from `{origin}`; not edited by hand.",
        "What is measured and how: [README](README.md).",
        "",
        *conditions(content),
        *quiet(content),
        "",
    ]
    lines.extend(goals(content["points"]))
    for scenario in SCENARIOS:
        lines.extend(table(scenario, content["points"]))
    if REMARKS.exists():
        lines.append(REMARKS.read_text().rstrip())
    lines.extend(("", *history()))
    return collapse(lines)


def collapse(lines: Sequence[str]) -> str:
    """Join lines, with at most one empty line in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


def write(content: Mapping[str, Any], source: Path) -> None:
    """Write ``RESULTS.md``."""
    RESULTS.write_text(render(content, source))
