"""Servers on a core of their own, the clients on another one, and what a client costs its server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.floors import ROOT
from benchmarks.turns import Fields

__all__ = ["CLIENT", "SERVERS", "Server", "client", "cpu_of", "measured", "pinned", "started"]

CLIENT, SERVERS = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))


class Server(NamedTuple):
    """What clients reach, and its process."""

    target: str
    pid: int


@contextmanager
def started(*command: str) -> Iterator[tuple[int, str]]:
    """Run a server on its core; give its process and the first line that it prints."""
    words = ("taskset", "-c", str(SERVERS), *command)
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            line = one.stdout.readline().strip()
            if not line:
                raise SystemExit(f"{command[0]} has not started")
            yield one.pid, line
        finally:
            one.kill()


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Let processes that are started meanwhile run on one core alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_of(pid: int) -> float:
    """Return the processor seconds of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(module: str, server: Server, *words: object) -> Fields:
    """Run one of our clients on the core of clients; return the object that it printed."""
    command = (sys.executable, "-m", f"benchmarks.clients.{module}", server.target, *map(str, words))
    with pinned(CLIENT):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    found: Fields = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measured(server: Server, run: Callable[[], Fields]) -> Fields:
    """Run a client; return its figures, with the server's processor seconds meanwhile as ``server_cpu``."""
    before = cpu_of(server.pid)
    found = run()
    return {**found, "server_cpu": cpu_of(server.pid) - before}
