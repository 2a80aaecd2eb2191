"""The suite's own rules: skips count as failures in CI, and stale modules are not tested."""

import io
import logging
import os
import runpy
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.conftest import stale_modules

TESTS = Path(__file__).parents[1]
SKIPPED = """
import pytest

def test_inside():
    pytest.skip("no such kernel")

@pytest.mark.skip(reason="marked so")
def test_marked():
    pass

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False
"""
LISTED = '[[skip]]\ntest = "tests/test_x.py::test_inside"\nreason = "no such kernel"\n'
BOTH = LISTED + '[[skip]]\ntest = "tests/test_x.py::test_marked"\nreason = "marked"\n'


def run(folder: Path, text: str, table: str, ci: str) -> tuple[int, str]:
    tests = folder / "tests"
    tests.mkdir()
    shutil.copy(TESTS / "conftest.py", tests)
    (tests / "allowed_skips.toml").write_text(table)
    (tests / "test_x.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("table", "ci", "code", "words"),
    [
        ("", "", 0, "2 skipped, 1 xfailed"),
        ("", "true", 1, "1 failed, 1 xfailed, 1 error"),
        (LISTED, "true", 1, "1 skipped, 1 xfailed, 1 error"),
        (BOTH, "true", 0, "2 skipped, 1 xfailed"),
        (BOTH.replace("no such kernel", "another reason"), "true", 1, "1 failed, 1 skipped"),
    ],
)
def test_a_skip_in_ci_has_to_be_listed_with_its_reason(tmp_path, table, ci, code, words):
    returned, output = run(tmp_path, SKIPPED, table, ci)
    assert (returned, words in output) == (code, True), output


UNSTEADY = """
tries = []

def test_unsteady():
    tries.append(1)
    assert len(tries) == 2

def test_wrong():
    assert False
"""


@pytest.mark.parametrize(("ci", "words"), [("", "2 failed"), ("true", "1 failed, 1 passed, 2 rerun")])
def test_in_ci_a_failed_test_has_one_more_try_and_is_named(tmp_path, ci, words):
    returned, output = run(tmp_path, UNSTEADY, "", ci)
    assert (returned, words in output) == (1, True), output
    assert ("RERUN tests/test_x.py::test_unsteady" in output) == bool(ci)


LEFT_OPEN = """
import threading
from dataproxy import Producer

def test_one_that_fails():
    producer = Producer("tcp://127.0.0.1:9", group_id="g")
    producer.send_nowait("s", b"x")
    assert False

def test_the_next_one():
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("dataproxy")] == []
"""


def test_what_a_failed_test_left_open_does_not_disturb_the_next(tmp_path):
    returned, output = run(tmp_path, LEFT_OPEN, "", "")
    assert (returned, "1 failed, 1 passed" in output) == (1, True), output


def test_a_skipped_module_is_refused_too(tmp_path):
    returned, output = run(tmp_path, "import pytest\npytest.importorskip('no_such_module')\n", "", "true")
    assert returned != 0
    assert "does not list it" in output


@pytest.fixture
def built(tmp_path):
    sources = tmp_path / "cython_ext"
    for layer in ("base", "io"):
        for path, time in (
            (sources / "dataproxy" / "_core" / layer / "thing.pyx", 1000),
            (sources / "dataproxy" / "_core" / layer / "thing.pxd", 1000),
            (tmp_path / "dataproxy" / "_core" / layer / f"thing{EXTENSION_SUFFIXES[0]}", 2000),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (time, time))
    return tmp_path


def test_fresh_modules_are_accepted(built):
    assert stale_modules(built / "cython_ext", built, missing=True) == []


@pytest.mark.parametrize("suffix", [".pyx", ".pxd"])
def test_a_module_older_than_its_source_is_stale(built, suffix):
    os.utime(built / "cython_ext" / "dataproxy" / "_core" / "io" / f"thing{suffix}", (3000, 3000))
    assert stale_modules(built / "cython_ext", built) == ["dataproxy/_core/io/thing.pyx"]
    assert stale_modules(built / "cython_ext", built, only=("base",)) == []


def test_a_module_never_built_counts_where_asked(built):
    next((built / "dataproxy").rglob("*/io/*.so")).unlink()
    assert stale_modules(built / "cython_ext", built) == []
    assert stale_modules(built / "cython_ext", built, missing=True) == ["dataproxy/_core/io/thing.pyx (never built)"]


@pytest.mark.parametrize("names", ["SANITIZED", "SANITIZED_MEMORY", "SANITIZED_THREADS"])
def test_lists_of_the_sanitizers_name_what_exists_and_nothing_that_is_left_out(names, monkeypatch):
    sanitizer = "asan" if names == "SANITIZED_MEMORY" else "tsan"
    monkeypatch.setenv("DATAPROXY_SANITIZER", sanitizer)
    left_out = runpy.run_path(str(TESTS / "conftest.py"))["collect_ignore"]
    assert all((TESTS / name).exists() for name in left_out), "the list of what is left out names what is gone"
    command = ["make", "-n", f"test-{sanitizer}", f"SANITIZED=$({names})", "VENV=."]
    if names == "SANITIZED":
        del command[3]
    printed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True).stdout
    listed = [word for word in printed.split() if word.startswith("tests/")]
    assert listed
    assert [name for name in listed if not (TESTS.parent / name).exists()] == []
    assert [name for name in listed if name.removeprefix("tests/") in left_out] == []


@pytest.mark.parametrize("again", [False, True])
def test_what_a_test_does_to_the_log_ends_with_it(again):
    top = logging.getLogger("dataproxy")
    assert all(isinstance(one, logging.NullHandler) for one in top.handlers if one.name != "caplog"), top.handlers
    assert top.propagate
    assert logging.getLogger("dataproxy.ack").isEnabledFor(logging.WARNING), again
    top.addHandler(logging.StreamHandler(io.StringIO()))
    top.propagate = False
    top.setLevel(logging.CRITICAL)
    assert not logging.getLogger("dataproxy.ack").isEnabledFor(logging.WARNING)
