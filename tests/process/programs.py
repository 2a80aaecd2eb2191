"""Programs of tests: Python code in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

__all__ = ["ROOT", "finish", "launch", "ready", "start"]

ROOT = Path(__file__).parents[2]
SECONDS = 60


def start(code: str, *args: str) -> subprocess.Popen[str]:
    """Start Python on some code; a line on its stdout says that it is ready."""
    return launch("-c", textwrap.dedent(code), *args)


def launch(*arguments: str) -> subprocess.Popen[str]:
    """Start Python with these arguments."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Its children by spawn and forkserver have to find the package where this process has it.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))},
    )  # fmt: skip


def ready(process: subprocess.Popen[str]) -> str:
    """Wait for the first line of a program."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        pytest.fail(f"the process ended early: {finish(process)}")
    return line


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for the end and return status, stdout, stderr."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"the process did not end: {out!r} {err!r}")
    return process.returncode, out, err
