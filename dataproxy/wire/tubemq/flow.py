"""Flow rules, a text of JSON that masters send: how much and how often a group, or everybody, may read.

A text that breaks one rule is refused whole: the rules that were there before stay.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

__all__ = ["EmptyRule", "FlowRules", "Pace", "VolumeRule", "read_flow_rules"]

_MIB: Final = 1 << 20
_LONGEST_MS: Final = 2**31 - 1
_MOST_RULES: Final = 64
_SHOWN: Final = 60
_SHORTEST_MS: Final = 200
_LEAST_BACKLOG: Final = 20
_LONGEST_PACE_MS: Final = 300_000
_VOLUME, _EMPTY, _OBSOLETE, _PACE = range(4)


class VolumeRule(NamedTuple):
    """At most so many bytes a minute, from one minute of the day to another, in GMT+8; both belong to it."""

    first_minute: int
    last_minute: int
    backlog: int  #: the rule holds for larger ones; masters mean MiB and compare bytes
    bytes_a_minute: int
    wait_ms: int


class EmptyRule(NamedTuple):
    """After so many requests in a row that found nothing, wait so long."""

    times: int
    wait_ms: int


class Pace(NamedTuple):
    """Waits between packs, in ms: without filters, with filters, and with filters near the end of the data."""

    plain: int
    filtered: int
    filtered_near: int


class FlowRules(NamedTuple):
    """The rules of a text: volumes by the time of the day, empty answers with the most times first."""

    volume: tuple[VolumeRule, ...] = ()
    empty: tuple[EmptyRule, ...] = ()
    pace: Pace | None = None


def read_flow_rules(text: str) -> FlowRules:
    """Return the rules of a text; a blank one has none.  Raises ValueError for a text that breaks a rule."""
    if not text.strip():
        return FlowRules()
    try:
        groups = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"flow rules are no JSON: {error}") from None
    if not isinstance(groups, list):
        raise ValueError(f"flow rules are a {type(groups).__name__} of JSON, expected a list")
    rules = FlowRules()
    for group in groups:
        kind = _number(group, "type", 0, 3)
        if kind == _OBSOLETE:
            continue
        items = group.get("rule")
        if not isinstance(items, list):
            raise ValueError(f"flow rules of type {kind} have no list 'rule'")
        if len(items) > _MOST_RULES:
            raise ValueError(f"flow rules of type {kind} are {len(items)}, at most {_MOST_RULES} are read")
        if kind == _VOLUME:
            rules = rules._replace(volume=tuple(sorted(map(_volume, items))))
        elif kind == _EMPTY:
            rules = rules._replace(empty=tuple(sorted(map(_empty, items), reverse=True)))
        elif kind == _PACE:
            if len(items) != 1:
                raise ValueError(f"flow rules of type {kind} have {len(items)} entries, expected one")
            rules = rules._replace(pace=_pace(items[0]))
    return rules


def _volume(item: Any) -> VolumeRule:
    first, last = _minute(item, "start"), _minute(item, "end")
    if first >= last:
        raise ValueError(f"a flow rule ends at {item['end']!r}, not after its start {item['start']!r}")
    backlog = _number(item, "dltInM", _LEAST_BACKLOG + 1, 2**53)
    limit = _number(item, "limitInM", 0, 2**42)
    return VolumeRule(first, last, backlog, limit * _MIB, _number(item, "freqInMs", _SHORTEST_MS, _LONGEST_MS))


def _empty(item: Any) -> EmptyRule:
    return EmptyRule(_number(item, "zeroCnt", 1, 2**31 - 1), _number(item, "freqInMs", 0, _LONGEST_MS))


def _pace(item: Any) -> Pace:
    plain, filtered, near = (
        _number(item, name, 0, _LONGEST_PACE_MS) for name in ("normFreqInMs", "filterFreqInMs", "minDataFilterFreqInMs")
    )
    if near < filtered:
        raise ValueError(f"a flow rule has minDataFilterFreqInMs={near}, less than filterFreqInMs={filtered}")
    return Pace(plain, filtered, near)


def _number(item: Any, name: str, least: int, most: int) -> int:
    value = item.get(name) if isinstance(item, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"a flow rule has {name}={_shown(value)}, expected a number from {least} to {most}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _minute(item: Any, name: str) -> int:
    """Return the minute of the day of ``HH:MM``; 24:00 is the end of the day."""
    value = item.get(name) if isinstance(item, dict) else None
    hour, colon, minute = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (colon and hour.isascii() and hour.isdigit() and minute.isascii() and minute.isdigit()):
        raise ValueError(f"a flow rule has {name}={_shown(value)}, expected a time such as '08:00'")
    if len(hour) > 2 or len(minute) > 2 or int(hour) > 24 or int(minute) > 59:
        raise ValueError(f"a flow rule has {name}={value!r}, expected a time from '00:00' to '24:59'")
    return int(hour) * 60 + int(minute)
