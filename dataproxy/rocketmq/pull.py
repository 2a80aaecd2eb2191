"""A consumer that asks for messages when it wants them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Sized
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from dataproxy.errors import ClosedError, DiscoveryError, LocalProtocolError
from dataproxy.problems import shown
from dataproxy.process.changes import Changes
from dataproxy.process.threads import insist
from dataproxy.rocketmq.arguments import TlsOptions, check_begin, check_count, check_limit, check_queue, limit, uncopied
from dataproxy.rocketmq.group.backlog import Chunk
from dataproxy.rocketmq.group.member import Member
from dataproxy.rocketmq.group.offsets import BrokerOffsets, QueueEnds
from dataproxy.rocketmq.group.reader import Bounds, QueueReader
from dataproxy.rocketmq.group.served import serve
from dataproxy.rocketmq.group.shares import subscriptions
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.sending.messages import check_group, check_topic
from dataproxy.wire.rocketmq.queues import Queue

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.wire.rocketmq.bodies import Subscription

__all__ = ["PullConsumer"]

_PULL: Final = 32


class PullConsumer:
    """Give out messages of topics when `poll` is called.  Any thread.

    With ``topics`` it is a member of ``group``, which divides the queues; without, it reads what `assign` names.
    Messages are read ahead, up to ``max_messages`` and ``max_bytes`` of each queue.  `commit` tells the brokers that
    everything that was polled is done; with ``auto_commit`` the next `poll` does, and `close`.  What is not committed
    comes again.  ``begin``: as with `PushConsumer`; ``tls_*``: as with `Producer`.

    Raises ConfigError, InvalidMessageError.
    """

    def __init__(
        self,
        target: str,
        group: str,
        topics: str | Sequence[str] | Mapping[str, str] = (),
        *,
        begin: str | int | datetime = "last",
        auto_commit: bool = False,
        max_messages: int = 1024,
        max_bytes: int = 16 << 20,
        request_timeout: float | timedelta = 3.0,
        connect_timeout: float | timedelta = 3.0,
        instance: str = "",
        tls_ca: str = "",
        tls_certificate: str = "",
        tls_key: str = "",
        tls_key_password: str = "",
        tls_verify: str = "full",
    ) -> None:
        self._group, self._auto_commit = check_group(group), bool(auto_commit)
        bounds = Bounds(check_count("max_messages", max_messages), check_count("max_bytes", max_bytes), _PULL)
        given: object = topics
        chooses = given is None or (isinstance(given, Sized) and not len(given))  # an array knows no truth
        wanted = {} if chooses else subscriptions(topics, time.time_ns() // 1_000_000)
        begin = check_begin(begin)
        self._ready: deque[tuple[QueueReader, Chunk]] = deque()
        self._polled: list[tuple[QueueReader, Chunk]] = []
        self._returned: deque[tuple[QueueReader, Chunk, int]] = deque()  # by iterators, with how many are done
        self._changes = Changes()
        self._choosing = threading.Lock()
        self._over = False
        self._client = Client(
            target, instance=instance, connect_s=check_limit("connect_timeout", connect_timeout),
            call_s=check_limit("request_timeout", request_timeout), stream=True, at_exit=self.close,
            tls=TlsOptions(tls_ca, tls_certificate, tls_key, tls_key_password, tls_verify),
        )  # fmt: skip
        with self._client.made_whole():
            self._client.on_failed = lambda _error: self._wake()
            self._ends = QueueEnds(self._client)

            def make_reader(place: Queue, subscription: Subscription, offset: int) -> QueueReader:
                return QueueReader(
                    self._client, group, place, subscription, offset, bounds=bounds, sink=self, commits=False
                )  # fmt: skip

            self._member = Member(
                self._client, group, wanted, push=False, broadcasting=False, orderly=False, begin=begin,
                offsets=BrokerOffsets(self._client, group), make_reader=make_reader, leave=self._leave,
            )  # fmt: skip
            self._chooses = chooses
            if chooses:
                self._member.choose({})
            serve(self._client, self._member, None, lambda _run: None)
            self._member.start()

    @property
    def client_id(self) -> str:
        """Return the name by which brokers know this consumer."""
        return self._client.id

    @property
    def assignment(self) -> tuple[Queue, ...]:
        """Return the queues that it reads now.  Raises ForkedError."""
        self._client.check_own()
        return tuple(sorted(self._member.readers))

    @property
    def trouble(self) -> str:
        """Return why it has failed, or has no queues, or cannot get messages of them; empty without a known reason.

        So an expression that a broker does not read is here, with what the broker says, until it gives messages.
        """
        return self._client.trouble or self._member.trouble

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._over

    def queues(self, topic: str) -> tuple[Queue, ...]:
        """Return the queues of a topic.  Raises DiscoveryError."""
        self._client.check()
        route = self._client.routes.ask(check_topic(topic))
        return () if route is None else route.readable

    def first_offset(self, queue: Queue) -> int:
        """Return the first offset that a queue has.  Raises DataProxyError."""
        self._client.check()
        return self._ends.first(check_queue(queue))

    def last_offset(self, queue: Queue) -> int:
        """Return the offset behind the last message of a queue.  Raises DataProxyError."""
        self._client.check()
        return self._ends.last(check_queue(queue))

    def offset_at(self, queue: Queue, when: datetime | int) -> int:
        """Return the offset of the first message of a queue stored at a time or later.  Raises DataProxyError."""
        self._client.check()
        check_queue(queue)
        begin = check_begin(when)
        if isinstance(begin, str):
            raise LocalProtocolError(f"{shown(when)} is no time", hint="use first_offset and last_offset")
        return self._ends.at(queue, begin)

    def assign(self, queues: Mapping[Queue, int | None]) -> None:
        """Read these queues and no others, from these offsets; None is the group's own, else ``begin``.

        For a consumer without ``topics``.  Raises LocalProtocolError: they are no queues with offsets; DiscoveryError:
        their topic does not have them; DataProxyError.  Then nothing has changed.
        """
        self._client.check()
        if not self._chooses:
            raise LocalProtocolError("this consumer gets its queues from its group", hint="make one without topics")
        if not isinstance(queues, Mapping):
            raise LocalProtocolError(
                f"queues {shown(queues)} are no mapping", hint="give a dict of queues and offsets; None is the group's"
            )
        queues = dict(queues)  # brokers are asked below, and the caller may change his meanwhile
        for queue, offset in queues.items():
            if type(queue) is not Queue or not (offset is None or (type(offset) is int and offset >= 0)):
                raise LocalProtocolError(f"{shown(queue)}: {shown(offset)} is not a queue with an offset")
            self._check_there(queue)
        with self._choosing:
            self._member.choose(queues)

    def _check_there(self, queue: Queue) -> None:
        """Raise DiscoveryError for a queue that its topic does not have."""
        route = self._client.routes.known(check_topic(queue.topic))
        if route is None or queue not in route.readable:
            route = self._client.routes.ask(queue.topic)
        there = () if route is None else route.readable
        if queue not in there:
            brokers = ", ".join(sorted({one.broker_name for one in there}))
            raise DiscoveryError(
                f"topic {queue.topic!r} has no queue {queue.queue_id} at broker {queue.broker_name!r} that can be read",
                hint=f"it has {len(there)}, at {brokers}: `queues` names them" if there else "is the topic there?",
                details={"topic": queue.topic, "broker": queue.broker_name, "queue": queue.queue_id},
            )  # fmt: skip

    def seek(self, queue: Queue, offset: int) -> None:
        """Go on at another place of a queue that is read now.  Raises LocalProtocolError."""
        self._client.check()
        check_count("offset", offset, 0)
        reader = self._member.readers.get(check_queue(queue))
        if reader is None:
            raise LocalProtocolError(f"{queue.topic} {queue.broker_name}/{queue.queue_id} is not read by this consumer")
        with self._changes.lock:
            reader.seek(offset)  # first: if a signal handler ends it, everything is as before
            self._forget(lambda other: other is reader)

    def poll(self, timeout: float | timedelta | None = None) -> list[ReceivedMessage]:
        """Return messages of one queue, up to 32, as soon as there are some; an empty list after ``timeout``.

        ``timeout`` in seconds or a timedelta, None or infinity: wait for ever.  Ctrl-C interrupts the wait.  Raises
        ClosedError, ForkedError; DataProxyError: the client has failed.
        """
        taken = self._await(math.inf if timeout is None else timeout, polled=True)
        return [] if taken is None else taken[1].messages

    def _await(self, timeout: float | timedelta, *, polled: bool) -> tuple[QueueReader, Chunk] | None:
        """Return the next messages, None: none came within the time; ``polled``: `commit` counts them as done."""
        self._client.check()
        until = time.monotonic() + limit(timeout)
        if self._auto_commit:
            self.commit()
        found: tuple[QueueReader, Chunk] | None = None
        try:
            while True:
                with self._changes.lock:
                    found = self._next()
                    if found is not None:
                        if polled:
                            reader, chunk = found
                            self._polled.append((reader, chunk._replace(messages=[])))  # bytes are the caller's alone
                        return found
                    left = until - time.monotonic()
                    if self._over:
                        raise ClosedError("the consumer was closed")
                    self._client.check()
                    if left <= 0:
                        return None
                    waiter = self._changes.waiter()
                self._changes.wait(waiter, left)
        except BaseException:  # of a signal handler: it comes behind calls, and the last one is that of the lock
            if found is not None:
                self._return(*found, 0)
            raise

    def _next(self) -> tuple[QueueReader, Chunk] | None:
        self._take_back()
        while self._ready:
            reader, chunk = found = self._ready[0]
            if not reader.dropped and chunk.number == reader.backlog.number:
                reader.hand_out(chunk)
                del self._ready[0]  # no call behind it, for the sake of signal handlers
                return found
            self._ready.popleft()
        return None

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Return messages one by one, for ever; those of each list are committed when its last message was done.

        That is when the next message is asked for.  An iterator that is left in the middle of a list commits what is
        before its last message; this one and those behind it are the next that are given out.  `commit` and
        ``auto_commit`` count nothing of it as done.
        """
        while True:
            taken = self._await(math.inf, polled=False)
            assert taken is not None, "this wait has no end without messages"
            n = 0
            try:
                for message in taken[1].messages:
                    yield message
                    n += 1
                self._finish([taken])
            except BaseException:
                self._return(*taken, n)
                raise

    def _return(self, reader: QueueReader, chunk: Chunk, n: int) -> None:
        """Give messages back, of which the first ``n`` are done.  No locks: an iterator may be collected anywhere."""
        self._returned.append((reader, chunk, n))
        if not self._client.inherited:
            self._client.connections.later(0.0, self._returns)

    def _returns(self) -> None:
        """Take back what was given back, and tell the brokers of what is done.  Thread: the one that reads."""
        with self._changes.lock:
            self._take_back()
            self._changes.tell()
        self._client.keeper.soon(self._member.commit)

    def _take_back(self) -> None:
        """Put what was given back before everything of its queue that is behind it."""
        while self._returned:
            reader, chunk, n = self._returned[0]
            its = [(at, other.first) for at, (one, other) in enumerate(self._ready) if one is reader]
            place = next((at for at, first in its if first > chunk.first), its[-1][0] + 1 if its else 0)
            self._polled = [one for one in self._polled if not (one[0] is reader and one[1].first == chunk.first)]
            with reader.lock:
                rest = reader.backlog.take_back(chunk, n)
                del self._returned[0]  # no call in between: a signal handler that raises leaves it here or there
                if rest is not None:
                    self._ready.insert(place, (reader, rest))

    def commit(self) -> None:
        """Tell the brokers that everything that was polled is done; they do not answer."""
        self._client.check()
        with self._changes.lock:
            self._take_back()
            polled = list(self._polled)
            self._finish(polled)  # what a signal handler raises before its end leaves something to commit again
            self._polled = self._polled[len(polled) :]

    def _finish(self, done: list[tuple[QueueReader, Chunk]]) -> None:
        for reader, chunk in done:
            with reader.lock:
                reader.backlog.finish(chunk)
        if done:
            self._client.keeper.soon(self._member.commit)

    def close(self) -> None:
        """Write offsets, leave the group, end the threads.  With ``auto_commit``, what was polled counts as done.

        Servers that do not answer hold it up for a second at most.
        """
        if not self._over:
            insist(self._end_all)

    def _end_all(self) -> None:
        self._over = True
        if self._client.inherited:  # its locks may be held by threads of the parent's
            self._client.close()
            return
        self._wake()
        with self._changes.lock:
            self._take_back()
            if self._auto_commit:
                self._finish(self._polled)
        self._client.part(self._member.leave)

    def __reduce__(self) -> Any:
        raise uncopied(self)

    def __enter__(self) -> Self:
        self._client.check_unclosed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wake(self) -> None:
        with self._changes.lock:
            self._changes.tell()

    def _chunk_size(self) -> int:
        """Return how many messages are handed over together."""
        return _PULL

    def _take(self, reader: QueueReader, chunks: list[Chunk]) -> None:
        """Take messages that came.  Thread: the one that reads."""
        with self._changes.lock:
            self._ready.extend((reader, chunk) for chunk in chunks)
            self._changes.tell()

    def _forget(self, which: object) -> None:
        self._ready = deque(pair for pair in self._ready if not which(pair[0]))  # type: ignore[operator]
        self._polled = [pair for pair in self._polled if not which(pair[0])]  # type: ignore[operator]

    def _leave(self, reader: QueueReader) -> bool:
        """Let a queue be given back; what was not committed of it comes again, at its next member."""
        with self._changes.lock:
            self._take_back()
            self._forget(lambda other: other is reader)
        return True
