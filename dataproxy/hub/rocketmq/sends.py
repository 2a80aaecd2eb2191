"""Sends that need a decision: topics that do not exist yet, messages for later, half messages, retries.

What goes to a topic that exists, and is plain, is stored by the server loop and never comes here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.delays import Delays
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.remoting import Appends, Place, Request
from dataproxy.hub.rocketmq.topics.table import CLUSTER, Topic, Topics
from dataproxy.hub.rocketmq.transactions import Transactions
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import read_header
from dataproxy.wire.rocketmq.messages import (
    BATCH,
    TRANSACTION,
    Host,
    SendHeader,
    StoredMessage,
    read_batch,
    read_properties,
    send_fields,
)  # fmt: skip
from dataproxy.wire.rocketmq.names import RETRIES, MessageId

__all__ = ["BODY_MOST", "PROPERTIES_MOST", "Sends", "host_of"]

BODY_MOST: Final = 4 << 20  #: bytes of a message
PROPERTIES_MOST: Final = 32767  #: bytes of all of a message
_OWN_LIMIT: Final = 121  # the version from which on a client's limit of retries counts
_REFUSED: Final = {1: "the store could not take it", 2: "the disk is full", 3: "the store takes no further names"}


class Sends:
    """Codes 10, 310 and 320 as far as they come here.  One thread."""

    def __init__(
        self, appends: Appends, topics: Topics, registry: Registry, delays: Delays, transactions: Transactions,
        pick: Callable[[int], int] = random.randrange,
    ) -> None:  # fmt: skip
        self._appends, self._topics, self._registry, self._pick = appends, topics, registry, pick
        self._delays, self._transactions = delays, transactions

    def send(self, request: Request, _: None) -> None:
        """Store what a producer sends, and answer when it is stored.  Raises RefusedError, RemoteProtocolError."""
        call = request.call
        header = read_header(SendHeader, send_fields(call.code, call.fields))
        topic = self._topics.for_send(header.topic, header.default_topic, header.default_topic_queue_nums, request.now)
        queue = self._queue(header, topic)
        properties = read_properties(header.properties)
        if len(header.properties.encode("utf-8", "surrogateescape")) > PROPERTIES_MOST:
            raise RefusedError(Code.MESSAGE_ILLEGAL, f"the properties have more than {PROPERTIES_MOST} bytes")
        if "REPLY_TO_CLIENT" in properties:
            properties["CLUSTER"] = CLUSTER  # the reply goes to this cluster's topic of replies
        message = StoredMessage(
            header.topic, queue, call.body, properties, header.flag, header.sys_flag & ~TRANSACTION,
            header.born_timestamp, host_of(call.peer), request.wall_ms, host_of(call.local), header.reconsume_times,
        )  # fmt: skip
        if call.code == BATCH or header.batch:
            try:
                items = [replace(message, flag=flag, body=body, properties=found | properties, sys_flag=0)
                         for flag, body, found in read_batch(call.body)]  # fmt: skip
            except RemoteProtocolError as error:
                raise RefusedError(Code.MESSAGE_ILLEGAL, str(error)) from None
            self._put(request, header, items)
            return
        message.properties.pop("WAIT", None)  # type: ignore[attr-defined]
        message = self._or_dead(header, message, request)
        if message.properties.get("TRAN_MSG", "").lower() == "true":
            if not message.properties.get("PGROUP"):
                raise RefusedError(Code.MESSAGE_ILLEGAL, "a message of a transaction needs the property PGROUP")
            self._registry.checks.check_room()
            self._put(request, header, [self._transactions.prepared(message)])
        else:
            self._put(request, header, [self._delays.placed(message)])

    def _queue(self, header: SendHeader, topic: Topic) -> int:
        if header.queue_id < 0:
            return self._pick(topic.writes)
        if header.queue_id >= max(topic.reads, topic.writes):
            text = f"request queueId[{header.queue_id}] is illegal, {header.topic} has {topic.writes} queues to write"
            raise RefusedError(Code.SYSTEM_ERROR, text)
        return header.queue_id

    def _or_dead(self, header: SendHeader, message: StoredMessage, request: Request) -> StoredMessage:
        """Return a message that was tried too often as one of the dead letters of its group."""
        if not message.topic.startswith(RETRIES):
            return message
        group = message.topic[len(RETRIES) :]
        config = self._registry.configs.get(group)
        if config is None:
            text = f"subscription group not exist, {group} {Code.SUBSCRIPTION_GROUP_NOT_EXIST.name}"
            raise RefusedError(Code.SUBSCRIPTION_GROUP_NOT_EXIST, text)
        most = config.retry_max_times
        if request.call.version >= _OWN_LIMIT and header.max_reconsume_times >= 0:
            most = header.max_reconsume_times
        if message.reconsume_times < most:
            return message
        self._topics.dead_letters(group, request.now)
        properties = {name: value for name, value in message.properties.items() if name != "DELAY"}
        return replace(message, topic=f"%DLQ%{group}", queue=0, properties=properties)

    def _put(self, request: Request, header: SendHeader, messages: Sequence[StoredMessage]) -> None:
        if not messages:
            raise RefusedError(Code.MESSAGE_ILLEGAL, "the batch has no message")
        for one in messages:
            if len(one.body) > BODY_MOST:
                text = f"a body of {len(one.body)} bytes; {BODY_MOST} are the most"
                raise RefusedError(Code.MESSAGE_ILLEGAL, text)

        def done(places: list[Place]) -> None:
            self._answer(request, header, messages, places)

        self._appends.put([(one.topic, one.queue, _written(one)) for one in messages], done)

    def _answer(
        self, request: Request, header: SendHeader, messages: Sequence[StoredMessage], places: Sequence[Place]
    ) -> None:
        wrong = next((one.status for one in places if one.status), 0)
        for message, place in zip(messages, places, strict=True):
            if place.status == 0:
                self._delays.stored(message, request.now, request.wall_ms)
                self._transactions.stored(message, place, request)
        if wrong:
            request.call.answer(Code.SYSTEM_ERROR, {}, f"{_REFUSED.get(wrong, 'the store failed')}; send it again")
            return
        host = messages[0].store
        fields = {
            "msgId": ",".join(str(MessageId(*host, place.handle)) for place in places),
            "queueId": str(header.queue_id if header.queue_id >= 0 else messages[0].queue),
            "queueOffset": str(places[0].offset),
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
        }
        transaction = messages[0].properties.get("UNIQ_KEY", "").encode("utf-8", "surrogateescape")
        if transaction:
            fields["transactionId"] = transaction.decode("utf-8", "replace")  # what a batch has need be no text
        request.call.answer(Code.SUCCESS, fields)


def host_of(address: str) -> Host:
    """Return an address, host:port, in its parts."""
    host, _, port = address.rpartition(":")
    return Host(host.strip("[]"), int(port)) if port else Host()


def _written(message: StoredMessage) -> bytes:
    try:
        return message.write()
    except ValueError as error:
        raise RefusedError(Code.MESSAGE_ILLEGAL, str(error)) from None
