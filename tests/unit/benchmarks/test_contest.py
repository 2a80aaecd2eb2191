"""What the runner reads, derives and chooses; nothing is measured here."""

import json
from pathlib import Path

import pytest

from benchmarks.clients.section import status_kb
from benchmarks.contest import (
    Bound,
    Conditions,
    Contestant,
    Mark,
    RunFailedError,
    balance,
    cores_of,
    derive,
    missing,
    read_result,
    stated,
)
from benchmarks.machine import busy_jiffies
from benchmarks.run import choose
from benchmarks.table import ALL, SCENARIOS

RESULT = {"records": 2_000_000, "bytes": 200_000_000, "seconds": 2.0, "cpu_user": 0.3, "cpu_sys": 0.1}


def test_the_last_line_counts():
    assert read_result("noise\n" + json.dumps(RESULT) + "\n") == RESULT


@pytest.mark.parametrize(
    "output",
    [
        "",
        "no json",
        "[1]",
        json.dumps({"records": 1}),
        json.dumps(RESULT | {"records": 0}),
        json.dumps(RESULT | {"seconds": 0}),
    ],
)
def test_unusable_output_is_a_failure(output):
    with pytest.raises(RunFailedError):
        read_result(output)


def test_derived_figures():
    derived = derive(RESULT | {"frames": 1000})
    assert derived["rate"] == 1e6
    assert derived["body_rate"] == 1e8
    assert derived["cpu_per_million"] == pytest.approx(0.2)
    assert derived["frame_rate"] == 500


def test_the_accounting_of_client_and_server_must_agree():
    balance({"total_records": 10}, {"records": 10})
    balance({"total_records": 10, "duplicates_possible": 2}, {"records": 11})
    balance({"records": 10}, {"records": 3})
    for counted in (9, 11):
        with pytest.raises(RunFailedError, match="counted"):
            balance({"total_records": 10, "duplicates_possible": 0}, {"records": counted})


def test_bounds_hold_in_their_direction():
    assert Bound("rate", ">=", 4e6).met(4e6)
    assert not Bound("rate", ">=", 4e6).met(3.9e6)
    assert Bound("ns_per_call", "<=", 100).met(99)
    assert not Bound("ns_per_call", "<=", 100).met(101)


def test_busy_time_leaves_out_idle_and_iowait():
    assert busy_jiffies("cpu  10 20 30 400 500 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n") == 10 + 20 + 30 + 6 + 7 + 8
    with pytest.raises(ValueError, match="first line"):
        busy_jiffies("intr 1\n")


def test_status_fields():
    assert status_kb("VmPeak:\t 9 kB\nVmHWM:\t  123 kB\n", "VmHWM") == 123
    with pytest.raises(ValueError, match="VmRSS"):
        status_kb("VmPeak:\t 9 kB\n", "VmRSS")


def test_a_choice_brings_its_floor():
    names = {contestant.name for contestant in choose(ALL, ["send_arrow"])}
    assert "blast" in names
    assert "send_arrow, binary column" in names
    assert not any("kafka" in name for name in names)
    assert choose(ALL, []) == list(ALL)


def test_a_client_gets_its_core_or_all():
    conditions = Conditions(1.0, 0.1, frozenset({0}), frozenset({1}), Path())
    assert cores_of(Contestant("x", "small", "ours", ()), conditions) == {0}
    assert cores_of(Contestant("x", "small", "ours", (), cores="all"), conditions) == {0, 1}


def test_missing_modules_are_told():
    assert "no_such_module" in missing(Contestant("x", "small", "peer", (), needs=("no_such_module",)))
    assert missing(Contestant("x", "small", "peer", (), needs=("json:nothing",))) == "json has no nothing"
    assert missing(Contestant("x", "small", "floor", ())) == ""


def test_the_table_is_sound():
    names = [contestant.name for contestant in ALL]
    assert len(set(names)) == len(names)
    for contestant in ALL:
        assert contestant.scenario in SCENARIOS
        assert contestant.role in ("ours", "peer", "floor")
        assert not contestant.floor or contestant.floor in names
        assert all(isinstance(mark, Mark) for mark in contestant.marks)


def test_a_line_states_its_options():
    own = Contestant("x", "small", "ours", ("run", "--set", "linger=1s", "--set", "executors=2"), options="b=1")
    assert stated(own) == "b=1, linger=1s, executors=2"
    assert stated(Contestant("x", "small", "ours", ("run",))) == "all defaults"
    assert stated(Contestant("x", "small", "floor", ("run",))) == ""
    hub = Contestant("x", "hub", "ours", ("run",), server="hub durable, compressing")
    assert stated(hub) == "hub: defaults"
    assert "compress_entries=false" in stated(Contestant("x", "hub", "ours", ("run",), server="hub durable"))


@pytest.mark.parametrize("line", ALL, ids=lambda line: line.name)
def test_clients_with_options_of_their_own_state_them(line):
    tuned = {"openloop": "linger=1ms", "loops": "linger=1ms", "roundtrip": "linger=0", "spread": "linger=10s"}
    client = next((word.rsplit(".", 1)[1] for word in line.command if word.startswith("benchmarks.clients.")), "")
    if line.role == "ours" and client in tuned and "--defaults" not in line.command:
        assert tuned[client] in stated(line)
    assert ("all defaults" in line.name) <= (stated(line) == "all defaults" and "--defaults" in line.command)
