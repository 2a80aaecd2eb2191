"""Spark's processes below this one: who they are, and their end without notice."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Process", "descendants", "executors", "kill", "python_workers"]

_DAEMON = "pyspark.daemon"
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True)
class Process:
    """One process of this machine."""

    pid: int
    parent: int
    command: str


def descendants(root: int | None = None) -> list[Process]:
    """Return all processes below one, this one unless another is given."""
    below: dict[int, list[Process]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                below.setdefault(parent, []).append(Process(int(folder.name), parent, command))
    found, waiting = [], [os.getpid() if root is None else root]
    while waiting:
        children = below.get(waiting.pop(), [])
        found += children
        waiting += [child.pid for child in children]
    return found


def python_workers() -> list[Process]:
    """Return Spark's Python workers: the children of its daemons, which have the daemons' command."""
    family = {process.pid: process for process in descendants()}
    return [
        process
        for process in family.values()
        if _DAEMON in process.command and _DAEMON in getattr(family.get(process.parent), "command", "")
    ]


def executors() -> list[Process]:
    """Return the executors that are processes of their own."""
    return [process for process in descendants() if _EXECUTOR in process.command and "java" in process.command]


def kill(process: Process) -> bool:
    """End a process at once; tell whether it was still there."""
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
