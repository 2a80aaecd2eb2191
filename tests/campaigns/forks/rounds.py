"""Rounds of forked children: what the hub has to hold afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dataproxy.hub import Hub

__all__ = ["KINDS", "Figures", "check", "run_rounds"]

KINDS = ("fork", "forkserver", "spawn", "prefork")
HANG_SECONDS = 150.0
ROOT = Path(__file__).parents[3]


@dataclass
class Figures:
    """What the rounds of one kind came to."""

    kind: str
    rounds: int = 0
    children: int = 0
    sent: int = 0
    stored: int = 0
    lost: int = 0
    twice: int = 0
    violations: list[str] = field(default_factory=list)


def _run(kind: str, target: str, prefix: str, children: int, messages: int) -> tuple[dict[str, object], str]:
    """Run the parent of one round; return its accounting, and what is wrong with its end."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.campaigns.forks.program", kind, prefix, str(children), str(messages)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "DATAPROXY_TARGET": target},
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return {}, f"a process hung: {err!r}"
    if process.returncode or err:
        return {}, f"status {process.returncode}, stderr {err!r}"
    return json.loads(out), ""


def check(figures: Figures, hub: Hub, accounting: dict[str, object], prefix: str, children: int, messages: int) -> None:
    """Enter into ``figures`` what one round left at the hub."""
    sent: list[int] = accounting["sent"]  # type: ignore[assignment]
    if accounting["failed"] or not accounting["accepted"] == accounting["delivered"] == sum(sent):
        figures.violations.append(f"{prefix}: the parent's accounting is {accounting}")
    wanted = {f"{prefix}-p{t}-{i}".encode() for t, n in enumerate(sent) for i in range(n)}
    wanted |= {f"{prefix}-c{c}-{i}".encode() for c in range(children) for i in range(messages)}
    stored = Counter(record.body for record in hub.records("g", "s"))
    lost, twice = len(wanted - stored.keys()), stored.total() - len(stored)
    figures.sent += len(wanted)
    figures.stored += stored.total()
    figures.lost += lost
    figures.twice += twice
    if lost or twice or stored.keys() - wanted:
        unknown = sorted(stored.keys() - wanted)[:3]
        figures.violations.append(f"{prefix}: {lost} lost, {twice} twice, unknown {unknown}")


def run_rounds(kind: str, rounds: int, *, children: int = 8, messages: int = 200) -> Figures:
    """Run ``rounds`` rounds of one kind, each against a hub of its own."""
    figures = Figures(kind)
    for number in range(rounds):
        with Hub() as hub:
            prefix = f"{kind}{number}"
            accounting, wrong = _run(kind, hub.target, prefix, children, messages)
            figures.rounds += 1
            figures.children += children
            if wrong:
                figures.violations.append(f"{prefix}: {wrong}")
            else:
                check(figures, hub, accounting, prefix, children, messages)
    return figures
