"""Builds the floor programs with gcc into ``build/bench`` and keeps them while their sources do not change."""

import subprocess
from pathlib import Path

__all__ = ["BUILT", "CFLAGS", "PROGRAMS", "ROOT", "build"]

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
