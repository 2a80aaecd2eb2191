"""A producer of RocketMQ."""

from __future__ import annotations

import itertools
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from dataproxy.errors import (
    DataProxyError,
    DeliveryFailed,
    DiscoveryError,
    FlushTimeout,
    InvalidMessageError,
    UndeliveredError,
)
from dataproxy.problems import shown
from dataproxy.process.threads import insist
from dataproxy.rocketmq.arguments import TlsOptions, check_count, check_limit, limit, uncopied
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.sending.deliveries import Delivery
from dataproxy.rocketmq.sending.dispatch import Dispatcher, Limits, Report
from dataproxy.rocketmq.sending.messages import (
    Encoded,
    Message,
    batch_body,
    check_batch,
    check_group,
    check_topic,
    encode,
    encode_batch,
    encode_message,
    item_size,
    make_ids,
)
from dataproxy.wire.rocketmq.codes import Code

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

    from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Producer"]

_CLOSE_S: Final = 10.0


class Producer:
    """Send messages to topics of RocketMQ 4.x.  Any thread.

    ``target``: name servers, ``rocketmq://names1:9876,names2:9876``.  ``group``: the producer's, which a broker
    knows it by.  Each accepted message has one result within ``delivery_timeout`` seconds: it is tried again,
    where it can be at another broker, as long as that can help.  ``buffer_bytes`` bounds the memory of messages
    without a result (body, properties, and 512 bytes each); ``send`` waits up to ``max_block`` seconds for room.
    Bodies of ``compress_above`` bytes and more travel compressed by zlib; 0: none do.  With the target
    ``rocketmqs://...`` connections are encrypted: ``tls_ca`` has the authorities (empty: the system's),
    ``tls_certificate``, ``tls_key`` and ``tls_key_password`` are the producer's own, ``tls_verify`` is ``full``,
    ``chain`` (any host) or ``none``.

    Raises ConfigError, InvalidMessageError (code BAD_NAME).  Nothing is connected before the first message.
    """

    def __init__(
        self,
        target: str,
        group: str = "DEFAULT_PRODUCER",
        *,
        delivery_timeout: float | timedelta = 30.0,
        request_timeout: float | timedelta = 3.0,
        connect_timeout: float | timedelta = 3.0,
        buffer_bytes: int = 64 << 20,
        max_block: float | timedelta = 60.0,
        in_flight: int = 1024,
        compress_above: int = 4096,
        instance: str = "",
        tls_ca: str = "",
        tls_certificate: str = "",
        tls_key: str = "",
        tls_key_password: str = "",
        tls_verify: str = "full",
    ) -> None:
        self._group = check_group(group)
        limits = Limits(
            check_limit("delivery_timeout", delivery_timeout), check_limit("request_timeout", request_timeout),
            check_count("buffer_bytes", buffer_bytes), check_limit("max_block", max_block, zero=True),
            check_count("in_flight", in_flight),
        )  # fmt: skip
        self._compress_above = check_count("compress_above", compress_above, 0)
        self._client = Client(
            target, instance=instance, connect_s=check_limit("connect_timeout", connect_timeout),
            call_s=limits.request_timeout, stream=False, at_exit=self._close_at_exit,
            tls=TlsOptions(tls_ca, tls_certificate, tls_key, tls_key_password, tls_verify),
        )  # fmt: skip
        with self._client.made_whole():
            self._client.producers = (self._group,)
            self._limits = limits
            self._dispatcher = Dispatcher(self._client, self._group.encode(), limits)
            self._ids = iter(make_ids())
            self._topics: set[str] = set()  # names that were checked
            self._final: Report | None = None

    def send(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        *,
        tag: str = "",
        keys: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        key: str | bytes | None = None,
        queue: int | None = None,
        flag: int = 0,
    ) -> Delivery:
        """Accept a message and return its Delivery, at once unless the buffer is full.

        ``tag`` and ``properties`` are what consumers choose by, ``keys`` what it can be looked up by.  ``delay_level``:
        1 to 18, see `DELAY_LEVELS`.  Messages with the same ``key`` go to the same queue; ``queue`` is the number of
        one.  Brokers work on several messages at once, so who needs an order waits for each result before he sends the
        next message.  Raises InvalidMessageError, ConfigError (``queue`` is no number), BufferFullError, ClosedError,
        ForkedError.  A queue that is not there is the result's error (code ``NO_QUEUE``).
        """
        given = {} if properties is None else properties
        content = encode(next(self._ids), body, tag, keys, given, delay_level, flag, self._compress_above)
        return self._accept(topic, content, 1, key, queue)

    def send_batch(self, topic: str, messages: Iterable[Message | bytes], *, queue: int | None = None) -> Delivery:
        """Accept messages that are stored together, in one queue, and return their one Delivery.

        All of them together have at most 4 MiB; none has a delay, and none is compressed.  Each is copied as it comes,
        so that an iterator may use a buffer again.  Raises as `send`.
        """
        items: list[Encoded] = []
        first: Message | None = None
        size = 0
        for one in _several(messages):
            message = one if isinstance(one, Message) else Message(one)
            if type(message.delay_level) is not int or message.delay_level:
                raise InvalidMessageError("a message of a batch has a delay_level", hint="send it by itself")
            first = message if first is None else first
            items.append(encode_message(message, next(self._ids), 0))
            size = check_batch(len(items), size + item_size(items[-1]))
        if first is None:
            raise InvalidMessageError("a batch has 0 messages", hint="give one at least")
        whole = encode_batch(items[0].id, batch_body(items))
        return self._accept(topic, whole, len(items), first.key, queue, batch=True)

    def send_oneway(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        *,
        tag: str = "",
        keys: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        key: str | bytes | None = None,
        queue: int | None = None,
        flag: int = 0,
    ) -> None:
        """Write a message to a broker, which does not answer: whether it is stored is not known.

        Arguments are as of `send`.  Waits for the route and the connection where there is none yet.  Raises
        DiscoveryError, TransportError, DeliveryFailed (`NO_QUEUE`), and as `send`.
        """
        if queue is not None:
            check_count("queue", queue, 0)
        message = Message(body, tag, keys, {} if properties is None else properties, delay_level, key, flag)
        content = encode_message(message, next(self._ids), self._compress_above)
        place = self._place(check_topic(topic), message.key, queue)
        address = self._client.routes.address(place.broker_name)
        if address is None:
            raise DataProxyError(f"broker {place.broker_name} has no address")
        link = self._client.connections.open(address)
        link.send(
            None, self._group.encode(), topic.encode(), place.queue_id, content.properties, content.body,
            sys_flag=content.sys_flag, born_ms=time.time_ns() // 1_000_000, flag=content.flag, default_queues=4,
            batch=False, attempts=0, most_attempts=-1,
        )  # fmt: skip
        self._client.connections.push(link)

    def queues(self, topic: str) -> tuple[Queue, ...]:
        """Return the queues of a topic that take messages.  Raises DiscoveryError; DataProxyError if there are none."""
        self._client.check()
        route = self._client.routes.ask(check_topic(topic), template=True)
        return () if route is None else route.writable

    def create_topic(self, topic: str, queues: int = 4) -> None:
        """Make a topic at all brokers that are known, or change its number of queues.

        Raises ConfigError: ``queues`` is no number from 1 on; DiscoveryError: no broker is known; DataProxyError.
        """
        from dataproxy.rocketmq.network.connections import answer_fault
        from dataproxy.wire.rocketmq.headers import CreateTopic, header_fields
        from dataproxy.wire.rocketmq.names import TEMPLATE

        self._client.check()
        check_count("queues", queues)
        fields = header_fields(CreateTopic(check_topic(topic), TEMPLATE, queues, queues, 6, "SINGLE_TAG"))
        if not self._client.routes.brokers():
            self._client.learn_brokers()
        masters = [places[0] for places in self._client.routes.brokers().values() if 0 in places]
        if not masters:
            raise DiscoveryError(
                f"no broker is known that could have topic {topic!r}",
                hint="name servers know none, or brokers make no topics by themselves: ask for queues of a topic first",
            )
        for address in masters:
            answer = self._client.connections.call(address, Code.UPDATE_AND_CREATE_TOPIC, fields)
            if answer.code:
                raise answer_fault(address, f"topic {topic!r}", answer)

    def flush(self, timeout: float | timedelta | None = None) -> Report:
        """Wait until each message accepted before this call has its result, and return the counts.

        What other threads send meanwhile is not waited for, and is in the counts.  ``timeout`` in seconds or a
        timedelta, None for ``delivery_timeout`` and a second; infinity is no limit.  Raises FlushTimeout; ForkedError,
        ClosedError; DataProxyError: the client has failed.
        """
        patience = self._limits.delivery_timeout + 1.0 if timeout is None else limit(timeout)
        self._client.check()
        self._dispatcher.check_may_wait()
        left = self._dispatcher.wait_settled(patience)
        self._client.connections.check_failure()
        report = self.report()
        if left:
            raise FlushTimeout(f"{left} messages have no result after {patience:g} s", report=report)
        return report

    def report(self) -> Report:
        """Return the counts of messages by outcome; after `close` the final ones.

        Raises ForkedError in a forked child.
        """
        return self._final or self._dispatcher.report()

    @property
    def trouble(self) -> str:
        """Return why it can send nothing any more although it is open; empty, if it can."""
        return self._client.trouble

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._final is not None

    def close(self, timeout: float | timedelta = _CLOSE_S) -> Report:
        """Deliver what was accepted, end the threads, and return the final counts.

        Messages without a result after ``timeout`` seconds fail with code CLOSED; infinity is no limit.  A second call
        returns the same counts.  Ctrl-C ends the wait, not the rest.  In a signal handler that interrupted a `send` of
        its own thread, that message fails so at once, unless it was written already.  Raises LocalProtocolError (code
        IN_CALLBACK) in a callback of a Delivery, on whose thread all results come: nothing is closed then.
        """
        patience = limit(timeout)
        if self._final is not None:
            return self._final
        if self._client.inherited:
            self._final = Report(0, 0, 0, 0, 0, 0, 0, 0)
            self._client.close()
            return self._final
        self._dispatcher.check_may_wait()
        try:
            self._dispatcher.shut()
            self._dispatcher.wait_settled(patience)
        finally:
            insist(self._end_all)
        return self.report()

    def _end_all(self) -> None:
        self._dispatcher.give_up()
        self._client.unregister()
        self._client.close()
        self._final = self._dispatcher.report()  # a second `close` may go on where a signal handler has ended the first

    def __reduce__(self) -> Any:
        raise uncopied(self)

    def __enter__(self) -> Self:
        self._client.check_unclosed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; raises UndeliveredError if not everything was delivered, unless the block has raised."""
        report = self.close()
        if kind is None and report.delivered < report.accepted:
            raise UndeliveredError(report)

    def _close_at_exit(self) -> None:
        self.close()

    def _accept(
        self, topic: str, content: Encoded, count: int, key: str | bytes | None, queue: int | None, *,
        batch: bool = False,
    ) -> Delivery:  # fmt: skip
        if type(topic) is not str or topic not in self._topics:
            topic = check_topic(topic)
            self._topics.add(topic)
        delivery = Delivery(topic, content, count, self._dispatcher)
        if batch:
            delivery._batch = True
        if key is not None:
            delivery._bucket = _bucket(key)
        if queue is not None:
            delivery._fixed = check_count("queue", queue, 0)
        self._dispatcher.accept(delivery)
        return delivery

    def _place(self, topic: str, key: str | bytes | None, queue: int | None) -> Queue:
        """Return a queue, and wait for the route if it is not known.  Raises DiscoveryError, DeliveryFailed."""
        self._client.check()
        route = self._client.routes.known(topic) or self._client.routes.ask(topic, template=True)
        found = [] if route is None else [one for one in route.writable if queue in (None, one.queue_id)]
        if not found:
            text = f"topic {topic!r} has no {'queue' if queue is None else f'queue {shown(queue)}'} that takes messages"
            raise DeliveryFailed(text, code="NO_QUEUE", details={"queue": queue})
        return found[(next(_turns) if key is None else _bucket(key)) % len(found)]


def _several(messages: Iterable[Message | bytes]) -> Iterator[Message | bytes]:
    """Return what is in a batch.  Raises InvalidMessageError: it is one message, or nothing that has messages."""
    try:
        if not isinstance(messages, (Message, str, bytes, bytearray, memoryview, Mapping)):
            return iter(messages)
    except (TypeError, ValueError):  # a class, an array without a dimension, a closed file
        pass
    raise InvalidMessageError(
        f"messages {shown(messages)} are no batch", hint="give a list of bytes or Message; `send` takes one message"
    )


_turns = itertools.count()


def _bucket(key: str | bytes) -> int:
    if not isinstance(key, (str, bytes)):
        raise InvalidMessageError(f"key {shown(key)} is neither text nor bytes")
    return zlib.crc32(key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key)
