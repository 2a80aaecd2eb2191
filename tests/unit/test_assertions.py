"""Assertions of debug builds: which changes of state are legal, that an illegal one ends the process, and where."""

import importlib.util
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native import probe_assert
from tests.native.probe_assert import STATES

ROOT = Path(__file__).parents[2]
CORE = ROOT / "cython_ext" / "dataproxy" / "_core"

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


def test_one_function_writes_the_state_of_a_pack():
    """Packs are called ``p``, ``pack`` or ``young``; connections and sockets have states of their own."""
    writers = [
        f"{path.relative_to(CORE)}:{number}"
        for path in sorted(CORE.rglob("*.p[yx]*"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bstate = (PK_|state$)", line) and "conn.state" not in line
    ]
    assert len(writers) == 1
    assert writers[0].startswith("pack/pack.pxd:")


@pytest.fixture(scope="module")
def profiles():
    """The profiles of ``setup.py``, which is not run."""
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PROFILES


def test_the_profiles_that_look_for_mistakes_assert(profiles):
    asserting = {name for name, profile in profiles.items() if ("DATAPROXY_DEBUG", "1") in profile.get("macros", [])}
    assert asserting == {"debug", "coverage", "asan", "tsan"}


def modules() -> list[Path]:
    return sorted((ROOT / "dataproxy" / "_core").rglob("*.so"))


def test_the_modules_of_this_build_assert_where_their_profile_says_so(profiles):
    """A release holds neither the texts nor the function; a wheel's tests have no ``build``, and test a release."""
    stamp = ROOT / "build" / "inplace"
    name = stamp.read_text() if stamp.exists() else "release"
    found = {path.name for path in modules() if b"assertion failed" in path.read_bytes()}
    asserting = ("DATAPROXY_DEBUG", "1") in profiles[name].get("macros", [])
    assert bool(found) == asserting
    assert not asserting or any(path.startswith("pack.") for path in found)
    if not asserting:
        traces = (b"dp_assert", b"a pack goes from", b"the change of state is legal")
        assert not [path.name for path in modules() if any(trace in path.read_bytes() for trace in traces)]
