"""Planted bugs: ``python -m tests.campaigns.planted`` shows that the suite notices each patch of this folder.

Each patch breaks one promise.  It is applied to a scratch copy of the checkout, the folders it touches are built
again, and the tests of its row in ``table.toml`` run there; when those pass, all of unit, loopback and the simulations
do.  A patch that does not apply, does not compile, or that no test notices is a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from tests.campaigns.counters import keep

__all__ = ["PATCHES", "applies", "attempt", "ended_whole", "main", "names", "table"]

ROOT = Path(__file__).parents[3]
PATCHES = Path(__file__).parent
SCRATCH = ROOT / "build" / "planted"
_LEFT_OUT = {".git", ".cache", ".pytest_cache", ".hypothesis", "__pycache__", "dist", "demo-out"}
_BUILT = {"cython-release", "release", "inplace"}  # what is wanted of the folder build
_EVERYTHING = ("tests/unit", "tests/loopback")
_TEST_SECONDS = 60
_LONG, _LONGEST = 120, 1800  # of a selection, which a bug may keep from ending, and of everything
_TSAN = "tsan:"


def table() -> dict[str, dict[str, object]]:
    """Return the rows of the table by the names of the patches."""
    return tomllib.loads((PATCHES / "table.toml").read_text())


def names() -> list[str]:
    """Return the names of the patches."""
    return sorted(path.stem for path in PATCHES.glob("*.patch"))


def _patch(name: str, tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["patch", "--batch", "--forward", "--fuzz=0", "-p1", *options, "-i", str(PATCHES / f"{name}.patch")],
        cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip


def applies(name: str, tree: Path = ROOT) -> str:
    """Return why a patch does not apply to a tree, empty when it does."""
    done = _patch(name, tree, "--dry-run")
    return "" if done.returncode == 0 and "offset" not in done.stderr else done.stdout + done.stderr


def _left_out(folder: str, entries: list[str]) -> set[str]:
    if Path(folder) == ROOT / "build":
        return {entry for entry in entries if entry not in _BUILT}
    return {entry for entry in entries if entry in _LEFT_OUT or entry.startswith(".venv")}


def _copy(name: str) -> Path:
    tree = SCRATCH / name
    shutil.rmtree(tree, ignore_errors=True)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT, tree, ignore=_left_out, symlinks=True)
    return tree


def _folders(name: str) -> str:
    text = (PATCHES / f"{name}.patch").read_text()
    return ",".join(sorted(set(re.findall(r"^\+\+\+ b/cython_ext/dataproxy/_core/(\w+)/", text, re.MULTILINE))))


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "CI": "", "DATAPROXY_BUILD": "release", "VENV": ".venv"}


def _build(name: str, tree: Path) -> str:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tree, env={**_environment(tree), "DATAPROXY_ONLY": _folders(name)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]


def ended_whole(command: list[str], tree: Path, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Run a command and return its result, None if it takes longer; processes that it left behind are ended with it."""
    with subprocess.Popen(
        command, cwd=tree, env=_environment(tree), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _fails(tree: Path, tests: list[str], seconds: float) -> str:
    """Return the first failure of some tests, empty when they pass."""
    if tests[0].startswith(_TSAN):
        (tree / ".venv").symlink_to(sys.prefix)
        command = ["tools/sanitize.sh", "tsan", *(test.removeprefix(_TSAN) for test in tests)]
    else:
        limits = (f"--timeout={_TEST_SECONDS}", "--timeout-method=thread")  # ends a thread that waits without the GIL
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *limits, *tests]
    done = ended_whole(command, tree, seconds)
    if done is None:
        return "the tests do not end"
    if done.returncode == 0:
        return ""
    if done.returncode in (2, 4, 5):  # nothing was tested
        raise RuntimeError(f"no test could run: {' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    if tests[0].startswith(_TSAN):
        lines = [line for line in done.stderr.splitlines() if "WARNING: ThreadSanitizer" in line]
        if not lines:
            raise RuntimeError(f"ThreadSanitizer has nothing to say: {(done.stdout + done.stderr)[-3000:]}")
    return (lines or [(done.stdout + done.stderr).strip().splitlines()[-1]])[0]


def attempt(name: str, *, elsewhere: bool = True) -> tuple[str, str]:
    """Return ("caught", by what), or ("missed" | "broken", why).

    ``elsewhere``: what the tests of its row let pass may be caught by any other one, which takes up to half an hour.
    """
    why = applies(name)
    if why:
        return "broken", f"the patch does not apply any more:\n{why}"
    tree = _copy(name)
    try:
        done = _patch(name, tree)
        why = "" if done.returncode == 0 else done.stdout
        why = why or _build(name, tree)
        if why:
            return "broken", why
        tests = [str(test) for test in table()[name]["tests"]]  # type: ignore[attr-defined]
        found = _fails(tree, tests, _LONGEST if tests[0].startswith(_TSAN) else _LONG)
        if elsewhere:
            found = found or _fails(tree, list(_EVERYTHING), _LONGEST)
        where = "unit, loopback and the simulations" if elsewhere else ", ".join(tests)
        return ("caught", found) if found else ("missed", f"no test of {where} fails")
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def control() -> str:
    """Return what fails in a copy without a bug, where nothing may."""
    tree = _copy("control")
    try:
        return _fails(tree, list(_EVERYTHING), _LONGEST)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def main() -> int:
    """Try every patch, or those named; 1 when one is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.planted")
    parser.add_argument("patches", nargs="*", metavar="PATCH")
    wanted = parser.parse_args().patches
    chosen = wanted or names()
    began = time.monotonic()
    why = "" if wanted else control()
    if why:
        print(f"a copy without a bug fails, too: {why}")
        return 1
    results: dict[str, str] = {}
    for name in chosen:
        started = time.monotonic()
        verdict, why = attempt(name)
        results[name] = verdict
        print(f"{verdict:>7}  {name}  ({time.monotonic() - started:.0f} s)  {why[:3000]}", flush=True)
    caught = sum(verdict == "caught" for verdict in results.values())
    print(f"{caught} of {len(results)} planted bugs caught in {time.monotonic() - began:.0f} s")
    keep(
        "planted",
        {"patches": len(results), "caught": caught, "missed": [n for n, v in results.items() if v != "caught"]},
    )
    return 0 if caught == len(results) else 1
