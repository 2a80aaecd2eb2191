"""Clients and groups of TubeMQ as rows for JSON.  On the thread of the master, with positions that were read before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dataproxy.hub.overview.pages import Key, cut, key_of
from dataproxy.hub.overview.places import Place, Step, Topic
from dataproxy.hub.tubemq.admin import resets
from dataproxy.hub.tubemq.admin.parts import MESSAGE, AbsentError, Positions
from dataproxy.hub.tubemq.admin.views import member_lags, members_of
from dataproxy.hub.tubemq.service import Service

__all__ = ["clients", "group_names", "groups", "member_groups", "move", "places", "topic"]

_Row = dict[str, Any]


def clients(service: Service, positions: Positions, start: Key, most: int) -> list[_Row]:
    """Return up to ``most`` clients behind a place: producers, members of groups, and brokers of a cluster."""
    idle = {(one.group, one.client) for one in service.idling.now()}
    lags: dict[str, dict[str, tuple[int, int]]] = {}
    rows = []
    for one in cut(service.clients.snapshot(service.now), lambda one: key_of(one.identity), start, most):
        who = one.identity
        row: _Row = {**who._asdict(), "silent_s": round(one.silent_s, 1), "limit_s": one.limit_s}
        if who.role == "consumer":
            if who.group not in lags:
                lags[who.group] = member_lags(service.parts, positions.get(who.group, []))
            row["queues"], row["lag"] = lags[who.group].get(who.client, (0, 0))
            row["state"] = "idle" if (who.group, who.client) in idle else "reading"
        rows.append(row)
    return rows


def member_groups(service: Service) -> set[str]:
    """Return the groups that have members."""
    return service.parts.group_names({})


def group_names(service: Service, positions: Positions) -> set[str]:
    """Return the groups that have members or offsets."""
    return service.parts.group_names(positions)


def groups(service: Service, positions: Positions, names: Iterable[str]) -> list[_Row]:
    """Return groups with their members, as TubeMQ's own administration tells them, and who asks for nothing."""
    idle = {(one.group, one.client) for one in service.idling.now()}
    rows = []
    for name in names:
        found = members_of(service.parts, positions, name)
        members = [
            {
                "client": one["member"], "address": one["address"], "language": "", "version": "",
                "holds": [{"topic": at["topic"], "partition": at["partition"]} for at in one["held"]],
                "lag": one["lag"], "state": "idle" if (name, one["member"]) in idle else "reading",
            }
            for one in found["members"]
        ]  # fmt: skip
        rows.append(
            {
                "protocol": "tubemq", "group": name, "kind": found["kind"], "topics": found["topics"],
                "lag": found["lag"], "idle": sum(one["state"] == "idle" for one in members), "twins": [],
                "disagreements": [], "members": members,
            }
        )  # fmt: skip
    return rows


# --- offsets


def places(positions: Positions, group: str) -> list[Place]:
    """Return where a group is, and who reads there."""
    return [
        Place(one.topic, one.partition, one.owner, None if one.confirmed < 0 else one.confirmed // MESSAGE)
        for one in positions.get(group, [])
    ]


def topic(service: Service, name: str) -> Topic | None:
    """Return the offsets of the partitions that this hub has of a topic, None if it is not there."""
    try:
        found = service.parts.partitions(name)
    except AbsentError:
        return None
    return {number: (first // MESSAGE, following // MESSAGE) for number, (first, following) in found.items()}


def move(service: Service, group: str, steps: Iterable[Step]) -> None:
    """Carry out what was planned.  Raises HubError."""
    resets.apply_steps(
        service.parts, group,
        [
            resets.Step(
                one.topic, one.partition, one.member, -1 if one.before is None else one.before * MESSAGE,
                one.after * MESSAGE,
            )
            for one in steps
        ],
    )  # fmt: skip
