"""The set-up script names what is missing and the command for it, and does nothing when there is nothing to do."""

import os
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
    assert f"sudo apt-get install -y {packages}\n" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_no_compiler_stops_with_the_command(tmp_path):
    done = run(tmp_path, CC=str(tmp_path / "absent"))
    assert done.returncode == 1
    assert "apt-get install -y gcc libc6-dev libsnappy-dev liblmdb-dev" in done.stderr


def test_an_old_interpreter_is_refused(tmp_path):
    old = program(tmp_path / "python", 'case "$1" in --version) echo Python 3.9.2 ;; *) exit 1 ;; esac')
    done = run(tmp_path, PYTHON=old)
    assert done.returncode == 1
    assert "Python 3.9.2 is too old, 3.11 or newer is needed; name another one:  make PYTHON=" in done.stderr


def test_an_interpreter_without_headers_and_venv_stops_with_the_command(tmp_path):
    bare = program(tmp_path / "python", 'case "$2" in *version_info*) exit 0 ;; *) exit 1 ;; esac')
    done = run(tmp_path, PYTHON=bare)
    assert done.returncode == 1
    assert "apt-get install -y python3-dev python3-venv\n" in done.stderr
