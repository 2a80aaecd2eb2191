"""Groups that shall read from another place on: planned and checked whole, then carried out."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dataproxy.errors import ConfigError, HubError
from dataproxy.hub.tubemq.admin.parts import MESSAGE, AbsentError, Parts, Positions
from dataproxy.problems import shown

__all__ = ["Step", "apply_steps", "plan_reset", "steps_told"]

_WORDS: Final = ("first", "next")
_HINT: Final = "give first, next, or an offset of one partition"


class Step(NamedTuple):
    """One partition of a group: where it is, and where it shall be.  ``before`` is -1 if it has no position."""

    topic: str
    partition: int
    member: str
    before: int
    after: int


def plan_reset(
    parts: Parts, positions: Positions, group: str, *, topic: str = "", partition: int | None = None, to: object
) -> list[Step]:
    """Return what a reset would do, and change nothing.

    ``to``: "first" or "next", or the offset itself, for one partition.  With a topic all its partitions are meant,
    without one all that the group has a position in.  Raises AbsentError for a group, topic or partition that is not
    there, ConfigError for a place that is none.
    """
    parts.check_group(group, positions)
    if partition is not None and not topic:
        raise ConfigError(f"partition={shown(partition)} was given without a topic", hint="name the topic, too")
    if to not in _WORDS and (isinstance(to, bool) or not isinstance(to, int)):
        raise ConfigError(f"to={shown(to)} is no place in a partition", hint=_HINT)
    if isinstance(to, int) and partition is None:
        raise ConfigError(
            f"to={to} is an offset, and offsets belong to one partition", hint="name topic and partition, or give first"
        )
    known = {(one.topic, one.partition): one for one in positions.get(group, [])}
    steps = []
    for name, number, first, following in _places(parts, known, topic, partition):
        position = known.get((name, number))
        after = _target(to, name, number, first, following)
        steps.append(
            Step(name, number, position.owner if position else "", position.confirmed if position else -1, after)
        )
    if not steps:
        raise AbsentError(f"the group {shown(group)} has no offsets; name a topic")
    return steps


def _places(
    parts: Parts, known: dict[tuple[str, int], Any], topic: str, partition: int | None
) -> list[tuple[str, int, int, int]]:
    """Return (topic, partition, first, next) of what is meant; topics that are gone are left out if none is named."""
    if topic:
        extents = parts.partitions(topic)
        if partition is not None and partition not in extents:
            raise AbsentError(
                f"topic {shown(topic)} has no partition {shown(partition)}; it has 0 to {max(extents, default=0)}"
            )
        wanted = sorted(extents) if partition is None else [partition]
        return [(topic, number, *extents[number]) for number in wanted]
    topics = sorted({name for name, _ in known} & set(parts.own.topics()))
    found = []
    for name in topics:
        extents = parts.partitions(name)
        numbers = sorted(number for one, number in known if one == name and number in extents)
        found += [(name, number, *extents[number]) for number in numbers]
    return found


def _target(to: object, topic: str, partition: int, first: int, following: int) -> int:
    if not isinstance(to, int):
        return first if to == "first" else following
    if not first <= to <= following or to % MESSAGE:
        raise ConfigError(
            f"offset {shown(to)} is not in partition {partition} of topic {shown(topic)}",
            hint=f"give a multiple of {MESSAGE} from {first} to {following}",
        )
    return to


def apply_steps(parts: Parts, group: str, steps: list[Step]) -> None:
    """Carry out a plan.  Who reads a partition goes on there; what it has read and not confirmed is forgotten.

    It is over when the positions are stored.  Raises HubError if there is no room for the positions of a group that had
    none there, or if they could not be stored.
    """
    for done, step in enumerate(steps):
        if not parts.registrations.reset(group.encode(), step.topic.encode(), step.partition, step.after):
            raise HubError(
                f"there is no room for further positions: {done} of {len(steps)} partitions were reset",
                hint="name a partition that the group reads already",
            )
    if failed := parts.registrations.flush():
        raise HubError(
            f"{failed} of {len(steps)} positions were set and could not be stored: after a restart they are as before",
            hint="see the hub's health, and repeat the reset",
        )


def steps_told(group: str, steps: list[Step], *, executed: bool) -> dict[str, Any]:
    """Return a plan for JSON."""
    rows = [
        {
            "topic": one.topic, "partition": one.partition, "member": one.member or None,
            "before": None if one.before < 0 else one.before, "after": one.after,
        }
        for one in steps
    ]  # fmt: skip
    return {"group": group, "executed": executed, "offsets": rows}
