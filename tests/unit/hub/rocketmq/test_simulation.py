"""Clients against the registry on virtual time: every law holds, and each mistake of the registry breaks one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from dataproxy.hub.clients import Clients
from dataproxy.hub.rocketmq.clients.locks import Locks
from dataproxy.hub.rocketmq.clients.members import Members
from dataproxy.hub.rocketmq.clients.notices import Notices
from dataproxy.hub.rocketmq.groups import resets
from dataproxy.hub.rocketmq.groups.questions import Questions
from dataproxy.hub.rocketmq.groups.resets import Resets
from dataproxy.hub.rocketmq.registry import Registry
from tests.simclients.world import LawError, play

# DATAPROXY_SIM_SEEDS=n plays a hundredth of n.
SEEDS = int(os.environ.get("DATAPROXY_SIM_SEEDS", "2000" if os.environ.get("DATAPROXY_SANITIZER") else "12000")) // 100
SLICES = 4


@pytest.mark.parametrize("slice_", range(SLICES))
def test_every_law_holds(slice_: int) -> None:
    for seed in range(slice_, SEEDS, SLICES):
        play(seed)


def test_a_seed_plays_the_same_run_again() -> None:
    for seed in range(3):
        one, other = play(seed), play(seed)
        assert (one.log, one.steps, one.grants, one.commits) == (other.log, other.steps, other.grants, other.commits)


def test_several_processes_play_seeds() -> None:
    command = [sys.executable, "-m", "tests.simclients", "2", "--start", "5", "--processes", "2"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.startswith("2 runs in ")
    assert found.stdout.endswith(", 0 violations\n")


def test_runs_have_locks_notifications_and_late_commits() -> None:
    worlds = [play(seed) for seed in range(6)]
    assert sum(one.grants for one in worlds) > 400
    assert sum(one.notices for one in worlds) > 100
    assert sum(one.late for one in worlds) > 50


def runs(seeds: Iterable[int]) -> None:
    """Play runs until a law does not hold."""
    for seed in seeds:
        play(seed)


def _ignored(*_: Any, **__: Any) -> None:
    return None


def _without_ends(self: Clients, now: float) -> None:
    self._scan_at = now + 1.0


def _without_failures(self: Questions, now: float) -> None:
    self._ends.clear()


def _free_at_once(self: Locks, group: str, connection: int, now: float) -> None:
    self.left(group, connection)


def _by_id_alone(self: Locks, found: Any, holder: Any, now: float) -> bool:
    return now > found.free_at or bool(found.client_id == holder.client_id)


def _soon_anybodys(self: Locks, found: Any, holder: Any, now: float) -> bool:
    return bool(_MAY_TAKE(self, found, holder, now) or now - found.granted > 15.0)


def _all_alive(self: Members, group: str, connection: int, now: float) -> bool:
    found = _REFRESH(self, group, connection, now)
    for other in self.names():
        if self.at(other, connection) is not None:
            _REFRESH(self, other, connection, now)
    return found


def _to_the_first(self: Notices, now: float) -> None:
    before = len(self._outbox)
    _TICK(self, now)
    del self._outbox[before + 1 :]


def _one_by_one(self: Notices, group: str, now: float) -> None:
    self._due[group] = now
    self.tick(now)


def _within_the_last(self: Notices, group: str, now: float) -> None:
    self._due.pop(group, None)
    self._due[group] = now + 3 * self._window_s


def _silent_end(self: Members, name: Any, member: Any, now: float, why: Any) -> None:
    group = self._groups[member.group]
    group.take(member)
    if not group.members:
        del self._groups[member.group]
    self._gone(member, now, why)


def _any_member(self: Resets, group: str, connection: int, topic: str, queue: int, offset: int, now: float) -> bool:
    admitted = _ADMITS(self, group, connection, topic, queue, offset, now)
    return self._members.at(group, connection) is not None or admitted


_MAY_TAKE, _REFRESH, _TICK, _ADMITS = Locks._may_take, Members.refresh, Notices.tick, Resets.admits
MISTAKES: dict[str, tuple[Any, str, Any, str]] = {
    "locks are free when a connection ends": (Locks, "lost", _free_at_once, "owner"),
    "an id owns a lock": (Locks, "_may_take", _by_id_alone, "owner"),
    "a lock is another's before its owner gives it up": (Locks, "_may_take", _soon_anybodys, "owner"),
    "who is silent stays": (Clients, "scan", _without_ends, "ghost"),
    "the end of a connection ends nobody": (Clients, "close", lambda *_: 0, "ghost|table"),
    "who has left comes back late": (Members, "_is_buried", lambda *_: False, "ghost"),
    "who leaves stays": (Members, "unregister", lambda *_: True, "ghost"),
    "one group keeps the others alive": (Members, "refresh", _all_alive, "ghost"),
    "ends are told to nobody": (Members, "_ended", _silent_end, "told"),
    "one of a group is told": (Notices, "tick", _to_the_first, "told"),
    "a change puts off the one before": (Notices, "changed", _within_the_last, "told"),
    "every change is told": (Notices, "changed", _one_by_one, "coalesced"),
    "every commit counts": (Resets, "admits", lambda *_: True, "reset"),
    "members are never late": (Resets, "admits", _any_member, "reset"),
    "who was lost is forgotten": (Resets, "came", _ignored, "reset"),
    "what an earlier reset has told counts": (resets, "_SAID_S", 0.0, "reset"),
    "the next hub knows nothing of resets": (Resets, "_restore", _ignored, "reset"),
    "the compiled side is not told": (Registry, "_member_came", _ignored, "table"),
    "questions wait for ever": (Questions, "tick", _without_failures, "replied"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, what, replacement, law = MISTAKES[name]
    monkeypatch.setattr(owner, what, replacement)
    with pytest.raises(LawError, match=rf": ({law}): "):
        runs(range(80))
