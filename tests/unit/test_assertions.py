"""Assertions of debug builds: which changes of state are legal, that an illegal one ends the process, and where."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native import probe_assert
from tests.native.probe_assert import STATES

ROOT = Path(__file__).parents[2]

LEGAL = {
    "open": {"posted", "settled"},
    "posted": {"taken"},
    "taken": {"waiting", "queued", "in backoff", "held", "settled"},
    "waiting": {"taken"},
    "queued": {"taken", "in flight"},
    "in flight": {"taken"},
    "in backoff": {"taken"},
    "held": {"taken"},
    "settled": set(),
}


def end_of(statement: str) -> subprocess.CompletedProcess[str]:
    """Run one statement of the probe in a process of its own."""
    program = f"from tests.native import probe_assert\nprobe_assert.{statement}\nprint('went on')"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_table_of_states():
    names = {state: name for name, state in STATES.items()}
    found = {name: {names[other] for other in probe_assert.may_follow(state)} for name, state in STATES.items()}
    assert found == LEGAL
    for name, following in LEGAL.items():
        for other in following:
            assert probe_assert.enter(STATES[name], STATES[other]) == STATES[other]


@pytest.mark.parametrize(("state", "following"), [("settled", "in flight"), ("open", "queued"), ("queued", "queued")])
def test_an_illegal_change_of_state_ends_the_process_and_says_which(state, following):
    done = end_of(f"enter({STATES[state]}, {STATES[following]})")
    assert done.returncode == -signal.SIGABRT
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("dataproxy: assertion failed at ")]
    assert f"a pack goes from {state} to {following} (seq=7, count=3)" in line
    assert re.search(r"at \S*\w+\.\w+:\d+ in \w+: the change of state is legal", line)


def test_a_condition_that_holds_costs_nothing_else():
    assert end_of("require(3, 3)").stdout == "went on\n"
    failed = end_of("require(4, 3)")
    assert failed.returncode == -signal.SIGABRT
    assert "count <= most: count=4, most=3" in failed.stderr
