"""A whole group on virtual time: laws hold whatever fails, and each planted mistake is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.consumer.group.asking import Release
from dataproxy.consumer.group.chooser import Chooser
from dataproxy.consumer.group.holdings import Holding, State
from dataproxy.consumer.group.masters import Masters
from dataproxy.consumer.group.member import Member
from dataproxy.consumer.group.membership import Life, Membership
from tests.simgroup.chosen import play_chosen
from tests.simgroup.run import LawError, play

SEEDS = max(int(os.environ.get("DATAPROXY_SIM_SEEDS", "4000")) // 40, 100)


@pytest.mark.parametrize("faulty", [False, True], ids=["calm", "faulty"])
def test_the_laws_hold(faulty: bool) -> None:
    """DATAPROXY_SIM_SEEDS=n plays a fortieth of n runs of each kind."""
    holds = sum(play(seed, faulty=faulty).holds for seed in range(SEEDS))
    assert holds > SEEDS


def test_the_laws_hold_of_members_that_choose() -> None:
    holds = sum(play_chosen(seed).holds for seed in range(SEEDS // 2))
    assert holds > SEEDS


def test_a_seed_plays_the_same_run_in_every_process() -> None:
    text = (
        "from tests.simgroup.run import play; from tests.simgroup.chosen import play_chosen\n"
        "print([(r.calls, r.holds) for one in (play, play_chosen) for r in map(one, range(12))])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in "12"
    ]
    assert runs[0] == runs[1] != b""


def forgets_to_register_again(patch: Callable[..., None]) -> None:
    whole = Membership._heartbeat_answered

    def answered(self: Membership, answer: Any, now: float) -> None:
        if answer.errCode == 411:
            self._master_due = now + 10
            return
        whole(self, answer, now)

    patch(Membership, "_heartbeat_answered", answered)


def stays_with_a_standby(patch: Callable[..., None]) -> None:
    patch(Masters, "move", lambda self: 1.0)


def keeps_what_brokers_refuse(patch: Callable[..., None]) -> None:
    patch(Membership, "_drop", lambda self, holding, code, now: None)


def gives_back_without_waiting(patch: Callable[..., None]) -> None:
    def give_back(self: Member, holding: Holding, now: float) -> None:
        if holding.state is State.HELD:
            self.holdings.enter(holding, State.RELEASING, now)
            self._out.append(Release(holding.partition, now + 3))
            self.holdings.enter(holding, State.LEAVING, now)
        elif holding.state is State.REGISTERING:
            holding.unwanted = True

    patch(Member, "_give_back", give_back)


def tells_brokers_nothing_when_it_leaves(patch: Callable[..., None]) -> None:
    whole = Membership._ask_brokers

    def ask(self: Membership, now: float) -> None:
        for holding in self.holdings.within(State.LEAVING):
            self._forget(holding, now)
        whole(self, now)

    patch(Membership, "_ask_brokers", ask)


def misses_events(patch: Callable[..., None]) -> None:
    whole = Member._next_event

    def next_event(self: Member, now: float) -> None:
        if self._queued is not None and self._queued.number % 3 == 0:
            self._queued = None
        whole(self, now)

    patch(Member, "_next_event", next_event)


def reports_what_it_never_got(patch: Callable[..., None]) -> None:
    def connect(self: Member, event: Any, partitions: list[Any], now: float) -> None:
        for partition in partitions[1:]:
            if self.holdings.get(partition.key) is None:
                event.keys.add(partition.key)
                self.holdings.want(partition, now)
        self._told = [*getattr(self, "_told", []), *partitions[:1]]  # type: ignore[attr-defined]

    texts = Member._texts
    patch(Member, "_connect", connect)
    patch(
        Member, "_texts",
        lambda self: texts(self) + [f"{self._options.client}@g#{one}" for one in getattr(self, "_told", [])],
    )  # fmt: skip


def never_ends_an_event(patch: Callable[..., None]) -> None:
    patch(Member, "_settle", lambda self, now, key=None: None)


def takes_nothing_again(patch: Callable[..., None]) -> None:
    patch(Chooser, "_settle", lambda self, now, key: None)


def keeps_what_is_not_chosen(patch: Callable[..., None]) -> None:
    whole = Membership._give_back

    def give_back(self: Membership, holding: Holding, now: float) -> None:
        if self.life is not Life.MEMBER or holding.partition.id:
            whole(self, holding, now)

    patch(Membership, "_give_back", give_back)


def does_not_tell_the_master(patch: Callable[..., None]) -> None:
    patch(Chooser, "_full", lambda self, now: False)


PLANTED = [
    forgets_to_register_again, stays_with_a_standby, keeps_what_brokers_refuse, gives_back_without_waiting,
    tells_brokers_nothing_when_it_leaves, misses_events, reports_what_it_never_got,
    never_ends_an_event,
]  # fmt: skip

CHOSEN = [
    takes_nothing_again, keeps_what_is_not_chosen, does_not_tell_the_master,
    forgets_to_register_again, keeps_what_brokers_refuse, tells_brokers_nothing_when_it_leaves,
]  # fmt: skip


@pytest.mark.parametrize("plant", CHOSEN, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_of_members_that_choose_is_noticed(
    plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch.setattr)
    with pytest.raises((LawError, ValueError)):
        play_many_chosen(300)


def play_many_chosen(seeds: int) -> None:
    for seed in range(seeds):
        play_chosen(seed)


def play_many(seeds: int) -> None:
    for seed in range(seeds):
        play(seed)
        play(seed, faulty=False)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_noticed(plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch.setattr)
    with pytest.raises(LawError):
        play_many(200)
