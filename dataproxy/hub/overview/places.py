"""Offsets of a group that shall be set: planned and checked whole, whatever its protocol, before anything changes.

Offsets count messages here, from 0 on, as in RocketMQ's protocol and in the store; those of TubeMQ's clients are 28
times as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from dataproxy.errors import ConfigError
from dataproxy.problems import shown

__all__ = ["AbsentError", "Place", "Step", "Topic", "plan", "read_to", "steps_told"]

_WORDS: Final = ("first", "next")
_HINT: Final = "give first, next, an offset of one partition, or @ and a time in ms since 1970"
_SEPARATORS: Final = frozenset(",;:#@=/\\")
_NAME_MOST: Final = 255
_DIGITS: Final = 19
_NAMED: Final = 10  # names that an error tells


class AbsentError(LookupError):
    """What a request names is not there."""


class Place(NamedTuple):
    """Where a group is in a partition.  ``offset`` is None if it has none there; ``member``: who reads it, or ""."""

    topic: str
    partition: int
    member: str
    offset: int | None


class Step(NamedTuple):
    """What is to be done with one partition; ``before`` is None if the group has no offset there."""

    topic: str
    partition: int
    member: str
    before: int | None
    after: int


Topic = Mapping[int, tuple[int, int]]
"""The offsets of the oldest and of the next message of a topic, by partition."""


def read_to(value: object) -> str | int:
    """Return where a group is to go on: "first", "next", an offset, or a text with ``@`` and a time.

    Raises ConfigError for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
        return value
    if isinstance(value, str):
        digits = value.removeprefix("@")
        if value in _WORDS or (
            value.startswith("@") and digits.isascii() and digits.isdigit() and len(digits) < _DIGITS
        ):
            return value
    raise ConfigError(f"to={shown(value)} is no place in a partition", hint=_HINT)


def plan(
    group: str,
    groups: Iterable[str],
    places: Iterable[Place],
    find: Callable[[str], Topic | None],
    at_time: Callable[[str, int, int], int],
    *,
    topic: str = "",
    partition: int | None = None,
    to: object,
) -> list[Step]:
    """Return what would be done, and change nothing.

    ``groups``: those that are known.  ``places``: where the group is.  ``find`` returns a topic, None if it is not
    there.  ``at_time`` returns the offset of the first message of a topic's partition from a time (ms) on.  With a
    topic all its partitions are meant, without one all in which the group has an offset.

    Raises AbsentError for a group, topic or partition that is not there, ConfigError for what no place can be.
    """
    wanted = read_to(to)
    _check_group(group, groups)
    if partition is not None and not topic:
        raise ConfigError(f"partition={shown(partition)} was given without a topic", hint="name the topic, too")
    if isinstance(wanted, int) and partition is None:
        raise ConfigError(
            f"to={wanted} is an offset, and offsets belong to one partition",
            hint="name topic and partition, or" + _HINT[4:],
        )
    known = {(one.topic, one.partition): one for one in places}
    steps = []
    for name, number, (first, following) in _meant(known, find, topic, partition):
        before = known.get((name, number), Place(name, number, "", None))
        after = _target(wanted, name, number, first, following, at_time)
        steps.append(Step(name, number, before.member, before.offset, after))
    if not steps:
        raise AbsentError(f"the group {shown(group)} has no offsets; name a topic")
    return steps


def steps_told(group: str, protocol: str, steps: Iterable[Step], *, executed: bool) -> dict[str, Any]:
    """Return a plan for JSON."""
    rows = [{**one._asdict(), "member": one.member or None} for one in steps]
    return {"group": group, "protocol": protocol, "executed": executed, "offsets": rows}


def _check_group(group: str, groups: Iterable[str]) -> None:
    known = set(groups)
    if group in known:
        return
    wrong = sorted(_SEPARATORS & set(group)) or (not group.isprintable() and ["a character that is not printable"])
    if not group or len(group.encode("utf-8", "replace")) > _NAME_MOST or wrong or " " in group:
        what = f"it has {wrong[0]}" if wrong else f"expected 1 to {_NAME_MOST} bytes without blanks"
        raise ConfigError(f"group={shown(group)} is no name of a group: {what}", hint="`dataproxy groups` lists them")
    names = sorted(known)
    more = f" and {len(names) - _NAMED:,} others" if len(names) > _NAMED else ""
    told = f"known: {', '.join(map(shown, names[:_NAMED]))}{more}" if names else "no group is known"
    raise AbsentError(f"there is no group {shown(group)} with members or offsets; {told}")


def _meant(
    known: Mapping[tuple[str, int], Place], find: Callable[[str], Topic | None], topic: str, partition: int | None
) -> Iterable[tuple[str, int, tuple[int, int]]]:
    """Yield topic, partition and extent of what is meant; topics that are gone are left out if none is named."""
    if not topic:
        for name in sorted({name for name, _ in known}):
            found = find(name) or {}
            yield from (
                (name, number, found[number]) for one, number in sorted(known) if one == name and number in found
            )
        return
    extents = find(topic)
    if extents is None:
        raise AbsentError(f"there is no topic {shown(topic)}")
    if partition is not None and partition not in extents:
        raise AbsentError(
            f"topic {shown(topic)} has no partition {shown(partition)}; it has 0 to {max(extents, default=0)}"
        )
    yield from ((topic, number, extents[number]) for number in sorted(extents) if partition in (None, number))


def _target(
    to: str | int, topic: str, partition: int, first: int, following: int, at_time: Callable[[str, int, int], int]
) -> int:
    if isinstance(to, int):
        if not first <= to <= following:
            raise ConfigError(
                f"offset {to} is not in partition {partition} of topic {shown(topic)}",
                hint=f"give a number from {first} to {following}",
            )
        return to
    if to in _WORDS:
        return first if to == "first" else following
    return min(max(at_time(topic, partition, int(to[1:])), first), following)
