"""Whole consumers and the hub's master on virtual time: the laws hold, and a mistake of the master is noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq import consumers
from dataproxy.hub.tubemq.group import Group
from tests.simgroup.plan import make_plan
from tests.simgroup.world import LawError, World, play

# A sanitizer's run is shorter.
# DATAPROXY_SIM_SEEDS=n plays a tenth of n.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "1000" if os.environ.get("DATAPROXY_SANITIZER") else "5000")) // 10
SLICES = 20


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        play(seed, hub=True)


def test_a_seed_plays_the_same_run_again() -> None:
    for seed in range(12):
        assert play(seed, hub=True) == play(seed, hub=True)


def worlds(seeds: Iterable[int]) -> None:
    """Play runs until a law does not hold."""
    for seed in seeds:
        World(make_plan(seed), hub=True).run()


def _ignored(*_: Any, **__: Any) -> None:
    return None


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "events are not finished by their results": (Group, "finished", _ignored, "assigned"),
    "who leaves stays": (Group, "leave", _ignored, "assigned|gone"),
    "who is silent stays": (Clients, "scan", _ignored, "assigned|gone"),
    "reports are not believed": (Group, "report", lambda *_: False, "assigned"),
    "nobody is looked at again": (consumers.Consumers, "_look_soon", _ignored, "assigned"),
    "every partition is given to everybody": (
        Group, "_divide", lambda self, partitions: {one: set(partitions) for one in self.members}, "assigned",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, replacement, law = MISTAKES[name]
    monkeypatch.setattr(owner, method, replacement)
    with pytest.raises(LawError, match=law):
        worlds(range(300))
