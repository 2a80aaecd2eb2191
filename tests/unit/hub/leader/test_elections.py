"""Three hubs and ZooKeeper on virtual time: the laws hold, and a mistake of a seat is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

from dataproxy.hub.leader import seat
from dataproxy.hub.leader.commands import Command, Kind
from dataproxy.hub.leader.seat import Seat
from tests.simleader.keeper import Keeper
from tests.simleader.world import LawError, play

# DATAPROXY_SIM_SEEDS=n plays a twenty-fifth of n.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "2500" if os.environ.get("DATAPROXY_SANITIZER") else "10000")) // 25
SLICES = 10


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for number in range(slice_, SEEDS, SLICES):
        play(number)


def test_a_seed_plays_the_same_run_again() -> None:
    for number in range(5):
        one, other = play(number), play(number)
        assert (one.log, one.takeovers, one.counted) == (other.log, other.takeovers, other.counted)


def test_runs_have_leaders_and_writes() -> None:
    worlds = [play(number) for number in range(20)]
    assert sum(len(one.takeovers) for one in worlds) > 60
    assert sum(one.counted for one in worlds) > 800


def _resolved_by_hope(self: Seat, outcome: Any) -> None:
    self._count(self._writes[0])


def _looked_now(self: Seat, command: Command, outcome: Any, now: float) -> None:
    _LOOKED(self, command, outcome, now)
    self._as_of = now


def _ran_without_reading(self: Seat, command: Command, outcome: Any, now: float) -> None:
    _RAN(self, command, outcome, now)
    if self._state is seat._State.WON and self.version >= 0:
        self._state, self._next_touch = seat._State.LEADS, now


def _without_epoch(self: Keeper, session: int, hub: int, command: Command) -> Any:
    if command.kind in (Kind.WRITE, Kind.TOUCH):
        command.epoch = self.epoch
        command.version = self.version
    return _WORK(self, session, hub, command)


_RAN, _LOOKED, _WORK = Seat._ran, Seat._looked, Keeper.work
MISTAKES: dict[str, tuple[Any, str, Any, str]] = {
    "the lease is as long as the session": (seat, "_LEASE", 1.2, "two leaders"),
    "its time never ends": (Seat, "leads", lambda self, now: self._state is seat._State.LEADS, "two leaders"),
    "writes without an answer count": (Seat, "_resolve", _resolved_by_hope, "lost"),
    "writes are not checked": (Keeper, "work", _without_epoch, "lost|two leaders"),
    "what was not looked at is fresh": (Seat, "_looked", _looked_now, "too old"),
    "a new leader has not read": (Seat, "_ran", _ran_without_reading, "lost|too old|nobody leads"),
}


def runs(seeds: Iterable[int]) -> None:
    """Play runs until a law does not hold."""
    for number in seeds:
        play(number)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, what, replacement, law = MISTAKES[name]
    monkeypatch.setattr(owner, what, replacement)
    with pytest.raises(LawError, match=law):
        runs(range(150))
