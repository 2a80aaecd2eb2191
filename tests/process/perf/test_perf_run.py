"""Load tests against hubs in processes of their own: pauses show, lateness is told apart, and counts agree."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dataproxy
from dataproxy._core.perf.generator import Generator
from dataproxy._core.perf.histogram import Histogram
from dataproxy.perf import Load, parse_plan, read_result, run_load
from dataproxy.perf.hub import HubFigures, hub_process
from dataproxy.perf.run import PATHS
from tests.campaigns.perf_selftest import CASES, LEAST, frozen_run

BODY = b"x" * 100


@pytest.mark.parametrize("case", CASES)
def test_a_pause_of_the_hub_is_in_the_percentiles(case: str) -> None:
    result = frozen_run(4, 2000, **CASES[case])
    assert (result.percentile(99.9) or 0) >= LEAST
    assert result.lost == 0 and result.counts["refused"] == 0
    assert result.stored == result.counts["delivered"] == result.counts["due"]
    assert len(result.latencies) == result.counts["delivered"]
    if "asyncio" in case:  # its tasks wait and not its calls; a loop is late while it resumes all that have waited
        return
    if "small" in case:
        assert result.counts["blocked"] > 0.3  # the buffer holds a third of a second
    assert not result.invalid, result.invalid  # who waits for the hub is not late by its own fault


def collected(generator: Generator, run: Any, *arguments: Any) -> None:
    """Run a generator in a thread of its own and collect its results to the end."""
    thread = threading.Thread(target=run, args=arguments)
    thread.start()
    while thread.is_alive():
        generator.collect()
        thread.join(0.01)


def histograms(generator: Generator) -> tuple[Histogram, Histogram]:
    """Return latencies and the generator's own lateness."""
    latencies, lags = Histogram(), Histogram()
    generator.collect()
    generator.add_latencies(latencies)
    generator.add_lags(lags)
    return latencies, lags


def test_lateness_of_the_generator_is_its_own() -> None:
    """Calls that take long without waiting for room: what comes behind them is late, and not by the target's fault."""
    with dataproxy.hub.Hub() as hub, dataproxy.Producer(hub.target, group_id="g") as producer:
        stream = producer.stream("s")

        def slow(body: bytes) -> dataproxy.Delivery:
            time.sleep(0.01)
            return stream.send(body)

        generator = Generator([stream], [BODY], pieces=[(0.2, 500, 500, 0)])
        collected(generator, generator.run_calls, time.monotonic_ns() // 1000, [slow], [BODY])
        producer.flush()
        latencies, lags = histograms(generator)
        assert (lags.percentile(100) or 0) >= 750_000  # 100 calls of 10 ms in 0.2 s of a plan
        assert (latencies.percentile(50) or 0) >= (lags.percentile(50) or 0)


def test_a_message_counts_from_its_planned_time() -> None:
    """A plan that began a second ago: all latencies are at least what the plan is behind."""
    with dataproxy.hub.Hub() as hub, dataproxy.Producer(hub.target, group_id="g") as producer:
        generator = Generator([producer.stream("s")], [BODY], pieces=[(0.5, 200, 200, 0)])
        collected(generator, generator.run, time.monotonic_ns() // 1000 - 1_000_000)
        producer.flush()
        latencies, _ = histograms(generator)
        assert len(latencies) == 100
        assert (latencies.percentile(0) or 0) >= 499_000


@pytest.mark.parametrize("path", PATHS)
def test_every_path_counts_each_message_once(path: str) -> None:
    batch = {"send_batch": 7, "send_arrow": 7}.get(path, 1)
    plan = parse_plan("2000:300ms,100+50/100ms:300ms", arrivals="poisson", seed=4)
    with dataproxy.hub.Hub() as hub:
        figures = HubFigures(hub.manager_url)
        load = Load(hub.target, plan, path=path, batch=batch, threads=2, streams=5, size="10-300", max_lag=60)
        result = run_load(load, hub=figures)
        figures.close()
        assert sum(count.records for count in hub.counts().values()) == result.counts["delivered"] == result.stored
        assert {stream for _, stream in hub.counts()} == {f"perf_{number}" for number in range(5)}
    counts = result.counts
    assert counts["due"] == counts["accepted"] == counts["delivered"] == len(result.latencies) > 0
    assert counts["due"] % batch == 0 and len(result.lags) == counts["due"]
    assert sum(second.results for second in result.series) == counts["due"] == sum(s.due for s in result.series)


@pytest.mark.parametrize("path", ["send_nowait", "send", "send_batch", "asyncio"])
def test_keys_keep_their_order_in_their_streams(path: str) -> None:
    plan, options = parse_plan("1000:300ms"), {"ordering": "key"}
    with dataproxy.hub.Hub() as hub:
        load = Load(hub.target, plan, path=path, keys=10, streams=2, max_lag=60, options=options)
        assert run_load(load).counts["delivered"] == 300


@pytest.mark.parametrize("path", ["send_nowait", "asyncio"])
def test_messages_without_room_are_refused_and_counted(path: str) -> None:
    with dataproxy.hub.Hub() as hub:
        options = {"on_full": "raise", "buffer_bytes": "64KiB", "linger": "5s", "delivery_timeout": "20s"}
        plan = parse_plan("0+5000/1s:100ms")
        result = run_load(Load(hub.target, plan, path=path, max_lag=60, size="1000", options=options))
    counts = result.counts
    assert counts["refused"] > 0
    assert counts["accepted"] + counts["refused"] == counts["due"] == 5000
    assert counts["delivered"] == counts["accepted"] == len(result.latencies)


@pytest.mark.parametrize("path", ["send_nowait", "asyncio"])
def test_messages_that_are_dropped_on_arrival_have_no_latency(path: str) -> None:
    with dataproxy.hub.Hub() as hub:
        options = {"on_full": "drop_newest", "buffer_bytes": "64KiB", "linger": "5s", "delivery_timeout": "20s"}
        plan = parse_plan("0+5000/1s:100ms")
        result = run_load(Load(hub.target, plan, path=path, max_lag=60, size="1000", options=options))
    counts = result.counts
    assert counts["dropped"] > 0 and counts["accepted"] == counts["due"] == 5000
    assert counts["delivered"] + counts["dropped"] == 5000
    assert len(result.latencies) == counts["delivered"]


@pytest.mark.parametrize("path", ["send_nowait", "asyncio"])
def test_messages_that_fail_are_told_and_counted(path: str) -> None:
    plan, options = parse_plan("100:200ms"), {"delivery_timeout": "1s"}
    with dataproxy.hub.Hub() as hub:
        hub.faults.add("refuse", code=114)
        result = run_load(Load(hub.target, plan, path=path, max_lag=60, options=options))
    assert result.lost == result.counts["failed"] + result.counts["expired"] == 20
    assert len(result.latencies) == 20


def test_a_closed_loop_has_one_message_under_way_in_each_thread() -> None:
    with dataproxy.hub.Hub() as hub:
        result = run_load(Load(hub.target, parse_plan("100:500ms"), threads=3, closed_loop=True))
    assert result.closed and result.counts["delivered"] == result.counts["due"] > 0
    assert max(second.in_flight for second in result.series) <= 3


def test_a_target_that_is_not_there_is_told() -> None:
    with pytest.raises(dataproxy.TransportError, match="no proxy could be reached"):
        run_load(Load("tcp://127.0.0.1:9", parse_plan("1:1s")))


def perf(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``dataproxy perf``."""
    command = [sys.executable, "-m", "dataproxy", "perf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_the_command_reports_and_the_report_can_be_made_again(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = perf("run", "--hub", "--rate", "1000", "--duration", "1s", "--max-lag", "60s", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("valid: ")
    assert "the hub stored 1,000, the same as delivered" in done.stdout
    assert "1.0 s" in done.stderr and "in flight" in done.stderr
    again = perf("report", str(file))
    assert (again.stdout, again.returncode) == (done.stdout, 0)
    assert read_result(file.read_text()).counts["delivered"] == 1000


def test_a_threshold_that_is_passed_is_the_exit_code() -> None:
    done = perf("run", "--hub", "--rate", "100", "--duration", "300ms", "--max-lag", "60s", "--max", "p50=1us")
    assert done.returncode == 1
    assert "p50 is" in done.stderr and "above" in done.stderr


def test_the_result_can_go_to_a_pipe() -> None:
    done = perf("run", "--hub", "--rate", "100", "--duration", "200ms", "--max-lag", "60s", "--json", "-", "-q")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == "dataproxy.perf/1"
    assert done.stderr.startswith("valid: ")


@pytest.mark.parametrize("path", ["send_nowait", "asyncio"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_the_sending_and_show_what_was_found(number: signal.Signals, code: int, path: str) -> None:
    command = [sys.executable, "-m", "dataproxy", "perf", "run", "--hub", "--plan", "100:10m", "--max-lag", "60s"]
    command += ["--path", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert "in flight" in run.stderr.readline()
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    assert run.returncode == code, err
    assert "stopped before the end of the plan" in out and "p99" in out
    assert ", the same as delivered" in out


def test_a_hub_of_a_run_is_in_no_terminal_of_its_own() -> None:
    """Ctrl-C reaches all processes of a terminal's group: the hub has answers to give still."""
    with hub_process() as hub:
        assert os.getsid(hub.pid) == hub.pid != os.getsid(0)


def test_files_that_cannot_be_written_end_no_long_run(tmp_path: Path) -> None:
    for name in ("--json", "--html"):
        done = perf("run", "--hub", "--plan", "100:10h", name, str(tmp_path / "none" / "file"))
        assert done.returncode == 1 and "No such file" in done.stderr
    full = perf("run", "--hub", "--plan", "100:200ms", "--max-lag", "60s", "--json", "/dev/full", "-q")
    assert full.returncode == 1 and "No space left" in full.stderr
    assert full.stdout.startswith("valid: ")


def test_packs_of_lines_are_not_compared_with_messages() -> None:
    with dataproxy.hub.Hub() as hub, closing(HubFigures(hub.manager_url)) as figures:
        load = Load(hub.target, parse_plan("0+50/1s:100ms"), max_lag=60, options={"message_type": 3})
        result = run_load(load, hub=figures)
    assert (result.counts["delivered"], result.stored, result.missing) == (50, None, 0)


def test_repeated_runs_are_compared(tmp_path: Path) -> None:
    options = ("--hub", "--rate", "200", "--duration", "200ms", "--max-lag", "60s", "-q")
    done = perf("run", *options, "--repeat", "2", "--json", str(tmp_path / "a"))
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["run-1.json", "run-2.json"]
    same = perf("compare", str(tmp_path / "a"), str(tmp_path / "a" / "run-1.json"))
    assert same.returncode == 0, same.stderr
    assert same.stdout.startswith("2 and 1 runs are too few")
    assert "p99.9" in same.stdout


def test_a_slower_set_of_runs_is_the_exit_code(tmp_path: Path) -> None:
    done = perf(
        "run", "--hub", "--rate", "200", "--duration", "200ms", "--max-lag", "60s", "--json", str(tmp_path / "r")
    )
    assert done.returncode == 0, done.stderr
    values = json.loads((tmp_path / "r").read_text())
    for name, factor in (("a", 1), ("b", 3)):
        (tmp_path / name).mkdir()
        for number in range(5):
            pairs = [[round(value * factor * (1 + number / 100)) + 1, times] for value, times in values["latencies"]]
            (tmp_path / name / f"{number}.json").write_text(json.dumps({**values, "latencies": pairs}))
    assert perf("compare", str(tmp_path / "a"), str(tmp_path / "b")).returncode == 1
    assert perf("compare", str(tmp_path / "b"), str(tmp_path / "a")).returncode == 0
    assert perf("compare", str(tmp_path / "a"), str(tmp_path)).returncode == 2  # a folder without results


def test_the_largest_rate_is_searched(tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    short = ("--max-lag", "60s", "--duration", "200ms", "--tries", "1")
    done = perf("find-max", "--hub", *short, "--max-p99", "60s", "--from", "200", "--to", "400", "--json", str(file))
    assert (done.stdout, done.returncode) == ("400\n", 0), done.stderr
    assert "passed" in done.stderr and "stopped at --to" in done.stderr
    assert [step["rate"] for step in json.loads(file.read_text())["steps"]] == [200, 400]
    none = perf("find-max", "--hub", *short, "--max-p99", "1us", "--from", "200")
    assert (none.stdout, none.returncode) == ("no rate stays within the bounds\n", 1), none.stderr
    for wrong in (("--from", "200"), ("--max-p99", "1s", "--from", "99"), ("--max-p99", "1s", "--from", "-1")):
        assert perf("find-max", "--hub", *short, *wrong).returncode == 2
    backwards = perf("find-max", "--hub", *short, "--max-p99", "1s", "--from", "10000", "--to", "500")
    assert (backwards.stdout, backwards.returncode) == ("", 2) and "--from 10000 is above --to 500" in backwards.stderr


def test_a_page_and_pictures_are_made_of_a_result(tmp_path: Path) -> None:
    file, page = tmp_path / "run.json", tmp_path / "run.html"
    made = ("--json", str(file), "--html", str(page))
    done = perf("run", "--hub", "--rate", "200", "--duration", "200ms", "--max-lag", "60s", *made)
    assert done.returncode == 0, done.stderr
    again = tmp_path / "again.html"
    pictures = perf("report", str(file), "--html", str(again), "--png", str(tmp_path / "png"))
    assert pictures.returncode == 0, pictures.stderr
    assert again.read_text() == page.read_text()
    assert len(list((tmp_path / "png").glob("*.png"))) == page.read_text().count("<svg")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "no target was given"),
        (("tcp://h", "--hub"), "both TARGET and --hub"),
        (("--hub", "--hub-url", "http://h:1"), "both --hub and --hub-url"),
        (("--hub", "--plan", "x"), "not part of a plan"),
        (("--hub", "--rate", "0"), "has no message"),
        (("--hub", "--rate", "-5"), "not part of a plan"),
        (("--hub", "--path", "post"), "path 'post' is unknown"),
        (("--hub", "--size", "0"), "size '0'"),
        (("--hub", "--size", "9-5"), "the larger number first"),
        (("--hub", "--lines", "/nowhere"), "cannot be read"),
        (("--hub", "--keys", "5"), "ordering=key"),
        (("--hub", "--max", "p99"), "is not a bound"),
        (("--hub", "--max-lag", "late"), "--max-lag"),
        (("--hub", "-o", "lingr=1s"), "lingr"),
        (("--hub", "-o", "group_id=g"), "--group"),
        (("--hub", "--plan", "1:1s", "--duration", "1s"), "beside --rate or --duration"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], text: str) -> None:
    done = perf("run", *arguments)
    assert done.returncode == 2
    assert text in done.stderr and "Traceback" not in done.stderr


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    for name in (tmp_path / "none", Path(__file__)):
        done = perf("report", str(name))
        assert done.returncode == 2 and str(name) in done.stderr
