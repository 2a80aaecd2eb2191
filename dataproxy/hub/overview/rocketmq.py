"""Clients and groups of RocketMQ as rows for JSON.  On the thread of RocketMQ's clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.overview.pages import Key, cut, key_of
from dataproxy.hub.overview.places import AbsentError, Place, Step, Topic
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.clients.members import Member
from dataproxy.hub.rocketmq.groups.holdings import Holdings
from dataproxy.hub.rocketmq.service import Service
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import shown_version
from dataproxy.wire.rocketmq.headers import ResetOffset
from dataproxy.wire.rocketmq.queues import Queue

__all__ = [
    "check_move",
    "clients",
    "group_names",
    "groups",
    "locks",
    "member_groups",
    "move",
    "places",
    "topic",
    "transactions",
]

_OWN: Final = "RMQ_SYS_"
_Row = dict[str, Any]
_States = dict[tuple[str, str], str]  # by group and client: of those that do not just read
_Kept = dict[str, dict[tuple[str, int], int]]  # by group: the offset of each topic and queue


def clients(service: Service, start: Key, most: int) -> list[_Row]:
    """Return up to ``most`` rows behind a place: one for each group of each connection."""
    now, registry = service.now, service.registry
    states = _states(service)
    held: dict[str, Holdings] = {}
    rows = []
    for one in cut(service.clients.snapshot(now), lambda one: key_of(one.identity), start, most):
        who = one.identity
        row: _Row = {**who._asdict(), "silent_s": round(one.silent_s, 1), "limit_s": one.limit_s}
        if who.role == "consumer":
            if who.group not in held:
                held[who.group] = registry.holdings(who.group)
            queues = held[who.group].get(who.client, ())
            row["queues"], row["lag"] = len(queues), _behind(service, who.group, queues)
            row["state"] = states.get((who.group, who.client), "reading")
        rows.append(row)
    return rows


def member_groups(service: Service) -> set[str]:
    """Return the groups that have members."""
    return set(service.registry.members.names())


def group_names(service: Service) -> set[str]:
    """Return the groups that have members or offsets; those of the hub's own are left out."""
    return _kept(service).keys() | set(service.registry.members.names())


def groups(service: Service, names: Iterable[str]) -> list[_Row]:
    """Return groups with their members, and how much is left to read in their topics."""
    kept, states = _kept(service), _states(service)
    return [_group(service, name, kept.get(name, {}), states) for name in names]


def _kept(service: Service) -> _Kept:
    found: _Kept = {}
    for group, topic, queue, offset in service.offsets.stored.kept():
        if not group.startswith(_OWN):
            found.setdefault(group, {})[topic, queue] = offset
    return found


def _group(service: Service, group: str, kept: dict[tuple[str, int], int], states: _States) -> _Row:
    registry = service.registry
    members = registry.members.of(group)
    held = registry.holdings(group)
    wanted = {topic for one in members for topic in one.subscriptions} | {topic for topic, _ in kept}
    reads = {name: found.reads for name in sorted(wanted) if (found := service.topics.find(name)) is not None}
    lag = _behind(service, group, (Queue("", i, name) for name, n in reads.items() for i in range(n)))
    return {
        "protocol": "rocketmq", "group": group, "kind": _kind(members), "topics": sorted(reads), "lag": lag,
        "idle": sum(states.get((group, one.client_id)) == "idle" for one in members),
        "twins": list(registry.members.twins(group)),
        "disagreements": list(registry.members.disagreements(group)),
        "members": [
            {
                "client": one.client_id, "address": one.peer.address, "language": one.peer.language,
                "version": shown_version(one.peer.version), "holds": _told(held.get(one.client_id, ())),
                "lag": _behind(service, group, held.get(one.client_id, ())),
                "state": states.get((group, one.client_id), "reading"),
            }
            for one in members
        ],
    }  # fmt: skip


def locks(service: Service, start: Key, most: int) -> list[_Row]:
    """Return up to ``most`` locks of queues behind a place; members of orderly groups have them."""
    found = cut(
        service.registry.locks(service.now), lambda one: (one.group, one.queue.topic, one.queue.queue_id), start, most
    )
    return [
        {
            "protocol": "rocketmq", "group": one.group, "topic": one.queue.topic, "queue": one.queue.queue_id,
            "client": one.client_id, "age_s": round(one.age_s, 1), "granted_s": round(one.granted_s, 1),
            "orphan": one.is_orphan,
        }
        for one in found
    ]  # fmt: skip


def transactions(service: Service, start: Key, most: int) -> list[_Row]:
    """Return up to ``most`` half messages that have no end, behind a place."""
    now = service.now
    found = cut(service.registry.checks.waiting(), lambda one: (one.half_offset,), start, most)
    return [
        {
            "protocol": "rocketmq", "group": one.group, "client": one.client_id or None, "offset": one.half_offset,
            "age_s": round(now - one.stored_s, 1), "checks": one.checks,
        }
        for one in found
    ]  # fmt: skip


def _states(service: Service) -> _States:
    idle = {(one.group, one.client): "idle" for one in service.registry.idle()}
    return idle | dict.fromkeys(service.pushes.paused(), "paused")


def _kind(members: tuple[Member, ...]) -> str:
    if not members:
        return "idle"
    return "broadcasting" if all(one.is_broadcasting for one in members) else "sharing"


def _behind(service: Service, group: str, queues: Iterable[Queue]) -> int:
    """Return how many messages of queues a group has not confirmed; where it has no offset, all that are there."""
    stored, behind = service.offsets.stored, 0
    for one in queues:
        first, end = stored.extent(one.topic, one.queue_id)
        at = stored.committed(group, one.topic, one.queue_id)
        behind += max(end - max(first if at is None else at, first), 0)
    return behind


def _told(queues: Iterable[Queue]) -> list[_Row]:
    return [{"topic": one.topic, "partition": one.queue_id} for one in queues]


# --- offsets


def places(service: Service, group: str) -> list[Place]:
    """Return where a group is, and who reads there."""
    held = service.registry.holdings(group)
    readers = {(one.topic, one.queue_id): client for client, queues in held.items() for one in queues}
    kept = _kept(service).get(group, {})
    keys = sorted(kept.keys() | readers.keys())
    return [Place(*key, readers.get(key, ""), kept.get(key)) for key in keys]


def topic(service: Service, name: str) -> Topic | None:
    """Return the offsets of a topic's queues, None if it is not there."""
    found, stored = service.topics.find(name), service.offsets.stored
    return None if found is None else {i: stored.extent(name, i) for i in range(found.reads)}


def check_move(service: Service, group: str, topics: Iterable[str]) -> None:
    """Raise ConfigError if a member could not be told of a reset, and AbsentError for a topic that is not there."""
    for name in topics:
        if service.topics.find(name) is None:
            raise AbsentError(f"there is no topic {shown(name)} for clients of RocketMQ")
        try:
            service.registry.check_move(group, name)
        except RefusedError as error:
            raise ConfigError(error.remark, hint="end that client, or take a newer one") from None


def move(service: Service, group: str, steps: Iterable[Step], wall_ms: int, done: Callable[[bool], None]) -> None:
    """Carry out what was planned and checked; ``done`` hears whether the store could keep that it was."""
    by_topic: dict[str, dict[int, int]] = {}
    for one in steps:
        by_topic.setdefault(one.topic, {})[one.partition] = one.after
    service.offsets.settle_at(service.now)
    check_move(service, group, by_topic)
    for name, offsets in by_topic.items():
        try:
            service.registry.move(ResetOffset(name, group, wall_ms, True), offsets, service.now)
        except RefusedError as error:
            raise HubError(error.remark, hint="see the hub's health, and repeat the reset") from None
    service.kept.after(done)
