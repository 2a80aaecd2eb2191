"""The topics that a hub has for TubeMQ's clients: groups that it stores, or that its settings or clients name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from dataproxy._core.server.store.view import StoreView
from dataproxy.hub.tubemq.cluster.answers import RefusedError
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.wire.tubemq.texts import Broker

__all__ = ["INDEX_BYTES", "MOST_NAMED", "Topics"]

INDEX_BYTES: Final = 28  #: of an offset, for each message
MOST_NAMED: Final = 2000  #: topics that clients may have named and that have no message yet
_LOOK_S: Final = 1.0  # between two looks at the store
_SHARE: Final = 20  # of the time is spent on them at most, as 1 of so many
_NAME_BYTES: Final = 255
_NOT_IN_NAMES: Final = frozenset("#:,@=& ")


class Topics:
    """Keep a layout in step with a store.  One thread; ``now`` is in seconds of a monotonic clock.

    ``broker``: this hub in the layout.  ``allowed``: the groups that the hub takes; empty: it takes all, and then a
    topic begins to exist when a client names it.  Each topic has at least ``partitions`` partitions.  ``let_name``
    hears how many a topic has before producers do: they may have been begun by clients of another protocol.
    """

    def __init__(
        self, layout: Layout, broker: Broker, view: StoreView, allowed: Iterable[str], partitions: int, now: float,
        let_name: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._layout, self._broker, self._view, self._partitions = layout, broker, view, partitions
        self._let_name = let_name
        self._allowed = {one.partition("/")[0] for one in allowed}
        self._named = set(self._allowed)
        self._stored: dict[str, int] = {}
        self._room = Room(MOST_NAMED, "topics without a message")
        self._namers: dict[str, str] = {}  # addresses, by the topics without a message that they have named
        self._put()
        self.look(now)

    def look(self, now: float) -> None:
        """Find the topics of the store, if the last look is long enough ago."""
        begun = time.perf_counter()
        stored: dict[str, int] = {}
        for topic, partition, *_ in self._view.logs():
            stored[topic] = max(stored.get(topic, self._partitions), partition + 1)
        self.next_look = now + max(_LOOK_S, _SHARE * (time.perf_counter() - begun))
        if stored != self._stored:
            self._stored = stored
            self._named -= stored.keys() - self._allowed
            for topic in self._namers.keys() & stored.keys():
                self._room.give(self._namers.pop(topic), 1)
            self._put()

    def name(self, topics: Iterable[str], peer: str = "") -> None:
        """Let topics exist that a client names, if the hub takes any group, and no more than so many.

        ``peer``: its address, which may have named half of those that the others leave.
        """
        if self._allowed:
            return
        before = len(self._named)
        for topic in dict.fromkeys(map(str.strip, topics)):
            if topic in self._named or topic in self._stored or not _is_name(topic):
                continue
            try:
                self._room.take(peer, 1)
            except RefusedError:
                break
            self._named.add(topic)
            self._namers[topic] = peer
        if len(self._named) > before:
            self._put()

    def extent(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the offset of a partition's oldest message, and the one that its next message gets."""
        for _, number, first, following, *_ in self._view.logs(topic):
            if number == partition:
                return first * INDEX_BYTES, following * INDEX_BYTES
        return 0, 0

    def extents(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the same of all partitions of a topic that have had messages, by partition."""
        return {
            number: (first * INDEX_BYTES, following * INDEX_BYTES)
            for _, number, first, following, *_ in self._view.logs(topic)
        }

    def _put(self) -> None:
        found = {name: TopicAt(self._partitions) for name in self._named}
        found.update((name, TopicAt(count)) for name, count in self._stored.items())
        self._let_name(max(self._stored.values(), default=0))
        self._layout.put(self._broker, found)


def _is_name(topic: str) -> bool:
    """Tell whether messages to a topic of this name would be taken."""
    fits = 0 < len(topic.encode("utf-8", "replace")) <= _NAME_BYTES
    return fits and not _NOT_IN_NAMES & set(topic) and all(" " < one != "\x7f" for one in topic)
