"""What is subscribed, and how queues are divided between the members of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.rocketmq.sending.messages import check_topic
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.names import tag_hash

__all__ = ["SQL", "TAG", "Sql", "average", "check_clear", "subscriptions"]

_T = TypeVar("_T")
SQL: Final = "sql:"  #: in front of a filter: it is an expression of SQL92
TAG: Final = "tag:"  #: in front of a filter: it is made of tags
_MARKS: Final = frozenset("<>=()'")  # that tags may have, and expressions nearly always have


class Sql(str):
    """An expression of SQL92 over properties, such as ``number > 3 AND kind = 'a'``, which brokers evaluate."""

    __slots__ = ()
    _filter_kind: Final = "sql"  #: what the text of a configuration has in front of it


def average(items: Sequence[_T], members: Sequence[str], own: str) -> list[_T] | None:
    """Return the part of ``items`` that is ``own``'s: each member has a range, the first ones have one more.

    None: it is no member.
    """
    if own not in members:
        return None
    n, at = len(members), members.index(own)
    size, more = divmod(len(items), n)
    begin = at * size + min(at, more)
    return list(items[begin : begin + size + (at < more)])


def subscriptions(topics: object, version: int) -> dict[str, Subscription]:
    """Return what is subscribed of each topic.

    ``topics``: names of topics, or a mapping from names to tags (``"a || b"``, ``"*"`` for all) or `Sql`.  A text may
    name its kind: ``"sql:n>3"``, ``"tag:n>3"``.  Raises ConfigError, also for a text that may be either;
    InvalidMessageError.
    """
    if isinstance(topics, str):
        topics = [topics]
    wanted: Mapping[object, object]
    if isinstance(topics, Mapping):
        wanted = topics
    elif isinstance(topics, (list, tuple, set, frozenset)):
        wanted = {check_topic(topic): "*" for topic in topics}
    else:
        raise ConfigError(f"topics {shown(topics)} is neither a name, nor a list or a mapping of names")
    if not wanted:
        raise ConfigError("topics names none", hint="name at least one topic")
    return {check_topic(topic): _one(check_topic(topic), what, version) for topic, what in wanted.items()}


def check_clear(topic: str, tag: str, marks: frozenset[str] = _MARKS) -> None:
    """Raise ConfigError for a text without a kind that may be a tag, and an expression of SQL92."""
    if set(tag) & marks:
        raise ConfigError(
            f"topics: {shown(tag)} of {topic!r} may be a tag, and an expression of SQL92",
            code="AMBIGUOUS_FILTER",
            hint=f"write {shown(SQL + tag)} for the expression, {shown(TAG + tag)} for the tag",
        )


def _one(topic: str, what: object, version: int) -> Subscription:
    if not isinstance(what, str):
        raise ConfigError(
            f"what is wanted of topic {topic!r} is {shown(what)}", hint="give tags: 'a || b', or Sql(...)"
        )
    text = str.__str__(what).strip()
    if isinstance(what, Sql) or text.startswith(SQL):
        text = text if isinstance(what, Sql) else text.removeprefix(SQL).strip()
        if not text:
            raise ConfigError(f"the expression for topic {topic!r} is empty")
        return Subscription(topic, text, sub_version=version, expression_type="SQL92")
    named, text = text.startswith(TAG), text.removeprefix(TAG).strip()
    if text in ("", "*") and not named:
        return Subscription(topic, "*", sub_version=version)
    tags = tuple(dict.fromkeys(part.strip() for part in text.split("||") if part.strip()))
    if not tags or any("|" in tag for tag in tags):
        raise ConfigError(f"tags {shown(text)} of topic {topic!r}", hint="write 'a || b'")
    for tag in tags if not named else ():
        check_clear(topic, tag, _MARKS | {" "})
    return Subscription(topic, text, tags, tuple(map(tag_hash, tags)), version)
