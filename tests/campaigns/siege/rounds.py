"""Rounds of a siege: the honest pair alone, then beside everybody, and again; then the judge."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataproxy.hub import open_store
from tests.campaigns.histories.bodies import read_body
from tests.campaigns.siege.honest import GROUP, STREAM
from tests.campaigns.siege.memory import MIB, OPTIONS, Peak, bound, kib
from tests.campaigns.siege.processes import Crowd, Honest, HubUnderSiege

__all__ = ["LEAST_SHARE", "RATE", "Figures", "besiege", "judge"]

LEAST_SHARE = 0.5
#: Messages a second that the honest producer offers: what one stream of a busy program has, no more than a hub can do.
RATE = 2000.0
_WARM = 1.0
_PATIENCE, _LOOK = 60.0, 0.2
_LITTLE = 2000  # messages
_ROLES = ("produce", "read")


@dataclass
class Figures:
    """What came of a siege.  ``wrong`` is what must never be; ``slow`` is judged by the clock."""

    alone: dict[str, list[float]] = field(default_factory=lambda: {role: [] for role in _ROLES})
    besieged: dict[str, list[float]] = field(default_factory=lambda: {role: [] for role in _ROLES})
    produced: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    besiegers: dict[str, Counter[str]] = field(default_factory=dict)
    http: Counter[str] = field(default_factory=Counter)
    unfair: Counter[str] = field(default_factory=Counter)
    stats: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    own: int = 0
    resident: int = 0
    file: int = 0
    stored: int = 0
    closing: float = 0.0
    wrong: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    @property
    def bound(self) -> int:
        """Return what the hub may hold beside the map of its store's file."""
        return sum(self.parts.values())

    def share(self, role: str) -> float:
        """Return how much of its rate one of the pair kept: the median of rounds that followed each other."""
        pairs = zip(self.besieged[role], self.alone[role], strict=True)
        return statistics.median(beside / max(alone, 1e-9) for beside, alone in pairs)


def besiege(
    folder: Path,
    seed: int,
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
    *,
    rate: float = RATE,
    only: Sequence[str] = (),
) -> Figures:
    """Run ``rounds`` rounds of twice ``seconds``; what was seen is judged.

    ``rate`` is what the producer offers, in messages a second; ``only`` are hostile clients by name, empty for all.
    """
    figures = Figures()
    with ExitStack() as undo:
        hub = HubUnderSiege(folder)
        undo.callback(hub.kill)
        figures.parts = bound(kib(hub.process.pid, "VmRSS") << 10)
        peak = undo.enter_context(Peak(hub.process.pid))
        pair = {"produce": Honest(folder, "produce", hub.target, str(rate)), "read": Honest(folder, "read", hub.url)}
        for one in pair.values():
            undo.callback(one.kill)
        time.sleep(_WARM)
        for number in range(rounds):
            _caught_up(pair)
            _measure(figures.alone, pair, seconds)
            crowd = Crowd(folder, hub, seed * 1000 + number, only)
            undo.callback(crowd.kill)
            _measure(figures.besieged, pair, seconds)
            figures.stats = hub.stats()
            _gauges(figures)
            last = number == rounds - 1
            if last:  # the end comes in the middle of it
                figures.produced = pair["produce"].end()
                figures.read = pair["read"].end(figures.produced["accepted"])
                peak.look()
                code, figures.closing = hub.end()
                if code:
                    figures.wrong.append(f"the hub ended with {code}")
            _add(figures, crowd.go())
            say(_line(figures, number + 1, rounds, peak))
        figures.own, figures.resident = peak.own, peak.resident
    figures.file = (hub.store / "data.mdb").stat().st_size
    judge(figures, _stored(hub), hub.log.read_text())
    return figures


def _caught_up(pair: dict[str, Honest]) -> None:
    """Wait until the reader has little before it: what it makes good is not its rate."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        made, had = (pair[role].counters()[1]["done"] for role in _ROLES)
        if made - had <= _LITTLE:
            return
        time.sleep(_LOOK)


def _measure(rates: dict[str, list[float]], pair: dict[str, Honest], seconds: float) -> None:
    before = {role: one.counters() for role, one in pair.items()}
    time.sleep(seconds)
    for role, one in pair.items():
        now, done = one.counters()
        since, had = before[role]
        rates[role].append((done["done"] - had["done"]) / (now - since))


def _gauges(figures: Figures) -> None:
    for name in ("frame_bytes", "answer_bytes"):
        if figures.stats[name] > OPTIONS["queue_bytes"]:
            figures.wrong.append(f"{name} is {figures.stats[name]}, over queue_bytes")


def _add(figures: Figures, seen: dict[str, Any]) -> None:
    for name, (opened, away, sent, received, established) in seen["besiegers"].items():
        counter = figures.besiegers.setdefault(name, Counter())
        counter.update(opened=opened, away=away, sent=sent, received=received, rounds=established)
    figures.http.update(seen["http"])
    figures.unfair.update(seen["unfair"])


def _line(figures: Figures, number: int, rounds: int, peak: Peak) -> str:
    rates = "  ".join(
        f"{role} {figures.alone[role][-1]:8,.0f} -> {figures.besieged[role][-1]:8,.0f} /s" for role in _ROLES
    )
    return f"round {number:3}/{rounds}  {rates}  own memory {peak.own / MIB:6.1f} MiB"


def judge(figures: Figures, stored: list[int], said: str) -> None:
    """Say what must not be: of the messages, the memory, the hub's words, and, apart from these, the rate.

    ``stored`` are the numbers of the messages in the store, ``said`` is the hub's log.
    """
    made, read = figures.produced, figures.read
    wrong = figures.wrong
    if made["failed"] or made["expired"] or made["done"] != made["accepted"]:
        wrong.append(f"the producer's messages: {made}")
    if read["missing"] or read["damaged"] or read["done"] != made["accepted"]:
        wrong.append(f"{made['accepted']} messages were acknowledged, the reader saw {read}")
    figures.stored = len(stored)
    numbers = set(stored)
    if numbers != set(range(min(numbers, default=0), made["accepted"])):  # retention takes the oldest
        wrong.append(f"acknowledged messages are not in the store, which has {len(numbers)} of {made['accepted']}")
    if len(numbers) < len(stored) and not made["resent"]:
        wrong.append(f"{len(stored) - len(numbers)} messages are stored twice, and none was sent again")
    for name, kind in figures.besiegers.items():
        if not kind["sent"]:
            wrong.append(f"{name} was not there")
    wrong += [f"an HTTP client was answered as it should not be: {name}" for name in figures.unfair]
    if figures.own > figures.bound:
        wrong.append(f"the hub held {figures.own:,} bytes, and its bounds add up to {figures.bound:,}")
    if figures.resident > figures.bound + figures.file:
        wrong.append(f"{figures.resident:,} bytes were resident, with its file {figures.bound + figures.file:,} may be")
    if "Traceback" in said or "ERROR" in said:
        wrong.append(f"the hub says: {said[:2000]}")
    figures.slow += [
        f"{role}: {figures.share(role):.0%} of its rate is left, {LEAST_SHARE:.0%} should be"
        for role in _ROLES
        if figures.share(role) < LEAST_SHARE
    ]


def _stored(hub: HubUnderSiege) -> list[int]:
    """Return the numbers of the messages that another process finds in the store."""
    found = []
    with open_store(hub.store) as store:
        for batch in store.record_batches(GROUP, STREAM):
            for body in batch["body"].to_pylist():
                said = read_body(body)
                found.append(said.sequence if said is not None and said.intact else -1)
    return found
