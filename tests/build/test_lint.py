"""Cython is linted as `cython-lint` does it, in one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = """import os,sys

cdef int f(int a,int b):
    if a == None :
        pass
    y = ""
    x=1  # no-cython-lint
    return  x \n"""
FINE = "cdef int f(int a):\n    return a\n"


@pytest.mark.parametrize(("source", "code"), [(WRONG, 1), (FINE, 0), (WRONG + FINE + "x" * 121 + "\n", 1)])
def test_it_finds_what_cython_lint_finds(source: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "one.pyx").write_text(source)
    (tmp_path / "two.pxd").write_text(source)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    programs = str(Path(sys.executable).parent)
    found = [
        subprocess.run(
            [*command, str(tmp_path)],
            env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True, text=True, check=False,
        )
        for command in (["cython-lint"], [sys.executable, str(ROOT / "tools" / "lint_cython.py")])
    ]  # fmt: skip
    assert found[0].returncode == found[1].returncode == code, found[1].stderr
    assert found[0].stdout == found[1].stdout
    assert ("E231" in found[1].stdout) is bool(code)
