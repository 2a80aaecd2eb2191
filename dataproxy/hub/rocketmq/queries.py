"""Messages by their key (12).  The store has no index of keys: a query looks through the messages of its time.

It does so from the newest message on, a piece at a time between other calls, so that nobody waits for it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from dataproxy.errors import RemoteProtocolError, StoreError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.offsets import StoredOffsets
from dataproxy.hub.rocketmq.topics.remoting import Remoting, Request
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import Queried, QueryMessage, header_fields
from dataproxy.wire.rocketmq.messages import StoredMessage

__all__ = ["Queries"]

_MOST: Final = 64  # messages of an answer, as RocketMQ's brokers give
_MOST_UNIQUE: Final = 32  # the same, of one id
_ANSWER_BYTES: Final = 8 << 20
_PAGE: Final = 256  # messages
_PAGE_BYTES: Final = 1 << 20
_TURN: Final = 4  # pieces, before calls have their turn
_LIMIT_S: Final = 10.0  # of a query; a client of Java waits for 18 s
_OPEN: Final = 64
_OF_ONE: Final = 8  # connection
_ONE_WAY: Final = 2
_NEVER: Final = float("inf")
_log: Final = logger("hub.rocketmq")


@dataclass(slots=True)
class _Part:
    """A queue of a query: what is looked at next ends before ``at``, and of that page ``begin`` to ``page``."""

    queue: int
    first: int = -1  # the oldest message of the time; -1: nobody has looked yet
    at: int = 0
    page: int = 0  # where the page begins ...
    begin: int = 0  # ... and from where on it is not read yet
    newest_ms: float = _NEVER  # no message before the page was stored later ...
    page_ms: float = _NEVER  # ... and none before its end than this


@dataclass(slots=True)
class _Query:
    request: Request
    header: QueryMessage
    ends_at: float
    most: int
    is_unique: bool
    parts: deque[_Part]
    found: list[tuple[int, bytes]] = field(default_factory=list)  # with their times
    size: int = 0
    looked: int = 0
    is_cut: bool = False  # an answer has no room for a message that was found

    @property
    def has_newest(self) -> bool:
        """Tell whether no message that was not looked at belongs into the answer."""
        if len(self.found) < self.most:
            return not self.parts
        return all(one.newest_ms <= self.found[self.most - 1][0] for one in self.parts)

    def trim(self) -> None:
        """Put what was found in order, and forget what an answer has no room for."""
        self.found.sort(key=lambda one: -one[0])
        del self.found[self.most :]
        self.size = sum(len(data) for _, data in self.found)


class Queries:
    """Code 12.  One thread; times are seconds of a monotonic clock."""

    def __init__(self, remoting: Remoting, topics: Topics, stored: StoredOffsets) -> None:
        self._remoting, self._topics, self._stored = remoting, topics, stored
        self._open: deque[_Query] = deque()

    def query(self, request: Request, header: QueryMessage) -> None:
        """Begin to look for messages; `tick` answers.  Raises RefusedError."""
        topic = self._topics.find(header.topic)
        if topic is None:
            raise RefusedError(Code.TOPIC_NOT_EXIST, f"topic[{header.topic[:127]}] not exist, apply first please!")
        if request.call.flag & _ONE_WAY:
            return
        connection = request.call.connection
        own = sum(one.request.call.connection == connection for one in self._open)
        if len(self._open) >= _OPEN or own >= _OF_ONE:
            raise RefusedError(Code.SYSTEM_BUSY, f"{len(self._open)} queries are being worked on; ask again later")
        is_unique = request.call.fields.get("_UNIQUE_KEY_QUERY", "").lower() == "true"
        most = _MOST_UNIQUE if is_unique else min(max(header.max_num, 1), _MOST)
        parts = deque(_Part(i) for i in range(topic.reads))
        self._open.append(_Query(request, header, request.now + _LIMIT_S, most, is_unique, parts))

    def closed(self, connection: int) -> None:
        """Give up the queries of a connection that has ended."""
        self._open = deque(one for one in self._open if one.request.call.connection != connection)

    def tick(self, now: float) -> None:
        """Look at some messages, and answer the queries that are done; each has its turn."""
        for _ in range(_TURN):
            if not self._open:
                return
            query = self._open.popleft()
            try:
                is_done = now >= query.ends_at or not query.parts or self._go_on(query)
            except StoreError as error:
                query.request.call.answer(Code.SYSTEM_ERROR, {}, f"the store could not be read: {error}")
                continue
            if is_done:
                self._answer(query)
            else:
                self._open.append(query)

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next: at once, or never."""
        return 0.0 if self._open else _NEVER

    def __len__(self) -> int:
        return len(self._open)

    def _go_on(self, query: _Query) -> bool:
        """Look at a piece of one queue; True: there is nothing more to look for."""
        part = query.parts[0]
        query.parts.rotate(-1)
        if part.first < 0:
            self._bound(query, part)
        elif part.begin < part.at:
            self._look(query, part)
        if part.begin >= part.at:  # the page is read
            part.at, part.newest_ms = part.page, part.page_ms
            if part.at <= part.first:
                query.parts.remove(part)
            part.page = part.begin = max(part.at - _PAGE, part.first)
            query.trim()
            return query.is_cut or query.has_newest
        return query.is_cut

    def _bound(self, query: _Query, part: _Part) -> None:
        """Find out which messages of a queue are of the time."""
        topic, queue, header = query.header.topic, part.queue, query.header
        least, end = self._remoting.extent(topic, queue)
        part.first = self._stored.at_time(topic, queue, header.begin_timestamp) if least < end else least
        if part.first < end and header.end_timestamp < query.request.wall_ms:
            end = self._stored.at_time(topic, queue, header.end_timestamp + 1)
        part.at = part.page = part.begin = max(end, part.first)

    def _look(self, query: _Query, part: _Part) -> None:
        """Read some messages of a page."""
        topic, queue = query.header.topic, part.queue
        most = min(part.at - part.begin, _PAGE)
        try:
            page = self._remoting.read(topic, queue, part.begin, most, _PAGE_BYTES, query.request.call.local)
        except StoreError:
            _log.warning("the message %d in the queue %d of %r is damaged, and is left out", part.begin, queue, topic)
            part.begin += 1
            return
        key = query.header.key.encode("utf-8", "replace")
        for offset, data in page:
            if offset < part.at and key in data:
                self._keep(query, data)
        if page and part.begin == part.page:
            part.page_ms = _stored_ms(page[0][1], part.newest_ms)
        query.looked += len(page)
        part.begin = max(page[-1][0], part.begin) + 1 if page else part.at

    @staticmethod
    def _keep(query: _Query, data: bytes) -> None:
        """Keep a message if it has the key, and there is room for it in an answer."""
        try:
            message = StoredMessage.read(data)
        except RemoteProtocolError:
            return
        properties, key = message.properties, query.header.key
        has = properties.get("UNIQ_KEY") == key or (
            not query.is_unique and key in properties.get("KEYS", "").split(" ")
        )
        if not has:
            return
        if query.found and query.size + len(data) > _ANSWER_BYTES:
            query.is_cut = True
            return
        query.found.append((message.stored_ms, data))
        query.size += len(data)

    @staticmethod
    def _answer(query: _Query) -> None:
        header, call = query.header, query.request.call
        query.trim()
        is_whole = not query.is_cut and query.has_newest
        remark = "" if is_whole else f"the hub has looked at the newest {query.looked} messages, and not at all of them"
        if not query.found:
            text = f"can not find message, maybe time range not correct: no message has the key {shown(header.key)}"
            remark = "; ".join(one for one in (text, remark) if one)
        body = b"".join(data for _, data in query.found)
        code = Code.SUCCESS if query.found else Code.QUERY_NOT_FOUND
        call.answer(code, header_fields(Queried(query.request.wall_ms, 0)), remark, body)


def _stored_ms(data: bytes, otherwise: float) -> float:
    try:
        return StoredMessage.read(data).stored_ms
    except RemoteProtocolError:
        return otherwise
