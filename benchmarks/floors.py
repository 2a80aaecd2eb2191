"""Builds the floor programs with gcc into ``build/bench`` and keeps them while their sources do not change."""

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

__all__ = ["BUILT", "CFLAGS", "PROGRAMS", "ROOT", "build", "load_calls"]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "benchmarks" / "floor"
BUILT = ROOT / "build" / "bench"
PROGRAMS = ("blast", "sink", "pingpong", "copyloop", "snappyloop")
CFLAGS = ("-D_GNU_SOURCE", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")


def build() -> None:
    """Compile what is missing or older than its source; raise CalledProcessError with gcc's words otherwise."""
    BUILT.mkdir(parents=True, exist_ok=True)
    header = (SOURCES / "frame.h").stat().st_mtime
    for name in PROGRAMS:
        source, target = SOURCES / f"{name}.c", BUILT / name
        if target.exists() and target.stat().st_mtime > max(header, source.stat().st_mtime):
            continue
        subprocess.run(("gcc", *CFLAGS, "-o", str(target), str(source), "-lsnappy", "-lpthread"), check=True)
    build_calls()


def build_calls() -> None:
    """Compile the Cython floor; raise CalledProcessError with the compiler's words otherwise."""
    source, target = SOURCES / "calls.pyx", calls_path()
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return
    text = BUILT / "bench_calls.c"
    subprocess.run(
        (sys.executable, "-m", "cython", "-3", "--module-name", "bench_calls", str(source), "-o", str(text)), check=True
    )
    flags = ("-O2", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}")
    subprocess.run(("gcc", *flags, str(text), "-o", str(target)), check=True)


def calls_path() -> Path:
    """Return where the Cython floor of this interpreter is built."""
    return BUILT / f"bench_calls{sysconfig.get_config_var('EXT_SUFFIX')}"


def load_calls() -> ModuleType:
    """Import the Cython floor; it must have been built."""
    spec = importlib.util.spec_from_file_location("bench_calls", calls_path())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
