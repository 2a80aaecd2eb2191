"""What administration works on: the master's parts, what the store has, and where groups are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from dataproxy.errors import ConfigError
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import RefusedError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.rules import Rules
from dataproxy.hub.tubemq.groups.choosers import Choosers
from dataproxy.hub.tubemq.groups.consumers import Consumers
from dataproxy.hub.tubemq.groups.wishes import check_group_name as check_form
from dataproxy.hub.tubemq.groups.wishes import read_topics
from dataproxy.problems import shown
from dataproxy.wire.tubemq.texts import Broker, partition_ids

__all__ = [
    "MESSAGE",
    "AbsentError",
    "Extents",
    "Parts",
    "Position",
    "Positions",
    "Registered",
    "check_group_name",
    "check_text",
    "check_topic_name",
    "read_positions",
    "told_names",
]

MESSAGE: Final = 28  #: of an offset, for each message
_MOST_NAMED: Final = 10  # of names that an error tells

#: The offsets of a topic's oldest and next messages, by partition; partitions without a message may be missing.
Extents = Callable[[str], dict[int, tuple[int, int]]]


class AbsentError(LookupError):
    """What a request names is not there; a mistake of this program, such as a KeyError, is another one."""


class Registered(Protocol):
    """The registrations of a broker, as much of them as administration needs: `RegistrationsCore`."""

    def found(self, only: bytes | None = None) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return (group, topic, partition, owner, confirmed, pending) of all, or of one group."""
        ...

    def reset(self, group: bytes, topic: bytes, partition: int, position: int) -> bool:
        """Put a group's position, with nothing read behind it; False if there is no room."""
        ...

    def flush(self) -> int:
        """Wait until all positions are in the store; return how many could not be stored."""
        ...


class Position(NamedTuple):
    """Where a group is in a partition."""

    topic: str
    partition: int
    owner: str  #: the member that reads it, "" if nobody does
    confirmed: int  #: an offset; -1 if the group has none yet
    pending: int  #: read behind it, and not confirmed


Positions = dict[str, list[Position]]
"""By group; those of a group in order."""


def read_positions(registrations: Registered, only: str | None = None) -> Positions:
    """Return where all groups are, or one of them.  Any thread."""
    rows = registrations.found(None if only is None else only.encode("utf-8", "replace"))
    found: Positions = {}
    for group, topic, partition, owner, confirmed, pending in rows:
        row = Position(topic.decode(), partition, owner.decode(), confirmed, pending)
        found.setdefault(group.decode(), []).append(row)
    for positions in found.values():
        positions.sort()
    return found


@dataclass(frozen=True)
class Parts:
    """The parts of a hub's master and broker.

    ``broker``: the number of this hub in the layouts.  ``layout`` has all brokers, as far as this hub knows them: in a
    cluster the leader alone does.  ``own`` has this hub alone.  ``name_topics`` lets topics exist, with
    ``new_partitions`` partitions, as far as the hub takes them.
    """

    broker: int
    layout: Layout
    own: Layout
    consumers: Consumers
    choosers: Choosers
    rules: Rules
    access: Access
    registrations: Registered
    extents: Extents
    name_topics: Callable[[Iterable[str]], None]
    new_partitions: int

    def partitions(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the first and next offset of each partition that this broker has of a topic.

        Raises AbsentError for a topic that is not there.
        """
        if not self.places(topic):
            raise AbsentError(f"there is no topic {shown(topic)}; {told_names('topic', self.topics())}")
        stored = self.extents(topic)
        return {
            number: stored.get(number, (0, 0))
            for _, at, _ in self.own.places(topic)
            for number in partition_ids(at.partitions, at.stores)
        }

    def topics(self) -> list[str]:
        """Return the topics of all brokers that this hub knows, by name."""
        return sorted({*self.layout.topics(), *self.own.topics()})

    def places(self, topic: str) -> list[tuple[Broker, TopicAt, bool]]:
        """Return where a topic is, as `Layout.places` does."""
        return self.layout.places(topic) or self.own.places(topic)

    def group_names(self, positions: Positions) -> set[str]:
        """Return the groups that have members or positions."""
        return {one.name for one in self.consumers.groups()} | self.choosers.names() | positions.keys()

    def check_group(self, group: str, positions: Positions) -> None:
        """Raise AbsentError for a group that has neither members nor positions."""
        if group in positions or self.consumers.group(group) is not None or self.choosers.has(group):
            return
        known = told_names("group with members", sorted(self.group_names(positions)))
        raise AbsentError(f"there is no group {shown(group)} with members or offsets; {known}")


def told_names(what: str, names: list[str]) -> str:
    """Return a few names for an error."""
    if not names:
        return f"no {what} is known"
    more = f" and {len(names) - _MOST_NAMED:,} others" if len(names) > _MOST_NAMED else ""
    return f"known: {', '.join(map(shown, names[:_MOST_NAMED]))}{more}"


def check_group_name(group: object) -> str:
    """Return the name of a group.  Raises ConfigError for what no client can be in."""
    text = check_text("group", group)
    _accepted(lambda: check_form(text))
    return text


def check_topic_name(topic: object) -> str:
    """Return the name of a topic.  Raises ConfigError for what TubeMQ's texts cannot name."""
    text = check_text("topic", topic)
    _accepted(lambda: read_topics([text]))
    return text


def _accepted(check: Callable[[], object]) -> None:
    try:
        check()
    except RefusedError as error:
        raise ConfigError(error.text, hint="TubeMQ's clients could not ask for it") from None


def check_text(name: str, value: object, *, longest: int = 1024) -> str:
    """Return a text that a request has to have.  Raises ConfigError."""
    if not isinstance(value, str) or not value or len(value) > longest:
        raise ConfigError(f"{name}={shown(value)} is no name", hint=f"give a text of 1 to {longest} characters")
    return value
