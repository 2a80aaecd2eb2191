"""Offsets of queues and of groups in them: what the store has, what was asked for by time, what groups commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.remoting import Answer, Remoting, Request
from dataproxy.hub.rocketmq.topics.routes import BROKER
from dataproxy.hub.rocketmq.topics.table import Topic, Topics
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import (
    GroupQueue,
    MessageAt,
    Offset,
    Pull,
    SearchOffset,
    Stamp,
    StatsOf,
    TopicQueue,
    UpdateOffset,
)  # fmt: skip
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Offsets", "StoredOffsets"]

_ONE_BYTES: Final = 64 << 20
_LATEST: Final = -1
_GROUP_MOST: Final = 255  # bytes of a name
_OFFSET_MOST: Final = ((1 << 63) - 1) // 28  # that the store can keep, which counts 28 for a message as TubeMQ does
_log: Final = logger("hub.rocketmq")
_Acknowledged = Callable[[int, str, str, int, int, float], int | None]


class StoredOffsets:
    """What the registry needs to know of queues and groups, from the store.  One thread."""

    def __init__(self, remoting: Remoting, topics: Topics) -> None:
        self._remoting, self._topics = remoting, topics

    def read_queues(self, topic: str) -> int | None:
        """Return how many queues of a topic are read, None if there is no such topic."""
        found = self._topics.find(topic)
        return None if found is None else found.reads

    def committed(self, group: str, topic: str, queue: int) -> int | None:
        """Return where a group goes on, None if nothing is kept."""
        offset = self._remoting.committed(group, topic, queue)
        return None if offset < 0 else offset

    def at_time(self, topic: str, queue: int, ms: int) -> int:
        """Return the offset of the first message that was stored at a time or later; the end if there is none."""
        least, end = self._remoting.extent(topic, queue)
        low, high = least, end
        while low < high:
            middle = (low + high) // 2
            if self.stored_ms(topic, queue, middle) < ms:
                low = middle + 1
            else:
                high = middle
        return low

    def latest(self, topic: str, queue: int) -> int:
        """Return the offset of the next message."""
        return self._remoting.extent(topic, queue)[1]

    def extent(self, topic: str, queue: int) -> tuple[int, int]:
        """Return the offsets of the oldest and of the next message."""
        return self._remoting.extent(topic, queue)

    def kept(self) -> list[tuple[str, str, int, int]]:
        """Return (group, topic, queue, offset) of all groups."""
        return self._remoting.offsets()

    def store(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Keep where a group goes on in several queues."""
        for queue, offset in offsets.items():
            _keep(self._remoting, group, topic, queue, offset)

    def stored_ms(self, topic: str, queue: int, offset: int) -> int:
        """Return when a message was stored, -1 if it is not there."""
        found = self._remoting.read(topic, queue, offset, 1, _ONE_BYTES)
        return StoredMessage.read(found[0][1]).stored_ms if found else -1


class Offsets:
    """The calls about offsets.  One thread.

    ``acknowledged`` takes commits of queues that are pushed, and returns what is to be kept, as `Pushes` does.
    """

    def __init__(self, remoting: Remoting, topics: Topics, registry: Registry, acknowledged: _Acknowledged) -> None:
        self._remoting, self._topics, self._registry = remoting, topics, registry
        self._acknowledged = acknowledged
        self.stored = StoredOffsets(remoting, topics)

    def committed(self, request: Request, header: GroupQueue) -> Answer:
        """14: answer where a group goes on.

        Where nothing is kept a group begins as its members want, except in a topic that has just begun: there they get
        all, as they could not know it before.
        """
        self._queue(header.topic, header.queue_id)
        self.settle(request)
        self._registry.offset_asked(request.call.connection, header.consumer_group, header.topic, header.queue_id)
        offset = self._remoting.committed(header.consumer_group, header.topic, header.queue_id)
        if offset < 0:
            if not self._topics.is_young(header.topic, request.now):
                text = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                raise RefusedError(Code.QUERY_NOT_FOUND, text)
            offset = self._remoting.extent(header.topic, header.queue_id)[0]
        return Answer.of(Offset(offset))

    def commit(self, request: Request, header: UpdateOffset) -> Answer:
        """15: keep where a group goes on, if it is for this client to say."""
        self._queue(header.topic, header.queue_id)
        _check_offset(header.commit_offset)
        self._commit(
            request.call.connection,
            header.consumer_group,
            header.topic,
            header.queue_id,
            header.commit_offset,
            request.now,
        )
        return Answer()

    def settle(self, request: Request) -> None:
        """Take what pulls have committed by the way."""
        self.settle_at(request.now)

    def settle_at(self, now: float) -> None:
        """Take what pulls have committed by the way."""
        for connection, group, topic, queue, offset in self._remoting.commits():
            try:
                self._commit(connection, group, topic, queue, offset, now)
            except RefusedError as error:  # the others are of others
                _log.warning("what a pull of the group %s has committed is not kept: %s", shown(group), error)

    def commit_pulled(self, connection: int, header: Pull, now: float) -> None:
        """Keep what a pull commits by the way."""
        self._commit(connection, header.consumer_group, header.topic, header.queue_id, header.commit_offset, now)

    def _commit(self, connection: int, group: str, topic: str, queue: int, offset: int, now: float) -> None:
        if len(group.encode()) > _GROUP_MOST:
            text = f"the group {shown(group)} has {len(group.encode())} bytes; at most {_GROUP_MOST} are possible"
            raise RefusedError(Code.SYSTEM_ERROR, text)
        if offset >= 0:
            _check_offset(offset)  # a pull may say a negative one, and commits nothing then
        if self._registry.admits_commit(connection, group, topic, queue, offset, now):
            kept = self._acknowledged(connection, group, topic, queue, offset, now)
            if kept is not None:
                _keep(self._remoting, group, topic, queue, kept)

    def search(self, request: Request, header: SearchOffset) -> Answer:
        """29: answer which message was the first at a time or after it."""
        self._queue(header.topic, header.queue_id)
        return Answer.of(Offset(self.stored.at_time(header.topic, header.queue_id, header.timestamp)))

    def latest(self, request: Request, header: TopicQueue) -> Answer:
        """30: answer which offset the next message gets."""
        self._queue(header.topic, header.queue_id)
        return Answer.of(Offset(self._remoting.extent(header.topic, header.queue_id)[1]))

    def earliest(self, request: Request, header: TopicQueue) -> Answer:
        """31: answer which offset the oldest message has."""
        self._queue(header.topic, header.queue_id)
        return Answer.of(Offset(self._remoting.extent(header.topic, header.queue_id)[0]))

    def earliest_time(self, request: Request, header: TopicQueue) -> Answer:
        """32: answer when the oldest message was stored, -1 without any."""
        self._queue(header.topic, header.queue_id)
        least = self._remoting.extent(header.topic, header.queue_id)[0]
        return Answer.of(Stamp(self.stored.stored_ms(header.topic, header.queue_id, least)))

    def message(self, request: Request, header: MessageAt) -> Answer:
        """33: answer with the message of a physical offset."""
        found = self.find(header.offset, request.call.local)
        if found is None:
            raise RefusedError(Code.SYSTEM_ERROR, f"can not find message by the offset, {header.offset}")
        return Answer(body=found)

    def find(self, handle: int, local: str) -> bytes | None:
        """Return the stored message of a physical offset, None if it is not there.  ``local`` as in `Remoting.read`."""
        place = self._remoting.place(handle) if handle >= 0 else None
        if place is None:
            return None
        topic, queue, offset = place
        found = self._remoting.read(topic, queue, offset, 1, _ONE_BYTES, local)
        return found[0][1] if found and found[0][0] == offset else None

    def progress(self, request: Request, header: StatsOf) -> Answer:
        """208: answer how far a group is in each queue."""
        self.settle(request)
        table: dict[str, dict[str, int]] = {}
        kept = {(topic, queue): offset for group, topic, queue, offset in self._remoting.offsets()
                if group == header.consumer_group}  # fmt: skip
        for topic in sorted({topic for topic, _ in kept if header.topic in ("", topic)}):
            found = self._topics.find(topic)
            for queue in range(0 if found is None else found.reads):
                least, end = self._remoting.extent(topic, queue)
                offset = max(kept.get((topic, queue), 0), 0)
                stamp = self.stored.stored_ms(topic, queue, offset - 1) if least < offset <= end else 0
                key = msgspec.json.encode(Queue(BROKER, queue, topic), order="sorted").decode()
                table[key] = {"brokerOffset": end, "consumerOffset": offset, "lastTimestamp": max(stamp, 0)}
        return Answer(body=msgspec.json.encode({"consumeTps": 0.0, "offsetTable": table}))

    def _topic(self, name: str) -> Topic:
        found = self._topics.find(name)
        if found is None:
            raise RefusedError(Code.TOPIC_NOT_EXIST, f"topic[{name[:127]}] not exist, apply first please!")
        return found

    def _queue(self, name: str, queue: int) -> None:
        """Check that there is such a queue.  Raises RefusedError."""
        topic = self._topic(name)
        if not 0 <= queue < max(topic.reads, topic.writes):
            text = f"queueId[{queue}] is illegal, topic:[{name}] has queues 0 to {max(topic.reads, topic.writes) - 1}"
            raise RefusedError(Code.SYSTEM_ERROR, text)


def _check_offset(offset: int) -> None:
    """Refuse an offset that no queue has, and that would be another one in the store."""
    if not 0 <= offset <= _OFFSET_MOST:
        raise RefusedError(Code.SYSTEM_ERROR, f"commitOffset is {offset}; expected 0 to {_OFFSET_MOST}")


def _keep(remoting: Remoting, group: str, topic: str, queue: int, offset: int) -> None:
    if not remoting.commit(group, topic, queue, offset):
        raise RefusedError(Code.SYSTEM_ERROR, f"there is no room for offsets of the group {group[:127]}")
