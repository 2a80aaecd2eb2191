"""The page that is made of a run's figures."""

import json
from pathlib import Path

from benchmarks.contest import Bound, Mark
from benchmarks.report import compact, figure, render, verdict

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
    line = next(line for line in page.splitlines() if line.startswith("| send_batch, list of bytes "))
    assert line.split(" | ")[1:] == [
        "ours",
        "9.00 M/s",
        "8.00..11.00",
        "0.23 (1.00)",
        "0.100",
        "",
        "2",
        "10 M records/s",
        "**missed** |",
    ]
    assert "| send_nowait | ours | 3.00 M/s" in page
    assert "or 0.25 CPU-s per million | met |" in page
    assert "differs by 5.0% in its median" in page
    assert "The machine was quiet" in page


def test_the_page_shows_a_busy_machine_and_failures():
    points = {"blast": series([1e6, 1e6, 1e6], [0.0, 0.4, 0.0])}
    failures = [{"name": "send_nowait", "where": "round 1 of 3", "error": "exit status 1: last words"}]
    page = render(content(points=points, failures=failures, left_out={"send_arrow": "no module"}), Path("run.json"))
    assert "**The machine was busy**: in 1 of 3 runs" in page
    assert "**Failed**: send_nowait (round 1 of 3): exit status 1: last words" in page
    assert "Left out: send_arrow: no module" in page
