"""What a member of a group asks for when it registers; the first one's wishes are the group's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from dataproxy.hub.tubemq.cluster.answers import BAD_REQUEST, RefusedError
from dataproxy.wire.tubemq.texts import Condition

__all__ = [
    "Bound",
    "Wishes",
    "check_group_name",
    "named_offsets",
    "read_items",
    "read_topics",
    "read_wishes",
    "required_text",
]

_MOST_TOPICS, _MOST_ITEMS = 1024, 500
_LONGEST: Final = {"clientId": 1024, "groupName": 1024, "hostName": 256}
_FORM: Final = {
    "clientId": re.compile(r"[_A-Za-z0-9.\-]+"), "groupName": re.compile(r"[a-zA-Z][A-Za-z0-9_\-]*"),
}  # fmt: skip
_LONGEST_TOPIC: Final = 255  # as long as a group of InLong may be
_TOPIC: Final = re.compile(r"[^#:,@=\s]+")
_ITEM: Final = re.compile(r"[_A-Za-z0-9]{1,256}")
_SHOWN: Final = 100
_DIGITS: Final = 19


class Bound(NamedTuple):
    """A group that begins at offsets which its members name, once all of them are there."""

    session_key: str
    larger_wins: bool
    members: int


class Wishes(NamedTuple):
    """What all members of a group must ask for alike."""

    topics: frozenset[str]
    filters: Mapping[str, frozenset[str]]  #: of the topics that have any
    bound: Bound | None

    @property
    def size(self) -> int:
        """Return about how many bytes its texts take."""
        items = sum(len(item) + 100 for items in self.filters.values() for item in items)
        return sum(len(topic) + 100 for topic in self.topics) + items

    def check(self, other: Wishes, group: str) -> None:
        """Refuse wishes that differ from the group's, with TubeMQ's code for the first difference."""
        begin = f"[Inconsistency subscribe] group {group}"
        if (self.bound is None) != (other.bound is None):
            raise RefusedError(424, f"{begin}: bound and unbound members")
        if self.topics != other.topics:
            raise RefusedError(425, f"{begin} reads {_listed(self.topics)}, not {_listed(other.topics)}")
        if self.filters != other.filters:
            raise RefusedError(426, f"{begin} has other filter items")
        if self.bound is None or other.bound is None:
            return
        if self.bound.session_key != other.bound.session_key:
            raise RefusedError(427, f"{begin} has another session key")
        if self.bound.larger_wins != other.bound.larger_wins:
            raise RefusedError(428, f"{begin} has selectBig={self.bound.larger_wins}")
        if self.bound.members != other.bound.members:
            raise RefusedError(429, f"{begin} has {self.bound.members} members, not {other.bound.members}")


def _listed(names: Iterable[str]) -> str:
    return _short(", ".join(sorted(names)))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _bad(text: str) -> NoReturn:
    raise RefusedError(BAD_REQUEST, text)


def check_group_name(name: str) -> None:
    """Refuse what is no name of a group.  Raises RefusedError."""
    _check("groupName", name)


def _check(field: str, text: str) -> None:
    if len(text) > _LONGEST[field]:
        _bad(f"{field} has {len(text)} characters, at most {_LONGEST[field]} are allowed: {_short(text)!r}")
    form = _FORM.get(field)
    if form is not None and not form.fullmatch(text):
        _bad(f"{field} must be of the form {form.pattern}, it is {_short(text)!r}")


def required_text(request: Any, field: str) -> str:
    """Return a text that a request has to have, checked."""
    text: str = getattr(request, field).strip()
    if not text:
        _bad(f"Request miss necessary {field} data!")
    _check(field, text)
    return text


def read_topics(texts: Iterable[str]) -> frozenset[str]:
    """Return the topics of a request.  Raises RefusedError."""
    topics = frozenset(topic.strip() for topic in texts) - {""}
    if not topics:
        _bad("Request miss necessary subscribed topicList data!")
    if len(topics) > _MOST_TOPICS:
        _bad(f"{len(topics)} topics are asked for, at most {_MOST_TOPICS} are allowed")
    for topic in topics:
        if len(topic) > _LONGEST_TOPIC or not _TOPIC.fullmatch(topic):
            _bad(
                f"{_short(topic)!r} is no name of a topic: 1 to {_LONGEST_TOPIC} characters, none of '#:,@=', no blanks"
            )
    return topics


def read_wishes(request: Any, topics: frozenset[str]) -> Wishes:
    """Return what a registration asks for.  Raises RefusedError."""
    filters = {}
    for text in request.topicCondition:
        try:
            condition = Condition.read(text)
        except ValueError as error:
            _bad(f"[Parameter error] {error}")
        if condition.topic not in topics:
            _bad(f"[Parameter error] a filter is for topic {_short(condition.topic)!r}, which is not subscribed")
        items = read_items(condition.topic, condition.items)
        if items:  # the client of Go sends a condition without items for a topic that is read whole
            filters[condition.topic] = items
    return Wishes(topics, filters, _read_bound(request) if request.requireBound else None)


def read_items(topic: str, texts: Iterable[str]) -> frozenset[str]:
    """Return the filter items that are asked for of a topic.  Raises RefusedError."""
    items = frozenset(text.strip() for text in texts) - {""}
    if len(items) > _MOST_ITEMS:
        _bad(f"[Parameter error] {len(items)} filter items of {topic!r}, at most {_MOST_ITEMS} are allowed")
    for item in items:
        if not _ITEM.fullmatch(item):
            _bad(f"[Parameter error] filter item {_short(item)!r} of {topic!r}: expected {_ITEM.pattern}")
    return items


def _read_bound(request: Any) -> Bound:
    key = request.sessionKey.strip()
    if not key or len(key) > _LONGEST["groupName"]:
        _bad(f"[Parameter error] blank value of sessionKey, or one of more than {_LONGEST['groupName']} characters!")
    if request.totalCount <= 0:
        _bad(f"[Parameter error] totalSourceCount must over zero, it is {request.totalCount}!")
    return Bound(key, request.selectBig if request.HasField("selectBig") else True, request.totalCount)


def named_offsets(text: str, known: Iterable[str]) -> dict[str, int]:
    """Return the offsets that a member of a bound group names, by those keys of partitions that are known.

    Raises RefusedError for a text that is none.
    """
    keys = set(known)
    found = {}
    for pair in filter(str.strip, text.split(",")):
        key, equals, offset = (part.strip() for part in pair.partition("="))
        if not (equals and offset.isascii() and offset.isdigit() and len(offset) <= _DIGITS):
            _bad(f"[Parameter error] {_short(pair)!r} of requiredPartition is not 'broker:topic:partition=offset'")
        if key in keys:
            found[key] = int(offset)
    return found
