"""The page that is made of a run's figures."""

import json
from pathlib import Path

import pytest

from benchmarks.contest import Bound, Mark
from benchmarks.lines.latency import LOADS, load_name
from benchmarks.lines.spread import connections_name
from benchmarks.plots import draw
from benchmarks.report import compact, figure, figures_of, render, verdict
from benchmarks.table import ALL

MACHINE = {
    "packages": {"dataproxy": "0.1.0"},
    "commit": "abc",
    "cpu": "a processor",
    "cores": 2,
    "memory_gib": 8.0,
    "kernel": "6",
    "governor": "performance",
    "python": "3.11.7",
    "compiler": "gcc 12",
    "java": "17",
    "load_before": 0.5,
    "load_after": 1.0,
}
SETTINGS = {"rounds": 3, "seconds": 1, "warmup": 0.5, "client_cores": [0], "server_cores": [1], "floor_cflags": "-O2"}


def series(rate, others):
    return {"rate": rate, "cpu_per_million": [0.1] * 3, "peak_rss_kb": [2048] * 3, "others": others}


def content(**changes):
    return {
        "started": "2026-01-01T00:00:00Z",
        "settings": SETTINGS,
        "machine": MACHINE,
        "left_out": {},
        "verified": {},
        "failures": [],
        "points": {
            "blast": series([40e6, 41e6, 39e6], [0.0, 0.01, 0.02]),
            "blast (again, A/A)": series([40e6, 38e6, 36e6], [0.0, 0.0, 0.0]),
            "send_batch, list of bytes": series([9e6, 8e6, 11e6], [0.0, 0.0, 0.0]),
            "send_nowait": series([3e6, 3e6, 3e6], [0.0, 0.0, 0.0]),
        },
    } | changes


def test_the_json_is_compact_and_the_same():
    whole = content(failures=[{"name": "a", "where": "b", "error": "x [ 1,  2 ] y"}])
    text = compact(whole)
    assert json.loads(text) == whole
    assert "[40000000.0, 41000000.0, 39000000.0]" in text


def test_figures_carry_units():
    assert figure("rate", 4.5e6) == "4.50 M/s"
    assert figure("body_rate", 2.8e9) == "2.80 GB/s"
    assert figure("ns_per_call", 61.4) == "61 ns"


def test_one_bound_of_a_mark_is_enough():
    mark = Mark("either", (Bound("rate", ">=", 4e6), Bound("cpu_per_million", "<=", 0.25)))
    assert verdict(mark, {"rate": 5e6, "cpu_per_million": 1.0}) == "met"
    assert verdict(mark, {"rate": 1e6, "cpu_per_million": 0.2}) == "met"
    assert verdict(mark, {"rate": 1e6, "cpu_per_million": 0.3}) == "**missed**"
    assert verdict(mark, {}) == "not measured"
    assert verdict(mark, {"rate": 1e6, "others": 0.5}) == "**missed**, on a busy machine"


def test_the_page_shows_shares_marks_and_noise():
    page = render(content(), Path("run.json"))
    line = next(
        line
        for line in page.splitlines()
        if line.startswith("| send_batch, list of bytes | all defaults | ours | 9.00")
    )
    assert line.split(" | ")[1:] == [
        "all defaults",
        "ours",
        "9.00 M/s",
        "8.00..11.00",
        "0.23 (1.00)",
        "0.100",
        "",
        "2",
        "20 M/s; 0.05 CPU-s/M",
        "**missed**; **missed** |",
    ]
    assert "## Goals: 1 of 4 met" in page
    goal = next(
        line for line in page.splitlines() if line.startswith("| send_nowait | all defaults | 3.00 M/s, 0.100 CPU-s/M")
    )
    assert goal.split(" | ")[3:] == [
        "40.00 M/s",
        "0.07 (1.00)",
        "8 M/s: 3.00 M/s; 0.12 CPU-s/M: 0.100",
        "**missed**; met |",
    ]
    assert "differs by 5.0% in its median" in page
    assert "The machine was quiet" in page


def test_figures_against_a_floor():
    points = {"ping-pong": {"p50_us": [10.0], "p99_us": [20.0], "cpu_per_million": [1.0]}}
    points["send, result, linger 0"] = {"p50_us": [12.0], "p99_us": [40.0], "cpu_per_million": [1.5]}
    line = next(line for line in ALL if line.name == "send, result, linger 0")
    figures = figures_of(line, points)
    assert figures["p50_us_share"] == pytest.approx(1.2)
    assert figures["p99_us_share"] == pytest.approx(2.0)
    assert figures["cpu_per_million_more"] == pytest.approx(0.5)
    assert [verdict(mark, figures) for mark in line.marks] == ["met", "**missed**"]


def test_pictures_are_drawn_of_what_was_measured(tmp_path):
    sizes = ("blast 1 KB", "send_batch 1 KB")
    points = {name: {"body_rate": [1e9, 2e9, 3e9]} for name in sizes}
    assert [path.name for path in draw(points, tmp_path)] == ["throughput.png"]
    points |= {load_name(load): {f"{p}_us": [100.0, 200.0] for p in ("p50", "p99", "p999")} for load in LOADS}
    points |= {connections_name(count): {"cpu_per_million": [0.1, 0.2]} for count in (4, 1000)}
    drawn = draw(points, tmp_path)
    assert [path.name for path in drawn] == ["throughput.png", "latency.png", "scaling.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_the_page_shows_a_busy_machine_and_failures():
    points = {"blast": series([1e6, 1e6, 1e6], [0.0, 0.4, 0.0])}
    failures = [{"name": "send_nowait", "where": "round 1 of 3", "error": "exit status 1: last words"}]
    page = render(content(points=points, failures=failures, left_out={"send_arrow": "no module"}), Path("run.json"))
    assert "**The machine was busy**: in 1 of 3 runs" in page
    assert "**Failed**: send_nowait (round 1 of 3): exit status 1: last words" in page
    assert "Left out: send_arrow: no module" in page
