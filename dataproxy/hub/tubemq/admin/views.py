"""What an administrator sees: topics, partitions, groups, members, offsets.  Everything is plain, for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from dataproxy.hub.tubemq.admin.parts import MESSAGE, Parts, Position, Positions

__all__ = ["groups_page", "member_lags", "members_of", "offsets_of", "partitions_of", "topics_page"]

_NO_POSITION: Final = -1
_Row = dict[str, Any]
_Extent = Mapping[int, tuple[int, int]]


def topics_page(parts: Parts, start: str, limit: int) -> _Row:
    """Return up to ``limit`` topics behind ``start``, by name; ``next`` is None on the last page."""
    names, following = _page(parts.topics(), start, limit)
    return {"topics": [_topic(parts, name) for name in names], "next": following}


def _topic(parts: Parts, name: str) -> _Row:
    places = parts.places(name)
    brokers = [
        {
            "broker": broker.id, "host": broker.host, "port": broker.port, "online": online, "stores": at.stores,
            "partitions": at.partitions * at.stores, "publish": at.publish, "subscribe": at.subscribe,
        }
        for broker, at, online in places
    ]  # fmt: skip
    return {"topic": name, "partitions": sum(at.partitions * at.stores for _, at, _ in places), "brokers": brokers}


def partitions_of(parts: Parts, topic: str) -> _Row:
    """Return the partitions that this hub has of a topic, with their offsets.  Raises AbsentError."""
    rows = [
        {"partition": number, "first": first, "next": following, "messages": (following - first) // MESSAGE}
        for number, (first, following) in sorted(parts.partitions(topic).items())
    ]
    return {"topic": topic, "broker": parts.broker, "partitions": rows}


def groups_page(parts: Parts, positions: Positions, start: str, limit: int) -> _Row:
    """Return up to ``limit`` groups behind ``start``, by name; ``next`` is None on the last page."""
    names, following = _page(parts.group_names(positions), start, limit)
    known: dict[str, _Extent] = {}
    return {"groups": [_group(parts, name, positions.get(name, []), known) for name in names], "next": following}


def _page(names: Iterable[str], start: str, limit: int) -> tuple[list[str], str | None]:
    behind = sorted(name for name in names if name > start)
    page = list(islice(behind, limit))
    return page, page[-1] if len(behind) > len(page) and page else None


def _group(parts: Parts, name: str, rows: list[Position], known: dict[str, _Extent]) -> _Row:
    divided = parts.consumers.group(name)
    if divided is not None:
        kind, topics, members = "divided", divided.wishes.topics, len(divided.members)
    elif parts.choosers.has(name):
        kind, topics, members = "chosen", parts.choosers.wishes(name).topics, len(parts.choosers.members(name))
    else:
        kind, topics, members = "idle", frozenset(), 0
    return {
        "group": name, "kind": kind, "topics": sorted(topics | {one.topic for one in rows}), "members": members,
        "partitions": len(rows), "owned": sum(bool(one.owner) for one in rows),
        "lag": sum(_lag(one, _extent(parts, known, one.topic)) or 0 for one in rows),
    }  # fmt: skip


def _extent(parts: Parts, known: dict[str, _Extent], topic: str) -> _Extent:
    if topic not in known:
        known[topic] = parts.extents(topic)
    return known[topic]


def _lag(one: Position, extent: _Extent) -> int | None:
    """Return how many messages of a partition are not confirmed; None where the group has no position."""
    if one.confirmed == _NO_POSITION:
        return None
    first, following = extent.get(one.partition, (0, 0))
    return max(0, following - max(one.confirmed, first)) // MESSAGE


def members_of(parts: Parts, positions: Positions, group: str) -> _Row:
    """Return the members of a group with what each holds, and how much is left to read there.  Raises AbsentError."""
    parts.check_group(group, positions)
    known: dict[str, _Extent] = {}
    rows = positions.get(group, [])
    answer = _group(parts, group, rows, known)
    divided = parts.consumers.group(group)
    found: list[_Row] = []
    filters: Mapping[str, Iterable[str]] = {}
    owned: dict[str, list[Position]] = {}
    for one in rows:
        owned.setdefault(one.owner, []).append(one)
    if divided is not None:
        filters = divided.wishes.filters
        for member in divided.members.values():
            row = _member(parts, member.client, member.peer, owned.get(member.client, []), known)
            held = [{"broker": one.broker.id, "topic": one.topic, "partition": one.id} for one in sorted(member.held)]
            found.append({**row, "host": member.host, "held": held, "events": len(member.events)})
    elif parts.choosers.has(group):
        filters = parts.choosers.wishes(group).filters
        for client, peer in parts.choosers.members(group).items():
            row = _member(parts, client, peer, owned.get(client, []), known)
            found.append({**row, "host": None, "held": _chosen(parts.choosers.held(group, client)), "events": 0})
    answer["filters"] = {topic: sorted(items) for topic, items in sorted(filters.items())}
    answer["rules"] = parts.rules.of_groups().get(group)
    return {**answer, "members": sorted(found, key=lambda row: str(row["member"]))}


def _member(parts: Parts, client: str, peer: str, own: list[Position], known: dict[str, _Extent]) -> _Row:
    """Return a member as the broker knows it: it reads what it has registered there."""
    lag = sum(_lag(one, _extent(parts, known, one.topic)) or 0 for one in own)
    return {"member": client, "address": peer, "reads": len(own), "lag": lag}


def member_lags(parts: Parts, rows: list[Position]) -> dict[str, tuple[int, int]]:
    """Return how many partitions each member of a group reads, and how many messages are left to confirm there."""
    known: dict[str, _Extent] = {}
    found: dict[str, tuple[int, int]] = {}
    for one in rows:
        reads, lag = found.get(one.owner, (0, 0))
        found[one.owner] = reads + 1, lag + (_lag(one, _extent(parts, known, one.topic)) or 0)
    return found


def _chosen(texts: Iterable[str]) -> list[_Row]:
    """Return the partitions in a report of a member that chooses; what cannot be read is left out."""
    found = []
    for text in texts:
        topic, _, rest = text.partition("#")
        for pair in rest.split(","):
            broker, colon, number = pair.partition(":")
            if colon and broker.isascii() and broker.isdigit() and number.isascii() and number.isdigit():
                found.append({"broker": int(broker), "topic": topic, "partition": int(number)})
    return found


def offsets_of(parts: Parts, positions: Positions, group: str, topic: str = "") -> _Row:
    """Return where a group is, in all its topics or in one.  Raises AbsentError.

    ``lag``: messages behind the confirmed position; null where there is none.
    """
    parts.check_group(group, positions)
    if topic:
        parts.partitions(topic)
    known: dict[str, _Extent] = {}
    rows = []
    for one in positions.get(group, []):
        if topic and one.topic != topic:
            continue
        extent = _extent(parts, known, one.topic)
        first, following = extent.get(one.partition, (0, 0))
        offset = None if one.confirmed == _NO_POSITION else one.confirmed
        rows.append(
            {
                "topic": one.topic, "partition": one.partition, "member": one.owner or None,
                "offset": offset, "unconfirmed": one.pending // MESSAGE,
                "first": first, "next": following, "lag": _lag(one, extent),
            }
        )  # fmt: skip
    return {"group": group, "offsets": rows}
