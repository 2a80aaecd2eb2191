"""Half messages: stored where no consumer sees them, until their producer says what becomes of them.

A half message lies in a topic of its own.  A second topic has what came of each, and how often its producer was asked,
so a hub that was killed goes on where it was.  Which producer is asked, and when, the registry decides.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import Half, RefusedError
from dataproxy.hub.rocketmq.delays import Delays, real_place
from dataproxy.hub.rocketmq.groups.transactions import ROLL_BACK
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.remoting import Answer as Reply
from dataproxy.hub.rocketmq.topics.remoting import Appends, Call, Place, Remoting, Request
from dataproxy.hub.rocketmq.topics.table import HALF_TOPIC, LOST_HALVES_TOPIC, OP_TOPIC, Topic, Topics
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import EndTransaction, TransactionCheck, header_fields
from dataproxy.wire.rocketmq.messages import COMMITTED, StoredMessage
from dataproxy.wire.rocketmq.names import MessageId

__all__ = ["Transactions"]

_log: Final = logger("hub.rocketmq")
_GROUP: Final = "RMQ_SYS_TRANS"
_ONE_WAY: Final = 2
_PAGE, _PAGE_BYTES = 256, 4 << 20
_ONE_BYTES: Final = 64 << 20
_CHECKPOINT: Final = 256  # notes in the second topic between two points at which it may be read from later
_NOTE: Final = re.compile(rb"(?:done|asked) (\d{1,19})(?: (\d{1,6}))?")


class Transactions:
    """Half messages and their ends.  One thread; ``now`` in seconds of a monotonic clock, ``wall_ms`` the time of day.

    ``send`` sends a request without an answer: connection, code, fields, body.
    """

    def __init__(
        self, remoting: Remoting, appends: Appends, topics: Topics, registry: Registry, delays: Delays,
        send: Callable[[int, int, dict[str, str], bytes], None], now: float, wall_ms: int,
    ) -> None:  # fmt: skip
        self._remoting, self._appends, self._topics, self._registry = remoting, appends, topics, registry
        self._delays, self._send = delays, send
        self._open: dict[int, int] = {}  # by the half message's offset, in their order: its handle
        self._half_end = self._op_end = 0
        self._points: deque[tuple[int, int]] = deque()  # ends of both topics at one time
        self._kept = (0, 0)
        self._restore(now, wall_ms)

    def prepared(self, message: StoredMessage) -> StoredMessage:
        """Return a half message as it is stored."""
        real = {"REAL_TOPIC": message.topic, "REAL_QID": str(message.queue)}
        return replace(message, topic=HALF_TOPIC, queue=0, properties={**message.properties, **real})

    def stored(self, message: StoredMessage, place: Place, request: Request) -> None:
        """Note that a message was stored; those that are no half messages do not matter."""
        if message.topic == HALF_TOPIC:
            self._begin(message, place.offset, place.handle, request.now, request.call.connection, 0)

    def end(self, request: Request, header: EndTransaction) -> Reply | None:
        """37: carry out what the producer says; once, however often it says so.

        Clients send it one-way; one that does not is answered when the end is stored.  Raises RefusedError for what
        is no half message of this producer group.
        """
        half = self._registry.checks.end(header)
        if half is None:
            return Reply()
        try:
            committed = [] if header.commit_or_rollback == ROLL_BACK else [self._committed(half, request.now)]
        except BaseException:
            self._registry.checks.failed(half.handle, request.now)
            raise
        self._finish(half, committed, request.now, request.wall_ms, request.call)
        return None

    def ask(self, connection: int, half: Half) -> None:
        """Request a producer what became of a half message (39)."""
        message = self._read(half)
        place = None if message is None else real_place(message.properties)
        if message is None or place is None:
            _log.error("the half message at offset %d cannot be asked about: it is damaged", half.half_offset)
            return
        times = str(half.checks)
        told = replace(
            message, topic=place[0], queue=place[1], queue_offset=half.half_offset, handle=half.handle,
            properties={**message.properties, "TRANSACTION_CHECK_TIMES": times},
        )  # fmt: skip
        key = message.properties.get("UNIQ_KEY", "")
        where = str(MessageId(*message.store, half.handle))
        header = TransactionCheck(half.half_offset, half.handle, key, key, where)
        self._send(connection, Code.CHECK_TRANSACTION_STATE, header_fields(header), told.write())
        self._note([], f"asked {half.half_offset} {times}", lambda _: None)

    def discard(self, half: Half, now: float, wall_ms: int) -> None:
        """Give up a half message about which no producer has said anything: it goes to a topic for such."""
        message = self._read(half)
        lost = [] if message is None else [replace(message, topic=LOST_HALVES_TOPIC, queue=0)]
        _log.warning("a half message of the producer group %r was asked about in vain, and is given up", half.group)
        self._finish(half, lost, now, wall_ms)

    @property
    def open(self) -> int:
        """Return how many half messages have no end."""
        return len(self._open)

    def _finish(
        self, half: Half, messages: list[StoredMessage], now: float, wall_ms: int, call: Call | None = None
    ) -> None:
        """Store how a half message ends, and answer ``call``."""

        def answer(code: int, remark: str = "") -> None:
            if call is not None and not call.flag & _ONE_WAY:
                call.answer(code, None, remark)

        def done(places: list[Place]) -> None:
            if any(one.status for one in places):
                _log.warning("the end of a half message could not be stored; its producer is asked again")
                self._registry.checks.failed(half.handle, now)
                answer(Answer.SYSTEM_ERROR, "the end could not be stored; its producer is asked again")
                return
            for one in messages:
                self._delays.stored(one, now, wall_ms)
            self._registry.checks.done(half.handle)
            self._open.pop(half.half_offset, None)
            self._advance()
            answer(Answer.SUCCESS)

        self._note(messages, f"done {half.half_offset}", done)

    def _note(self, messages: list[StoredMessage], text: str, done: Callable[[list[Place]], None]) -> None:
        """Store messages, and behind them what came of a half message."""

        def stored(places: list[Place]) -> None:
            if places[-1].status == 0:
                self._op_end = places[-1].offset + 1
                if not self._points or self._op_end - self._points[-1][1] >= _CHECKPOINT:
                    self._points.append((self._half_end, self._op_end))
            done(places)

        note = StoredMessage(OP_TOPIC, 0, text.encode())
        try:
            self._appends.put([(one.topic, one.queue, one.write()) for one in (*messages, note)], stored)
        except RefusedError:
            done([Place(1, -1, -1)])

    def _committed(self, half: Half, now: float) -> StoredMessage:
        """Return a half message as its consumers get it.  Raises RefusedError."""
        message = self._read(half)
        place = None if message is None else real_place(message.properties)
        if message is None or place is None:
            text = f"the half message at offset {half.half_offset} cannot be committed: it is damaged"
            _log.error(text)
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        self._topics.ensure(place[0], Topic(), now)
        own = ("REAL_TOPIC", "REAL_QID", "TRAN_MSG")
        properties = {name: value for name, value in message.properties.items() if name not in own}
        real = replace(
            message, topic=place[0], queue=place[1], sys_flag=message.sys_flag | COMMITTED, properties=properties,
            prepared_offset=half.handle,
        )  # fmt: skip
        return self._delays.placed(real)

    def _read(self, half: Half) -> StoredMessage | None:
        found = self._remoting.read(HALF_TOPIC, 0, half.half_offset, 1, _ONE_BYTES)
        return _message(found[0][1]) if found and found[0][0] == half.half_offset else None

    def _begin(
        self, message: StoredMessage, offset: int, handle: int, born_s: float, connection: int, checks: int
    ) -> None:
        self._half_end = max(self._half_end, offset + 1)
        immunity = message.properties.get("CHECK_IMMUNITY_TIME_IN_SECONDS", "")
        immunity_s = float(immunity) if immunity.isascii() and immunity.isdigit() and len(immunity) < 10 else 0.0
        group = message.properties.get("PGROUP", "")
        self._open[offset] = handle
        self._registry.checks.add(Half(handle, offset, group, born_s, connection, "", immunity_s, checks))

    def _advance(self) -> None:
        """Keep from where on both topics have to be read after a start."""
        oldest = next(iter(self._open), self._half_end)
        ops = self._kept[1]
        while self._points and self._points[0][0] <= oldest:
            ops = self._points.popleft()[1]
        if not self._open:
            ops = self._op_end
            self._points.clear()
        for topic, old, new in ((HALF_TOPIC, self._kept[0], oldest), (OP_TOPIC, self._kept[1], ops)):
            if new > old:
                self._remoting.commit(_GROUP, topic, 0, new)
        self._kept = (max(oldest, self._kept[0]), max(ops, self._kept[1]))

    def _restore(self, now: float, wall_ms: int) -> None:
        ended: set[int] = set()
        asked: dict[int, int] = {}
        for offset, message in self._all(OP_TOPIC):
            self._op_end = offset + 1
            note = _NOTE.fullmatch(message.body)
            if note is None:
                _log.error("offset %d of the topic %s says nothing of a half message", offset, OP_TOPIC)
            elif note[2] is None:
                ended.add(int(note[1]))
            else:
                asked[int(note[1])] = int(note[2])
        for offset, message in self._all(HALF_TOPIC):
            self._half_end = offset + 1
            if offset not in ended:
                born_s = now - max(wall_ms - message.stored_ms, 0) / 1000
                self._begin(message, offset, message.handle, born_s, 0, asked.get(offset, 0))
        self._points.append((self._half_end, self._op_end))
        self._advance()

    def _all(self, topic: str) -> Iterator[tuple[int, StoredMessage]]:
        """Yield the messages of one of the two topics from where it has to be read."""
        least, end = self._remoting.extent(topic, 0)
        at = max(self._remoting.committed(_GROUP, topic, 0), least)
        self._kept = (at, self._kept[1]) if topic == HALF_TOPIC else (self._kept[0], at)
        if topic == HALF_TOPIC:
            self._half_end = at
        else:
            self._op_end = at
        while at < end:
            page = self._remoting.read(topic, 0, at, _PAGE, _PAGE_BYTES)
            if not page:
                return
            for offset, data in page:
                message = _message(data)
                if message is not None:
                    yield offset, message
            at = page[-1][0] + 1


def _message(data: bytes) -> StoredMessage | None:
    try:
        return StoredMessage.read(data)
    except RemoteProtocolError as error:
        _log.error("a message about transactions is passed over: %s", error)
        return None
