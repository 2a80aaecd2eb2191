"""Flow rules, rights of groups, and partitions that shall go to a member.

All hold until the hub ends; rules and rights of a cluster are kept at ZooKeeper (`leading`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from dataproxy.errors import ConfigError
from dataproxy.hub.tubemq.admin.parts import AbsentError, Parts, check_group_name, check_topic_name, told_names
from dataproxy.hub.tubemq.cluster.answers import UNKNOWN, RefusedError
from dataproxy.hub.tubemq.groups.wishes import read_items
from dataproxy.problems import shown

__all__ = ["delete_rules", "move", "rights_told", "rules_told", "set_control", "set_right", "set_rules"]

T = TypeVar("T")
_LONGEST: Final = 64 << 10  # characters of rules
_MOST_GROUPS: Final = 10_000  # with rules of their own, or with a right to one topic


# --- flow rules


def rules_told(parts: Parts) -> dict[str, Any]:
    """Return the flow rules of the cluster and of groups, as TubeMQ's JSON; null where there are none."""
    return {
        "cluster": json.loads(parts.rules.of_cluster or "null"),
        "groups": {name: json.loads(text) for name, text in parts.rules.of_groups().items()},
    }


def set_rules(parts: Parts, group: str | None, rules: object) -> None:
    """Set the flow rules of a group, or of the cluster: TubeMQ's list, or its text.  Raises ConfigError."""
    text = rules if isinstance(rules, str) else json.dumps(rules)
    if len(text) > _LONGEST:
        raise ConfigError(f"flow rules have {len(text):,} characters", hint=f"at most {_LONGEST:,} are taken")
    if not text.strip() or text.strip() == "null":
        raise ConfigError("there are no flow rules in the request", hint="to remove rules, delete them")
    if group is not None:
        check_group_name(group)
        if group not in parts.rules.of_groups() and len(parts.rules.of_groups()) >= _MOST_GROUPS:
            raise ConfigError(f"{_MOST_GROUPS:,} groups have flow rules", hint="delete some first")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            "flow rules have half of a surrogate pair, which no client can be told", hint="send valid Unicode"
        ) from None
    try:
        parts.rules.set(text, group)
    except ValueError as error:
        raise ConfigError(str(error), hint="docs/hub-tubemq.md says what rules look like") from None


def delete_rules(parts: Parts, group: str | None) -> None:
    """Remove the flow rules of a group, or of the cluster.  Raises AbsentError if there are none."""
    if group is None and not parts.rules.of_cluster:
        raise AbsentError("the cluster has no flow rules")
    if group is not None and group not in parts.rules.of_groups():
        known = told_names("group with flow rules", list(parts.rules.of_groups()))
        raise AbsentError(f"the group {shown(group)} has no flow rules; {known}")
    parts.rules.set("", group)


# --- rights


def rights_told(parts: Parts) -> dict[str, Any]:
    """Return which topics are for certain groups alone, and those groups with the filter items that they may use."""
    rows = [
        {
            "topic": topic, "controlled": on,
            "groups": [
                {"group": group, "items": None if items is None else sorted(items)} for group, items in groups.items()
            ],
        }
        for topic, (on, groups) in parts.access.rights().items()
    ]  # fmt: skip
    return {"topics": rows}


def set_control(parts: Parts, topic: str, *, on: bool) -> None:
    """Let a topic be for the groups alone that have a right to it, or for all.  Raises ConfigError.

    It holds for members that register from now on.
    """
    check_topic_name(topic)
    parts.access.control(topic, on=on)


def set_right(parts: Parts, group: str, topic: str, *, allow: bool, items: Iterable[str] | None = None) -> None:
    """Give or take the right of a group to a topic.

    ``items``: it may ask for these filter items alone.  Raises ConfigError, and AbsentError for a right that is not
    there.
    """
    check_topic_name(topic)
    check_group_name(group)
    if not allow:
        if not parts.access.deny(group, topic):
            raise AbsentError(f"the group {shown(group)} has no right of its own to topic {shown(topic)}")
        return
    groups = parts.access.rights_of(topic)[1]
    if group not in groups and len(groups) >= _MOST_GROUPS:
        raise ConfigError(f"{_MOST_GROUPS:,} groups have a right to topic {shown(topic)}", hint="remove some first")
    named = None if items is None else _checked(lambda: read_items(topic, items))
    if named is not None and not named:
        raise ConfigError("items has no filter item", hint="leave items out to allow all messages")
    parts.access.allow(group, topic, named)


# --- moves


def move(
    parts: Parts, group: str, topic: str, partition: int, member: str, now: float, broker: int | None = None
) -> None:
    """Give a partition to a member with the next balance.  Raises AbsentError, ConfigError."""
    if parts.choosers.has(group):
        raise ConfigError(f"the members of group {shown(group)} choose their partitions", hint="move partitions there")
    found = parts.consumers.group(group)
    if found is None:
        known = told_names("group with members", sorted(one.name for one in parts.consumers.groups()))
        raise AbsentError(f"the group {shown(group)} has no members; {known}")
    if member not in found.members:
        raise AbsentError(f"the group {shown(group)} has no member {shown(member)}")
    key = f"{parts.broker if broker is None else broker}:{topic}:{partition}"
    _checked(lambda: parts.consumers.move(group, topic, key, member, now))


def _checked(call: Callable[[], T]) -> T:
    """Return what a call of the master's returns.  Raises AbsentError or ConfigError in the place of a refusal."""
    try:
        return call()
    except RefusedError as error:
        if error.code == UNKNOWN:
            raise AbsentError(error.text) from None
        raise ConfigError(error.text, hint="docs/hub-tubemq.md says what is possible") from None
