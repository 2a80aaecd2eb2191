"""Rate against latency: an open loop at the defaults, from 1,000 messages a second to half of the ceiling.

``python -m benchmarks.curve --name before [--rounds 2] [--seconds 2]`` measures one stream and 1,000 streams, each rate
in a process of its own, and writes ``benchmarks/results/curves/before.json``.  With or without ``--name`` the picture
of the tuning guide is drawn from the curves that are there: ``before`` a change and ``after`` it.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import machine
from benchmarks.contest import Conditions, Contestant, measure
from benchmarks.floors import BUILT, ROOT, build
from benchmarks.lines.describe import PORT, PRODUCER, TIMES, module
from benchmarks.plots import IMAGES, OURS, SECOND, STYLE, caption
from benchmarks.report import compact
from benchmarks.run import cores
from benchmarks.samples import summarise

__all__ = ["CURVES", "NAMES", "draw", "main", "rates_below"]

CURVES = ROOT / "benchmarks" / "results" / "curves"
NAMES = {"before": SECOND, "after": OURS}  # of a curve: its colour
STREAMS = (1, 1_000)
RATES = (1_000, 5_000, 20_000, 100_000, 300_000, 1_000_000, 3_000_000)  # messages a second
KEPT = ("p50_us", "p99_us", "p999_us", "cpu_per_million", "packed", "others")


def rates_below(highest: float) -> list[float]:
    """Return the rates of one curve (messages/s): the fixed ones below ``highest``, then that one."""
    return [float(rate) for rate in RATES if rate < 0.9 * highest] + [highest]


def run_at(streams: int, conditions: Conditions, *words: str) -> dict[str, float]:
    """Measure one point of a curve.  Raises RunFailedError."""
    command = module("clients.openloop", *PORT, *TIMES, "--defaults", "--streams", str(streams), *words)
    return measure(Contestant("curve", "openloop", "ours", command, server="sink", needs=PRODUCER), conditions)


def measured(streams: int, rounds: int, conditions: Conditions) -> dict[str, Any]:
    """Return one curve: half of the ceiling is the median of three, then all rates in turn, round after round."""
    half = statistics.median(run_at(streams, conditions, "--load", "0.5")["planned_rate"] for _ in range(3))
    points: list[dict[str, Any]] = [{"rate": rate} for rate in rates_below(round(half))]
    for number in range(rounds):
        for point in points if number % 2 == 0 else points[::-1]:
            result = run_at(streams, conditions, "--rate", str(point["rate"]))
            for metric in KEPT:
                point.setdefault(metric, []).append(float(f"{result[metric]:.6g}"))
            print(f"{streams:,} streams, {point['rate']:,.0f}/s: p99 {result['p99_us']:.0f} us", file=sys.stderr)
    return {"streams": streams, "half_of_ceiling": round(half), "points": points}


def execute(name: str, rounds: int, seconds: float) -> None:
    """Measure all curves and write their file.  Raises RunFailedError."""
    build()
    client, server = cores()
    with tempfile.TemporaryDirectory(prefix="curve-", dir=BUILT) as folder:
        conditions = Conditions(seconds, 0.5, client, server, Path(folder))
        content = {
            "schema": 1,
            "name": name,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "settings": {"rounds": rounds, "seconds": seconds, "body": 100, "options": "defaults"},
            "machine": machine.describe(),
            "curves": [measured(streams, rounds, conditions) for streams in STREAMS],
        }
    CURVES.mkdir(parents=True, exist_ok=True)
    (CURVES / f"{name}.json").write_text(compact(content))


def draw(runs: Mapping[str, Mapping[str, Any]], target: Path) -> None:
    """Draw p50 and p99 by rate: a panel for each number of streams, a colour for each of the named runs."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.2), layout="constrained")
        panels = figure.subplots(1, len(STREAMS), sharey=True)
        for axes, streams in zip(panels, STREAMS, strict=True):
            for name, content in runs.items():
                (curve,) = (curve for curve in content["curves"] if curve["streams"] == streams)
                rates = [point["rate"] for point in curve["points"]]
                for metric, style in (("p50_us", "o:"), ("p99_us", "o-")):
                    middles = [summarise(point[metric]).median / 1000 for point in curve["points"]]
                    axes.plot(rates, middles, style, color=NAMES[name], label=f"{name}, {metric[:3]}", markersize=4)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _at: f"{value:g}")
            axes.set_xlabel(f"messages a second, {streams:,} stream{'s' if streams > 1 else ''}")
        panels[0].set_ylabel("ms from due to acknowledged")
        panels[0].set_title("Rate against latency, all options at their defaults")
        panels[0].legend(loc="best", fontsize=9)
        caption(
            figure,
            "medians of the rounds' percentiles; 100 B bodies, client on one core; the last point: half of the ceiling",
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=150, facecolor="white", metadata={"Software": ""})


def main(argv: Sequence[str] | None = None) -> int:
    """Measure if a name is given, then draw the curves that are there; return 1 if there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", choices=tuple(NAMES), help="measure and keep the curves under this name")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of one rate")
    asked = parser.parse_args(argv)
    if asked.name:
        execute(asked.name, asked.rounds, asked.seconds)
    paths = {name: CURVES / f"{name}.json" for name in NAMES}
    runs = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
    if not runs:
        print("no curves yet: --name before measures them", file=sys.stderr)
        return 1
    draw(runs, IMAGES / "latency-curve.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
