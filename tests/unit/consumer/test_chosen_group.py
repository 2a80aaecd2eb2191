"""Members that choose their partitions, on virtual time: laws hold whatever fails, and planted mistakes are noticed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy.consumer.group.chooser import Chooser
from dataproxy.consumer.group.holdings import Holding, State
from dataproxy.consumer.group.membership import Life, Membership
from tests.simchosen.play import play_chosen
from tests.simchosen.run import LawError

# DATAPROXY_SIM_SEEDS=n plays a fortieth of n; a sanitizer's run is shorter.
SHORT = bool(os.environ.get("DATAPROXY_SANITIZER"))
SEEDS = 20 if SHORT else max(int(os.environ.get("DATAPROXY_SIM_SEEDS", "4000")) // 40, 100)


def test_the_laws_hold_of_members_that_choose() -> None:
    holds = sum(play_chosen(seed).holds for seed in range(SEEDS))
    assert holds > SEEDS


def forgets_to_register_again(patch: Callable[..., None]) -> None:
    whole = Membership._heartbeat_answered

    def answered(self: Membership, answer: Any, now: float) -> None:
        if answer.errCode == 411:
            self._master_due = now + 10
            return
        whole(self, answer, now)

    patch(Membership, "_heartbeat_answered", answered)


def keeps_what_brokers_refuse(patch: Callable[..., None]) -> None:
    patch(Membership, "_drop", lambda self, holding, code, now: None)


def tells_brokers_nothing_when_it_leaves(patch: Callable[..., None]) -> None:
    whole = Membership._ask_brokers

    def ask(self: Membership, now: float) -> None:
        for holding in self.holdings.within(State.LEAVING):
            self._forget(holding, now)
        whole(self, now)

    patch(Membership, "_ask_brokers", ask)


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


CHOSEN = [
    takes_nothing_again, keeps_what_is_not_chosen, does_not_tell_the_master,
    forgets_to_register_again, keeps_what_brokers_refuse, tells_brokers_nothing_when_it_leaves,
]  # fmt: skip


@pytest.mark.parametrize("plant", CHOSEN, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_noticed(plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch.setattr)
    with pytest.raises((LawError, ValueError)):
        play_many(300)


def play_many(seeds: int) -> None:
    for seed in range(seeds):
        play_chosen(seed)
