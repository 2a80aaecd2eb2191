"""Ways of ending x states of the hub: what has to hold after each run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from dataproxy.hub import Hub
from tests.campaigns.endings.delay import Delay

__all__ = ["ENDINGS", "HUBS", "End", "Figures", "problems", "run_case"]

ENDINGS = ("return", "sys.exit", "exception", "sigterm", "daemon", "_exit")
HUBS = ("up", "slow", "down")
CLOSE_SECONDS = {"up": 30.0, "slow": 30.0, "down": 1.0}
SLACK_SECONDS = 1.0  # after close_timeout the process has to be gone
SLOW_SECONDS = 0.2
HANG_SECONDS = 90.0
LOST_LINE = re.compile(r"^dataproxy: the process ended with a producer open, and .* not delivered .*\n", re.MULTILINE)
# What Python says of an error that nobody caught, once and nothing else.
OWN_TRACEBACK = re.compile(r"Traceback [^\n]*\n((?!Traceback)[^\n]*\n)*RuntimeError: the application's own error\n")
ROOT = Path(__file__).parents[3]
OUTCOMES = ("delivered", "failed", "expired", "dropped", "pending")


@dataclass
class Figures:
    """What the runs of one case came to."""

    ending: str
    hub: str
    runs: int = 0
    sent: int = 0
    delivered: int = 0
    stored: int = 0
    lost: int = 0
    twice: int = 0
    slowest_close: float = 0.0  # until the package was done
    slowest_end: float = 0.0  # until the process was gone
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class End:
    """How one process ended."""

    status: int
    accounting: dict[str, float]
    stderr: str
    seconds: float


def _end(target: str, stream: str, ending: str, messages: int, close_timeout: float) -> End:
    program = Path(__file__).with_name("program.py")
    process = subprocess.Popen(
        [sys.executable, str(program), target, stream, ending, str(messages), str(close_timeout)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        if ending == "sigterm" and process.stdout.readline() == "ready\n":
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return End(-9, {}, f"it hung; {err}", HANG_SECONDS)
    gone = time.monotonic()
    accounting = json.loads(out) if out.startswith("{") else {}
    return End(process.returncode, accounting, err, gone - accounting.get("ended_at", gone))


def problems(end: End, ending: str, hub: str, messages: int, *, slack: float = SLACK_SECONDS) -> Iterator[str]:
    """Yield what is wrong with one end; ``slack`` is what it may take beyond close_timeout."""
    accounting = end.accounting
    if not accounting or end.status != (1 if ending == "exception" else 0):
        yield f"status {end.status}, accounting {accounting}, stderr {end.stderr!r}"
        return
    if (
        accounting["accepted"] != messages
        or accounting["accepted"] != sum(accounting[name] for name in OUTCOMES)
        or accounting["pending"]
    ):
        yield f"the accounting does not balance: {accounting}"
    if hub != "down" and accounting["delivered"] != messages:
        yield f"not everything was delivered: {accounting}"
    if hub == "down" and end.seconds > CLOSE_SECONDS[hub] + slack:
        yield f"it took {end.seconds:.2f} s to end"
    said, told = LOST_LINE.subn("", end.stderr)
    if told != (accounting["delivered"] < accounting["accepted"] and ending != "_exit"):  # that one calls close
        yield f"{told} lines on stderr tell what was lost: {accounting}"
    if ending == "exception" and OWN_TRACEBACK.fullmatch(said):
        said = ""
    if said:
        yield f"on stderr: {end.stderr!r}"


@contextlib.contextmanager
def _hub(state: str) -> Iterator[tuple[Hub | None, str]]:
    if state == "down":
        with socket.socket() as refused:  # the port is taken, and nobody listens
            refused.bind(("127.0.0.1", 0))
            yield None, f"tcp://127.0.0.1:{refused.getsockname()[1]}"
        return
    with Hub() as hub:
        if state == "up":
            yield hub, hub.target
            return
        with Delay(int(hub.target.rpartition(":")[2]), SLOW_SECONDS) as proxy:
            yield hub, proxy.target


def run_case(
    ending: str, state: str, runs: int, messages: int, *, jobs: int = 4, slack: float = SLACK_SECONDS
) -> Figures:
    """Run one case ``runs`` times, ``jobs`` at a time, and check each run against the hub."""
    figures = Figures(ending, state)
    with _hub(state) as (hub, target), ThreadPoolExecutor(jobs) as pool:

        def once(number: int) -> End:
            return _end(target, f"s{number}", ending, messages, CLOSE_SECONDS[state])

        wanted = {b"%d" % i for i in range(messages)}
        for number, end in enumerate(pool.map(once, range(runs))):
            figures.runs += 1
            figures.sent += messages
            figures.delivered += int(end.accounting.get("delivered", 0))
            closed = end.accounting.get("closed_at", 0.0) - end.accounting.get("ended_at", 0.0)
            figures.slowest_close = max(figures.slowest_close, closed)
            figures.slowest_end = max(figures.slowest_end, end.seconds)
            figures.violations += [
                f"run {number}: {text}" for text in problems(end, ending, state, messages, slack=slack)
            ]
            if hub is None:
                continue
            stored = Counter(record.body for record in hub.records("g", f"s{number}"))
            figures.stored += stored.total()
            lost, twice = len(wanted - stored.keys()), stored.total() - len(stored)
            figures.lost += lost
            figures.twice += twice
            if lost or twice or stored.keys() - wanted:
                figures.violations.append(f"run {number}: {lost} lost, {twice} twice, of {stored.total()} stored")
    return figures
