"""Groups at a hub: what the heartbeats of their members cost, and a balance of all groups at once.

``python -m benchmarks.tubemq.groups [--groups 1000] [--members 10] [--seconds 30]``; with the usual numbers it writes
benchmarks/results/tubemq/groups.json

One process plays all members over one connection: each beats at the master and at the broker every 10 s, evenly spread,
and works off what it is told.  First everybody registers and all partitions are held; then come seconds in which
nothing changes; then, in the same time, one member of each group leaves and comes back, so that each group is balanced
twice.  Figures are per cent of a core, of the hub's process.  Goal: 10 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.floors import ROOT
from benchmarks.servers.pinned import cpu_of
from tests.support.foreignclients import JAVA, Answer, Client, took_apart

RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "groups.json"
PERIOD_S, STEPS_A_SECOND = 10.0, 20
TOPIC = "t"
_MASTER, _READ = 1, 2


def serve(partitions: int) -> None:
    """Run a hub until standard input ends."""
    from dataproxy.hub import Hub

    with Hub(tubemq_port=0, partitions=partitions, topics=[TOPIC]) as hub:
        print(hub.tubemq_port, flush=True)
        sys.stdin.read()


@dataclass
class Member:
    """One consumer, as it knows itself."""

    id: str
    group: str
    held: set[str] = field(default_factory=set)
    event: dict[int, list[Any]] | None = None  # that was worked off, and is to be reported

    def registration(self) -> dict[int, Any]:
        """Return the fields of method 4."""
        return {1: self.id, 2: self.group, 3: "127.0.0.1", 4: [TOPIC], 7: 0, 12: 1, 14: -2, 15: -2, 17: -2}

    def beat(self) -> dict[int, Any]:
        """Return the fields of method 5."""
        told, self.event = self.event, None
        result = None if told is None else {1: told[1][0], 2: told[2][0], 3: 2}
        held = [f"{self.id}@{self.group}#{one}" for one in sorted(self.held)] if told is not None else []
        return {1: self.id, 2: self.group, 3: held, 4: int(told is not None), 5: result, 6: -2, 7: -2}

    def holding(self) -> dict[int, Any]:
        """Return the fields of method 16."""
        return {1: self.id, 2: self.group, 3: 0, 4: sorted(self.held), 7: {1: -2}}


class Crowd:
    """All members, over one connection."""

    def __init__(self, port: int, groups: int, members: int) -> None:
        self._client = Client(port, JAVA)
        self.members = [
            Member(f"g{i}_127.0.0.1-{j}-1700000000000-1-Pull-1.13.0", f"g{i}")
            for j in range(members) for i in range(groups)
        ]  # fmt: skip
        self.groups = groups

    def ask(self, *calls: tuple[int, int, dict[int, Any]]) -> list[Answer]:
        """Send calls, some hundreds at a time, and return their answers."""
        found = []
        for start in range(0, len(calls), 500):
            serials = [self._client.post(*call) for call in calls[start : start + 500]]
            found += [self._client.answer(serial) for serial in serials]
        return found

    def register(self, members: list[Member]) -> None:
        """Let members register at the master."""
        answers = self.ask(*((_MASTER, 4, one.registration()) for one in members))
        assert {answer.code for answer in answers} == {200}

    def beat(self, members: list[Member]) -> int:
        """Let members beat at the master and at the broker, and work off what they are told; return how many were."""
        told = 0
        answers = self.ask(*((_MASTER, 5, one.beat()) for one in members))
        moves: list[tuple[int, int, dict[int, Any]]] = []
        for one, answer in zip(members, answers, strict=True):
            assert answer.code == 200, answer.fields
            for data in answer.fields.get(4, []):
                told += 1
                moves += self._moves(one, took_apart(data))
        for answer in self.ask(*moves):
            assert answer.code == 200, answer.fields
        for answer in self.ask(*((_READ, 16, one.holding()) for one in members if one.held)):
            assert not any(answer.fields.get(4, [])), answer.fields
        return told

    def _moves(self, one: Member, event: dict[int, list[Any]]) -> list[tuple[int, int, dict[int, Any]]]:
        texts = [text.decode().partition("#")[2] for text in event.get(4, [])]
        one.event = event
        gives = event[2][0] in (2, 20)
        one.held = one.held - set(texts) if gives else one.held | set(texts)
        return [(_READ, 15, _place(one, text, gives=gives)) for text in texts]

    def leave(self, members: list[Member]) -> None:
        """Let members give back what they hold, and close."""
        self.ask(*((_READ, 15, _place(one, text, gives=True)) for one in members for text in one.held))
        answers = self.ask(*((_MASTER, 6, {1: one.id, 2: one.group}) for one in members))
        assert {answer.code for answer in answers} == {200}
        for one in members:
            one.held, one.event = set(), None


def _place(one: Member, partition: str, *, gives: bool) -> dict[int, Any]:
    topic, _, number = partition.partition("#")[2].partition(":")
    return {1: 32 if gives else 31, 2: one.id, 3: one.group, 4: topic, 5: int(number), 6: 0, 13: {1: -2}}


def _paced(crowd: Crowd, members: list[Member], seconds: float) -> int:
    """Let each member beat once in a period, evenly spread; return how many events there were."""
    steps = int(seconds * STEPS_A_SECOND)
    share = len(members) / (PERIOD_S * STEPS_A_SECOND)
    begun, told, at = time.monotonic(), 0, 0.0
    for i in range(steps):
        chosen = [members[k % len(members)] for k in range(int(at), int(at + share))]
        told += crowd.beat(chosen) if chosen else 0
        at += share
        time.sleep(max(begun + (i + 1) / STEPS_A_SECOND - time.monotonic(), 0.0))
    return told


def measure(groups: int, members: int, seconds: float) -> dict[str, float]:
    """Return what each part took."""
    command = [sys.executable, "-m", "benchmarks.tubemq.groups", "serve", str(members)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hub:
        try:
            assert hub.stdout is not None
            crowd = Crowd(int(hub.stdout.readline()), groups, members)
            crowd.register(crowd.members)
            while any(len(one.held) != 1 for one in crowd.members) or crowd.beat(crowd.members):
                crowd.beat(crowd.members)
                time.sleep(0.6)
            found = {"groups": groups, "members": groups * members, "seconds": seconds}
            for name, changes in (("still", False), ("changing", True)):
                begun, cpu, told = time.monotonic(), cpu_of(hub.pid), 0
                leaving, staying = crowd.members[:groups], crowd.members[groups:]
                if changes:
                    crowd.leave(leaving)
                told += _paced(crowd, staying if changes else crowd.members, seconds / 2)
                if changes:
                    crowd.register(leaving)
                told += _paced(crowd, crowd.members, seconds / 2)
                spent = time.monotonic() - begun
                found[f"{name}_percent"] = 100 * (cpu_of(hub.pid) - cpu) / spent
                found[f"{name}_events"], found[f"{name}_seconds"] = told, spent
        finally:
            hub.kill()
    return found


def main() -> None:
    """Measure and print; keep the figures of a run with the usual numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=10, help="of each group")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the two parts")
    given = parser.parse_args()
    found = measure(given.groups, given.members, given.seconds)
    print(f"{given.groups} groups, {given.groups * given.members} members")
    for name in ("still", "changing"):
        percent, events, took = (found[f"{name}_{what}"] for what in ("percent", "events", "seconds"))
        print(f"{name}: {percent:.1f} % of a core, {events:.0f} events in {took:.1f} s")
    if (given.groups, given.members, given.seconds) == (1000, 10, 30.0):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    else:
        main()
