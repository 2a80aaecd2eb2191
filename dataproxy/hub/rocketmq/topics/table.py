"""The topics of a hub for RocketMQ's clients: what the store has, what clients begin, and what was configured."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from dataproxy._core.server.store.view import StoreView
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.topics.kept import KEPT_TOPIC, Kept
from dataproxy.hub.rocketmq.topics.remoting import Remoting
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.names import DEAD_LETTERS, RETRIES, TEMPLATE, is_name

__all__ = [
    "CLUSTER",
    "HALF_TOPIC",
    "LOST_HALVES_TOPIC",
    "OP_TOPIC",
    "QUEUES_MOST",
    "REPLY_TOPIC",
    "SCHEDULE_TOPIC",
    "Topic",
    "Topics",
]

CLUSTER: Final = "DefaultCluster"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
LOST_HALVES_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
REPLY_TOPIC: Final = f"{CLUSTER}_REPLY_TOPIC"  #: clients look up its route, and send replies to its broker
#: Clients neither send to them nor change them.
_OWN: Final = frozenset((SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, LOST_HALVES_TOPIC, KEPT_TOPIC, REPLY_TOPIC))
_HIDDEN: Final = _OWN - {LOST_HALVES_TOPIC, REPLY_TOPIC}  #: no client gets a route to them
_READ, _WRITE, _INHERIT = 4, 2, 1
_PERMS: Final = 7
_INT: Final = 1 << 31
QUEUES_MOST: Final = 1024
_MOST: Final = 20_000  # topics that clients begin, while a hub runs
_LOOK_S: Final = 1.0
_SHARE: Final = 20  # of the time is spent on looks at most, as 1 of so many
_YOUNG_S: Final = 60.0


class Topic(NamedTuple):
    """How many queues are read and written, and the permission: 4 to read and 2 to write."""

    reads: int = 4
    writes: int = 4
    perm: int = 6
    order: bool = False
    sys_flag: int = 0


_TEMPLATE: Final = Topic(8, 8, 7)
_REPLIES: Final = Topic(1, 1, 2)  # nothing is ever stored there


def _is_topic(values: object) -> bool:
    """Tell whether what was kept can be a topic: other ports can write there, too."""
    if not isinstance(values, list) or len(values) > len(Topic._fields):
        return False
    if not all(isinstance(one, int) and 0 <= one < _INT for one in values):
        return False
    topic = Topic(*values)
    return max(topic.reads, topic.writes) <= QUEUES_MOST and topic.perm <= _PERMS


class Topics:
    """All topics.  One thread; ``now`` is in seconds of a monotonic clock.

    ``allowed``: the groups that the hub takes; empty: it takes all, and then a send begins a topic that does not exist.
    A group that was stored by another protocol has ``partitions`` queues, or as many as the store has of it.
    """

    def __init__(
        self, remoting: Remoting, view: StoreView, kept: Kept, allowed: Iterable[str], partitions: int, now: float
    ) -> None:
        self._remoting, self._view, self._kept, self._partitions = remoting, view, kept, partitions
        self._allowed = {one.partition("/")[0] for one in allowed}
        self._table: dict[str, Topic] = {}
        self._begun: dict[str, float] = {}
        self._stored: dict[str, int] = {}
        for name, values in kept.all("topic").items():
            if is_name(name) and name not in (*_OWN, TEMPLATE) and self._admits(name) and _is_topic(values):
                self._put(name, Topic(*values))
        for name in self._allowed:
            if is_name(name) and name not in self._table:
                self._put(name, Topic(partitions, partitions))
        self._put(LOST_HALVES_TOPIC, Topic(1, 1, _READ))
        self.look(now)

    @property
    def begins_any(self) -> bool:
        """Tell whether a send begins a topic."""
        return not self._allowed

    def find(self, name: str) -> Topic | None:
        """Return a topic that clients may see."""
        if name == TEMPLATE:
            return _TEMPLATE if self.begins_any else None
        if name == REPLY_TOPIC:
            return _REPLIES
        return None if name in _HIDDEN else self._table.get(name)

    def is_young(self, name: str, now: float) -> bool:
        """Tell whether clients may not have heard of a topic since it began."""
        return now - self._begun.get(name, -_YOUNG_S) < _YOUNG_S

    def for_send(self, name: str, template: str, queues: int, now: float) -> Topic:
        """Return the topic that a message goes to, begun if need be.  Raises RefusedError."""
        _check_name(name)
        if name in _OWN or name == TEMPLATE:
            raise RefusedError(Code.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden.")
        found = self._table.get(name)
        if found is None:
            if name.startswith(RETRIES) and self._admits(name):
                found = self.ensure(name, Topic(1, 1), now)
            elif (of := self.find(template)) is not None and of.perm & _INHERIT and self._admits(name):
                count = max(min(queues, of.writes), 1)
                found = self.ensure(name, Topic(count, count, of.perm & ~_INHERIT), now)
            else:
                raise RefusedError(Code.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!")
        if not found.perm & _WRITE:
            raise RefusedError(Code.NO_PERMISSION, f"the topic[{name}] sending message is forbidden")
        return found

    def configure(self, name: str, topic: Topic, now: float) -> None:
        """Make a topic, or change it.  Raises RefusedError."""
        _check_name(name)
        if name in _OWN or name == TEMPLATE:
            raise RefusedError(Code.SYSTEM_ERROR, f"The topic[{name}] is conflict with system topic.")
        for what, count in (("readQueueNums", topic.reads), ("writeQueueNums", topic.writes)):
            if not 1 <= count <= QUEUES_MOST:
                raise RefusedError(Code.SYSTEM_ERROR, f"{what} is {count}; expected 1 to {QUEUES_MOST}")
        if not 0 <= topic.perm <= _PERMS:
            raise RefusedError(Code.SYSTEM_ERROR, f"perm is {topic.perm}; expected 0 to {_PERMS}")
        if not self._admits(name):
            raise RefusedError(Code.NO_PERMISSION, f"the hub takes certain topics alone, and {name} is none of them")
        self.ensure(name, topic, now, change=True)

    def ensure(self, name: str, topic: Topic, now: float, *, change: bool = False) -> Topic:
        """Make a topic if it is not there, and return it; with ``change`` it is as given.  Raises RefusedError."""
        found = self._table.get(name)
        if found is not None and not change:
            return found
        if found is None:
            _check_name(name)
            if len(self._begun) >= _MOST:
                raise RefusedError(Code.SYSTEM_ERROR, f"{_MOST} topics were begun; the hub takes no more of them")
            self._begun[name] = now
        count = self._stored.get(name, 0)
        topic = topic._replace(reads=max(topic.reads, count), writes=topic.writes)
        self._put(name, topic)
        self._kept.put("topic", name, list(topic))
        return topic

    def retry(self, group: str, queues: int, now: float) -> Topic:
        """Return the topic of a group's messages that come again, made if need be."""
        return self.ensure(RETRIES + group, Topic(queues, queues), now)

    def dead_letters(self, group: str, now: float) -> Topic:
        """Return the topic of a group's messages that come no more, made if need be."""
        return self.ensure(DEAD_LETTERS + group, Topic(1, 1), now)

    def names(self) -> list[str]:
        """Return the topics that clients may see."""
        return [name for name in self._table if name not in _HIDDEN]

    def look(self, now: float) -> None:
        """Find what the store has of other protocols."""
        begun = time.perf_counter()
        stored: dict[str, int] = {}
        for name, partition, *_ in self._view.logs():
            stored[name] = max(stored.get(name, 0), partition + 1)
        self.next_look = now + max(_LOOK_S, _SHARE * (time.perf_counter() - begun))
        if stored == self._stored:
            return
        self._stored = stored
        for name, count in stored.items():
            if name in _OWN or not is_name(name) or count > QUEUES_MOST:
                continue
            found = self._table.get(name)
            if found is None:
                many = max(self._partitions, count)
                self._put(name, Topic(1, 1) if name.startswith((RETRIES, DEAD_LETTERS)) else Topic(many, many))
            elif count > found.reads:
                self._put(name, found._replace(reads=count))

    def _admits(self, name: str) -> bool:
        return not self._allowed or name in self._allowed or name.startswith((RETRIES, DEAD_LETTERS))

    def _put(self, name: str, topic: Topic) -> None:
        self._table[name] = topic
        self._remoting.set_topic(name, topic.reads, topic.writes, topic.perm)


def _check_name(name: str) -> None:
    if not is_name(name):
        shown = name if len(name) <= 80 else name[:80] + "..."
        raise RefusedError(
            Code.SYSTEM_ERROR,
            f"The specified topic[{shown}] is no name: 1 to 127 of the letters of ASCII, digits and %|_- make one",
        )
