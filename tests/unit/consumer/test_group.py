"""A whole group on virtual time: laws hold whatever fails, and each planted mistake is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dataproxy.consumer.driver import Driver
from dataproxy.consumer.group.asking import Hold, Release
from dataproxy.consumer.group.holdings import Holding, State
from dataproxy.consumer.group.masters import Masters
from dataproxy.consumer.group.member import Member
from tests.sim.minimise import minimise
from tests.simgroup.__main__ import fails
from tests.simgroup.hosts import BrokerHost
from tests.simgroup.plan import FAULTS, Action, Plan, S, make_plan
from tests.simgroup.world import LawError, World, play

# DATAPROXY_SIM_SEEDS=n plays a fifth of n; a sanitizer's run is shorter.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "500" if os.environ.get("DATAPROXY_SANITIZER") else "2500")) // 5
SLICES = 20


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        play(seed)


def test_a_seed_plays_the_same_run_in_every_process() -> None:
    text = "from tests.simgroup.world import play; print([sorted(play(seed).items()) for seed in range(12)])"
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


def test_several_processes_play_seeds() -> None:
    command = [sys.executable, "-m", "tests.simgroup", "--seeds", "2", "--processes", "2"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.startswith("2 seeds in ")
    assert ", 0 violations: " in found.stdout


def test_the_seeds_reach_every_outcome_and_every_fault() -> None:
    plans = [make_plan(seed) for seed in range(300)]
    seen = {action.kind for plan in plans for action in plan.actions}
    assert seen >= FAULTS.keys(), FAULTS.keys() - seen
    totals: Counter[str] = sum((play(seed) for seed in range(60)), Counter())
    for key in ("confirmed", "rolled_back", "expired", "again", "assigned"):
        assert totals[key] > 20, key


def play_all(worlds: Iterable[World]) -> None:
    """Play runs until a law does not hold."""
    for world in worlds:
        world.run()


def stormy(seed: int) -> Plan:
    """Return a plan of many messages and many broken connections."""
    messages = [Action(i * S // 20, "put", (i % 7 / 7, 2)) for i in range(200)]
    actions = (Action(0, "noise", (0.3, 10 * S)), *messages)
    return replace(make_plan(seed), quiet=False, auth=False, span=10 * S, actions=actions, rules=" ", pack_bytes=2000)


def test_requests_of_a_broken_connection_that_come_late_pass_over_messages() -> None:
    """The gap of the protocol that docs/consumer.md names; who works off broken connections at once has none."""
    with pytest.raises(LawError, match=r"passed over|again"):
        play_all(World(stormy(seed), late=True) for seed in range(100))
    play_all(World(stormy(seed)) for seed in range(5))


def test_a_failing_plan_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps_what_brokers_refuse(monkeypatch.setattr)
    plan = next(one for one in map(make_plan, range(200)) if fails(one) and one.faults > 2)
    small = minimise(plan, broken=fails, tries=40)
    assert len(small.actions) < len(plan.actions)
    assert fails(small)


def forgets_to_register_again(patch: Callable[..., None]) -> None:
    whole = Member._heartbeat_answered

    def answered(self: Member, answer: Any, now: float) -> None:
        if answer.errCode == 411:
            self._master_due = now + 10
            return
        whole(self, answer, now)

    patch(Member, "_heartbeat_answered", answered)


def stays_with_a_standby(patch: Callable[..., None]) -> None:
    patch(Masters, "move", lambda self: 1.0)


def keeps_what_brokers_refuse(patch: Callable[..., None]) -> None:
    patch(Member, "_drop", lambda self, holding, code, now: None)


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
    whole = Member._ask_brokers

    def ask(self: Member, now: float) -> None:
        for holding in self.holdings.within(State.LEAVING):
            self._forget(holding, now)
        whole(self, now)

    patch(Member, "_ask_brokers", ask)


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


def offers_packs_of_others(patch: Callable[..., None]) -> None:
    """A broker that gives a partition away while its owner is there: a law of brokers, and of the lab's own eyes."""
    whole = BrokerHost.call

    def call(self: BrokerHost, name: str, request: Any, now: int) -> Any:
        if name == "RegisterRequestC2B" and request.opType == 31:
            self.broker.locks.clear()
            self._laws._owners.clear()
        return whole(self, name, request, now)

    patch(BrokerHost, "call", call)


def confirms_what_it_forgets(patch: Callable[..., None]) -> None:
    """A broker that answers a confirm and does not do it."""
    whole = BrokerHost.call

    def call(self: BrokerHost, name: str, request: Any, now: int) -> Any:
        before = {key: replace(one) for key, one in self.broker.progress.items()}
        answer = whole(self, name, request, now)
        if name == "CommitOffsetRequestC2B" and answer.errCode == 200:
            self.broker.progress.update(before)
        return answer

    patch(BrokerHost, "call", call)


def tells_of_a_partition_too_late(patch: Callable[..., None]) -> None:
    """A driver that gives a partition back before it tells the application."""
    whole = Driver._release

    def release(self: Driver, order: Release, now: float) -> None:
        watcher, self._watcher = self._watcher, type("Deaf", (), {"revoked": lambda *_, **__: None})()
        whole(self, order, now)
        self._watcher = watcher

    patch(Driver, "_release", release)


def tells_of_a_partition_twice(patch: Callable[..., None]) -> None:
    whole = Driver._hold

    def hold(self: Driver, order: Hold, now: float) -> None:
        whole(self, order, now)
        self._watcher.assigned(order.partition, self._next, lambda paused: None, moved=False)

    patch(Driver, "_hold", hold)


def begins_at_the_end(patch: Callable[..., None]) -> None:
    """A member that skips what was sent while a partition changed hands."""
    whole = Member._taking

    def taking(self: Member, holding: Holding) -> Any:
        message = whole(self, holding)
        message.readStatus = 2
        return message

    patch(Member, "_taking", taking)


def knows_no_other_answers(patch: Callable[..., None]) -> None:
    def tell(self: Driver, key: str, code: int, text: bytes, now: float) -> None:
        raise KeyError(code)

    patch(Driver, "_tell", tell)


PLANTED = {
    forgets_to_register_again: "assigned",
    stays_with_a_standby: "assigned",
    misses_events: "assigned",
    reports_what_it_never_got: "assigned",
    never_ends_an_event: "assigned",
    keeps_what_brokers_refuse: "state",
    gives_back_without_waiting: "state",
    tells_of_a_partition_too_late: "state",
    tells_of_a_partition_twice: "order",
    tells_brokers_nothing_when_it_leaves: "gone",
    offers_packs_of_others: "owner",
    confirms_what_it_forgets: "again",
    begins_at_the_end: "seen",
    knows_no_other_answers: "error",
}


def broken_laws(seeds: int) -> Iterator[str]:
    """Yield the law that each failing seed breaks."""
    for seed in range(seeds):
        problem = fails(make_plan(seed))
        if problem:
            yield problem.partition("us: ")[2].split(" ", 1)[0]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_breaks_its_law(plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch.setattr)
    assert PLANTED[plant] in broken_laws(300)
