"""`.ci/run` runs every step, prints minutes by step, and ends with the suite's closing line."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is compiled once more is chosen by the commit; where there is none it is the wheel.
STEPS = ["build", "lint", "types", "instructions", "test-interop", "test-wheel", "test"]
TABLE = "== minutes by step, and those of its processes"


def run(folder: Path, failing: str = "", endless: str = "", commit: str = "") -> tuple[int, list[str]]:
    """Run a copy of the script with a `make` that only names its target."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    make = folder / "programs" / "make"
    make.parent.mkdir()
    make.write_text(f'#!/bin/sh\necho "made $2"\n[ "$2" != "{endless}" ] || exec sleep 600\n[ "$2" != "{failing}" ]\n')
    make.chmod(0o755)
    if commit:
        git = make.with_name("git")
        git.write_text(f"#!/bin/sh\necho {commit}\n")
        git.chmod(0o755)
    environment = {**os.environ, "PATH": f"{make.parent}:{os.environ['PATH']}"}
    if endless:
        environment["DATAPROXY_CI_SECONDS"] = "1"
    done = subprocess.run(
        [folder / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.splitlines()


def minutes(lines: list[str]) -> list[str]:
    """Return the names in the table of minutes."""
    rows = lines[lines.index(TABLE) + 1 :]
    return [row.lstrip(" 0123456789.") for row in rows if row[:1] == " "]


def test_every_step_is_in_the_table_and_the_suite_ends_the_output(tmp_path):
    status, lines = run(tmp_path)
    assert status == 0
    assert sorted(minutes(lines)) == sorted([*STEPS, "all, jobs side by side"])
    assert lines[-2:] == ["== make test", "made test"]


@pytest.mark.parametrize("failing", STEPS)
def test_a_failed_step_fails_the_run_and_is_named(tmp_path, failing):
    status, lines = run(tmp_path, failing)
    assert status != 0
    assert f"{failing}, FAILED" in minutes(lines)
    assert lines.count(TABLE) == 1


@pytest.mark.parametrize("endless", ["test-wheel", "test-interop", "test"])
def test_a_step_without_an_end_is_ended_and_what_it_printed_is_shown(tmp_path, endless):
    status, lines = run(tmp_path, endless=endless)
    assert status != 0
    assert f"made {endless}" in lines
    assert "== over 1 s: what still runs is ended" in lines
    assert endless not in minutes(lines)


@pytest.mark.parametrize(
    ("commit", "step"),
    [("00000f0", "wheel"), ("00000f1", "asan"), ("00000f2", "tsan"), ("ffffffe", "tsan"), ("fffffff", "wheel")],
)
def test_commits_play_the_wheel_and_the_sanitizers_by_turns(tmp_path, commit, step):
    status, lines = run(tmp_path, commit=commit)
    assert status == 0
    assert [row for row in minutes(lines) if row in ("test-wheel", "test-asan", "test-tsan")] == [f"test-{step}"]
