"""What happens in one simulated run of a group, as data: a seed makes a plan, and a part of a plan is a plan."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

__all__ = ["ALONE", "FAULTS", "HUB_FAULTS", "STYLES", "Action", "Plan", "S", "Times", "make_plan"]

S = 1_000_000
#: Faults and how often they are chosen.
FAULTS = {
    "join": 3, "close": 3, "crash": 3, "stop": 2, "leader": 2, "headless": 3, "unready": 1,
    "broker": 4, "frozen": 3, "starting": 2, "forbidden": 1, "reset": 5, "cut": 3, "noise": 3, "odd": 4, "lazy": 2,
    "clock": 1, "pause": 1, "seek": 2, "rules": 1, "refuse": 1,
}  # fmt: skip
#: Faults that the hub's brokers alone have: of their disks, and by administration.
HUB_FAULTS = ("slow_disk", "bad_disk", "rewind")
#: The only fault of a quiet run, after which the group has its partitions again within the time that is promised.
ALONE = ("join", "close", "crash", "nothing")
#: Rules that let empty partitions be asked for seldom: most runs have them, because they are the faster ones.
_SELDOM = '[{"type":1,"rule":[{"zeroCnt":1,"freqInMs":1500}]}]'
STYLES = ("fast", "fast", "slow", "late", "several", "rolls_back", "forgets", "mixed")


class Action(NamedTuple):
    """One thing that happens at a time (us) of the run; arguments below 1 choose among those who are there then."""

    at: int
    kind: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Times:
    """Times in s, as small as their relations allow."""

    heartbeat: float = 3.0
    member_limit: float = 9.5  #: at the master
    lock_limit: float = 11.0  #: at brokers
    balance: float = 2.0
    call: float = 3.0
    confirm: float = 6.0
    release: float = 1.0
    slow: float = 8.0  #: longest wait for masters that do not answer
    nothing: float = 4.0  #: longest wait after an answer without messages
    broker_limit: float = 8.0  #: after which the master takes a broker for gone


@dataclass(frozen=True)
class Plan:
    """A whole run: who is there, options, and every action in order."""

    seed: int
    quiet: bool
    masters: int
    brokers: int
    topics: dict[str, int]  #: partitions of each, all in one store of each broker
    filters: dict[str, tuple[str, ...]]
    members: int
    styles: tuple[str, ...]  #: of applications, in turn
    times: Times
    prefetch: int
    pack_bytes: int
    first_read: int
    auth: bool  #: servers want credentials
    rules: str  #: flow rules of the group
    names: float  #: s until names of hosts have addresses
    span: int  #: us until calm
    actions: tuple[Action, ...]

    def part(self, actions: tuple[Action, ...]) -> Plan:
        """Return the plan with these actions alone."""
        return replace(self, actions=actions)

    @property
    def faults(self) -> int:
        """Return the number of faults."""
        return sum(action.kind in FAULTS or action.kind in HUB_FAULTS for action in self.actions)


def make_plan(seed: int, *, hub: bool = False) -> Plan:
    """Return the plan of one seed; one in five is quiet.  ``hub``: more can go wrong."""
    rng = random.Random(seed)
    quiet = seed % 5 == 4
    times = _times(rng)
    topics = rng.choice(({"t": 1}, {"t": 2}, {"t": 3}, {"t": 4}, {"t": 2, "u": 1}))
    filtered = rng.random() < 0.15
    span = int(rng.uniform(5, 20) * S)
    plan = Plan(
        seed=seed,
        quiet=quiet,
        masters=rng.choice((1, 2, 2, 3)),
        brokers=rng.choice((1, 1, 2, 2, 3)) if sum(topics.values()) < 3 else rng.choice((1, 1, 2)),
        topics=topics,
        filters={"t": ("a", "b")} if filtered else {},
        members=rng.choice((1, 2, 2, 3)),
        styles=tuple(rng.choice(STYLES) for _ in range(3)),
        times=times,
        prefetch=rng.choice((1, 600_000, 1_200_000, 8 << 20)),
        pack_bytes=rng.choice((1, 150, 300, 2000)),
        first_read=0,
        auth=rng.random() < 0.2,
        rules=_SELDOM if rng.random() < 0.8 else " ",
        names=rng.choice((0.0, 0.0, 0.0, rng.uniform(0, 5))),
        span=span,
        actions=_actions(rng, span, quiet=quiet),
    )
    if quiet or not hub:
        return plan
    more = random.Random(seed ^ 0xD15C)
    kinds = more.choices(HUB_FAULTS, k=more.choice((0, 1, 2)))
    found = (*plan.actions, *(_fault(more, kind, more.randrange(span)) for kind in kinds))
    return plan.part(tuple(sorted(found, key=lambda action: action.at)))


def _times(rng: random.Random) -> Times:
    heartbeat = rng.choice((2.0, 3.0, 4.0))
    return Times(
        heartbeat=heartbeat,
        member_limit=heartbeat * rng.choice((3.0, 3.5)),
        lock_limit=heartbeat * rng.choice((3.0, 3.5)),
        balance=rng.choice((1.0, 2.0, 4.0)),
        call=rng.choice((1.5, 3.0)),
        confirm=rng.choice((3.0, 6.0)),
        release=rng.choice((0.0, 0.5, 2.0)),
        slow=rng.choice((4.0, 8.0)),
        nothing=rng.choice((2.0, 8.0)),
        broker_limit=heartbeat * 3,
    )


def _actions(rng: random.Random, span: int, *, quiet: bool) -> tuple[Action, ...]:
    found = [Action(rng.randrange(span), "put", (rng.random(), rng.randint(1, 12))) for _ in range(rng.randint(2, 8))]
    if quiet:
        found.append(Action(span - 1, rng.choice(ALONE), (rng.random(),)))
    else:
        kinds = rng.choices(list(FAULTS), list(FAULTS.values()), k=rng.choice((1, 2, 3, 4, 6, 9)))
        found += [_fault(rng, kind, rng.randrange(span)) for kind in kinds]
    return tuple(sorted(found, key=lambda action: action.at))


def _fault(rng: random.Random, kind: str, at: int) -> Action:
    which, other = rng.random(), rng.random()
    lasts = int(rng.choice((0.3, 2, 5, 15)) * rng.uniform(0.5, 1.5) * S)
    extra: dict[str, tuple[Any, ...]] = {
        "headless": (lasts, rng.choice(("refuse", "silent", "standby"))),
        "unready": (lasts,),
        "broker": (which, lasts, rng.random() < 0.5),
        "forbidden": (which, lasts, rng.choice((403, 403, 301, 452, 503, 500))),
        "reset": (which, other),
        "cut": (which, other, lasts),
        "noise": (rng.choice((0.02, 0.1, 0.3)), lasts),
        "odd": (rng.choice(("late", "twice", "swap", "drop", "garbage", "code", "exception", "foreign")), lasts),
        "lazy": (rng.choice((0.02, 0.5, 2.0)), lasts),
        "clock": (rng.choice((-3_600_000, -60_000, 60_000, 3_600_000)), lasts),
        "pause": (which, other, lasts),
        "seek": (which, other, rng.choice((1, 1, 2, 3))),
        "rules": (which,),
        "refuse": (lasts, rng.choice((425, 431, 450)), other < 0.7),
    }
    return Action(at, kind, extra.get(kind, (which, lasts)))
