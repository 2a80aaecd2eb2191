"""A consumer whose listener is called with messages."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from dataproxy._core.remoting.batches import Batches
from dataproxy.errors import ConfigError, DataProxyError
from dataproxy.logs import logger
from dataproxy.problems import callback_problem, shown
from dataproxy.process.threads import FORKS, end_child, join, start_hearing
from dataproxy.rocketmq.arguments import TlsOptions, check_begin, check_count, check_limit, limit, uncopied
from dataproxy.rocketmq.group.again import send_again
from dataproxy.rocketmq.group.backlog import Chunk
from dataproxy.rocketmq.group.member import Member
from dataproxy.rocketmq.group.offsets import BrokerOffsets, FileOffsets, Offsets
from dataproxy.rocketmq.group.pushed import PushedReader, serve_pushes
from dataproxy.rocketmq.group.reader import Bounds, QueueReader
from dataproxy.rocketmq.group.served import serve
from dataproxy.rocketmq.group.shares import subscriptions
from dataproxy.rocketmq.group.works import Works
from dataproxy.rocketmq.network.client import Client
from dataproxy.rocketmq.sending.messages import DELAY_LEVELS, check_group
from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.names import retry_topic

if TYPE_CHECKING:
    import os
    from datetime import timedelta
    from types import TracebackType

    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["ConsumerCounts", "PushConsumer", "RetryLater"]

_LOG: Final = logger("rocketmq")
_FAST_S: Final = 0.0002  # of a message: such listeners get whole pulls on one thread
_INSTANT_S: Final = 0.00002  # of a message: a thread that is awake is done before another one is woken
_SUSPEND_S: Final = 1.0
_AGAIN_S: Final = 5.0
_REJOIN_S: Final = 0.2
_TURN: Final = 32  # messages of an orderly queue before others have their turn
_NO_LIMIT: Final = (1 << 31) - 1
_PULL: Final = 32


class RetryLater(Exception):  # noqa: N818 - a listener's answer
    """Say in a listener that its messages shall come again.

    ``delay_level``: 1 to 18, see `DELAY_LEVELS`; 0: it grows with the attempts; -1: they become dead letters.  Raises
    ConfigError for anything else, which a listener fails with: its messages come again, too.
    """

    def __init__(self, delay_level: int = 0) -> None:
        if type(delay_level) is not int or not -1 <= delay_level <= len(DELAY_LEVELS):
            raise ConfigError(f"delay_level={shown(delay_level)} is not -1 to {len(DELAY_LEVELS)}")
        super().__init__(delay_level)
        self.delay_level = delay_level


class ConsumerCounts(NamedTuple):
    """Count messages.

    ``received``: given to the listener; ``done``: by it; ``failed``: attempts of it; ``again``: sent back;
    ``broken``: left out, since their checksum is wrong; ``held``: they wait for the listener.
    """

    received: int
    done: int
    failed: int
    again: int
    broken: int
    held: int


class _Work(NamedTuple):
    reader: QueueReader
    chunk: Chunk


class PushConsumer:
    """Call ``listener`` with messages of topics, as a member of ``group``, until `close`.

    ``topics``: names, or a mapping from names to tags (``"a || b"``, or ``"tag:a || b"`` with whatever characters) or
    `Sql`.  ``listener`` is called with a list of up to ``batch`` messages of one queue, by ``threads`` threads at once.
    When it returns they are done; when it raises, they come again after a delay, up to ``max_attempts`` times, and
    become dead letters then (`RetryLater` says more).  Each message is seen at least once.  A child that the listener
    forks ends when the listener does.

    ``orderly``: queues are locked, and the messages of a queue come one after the other; those of a listener that
    raises come again after a second, before all others of their queue, without end unless ``max_attempts`` is given.
    ``broadcasting``: each consumer gets all messages, and keeps its own offsets in the file ``offsets_path`` (None: in
    memory); nothing comes again.  ``push``: a hub of dataproxy sends messages as they come, and the consumer
    acknowledges them, in the place of pulls; brokers of RocketMQ 4.x cannot (`trouble` says so).

    ``begin``: where a group without offsets begins: ``first``, ``last``, a datetime, or ms since 1970.
    ``max_messages`` and ``max_bytes`` bound what is held of one queue; with ``push`` the hub does.  ``tls_*``: as with
    `Producer`.

    Raises ConfigError, InvalidMessageError.  What cannot be reached is tried again: see `trouble`.
    """

    def __init__(
        self,
        target: str,
        group: str,
        topics: str | Sequence[str] | Mapping[str, str],
        listener: Callable[[list[ReceivedMessage]], object],
        *,
        orderly: bool = False,
        broadcasting: bool = False,
        push: bool = False,
        begin: str | int | datetime = "last",
        threads: int = 8,
        batch: int = 1,
        max_attempts: int | None = None,
        max_messages: int = 1024,
        max_bytes: int = 16 << 20,
        offsets_path: str | os.PathLike[str] | None = None,
        request_timeout: float | timedelta = 3.0,
        connect_timeout: float | timedelta = 3.0,
        instance: str = "",
        tls_ca: str = "",
        tls_certificate: str = "",
        tls_key: str = "",
        tls_key_password: str = "",
        tls_verify: str = "full",
    ) -> None:
        if not callable(listener):
            raise callback_problem(listener, "the listener")
        self._group, self._listener, self._made_in = check_group(group), listener, FORKS[0]
        self._orderly, self._broadcasting = bool(orderly), bool(broadcasting)
        self._batch = check_count("batch", batch)
        most = (_NO_LIMIT if orderly else 16) if max_attempts is None else max_attempts
        self._most = check_count("max_attempts", most)
        bounds = Bounds(check_count("max_messages", max_messages), check_count("max_bytes", max_bytes), _PULL)
        wanted = _subscriptions(topics, "" if broadcasting else retry_topic(group))
        begin = check_begin(begin)
        check_count("threads", threads)
        kept = _file_offsets(offsets_path, broadcasting)
        self._client = Client(
            target, instance=instance, connect_s=check_limit("connect_timeout", connect_timeout),
            call_s=check_limit("request_timeout", request_timeout), stream=False, at_exit=self.close,
            tls=TlsOptions(tls_ca, tls_certificate, tls_key, tls_key_password, tls_verify),
        )  # fmt: skip
        with self._client.made_whole():
            offsets: Offsets = kept or BrokerOffsets(self._client, group)
            kind = PushedReader if push else QueueReader
            make_reader = partial(kind, self._client, group, bounds=bounds, sink=self, commits=not broadcasting)
            self._member = Member(
                self._client, group, wanted, push=True, pushed=bool(push), broadcasting=self._broadcasting,
                orderly=self._orderly, begin=begin, offsets=offsets, make_reader=make_reader, leave=self._leave,
                stay=self._stay,
            )  # fmt: skip
            self._work: Works[Callable[[], None] | _Work] = Works(threads, self._client.connections.later)
            self._orders: dict[QueueReader, _Order] = {}
            self._lock = threading.RLock()  # of orders and counts; a signal handler may close in the middle
            self._counts = dict.fromkeys(("received", "done", "failed", "again"), 0)
            self._pace = 0.0  # seconds of a message, of late
            self._closed = False
            self._serve(bool(push))
            self._start(threads)

    def _start(self, threads: int) -> None:
        """Start the threads of listeners, and let the group know; if that fails, none of them is left behind."""
        self._threads: list[threading.Thread] = []
        try:
            for n in range(threads):
                self._threads.append(start_hearing(f"dataproxy-rocketmq-listener-{n}", self._listen))
            self._member.start()
        except BaseException:
            self._work.end()
            raise

    def _serve(self, push: bool) -> None:
        """Answer brokers, and take what hubs push."""
        serve(self._client, self._member, self._consume_one, self._work.put)
        if push:
            serve_pushes(self._client, self._member)
            self._client.on_parted = lambda _address, _error: self._client.keeper.soon(self._member.rejoin, _REJOIN_S)

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
        return self._closed

    def counts(self) -> ConsumerCounts:
        """Return counts of messages since it was made.  Raises ForkedError."""
        self._client.check_own()
        readers = list(self._member.readers.values())
        with self._lock:
            return ConsumerCounts(
                **self._counts,
                broken=sum(one.broken for one in readers),
                held=sum(one.backlog.count for one in readers),
            )

    def lag(self) -> dict[Queue, int]:
        """Return how many messages each queue had behind the last one that came, when it came.  Raises ForkedError."""
        self._client.check_own()
        return {place: reader.lagging for place, reader in list(self._member.readers.items())}

    def close(self, timeout: float | timedelta = 10.0) -> None:
        """Wait for listeners, write offsets, leave the group, end the threads.

        After ``timeout`` seconds it waits no more (infinity is no limit): what a listener works on then comes again. In
        a listener it does not wait for that one.  An orderly queue of such listeners stays locked until the broker's
        time for that is over.  Ctrl-C ends the wait, not the rest, which servers that do not answer hold up for a
        second at most.
        """
        deadline = time.monotonic() + limit(timeout)
        if self._closed:
            return
        raised: BaseException | None = None
        try:
            self._closed = True
            if self._client.inherited:
                return
            for reader in list(self._member.readers.values()):
                reader.paused = True
            self._work.end()
            for thread in self._threads:
                if thread is not threading.current_thread():
                    left = 0.0 if raised is not None else max(0.0, deadline - time.monotonic())
                    raised = join(thread, left, heeds=True) or raised
        finally:
            try:
                self._end_all()
            except BaseException:  # of a signal handler, perhaps halfway; another `close` would do nothing
                self._end_all()
                raise
        if raised is not None:
            raise raised

    def _end_all(self) -> None:
        if self._client.inherited:
            self._client.close()
            return
        self._work.end()
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

    def _chunk_size(self) -> int:
        """Return how many messages one thread gets at once: all of a pull, if the listener is fast."""
        return _PULL if self._orderly or self._pace < _FAST_S else self._batch

    def _take(self, reader: QueueReader, chunks: list[Chunk]) -> None:
        """Take messages that came.  Thread: the one that reads."""
        if not self._orderly:
            for chunk in chunks:
                self._work.put(_Work(reader, chunk), quick=self._pace < _INSTANT_S)
            return
        with self._lock:
            if reader.dropped:
                return
            order = self._orders.setdefault(reader, _Order())
            order.waiting.extend(chunks)
            start, order.busy = not order.busy, True
        if start:
            self._work.put(lambda: self._work_in_order(reader, order))

    def _listen(self) -> None:
        """Work until the end.  Thread: a listener's."""
        while (work := self._work.get()) is not None and not self._closed:
            try:
                if isinstance(work, _Work):
                    self._work_on(work.reader, work.chunk)
                else:
                    work()
            except BaseException:  # noqa: BLE001 - it is logged, and the thread goes on
                _LOG.log(logging.ERROR, "messages could not be worked on", exc_info=True)

    def _work_on(self, reader: QueueReader, chunk: Chunk) -> None:
        """Give a chunk to the listener, and see to what comes again."""
        if reader.dropped or chunk.number != reader.backlog.number:
            return  # they come again, here or at another member
        begun = time.monotonic()
        left: list[ReceivedMessage] = []
        n = len(chunk.messages)
        batches, failed = Batches(self._listener, chunk.messages, self._batch), 0
        while batches.at < n and not self._closed:
            level = self._level_of(batches.hear, self)
            if level is not None:
                part = batches.last()
                failed += len(part)
                self._count("failed", len(part))
                left += self._return(part, level)
        with self._lock:
            self._counts["done"] += batches.at - failed
            if batches.at < n:
                return  # it was closed: what is left comes again at another member
            self._counts["received"] += n
        self._pace += ((time.monotonic() - begun) / n - self._pace) / 8
        self._finish(reader, chunk, left)

    def _finish(self, reader: QueueReader, chunk: Chunk, left: list[ReceivedMessage]) -> None:
        if not left:
            reader.finish(chunk)
            return

        def again() -> None:
            self._work.put(lambda: self._once_more(reader, chunk, left))

        self._client.connections.later(_AGAIN_S, again)

    def _once_more(self, reader: QueueReader, chunk: Chunk, messages: list[ReceivedMessage]) -> None:
        """Give messages to the listener again that no broker could be asked to bring again."""
        if reader.dropped or chunk.number != reader.backlog.number:
            return
        left: list[ReceivedMessage] = []
        for message in messages:
            level = self._call([message])
            if level is None:
                self._count("done", 1)
            else:
                left += self._return([message], level)
        self._finish(reader, chunk, left)

    def _give(self, hear: Callable[[Any], object], what: object) -> None:
        """Let the listener hear something.  Raises what it raises."""
        try:
            hear(what)
        finally:
            if FORKS[0] != self._made_in:
                end_child(inherited=True)

    def _call(self, messages: list[ReceivedMessage]) -> int | None:
        """Call the listener; return None if that went well, which the caller counts, else the delay level."""
        level = self._level_of(self._listener, list(messages))  # it may take messages out of its list
        if level is not None:
            self._count("failed", len(messages))
        return level

    def _level_of(self, hear: Callable[[Any], object], what: object) -> int | None:
        """Let the listener hear something; return None if that went well, else the delay level."""
        try:
            self._give(hear, what)
        except RetryLater as later:
            level = later.delay_level if type(later.delay_level) is int and -1 <= later.delay_level <= 18 else 0
        except BaseException:  # noqa: BLE001 - also SystemExit and CancelledError: the thread goes on
            _LOG.log(logging.WARNING, "the listener of group %r has failed", self._group, exc_info=True)
            level = 0
        else:
            return None
        return level

    def _count(self, what: str, n: int) -> None:
        with self._lock:
            self._counts[what] += n

    def _return(self, messages: list[ReceivedMessage], level: int) -> list[ReceivedMessage]:
        """Let messages come again; return those for which that is not possible now."""
        if self._broadcasting:
            return []
        left = []
        for message in messages:
            try:
                send_again(self._client, self._group, message, level, self._most)
            except Exception as error:  # noqa: BLE001 - whatever it is, the message is not done
                said = error.message if isinstance(error, DataProxyError) else f"{type(error).__name__}: {error}"
                _LOG.warning("%r could not be sent back, and is tried again here: %s", message, said)
                message._tried()
                left.append(message)
        self._count("again", len(messages) - len(left))
        return left

    def _work_in_order(self, reader: QueueReader, order: _Order) -> None:
        """Give messages of one queue to the listener, one batch after the other; then other queues have their turn."""
        goes_on = True
        try:
            for _ in range(_TURN):
                with self._lock:
                    if reader.dropped or order.leaving or not order.waiting or self._closed:
                        order.busy = False
                        return
                    chunk = order.waiting[0]
                    if chunk.number != reader.backlog.number:
                        order.waiting.popleft()
                        order.at = 0
                        continue
                    if not self._broadcasting and reader.locked_until < time.monotonic():
                        goes_on = False  # the broker may have given the queue to another member
                        break
                    order.working = True
                goes_on = self._work_on_one(reader, order, chunk)
                if not goes_on:
                    break
        except BaseException:  # noqa: BLE001 - it is logged, and the queue goes on
            _LOG.log(logging.ERROR, "%r: messages could not be worked on", reader, exc_info=True)
            goes_on = False
        finally:
            order.working = False
        if goes_on:
            self._work.put(lambda: self._work_in_order(reader, order))
        else:
            self._suspend(reader, order)

    def _work_on_one(self, reader: QueueReader, order: _Order, chunk: Chunk) -> bool:
        """Give the next batch of a chunk to the listener; False: it shall come again after a while."""
        part = chunk.messages[order.at : order.at + self._batch]
        level = self._call(part)
        if level is not None and (self._closed or not self._bury(part, level)):
            return False
        if level is None:
            self._count("done", len(part))
        order.at += len(part)
        if order.at >= len(chunk.messages):
            with self._lock:
                order.waiting.popleft()
                self._counts["received"] += len(chunk.messages)
            order.at = 0
            reader.finish(chunk)
        order.working = False
        return True

    def _suspend(self, reader: QueueReader, order: _Order) -> None:
        """Let a queue rest, and go on with the same messages."""
        self._client.connections.later(
            _SUSPEND_S, lambda: self._work.put(lambda: self._work_in_order(reader, order))
        )  # fmt: skip

    def _bury(self, messages: list[ReceivedMessage], level: int) -> bool:
        """Make dead letters of messages that were tried too often; False: they shall be tried again."""
        if self._broadcasting:
            return True
        for message in messages:
            message._tried()
        if level >= 0 and any(message.attempts < self._most for message in messages):
            return False
        return not self._return(messages, -1)

    def _leave(self, reader: QueueReader) -> bool:
        """Return whether a queue can be given back, which is not read on then.  Thread: the keeper, or who closes.

        An orderly one can while no listener works on its messages: its next member would get them at the same time.
        """
        with self._lock:
            order = self._orders.get(reader)
            if order is not None and order.working:
                reader.paused = order.leaving = True  # no other message of it is begun
                return False
            self._orders.pop(reader, None)
            reader.drop()
            if order is not None and order.waiting and order.at:  # the next member goes on behind what is done
                with reader.lock:
                    reader.backlog.finish_first(order.waiting[0], order.at)
        return True

    def _stay(self, reader: QueueReader) -> None:
        """Go on with a queue that was to be given back, and is this member's again.  Thread: the keeper."""
        if not self._closed:
            with self._lock:
                order = self._orders.get(reader)
                start = order is not None and not order.busy and bool(order.waiting)
                if order is not None:
                    order.leaving = False
                    order.busy = order.busy or start
            if order is not None and start:
                self._work.put(lambda: self._work_in_order(reader, order))
            reader.paused = False
            reader.pull()

    def _consume_one(self, message: ReceivedMessage) -> str:
        """Give one message to the listener, for an administrator; return why it has failed."""
        try:
            self._give(self._listener, [message])
        except BaseException as error:  # noqa: BLE001 - told to who asked; the thread goes on
            return f"{type(error).__name__}: {error}"
        return ""


def _file_offsets(path: str | os.PathLike[str] | None, broadcasting: bool) -> FileOffsets | None:
    """Return where a broadcasting consumer keeps its offsets, None for another one.  Raises ConfigError."""
    if path is not None and not broadcasting:
        raise ConfigError("offsets_path is for broadcasting", hint="brokers keep the offsets of all other groups")
    return FileOffsets(path) if broadcasting else None


def _subscriptions(topics: object, retries: str) -> dict[str, Subscription]:
    """Return what is subscribed, and all of the topic of messages that come again, if there is one."""
    version = time.time_ns() // 1_000_000
    return subscriptions(topics, version) | ({retries: Subscription(retries, sub_version=version)} if retries else {})


class _Order:
    """Messages of an orderly queue that wait, and how many of the first chunk are done.

    ``busy``: they are some thread's, or will be in a moment; ``working``: the listener has some of them; ``leaving``:
    the queue is to be given back.
    """

    __slots__ = ("at", "busy", "leaving", "waiting", "working")

    def __init__(self) -> None:
        self.waiting: deque[Chunk] = deque()
        self.at = 0
        self.busy = self.working = self.leaving = False
