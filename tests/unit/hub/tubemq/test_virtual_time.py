"""Whole consumers, the hub's master and its brokers on virtual time: the laws hold, and a mistake is noticed.

Mistakes of compiled decisions are patches of tests/campaigns/planted, which this file notices.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.broker import Broker
from dataproxy.hub.tubemq.cluster.answers import success
from dataproxy.hub.tubemq.groups import consumers
from dataproxy.hub.tubemq.groups.group import Group
from tests.simgroup.plan import FAULTS, HUB_FAULTS, Action, Plan, S, make_plan
from tests.simgroup.world import LawError, World, play

# A sanitizer's run is shorter.
# DATAPROXY_SIM_SEEDS=n plays a twentieth of n.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "2000" if os.environ.get("DATAPROXY_SANITIZER") else "10000")) // 20
SLICES = 20


def crashing(seed: int) -> Plan:
    """Return a plan of many messages and of brokers that crash all the time, with disks that are slow."""
    found = [Action(i * S // 10, "put", (i % 7 / 7, 2)) for i in range(100)]
    found += [Action(i * S, "slow_disk", (i % 3 / 3, S)) for i in range(10)]
    found += [Action(i * S + i * S // 17, "broker", (i % 4 / 4, S // 5, True)) for i in range(1, 10)]
    return replace(
        make_plan(seed), quiet=False, auth=False, span=10 * S, rules=" ", pack_bytes=2000, styles=("fast",),
        actions=tuple(sorted(found)),
    )  # fmt: skip


def test_confirms_survive_brokers_that_crash_all_the_time() -> None:
    for seed in range(20):
        World(crashing(seed), hub=True).run()


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        play(seed, hub=True)


def test_a_seed_plays_the_same_run_again() -> None:
    for seed in range(12):
        assert play(seed, hub=True) == play(seed, hub=True)


def test_the_seeds_reach_every_outcome_and_every_fault() -> None:
    seen = {action.kind for seed in range(300) for action in make_plan(seed, hub=True).actions}
    assert seen >= {*FAULTS, *HUB_FAULTS}
    totals: Counter[str] = sum((play(seed, hub=True) for seed in range(40)), Counter())
    for key in ("confirmed", "rolled_back", "expired", "again", "assigned"):
        assert totals[key] > 10, key


def worlds(seeds: Iterable[int]) -> None:
    """Play runs until a law does not hold."""
    for seed in seeds:
        World(make_plan(seed, hub=True), hub=True).run()


def _ignored(*_: Any, **__: Any) -> None:
    return None


_registered = Broker._register


def _from_the_oldest(self: Broker, request: Any, peer: str, now: float) -> Any:
    moved = type(request)()
    moved.CopyFrom(request)
    moved.currOffset = 0
    return _registered(self, moved, peer, now)


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "events are not finished by their results": (Group, "finished", _ignored, "assigned"),
    "who leaves stays": (Group, "leave", _ignored, "assigned|gone"),
    "who is silent stays": (Clients, "scan", _ignored, "assigned|gone"),
    "reports are not believed": (Group, "report", lambda *_: False, "assigned"),
    "nobody is looked at again": (consumers.Consumers, "_look_soon", _ignored, "assigned"),
    "every partition is given to everybody": (
        Group, "_divide", lambda self, partitions: {one: set(partitions) for one in self.members}, "assigned",
    ),
    "a broker keeps who gives a partition back": (
        Broker, "_unregister", lambda *_: success("RegisterRequestC2B", currOffset=-1), "assigned|gone",
    ),
    "a registration begins at the oldest message": (Broker, "_register", _from_the_oldest, "back"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, replacement, law = MISTAKES[name]
    monkeypatch.setattr(owner, method, replacement)
    with pytest.raises(LawError, match=law):
        worlds(range(300))
