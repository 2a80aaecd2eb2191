"""Pulls that a server loop leaves to the thread: those with a filter of SQL, and of groups that may not all they want.

A pull that finds nothing is given back to the listener, and comes again when its queue has got a message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.offsets import Offsets
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.sql import SqlError, read_filter
from dataproxy.hub.rocketmq.topics.remoting import Answer, Remoting, Request
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.wire.rocketmq.bodies import MessageModel, Subscription
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import Pull, Pulled, header_fields
from dataproxy.wire.rocketmq.messages import StoredMessage

__all__ = ["Matches", "Pulls", "check_expression", "matcher", "read_message"]

_COMMIT, _SUSPEND, _SUBSCRIPTION = 1, 2, 4
_ONE_WAY: Final = 2
_MESSAGES_MOST: Final = 32
_BYTES_MOST: Final = 256 << 10
_LOOKED_AT: Final = 800  # messages in one pull, matching or not
_PAGE: Final = 100
_READABLE: Final = 4
_HOLD_MS: Final = 30_000
_US: Final = 1_000_000
_MOST_HELD: Final = 1024  # of one connection, as many as a server loop lets wait

Matches = Callable[[StoredMessage], bool]  #: tells whether a group wants a message
_read_filter = lru_cache(1024)(read_filter)


class Pulls:
    """Code 11 as far as it comes here.  One thread."""

    def __init__(self, remoting: Remoting, topics: Topics, registry: Registry, offsets: Offsets) -> None:
        self._remoting, self._topics, self._registry, self._offsets = remoting, topics, registry, offsets
        self._held: dict[int, set[int]] = {}  # by connection: the numbers of pulls that wait

    def pull(self, request: Request, header: Pull) -> Answer | None:
        """Answer with messages, or let the pull wait.  Raises RefusedError."""
        call = request.call
        again = self._take(call.connection, call.opaque)
        self._check(header)
        matches = self._matches(call.connection, header)
        if header.sys_flag & _COMMIT and not again and header.commit_offset >= 0:
            self._offsets.commit_pulled(call.connection, header, request.now)
        code, following, bodies, (least, end) = self._read(header, matches, call.local)
        may_wait = header.sys_flag & _SUSPEND and not call.flag & _ONE_WAY
        wait_ms = min(header.suspend_timeout_millis, _HOLD_MS)
        held = self._held.get(call.connection, ())
        if code == Code.PULL_NOT_FOUND and may_wait and not again and wait_ms > 0 and len(held) < _MOST_HELD:
            self._held.setdefault(call.connection, set()).add(call.opaque)
            until_us = int(request.now * _US) + wait_ms * 1000
            call.wait(header.topic, header.queue_id, header.queue_offset, until_us)
            return None
        fields = header_fields(Pulled(0, following, least, end))
        return Answer(code, fields, code.name, b"".join(bodies))

    def closed(self, connection: int) -> None:
        """Forget the pulls of a connection that has ended."""
        self._held.pop(connection, None)

    def _take(self, connection: int, opaque: int) -> bool:
        """Tell whether a pull has waited; it does not a second time."""
        held = self._held.get(connection)
        if held is None or opaque not in held:
            return False
        held.remove(opaque)
        if not held:
            del self._held[connection]
        return True

    def _check(self, header: Pull) -> None:
        group = header.consumer_group
        config = self._registry.configs.get(group)
        if config is None:
            raise RefusedError(Code.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
        if not config.consume_enable:
            raise RefusedError(Code.NO_PERMISSION, f"subscription group no permission, {group}")
        topic = self._topics.find(header.topic)
        if topic is None:
            raise RefusedError(Code.TOPIC_NOT_EXIST, f"topic[{header.topic[:127]}] not exist, apply first please!")
        if not topic.perm & _READABLE:
            raise RefusedError(Code.NO_PERMISSION, f"the topic[{header.topic}] pulling message is forbidden")
        if not 0 <= header.queue_id < topic.reads:
            text = f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] has {topic.reads} queues to read"
            raise RefusedError(Code.SYSTEM_ERROR, text)
        if not config.consume_broadcast_enable and self._broadcasts(group):
            raise RefusedError(Code.NO_PERMISSION, f"the consumer group[{group}] can not consume by broadcast way")

    def _broadcasts(self, group: str) -> bool:
        try:
            return self._registry.consumer_connections(group).message_model is MessageModel.BROADCASTING
        except RefusedError:
            return False

    def _matches(self, connection: int, header: Pull) -> Matches:
        if header.sys_flag & _SUBSCRIPTION:
            expression, kind = header.subscription, header.expression_type
        else:
            found: Subscription = self._registry.subscription(
                connection, header.consumer_group, header.topic, header.sub_version
            )
            expression, kind = found.sub_string, found.expression_type or ""
        return matcher(expression, kind)

    def _read(self, header: Pull, matches: Matches, local: str) -> tuple[Code, int, list[bytes], tuple[int, int]]:
        """Return code, the offset to go on at, the messages, and what of the queue is there."""
        least, end = extent = self._remoting.extent(header.topic, header.queue_id)
        at = header.queue_offset
        if at < least or at > end:
            return Code.PULL_OFFSET_MOVED, min(max(at, least), end) if end > least else 0, [], extent
        if at == end:
            return Code.PULL_NOT_FOUND, at, [], extent
        most = min(max(header.max_msg_nums, 1), _MESSAGES_MOST)
        bodies: list[bytes] = []
        size, looked = 0, 0
        while at < end and looked < _LOOKED_AT and len(bodies) < most:
            page = self._remoting.read(header.topic, header.queue_id, at, _PAGE, 4 * _BYTES_MOST, local)
            if not page:
                break
            for offset, data in page:
                if matches(read_message(data)):
                    if bodies and size + len(data) > _BYTES_MOST:
                        return Code.SUCCESS, offset, bodies, extent
                    bodies.append(data)
                    size += len(data)
                at, looked = offset + 1, looked + 1
                if len(bodies) >= most:
                    break
        return Code.SUCCESS if bodies else Code.PULL_RETRY_IMMEDIATELY, at, bodies, extent


def check_expression(expression: str, kind: str) -> None:
    """Raise RefusedError for an expression that no pull could have."""
    matcher(expression, kind)


def read_message(data: bytes) -> StoredMessage:
    """Return a stored message.  Raises RefusedError."""
    try:
        return StoredMessage.read(data)
    except RemoteProtocolError as error:
        raise RefusedError(Code.SYSTEM_ERROR, f"the message is damaged: {error}") from None


def matcher(expression: str, kind: str) -> Matches:
    """Return the filter of an expression.  Raises RefusedError for one that no pull could have."""
    kind = kind or "TAG"
    if kind == "SQL92":
        try:
            wanted = _read_filter(expression)
        except SqlError as error:
            raise RefusedError(Code.SUBSCRIPTION_PARSE_FAILED, f"the filter {expression[:200]!r}: {error}") from None
        return lambda message: wanted.matches(message.properties)
    if kind != "TAG":
        raise RefusedError(Code.SYSTEM_ERROR, f"filters of the type {kind[:40]!r} are not supported; TAG and SQL92 are")
    tags = {one.strip() for one in expression.split("||")} - {""}
    if not tags or "*" in tags:
        return lambda message: True
    return lambda message: message.properties.get("TAGS", "") in tags
