"""What is subscribed, and how queues are divided between the members of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.rocketmq.sending.messages import check_topic
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.names import tag_hash

__all__ = ["Sql", "average", "subscriptions"]

_T = TypeVar("_T")


class Sql(str):
    """An expression of SQL92 over properties, such as ``number > 3 AND kind = 'a'``, which brokers evaluate."""

    __slots__ = ()


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

    ``topics``: names of topics, or a mapping from names to tags (``"a || b"``, ``"*"`` for all) or `Sql`.  Raises
    ConfigError, InvalidMessageError.
    """
    if isinstance(topics, str):
        topics = [topics]
    wanted: Mapping[object, object]
    if isinstance(topics, Mapping):
        wanted = topics
    elif isinstance(topics, (list, tuple, set, frozenset)):
        wanted = dict.fromkeys(topics, "*")
    else:
        raise ConfigError(f"topics {shown(topics)} is neither a name, nor a list or a mapping of names")
    if not wanted:
        raise ConfigError("topics names none", hint="name at least one topic")
    return {check_topic(topic): _one(check_topic(topic), what, version) for topic, what in wanted.items()}


def _one(topic: str, what: object, version: int) -> Subscription:
    if not isinstance(what, str):
        raise ConfigError(
            f"what is wanted of topic {topic!r} is {shown(what)}", hint="give tags: 'a || b', or Sql(...)"
        )
    text = str.__str__(what).strip()
    if isinstance(what, Sql):
        if not text:
            raise ConfigError(f"the expression for topic {topic!r} is empty")
        return Subscription(topic, text, sub_version=version, expression_type="SQL92")
    if text in ("", "*"):
        return Subscription(topic, "*", sub_version=version)
    tags = tuple(dict.fromkeys(part.strip() for part in text.split("||") if part.strip()))
    if not tags or any("|" in tag for tag in tags):
        raise ConfigError(f"tags {shown(text)} of topic {topic!r}", hint="write 'a || b'")
    return Subscription(topic, text, tags, tuple(map(tag_hash, tags)), version)
