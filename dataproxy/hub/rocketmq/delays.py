"""Messages for later: each level of delay is a queue of a topic of the store, whose messages move on when it is time.

A queue is in the order of its times, since all of its messages wait equally long.  What moves is stored in its topic
first, and only then is the queue's offset kept: so a hub that is killed loses none, and may move some twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.topics.remoting import Appends, Place, Remoting
from dataproxy.hub.rocketmq.topics.table import QUEUES_MOST, SCHEDULE_TOPIC, Topic, Topics
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.names import is_name

__all__ = ["LEVELS_MS", "Delays", "real_place"]

_log: Final = logger("hub.rocketmq")
_S, _M, _H = 1000, 60_000, 3_600_000
#: Of the levels 1 to 18.
LEVELS_MS: Final = (
    1 * _S, 5 * _S, 10 * _S, 30 * _S, 1 * _M, 2 * _M, 3 * _M, 4 * _M, 5 * _M, 6 * _M, 7 * _M, 8 * _M, 9 * _M, 10 * _M,
    20 * _M, 30 * _M, 1 * _H, 2 * _H,
)  # fmt: skip
_GROUP: Final = "RMQ_SYS_SCHEDULE"
_PAGE, _PAGE_BYTES = 64, 4 << 20
_AGAIN_S: Final = 1.0  # after the store refused


@dataclass(slots=True)
class _Level:
    queue: int
    delay_ms: int
    next: int  # the offset of the message that moves next
    end: int = 0  # behind the last one that is known
    due: float | None = None  # when to look at it; None: there is none
    #: What was stored at the first, in ms of the time of day, moves at the second, whatever the time of day is then;
    #: what was stored later, so much later.
    reach: tuple[int, float] | None = None
    moving: bool = False


class Delays:
    """The levels of delay.  One thread; ``now`` in seconds of a monotonic clock, ``wall_ms`` the time of day.

    The time of day says when a message was stored.  It may be set back: nobody waits longer than the level for that.
    """

    def __init__(self, remoting: Remoting, appends: Appends, topics: Topics, now: float) -> None:
        self._remoting, self._appends, self._topics = remoting, appends, topics
        self._levels = []
        for queue, delay_ms in enumerate(LEVELS_MS):
            least, end = remoting.extent(SCHEDULE_TOPIC, queue)
            at = max(remoting.committed(_GROUP, SCHEDULE_TOPIC, queue), least)
            self._levels.append(_Level(queue, delay_ms, at, end, now if at < end else None))

    def placed(self, message: StoredMessage) -> StoredMessage:
        """Return a message as it is stored: for later if it has a level of delay."""
        level = delay_level(message.properties)
        if level == 0:
            return message
        real = {"REAL_TOPIC": message.topic, "REAL_QID": str(message.queue), "DELAY": str(level)}
        return replace(message, topic=SCHEDULE_TOPIC, queue=level - 1, properties={**message.properties, **real})

    def stored(self, message: StoredMessage, now: float, wall_ms: int) -> None:
        """Note that a message was stored; those that are not for later do not matter."""
        if message.topic != SCHEDULE_TOPIC:
            return
        level = self._levels[message.queue]
        level.end += 1
        if level.due is None and not level.moving:
            level.due = now + level.delay_ms / 1000
            level.reach = (wall_ms, level.due)

    @property
    def next_tick(self) -> float | None:
        """Return when ``tick`` has to be called; None: not before a message is stored."""
        return min((one.due for one in self._levels if one.due is not None and not one.moving), default=None)

    def waiting(self) -> dict[int, int]:
        """Return how many messages wait, by level."""
        return {one.queue + 1: one.end - one.next for one in self._levels if one.end > one.next}

    def tick(self, now: float, wall_ms: int) -> None:
        """Move what is due."""
        for level in self._levels:
            if level.due is not None and not level.moving and level.due <= now:
                try:
                    self._move(level, now, wall_ms)
                except Exception:  # noqa: BLE001 - the other levels go on
                    _log.exception("the messages for later of level %d cannot be moved now", level.queue + 1)
                    level.moving, level.due = False, now + _AGAIN_S

    def _move(self, level: _Level, now: float, wall_ms: int) -> None:
        page = self._remoting.read(SCHEDULE_TOPIC, level.queue, level.next, _PAGE, _PAGE_BYTES)
        level.end = max(level.end, self._remoting.extent(SCHEDULE_TOPIC, level.queue)[1])
        if not page:
            level.due = None if level.next >= level.end else now + _AGAIN_S
            return
        moved, behind = [], level.next
        for offset, data in page:
            message = _read(data, offset, level)
            if message is not None:
                left_s = _left_s(level, message.stored_ms, now, wall_ms)
                if left_s > 0:
                    level.due = now + left_s
                    break
                real = self._real(message, now)
                if real is not None:
                    moved.append((real.topic, real.queue, real.write()))
            behind = offset + 1
        else:
            level.due = now  # look at the next ones
        if behind > level.next:
            level.moving = True
            self._appends.put(moved, lambda places: self._moved(level, behind, places, now))

    def _real(self, message: StoredMessage, now: float) -> StoredMessage | None:
        """Return a message as it goes to its topic, which is there then; None: it has none."""
        place = real_place(message.properties)
        if place is None:
            _log.error("a message for later, offset %d of %d, names no topic", message.queue_offset, message.queue)
            return None
        topic, queue = place
        try:
            self._topics.ensure(topic, Topic(), now)
        except RefusedError as error:
            if error.code == Answer.SYSTEM_BUSY:
                raise  # it is tried again
            _log.error("a message for later cannot go to the topic %r: %s", topic, error)
            return None
        properties = {name: value for name, value in message.properties.items() if name != "DELAY"}
        return replace(message, topic=topic, queue=queue, properties=properties)

    def _moved(self, level: _Level, behind: int, places: list[Place], now: float) -> None:
        level.moving = False
        if any(one.status for one in places):
            _log.warning("messages for later could not be stored in their topics; the hub tries again")
            level.due = now + _AGAIN_S
            return
        level.next = behind
        self._remoting.commit(_GROUP, SCHEDULE_TOPIC, level.queue, behind)


def _read(data: bytes, offset: int, level: _Level) -> StoredMessage | None:
    try:
        return StoredMessage.read(data)
    except RemoteProtocolError as error:
        _log.error("the message for later at offset %d of %d is passed over: %s", offset, level.queue, error)
        return None


def _left_s(level: _Level, stored_ms: int, now: float, wall_ms: int) -> float:
    """Return for how long the next message of a level has to wait still, and take it as the measure for those behind.

    A message that was stored before the one in front of it was stored by a clock that had been set back.
    """
    left = min(stored_ms + level.delay_ms - wall_ms, level.delay_ms) / 1000
    if level.reach is not None and stored_ms >= level.reach[0]:
        left = min(left, level.reach[1] - now + (stored_ms - level.reach[0]) / 1000)
    level.reach = (stored_ms, now + left)
    return left


def delay_level(properties: Mapping[str, str]) -> int:
    """Return a message's level of delay, 0 for none; the highest for one beyond it."""
    text = properties.get("DELAY", "")
    level = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return min(level, len(LEVELS_MS))


def real_place(properties: Mapping[str, str]) -> tuple[str, int] | None:
    """Return topic and queue that a message is meant for, None if it does not say so."""
    topic, queue = properties.get("REAL_TOPIC", ""), properties.get("REAL_QID", "0")
    if not is_name(topic) or not (queue.isascii() and queue.isdigit() and len(queue) < 5):
        return None
    return (topic, int(queue)) if int(queue) < QUEUES_MOST else None
