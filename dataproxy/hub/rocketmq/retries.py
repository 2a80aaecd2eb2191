"""Messages that a consumer wants again later (36), and those that it has wanted too often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.delays import LEVELS_MS, Delays
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.remoting import Appends, Place, Request
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import SendBack
from dataproxy.wire.rocketmq.messages import TRANSACTION, StoredMessage
from dataproxy.wire.rocketmq.names import dead_letter_topic, retry_topic

__all__ = ["Retries"]

_OWN_LIMIT: Final = 121  # the version from which on a client's limit of retries counts
_FIRST_LEVEL: Final = 3


class Retries:
    """Code 36.  One thread; ``find`` returns the stored message of a physical offset."""

    def __init__(
        self,
        find: Callable[[int, str], bytes | None],
        appends: Appends,
        topics: Topics,
        registry: Registry,
        delays: Delays,
    ) -> None:
        self._find, self._appends, self._topics, self._registry = find, appends, topics, registry
        self._delays = delays

    def send_back(self, request: Request, header: SendBack) -> None:
        """Store a copy of the message for later, and answer when it is stored.  Raises RefusedError."""
        config = self._registry.configs.get(header.group)
        if config is None:
            text = f"subscription group not exist, {header.group[:127]}"
            raise RefusedError(Code.SUBSCRIPTION_GROUP_NOT_EXIST, text)
        if config.retry_queue_nums <= 0:
            request.call.answer(Code.SUCCESS, {})
            return
        message = self._message(header.offset, request.call.local)
        most = config.retry_max_times
        if request.call.version >= _OWN_LIMIT and header.max_reconsume_times >= 0:
            most = header.max_reconsume_times
        copy = self._copy(header, message)
        if message.reconsume_times >= most or header.delay_level < 0:
            self._topics.dead_letters(header.group, request.now)
            copy = replace(copy, topic=dead_letter_topic(header.group))
        else:
            self._topics.retry(header.group, config.retry_queue_nums, request.now)
            level = min(header.delay_level or _FIRST_LEVEL + message.reconsume_times, len(LEVELS_MS))
            properties = {**copy.properties, "DELAY": str(level)}
            copy = self._delays.placed(replace(copy, properties=properties))
        self._put(request, copy)

    def _put(self, request: Request, copy: StoredMessage) -> None:
        def done(places: list[Place]) -> None:
            if places[0].status:
                request.call.answer(Code.SYSTEM_ERROR, {}, "the store could not take it; send it again")
                return
            self._delays.stored(copy, request.now, request.wall_ms)
            request.call.answer(Code.SUCCESS, {})

        self._appends.put([(copy.topic, copy.queue, copy.write())], done)

    def _message(self, handle: int, local: str) -> StoredMessage:
        found = self._find(handle, local)
        if found is None:
            raise RefusedError(Code.SYSTEM_ERROR, f"look message by offset failed, {handle}")
        try:
            return StoredMessage.read(found)
        except RemoteProtocolError as error:
            raise RefusedError(Code.SYSTEM_ERROR, f"the message at {handle} is damaged: {error}") from None

    @staticmethod
    def _copy(header: SendBack, message: StoredMessage) -> StoredMessage:
        """Return the message as it comes again: a consumer shows it under its first topic."""
        properties = {name: value for name, value in message.properties.items() if name != "DELAY"}
        properties.setdefault("RETRY_TOPIC", message.topic)
        first = properties.get("ORIGIN_MESSAGE_ID") or header.origin_msg_id or properties.get("UNIQ_KEY", "")
        if first:
            properties["ORIGIN_MESSAGE_ID"] = first
        return replace(
            message, topic=retry_topic(header.group), queue=0, properties=properties,
            sys_flag=message.sys_flag & ~TRANSACTION, prepared_offset=0, reconsume_times=message.reconsume_times + 1,
        )  # fmt: skip
