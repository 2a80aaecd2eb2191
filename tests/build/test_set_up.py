"""The set-up script names what is missing and the command for it, and does nothing when there is nothing to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    venv = os.path.relpath(folder / "venv", ROOT)
    environment = {**os.environ, "DATAPROXY_NO_APT": "1", "VENV": venv, **variables}
    return subprocess.run(
        [ROOT / "tools" / "setup.sh"], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("header", "packages"),
    [("snappy-c.h", "libsnappy-dev"), ("lmdb.h", "liblmdb-dev"), (".", "libsnappy-dev liblmdb-dev")],
)
def test_a_missing_header_stops_with_the_command(tmp_path, header, packages):
    # A compiler that finds every header but this one.
    compiler = program(tmp_path / "cc", f"text=$(cat); case $text in *stdio.h*) ;; *'{header}'*) exit 1 ;; esac")
    done = run(tmp_path, CC=compiler)
    assert done.returncode == 1
    assert f"apt-get install -y --no-install-recommends {packages}\n" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_no_compiler_stops_with_the_command(tmp_path):
    done = run(tmp_path, CC=str(tmp_path / "absent"))
    assert done.returncode == 1
    assert "apt-get install -y --no-install-recommends gcc libc6-dev libsnappy-dev liblmdb-dev" in done.stderr


def test_an_old_interpreter_is_refused(tmp_path):
    old = program(tmp_path / "python", 'case "$1" in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac')
    done = run(tmp_path, PYTHON=old)
    assert done.returncode == 1
    assert "Python 3.9.2 is too old, 3.11 or newer is needed; name another one:  make PYTHON=" in done.stderr


def test_an_interpreter_without_headers_and_venv_stops_with_the_command(tmp_path):
    bare = program(tmp_path / "python", 'case "$2" in *version_info*) exit 0 ;; *) exit 1 ;; esac')
    done = run(tmp_path, PYTHON=bare)
    assert done.returncode == 1
    assert "apt-get install -y --no-install-recommends python3-dev python3-venv\n" in done.stderr


def packages(folder: Path, *, uid: int, sudo: str = "exit 1", apt: str = "echo apt-get: $* >&2", **variables: str):
    """Run packages.sh for a user of this number, beside programs of the test's own."""
    programs = folder / "programs"
    programs.mkdir()
    program(programs / "id", f"echo {uid}")
    program(programs / "sudo", sudo)
    if apt:
        program(programs / "apt-get", apt)
    for name in ("bash", "env", "sh", "true"):
        (programs / name).symlink_to(shutil.which(name))
    environment = {"PATH": str(programs), **variables}
    script = ROOT / "tools" / "packages.sh"
    return subprocess.run(
        [script, "setup", "one", "two"], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_command_is_said_before_it_runs(tmp_path):
    done = packages(tmp_path, uid=0)
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "setup: installing into the system:  apt-get update && apt-get install -y --no-install-recommends one two",
            "apt-get: -q update",
            "apt-get: -q install -y --no-install-recommends one two",
        ],
    )


def test_with_sudo_the_command_names_it(tmp_path):
    done = packages(tmp_path, uid=1000, sudo='shift; exec "$@"')
    said, *ran = done.stderr.splitlines()
    assert done.returncode == 0
    assert said.endswith("sudo apt-get update && sudo apt-get install -y --no-install-recommends one two")
    assert [line.split()[2] for line in ran] == ["update", "install"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"uid": 1000}, "this user may not install them; run this and call make again:  sudo apt-get install -y"),
        ({"uid": 0, "DATAPROXY_NO_APT": "1"}, "DATAPROXY_NO_APT forbids to install them; run this"),
        ({"uid": 0, "apt": ""}, "these Debian packages, or what your system calls them, are missing: one two"),
    ],
)
def test_what_may_not_be_installed_is_said(tmp_path, arguments, words):
    done = packages(tmp_path, **arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert "apt-get: " not in done.stderr


def test_a_failure_of_apt_get_names_the_command(tmp_path):
    done = packages(tmp_path, uid=0, apt="echo E: no network >&2; exit 100")
    assert done.returncode == 1
    command = "apt-get install -y --no-install-recommends one two"
    said = f"setup: apt-get failed; repair it, and call make again, or run:  {command}"
    assert done.stderr.splitlines()[1:] == ["E: no network", said]
