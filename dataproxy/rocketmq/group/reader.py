"""One queue, which is pulled: one request is under way, or a reason why not."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dataproxy._core.remoting.answers import PullAnswer
from dataproxy.errors import ClosedError, DataProxyError
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.rocketmq.group.backlog import Backlog, Chunk
from dataproxy.rocketmq.network.connections import Answered
from dataproxy.shown import foreign
from dataproxy.wire.rocketmq.codes import Answer, answer_name

if TYPE_CHECKING:
    from dataproxy._core.remoting.link import Link
    from dataproxy._core.remoting.messages import ReceivedMessage
    from dataproxy.rocketmq.network.client import Client
    from dataproxy.wire.rocketmq.bodies import Subscription
    from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Bounds", "QueueReader", "Sink"]

_LOG: Final = logger("rocketmq")
_SUSPEND_MS: Final = 15_000
_ANSWER_S: Final = 30.0
_FAULT_S: Final = 1.0
_FLOW_S: Final = 0.02
_SAID_S: Final = 10.0
_AT_ONCE_S: Final = 0.05  # an answer without messages that comes sooner was not held
_QUIET_S: Final = (0.1, 0.2, 0.5)
_COMMIT, _SUSPEND, _SUBSCRIPTION = 1, 2, 4
_MOVED: Final = frozenset((Answer.PULL_NOT_FOUND, Answer.PULL_RETRY_IMMEDIATELY))


class Bounds(NamedTuple):
    """Messages and bytes of a queue that are out at once, and messages of one pull."""

    messages: int
    bytes: int
    pull: int


class Sink(Protocol):
    """Where messages go."""

    def _chunk_size(self) -> int:
        """Return how many messages are handed over together, at most."""

    def _take(self, reader: QueueReader, chunks: list[Chunk]) -> None:
        """Take messages.  Thread: the one that reads; it must not wait."""


class _Pull(Answered):
    """A request for messages of a reader, from the filling of its backlog that has this number."""

    __slots__ = ("number", "reader")

    def __init__(self, reader: QueueReader) -> None:
        self.reader, self.number = reader, reader.backlog.number

    def _answered(self, answer: PullAnswer) -> None:
        self.reader.answered(answer, self.number)

    def _lost(self, error: DataProxyError) -> None:
        self.reader.lost(error, self.number)


class QueueReader:
    """Pull a queue until it is dropped.  Any thread.  Locks: its own, held for assignments and for writing a frame."""

    def __init__(
        self, client: Client, group: str, queue: Queue, subscription: Subscription, offset: int, *,
        bounds: Bounds, sink: Sink, commits: bool,
    ) -> None:  # fmt: skip
        self.queue, self.backlog = queue, Backlog(offset)
        self.dropped = self.paused = False
        self.parked = False  # a hub is not to push it
        self.locked_until = 0.0  # by the broker, for orderly groups
        self.broken = self.lagging = 0
        self.refused = ""  # what the broker has said against the expression, as long as it does
        self.pulled_at = time.monotonic()
        self._client, self._group, self._bounds, self._sink = client, group.encode(), bounds, sink
        self._topic = queue.topic.encode()
        self._expression = subscription.sub_string.encode()
        self._kind = (subscription.expression_type or "TAG").encode()
        self._version = subscription.sub_version
        self._tags = frozenset(subscription.tags_set or ())
        self._commits = commits
        self.lock = threading.RLock()  # a signal handler may close the consumer in the middle
        self._pulling = False  # a request is under way, or put off
        self._asked_at = 0.0
        self._quiet = 0
        self._said_at = -_SAID_S

    def __repr__(self) -> str:
        return f"{self.queue.topic} {self.queue.broker_name}/{self.queue.queue_id}"

    def pull(self) -> None:
        """Ask for messages, unless that is done already, or there are too many."""
        address = self._client.routes.address(self.queue.broker_name)
        link = None if address is None else self._client.connections.get(address)
        failed: str | None = None
        with self.lock:
            if self._pulling or self.dropped or self.paused or self._full():
                return
            self._pulling = True
            number = self.backlog.number
            if link is not None:
                try:
                    self._write(link)
                except ClosedError:
                    link = None
                except (DataProxyError, MemoryError) as error:
                    failed = str(error)
        if failed is not None:
            self._say(f"no pull could be written: {failed}")
            self._later(_FAULT_S, number)
        elif link is None:
            self._client.keeper.soon(lambda: self._connect(number))
        else:
            self._client.connections.push(link)

    def _full(self) -> bool:
        return self.backlog.count >= self._bounds.messages or self.backlog.bytes >= self._bounds.bytes

    def _write(self, link: Link) -> None:
        done = self.backlog.done if self._commits else 0
        self._asked_at = self.pulled_at = time.monotonic()
        request = _Pull(self)
        self._client.connections.watch(request, _ANSWER_S)
        link.pull(
            request, self._group, self._topic, self.queue.queue_id, self.backlog.next, most=self._bounds.pull,
            sys_flag=_SUSPEND | _SUBSCRIPTION | (_COMMIT if done > 0 else 0), commit=done, suspend_ms=_SUSPEND_MS,
            subscription=self._expression, version=self._version, kind=self._kind,
            broker=self.queue.broker_name,
        )  # fmt: skip
        self._client.connections.look_by(request._until)

    def _connect(self, number: int) -> None:
        """Make the connection that is not there.  Thread: the keeper."""
        address = self._client.routes.address(self.queue.broker_name)
        try:
            if address is not None:
                self._client.connections.open(address)
        except DataProxyError as error:
            if error.fatal:
                return
            self._say(error.message)
            self._later(_FAULT_S, number)
            return
        if address is None:
            self._later(_FAULT_S, number)
            return
        self._later(0.0, number)

    def _say(self, text: str) -> None:
        """Put a record into the log, unless there was one a moment ago."""
        now = time.monotonic()
        if now >= self._said_at + _SAID_S:
            self._said_at = now
            _LOG.warning("%r: %s", self, text)

    def _later(self, seconds: float, number: int) -> None:
        """Ask again after some time; meanwhile nobody does."""
        if seconds:
            self._client.connections.later(seconds, partial(self._again, number))
        else:
            self._again(number)

    def _again(self, number: int) -> None:
        with self.lock:
            if number != self.backlog.number:
                return
            self._pulling = False
        self.pull()

    def answered(self, answer: PullAnswer, number: int) -> None:
        """Take a broker's answer to the request of a filling.  Thread: the one that reads."""
        wait = _FAULT_S
        if answer.placed:
            self.refused = ""
            try:
                wait, number = self._take(answer, number)
            except Exception:  # noqa: BLE001 - it is logged, and what came is asked for once more
                _LOG.log(logging.ERROR, "%r: what came could not be taken", self, exc_info=True)
                with self.lock:
                    if number == self.backlog.number:
                        self.backlog.reset(self.backlog.done)
                        number = self.backlog.number
        else:
            wait = _FLOW_S if answer.code == Answer.FLOW_CONTROL else _FAULT_S
            if wait == _FAULT_S:
                said = f": {foreign(answer.remark)}" if answer.remark else ""
                self._say(f"the broker refused a pull with code {answer.code} ({answer_name(answer.code)}){said}")
                self.refused = self._refusal(answer)
            if answer.code in (Answer.SUBSCRIPTION_NOT_EXIST, Answer.SUBSCRIPTION_NOT_LATEST):
                self._client.keeper.soon(self._client.heartbeat)
            elif answer.code in (Answer.TOPIC_NOT_EXIST, Answer.NO_PERMISSION, Answer.SYSTEM_ERROR):
                self._client.keeper.soon(self._client.refresh)
        self._later(wait, number)

    def _refusal(self, answer: PullAnswer) -> str:
        """Return what a broker that gives no messages says against the expression; empty: it means something else.

        A broker of RocketMQ that is set up to read no expression of SQL92 says so with a code that it has for much.
        """
        its = answer.code == Answer.SUBSCRIPTION_PARSE_FAILED
        if not its and not (answer.code == Answer.SYSTEM_ERROR and self._kind == b"SQL92"):
            return ""
        said = foreign(answer.remark) or f"code {answer.code} ({answer_name(answer.code)})"
        return f"topic {self.queue.topic!r}, expression {shown(self._expression.decode())}: {said}"

    def _take(self, answer: PullAnswer, number: int) -> tuple[float, int]:
        """Take messages and offsets; return how long to wait before the next request, and the filling that it is of."""
        messages: list[ReceivedMessage] = answer.messages
        self.broken += answer.broken
        if self._tags and messages:
            messages = [one for one in messages if one.tag in self._tags]
        with self.lock:
            if self.dropped or number != self.backlog.number:
                return 0.0, number
            if answer.code == Answer.PULL_OFFSET_MOVED:
                overtaken = answer.next_offset > self.backlog.next  # what it waited for would be dropped meanwhile
                self._say(f"offset {self.backlog.next} is not there, going on at {answer.next_offset} "
                          f"(there are {answer.min_offset} to {answer.max_offset})")  # fmt: skip
                self.backlog.move(answer.next_offset)
                return 0.0 if overtaken else _FAULT_S, self.backlog.number
            moved = answer.next_offset != self.backlog.next
            self.lagging = max(0, answer.max_offset - answer.next_offset)
            chunks = self.backlog.add(messages, answer.next_offset, self._sink._chunk_size())
            if moved or time.monotonic() - self._asked_at >= _AT_ONCE_S:
                self._quiet = 0
                wait = 0.0
            else:  # a server that does not hold requests
                wait = _QUIET_S[min(self._quiet, len(_QUIET_S) - 1)]
                self._quiet += 1
        if chunks:
            self._sink._take(self, chunks)
        return wait, number

    def lost(self, error: DataProxyError, number: int) -> None:
        """Take the news that there is no answer.  Thread: the one that reads, or that dropped the connection."""
        if error.fatal:
            return
        if not isinstance(error, ClosedError):
            _LOG.info("%r: %s", self, error.message)
        self._later(_FAULT_S, number)

    def hand_out(self, chunk: Chunk) -> None:
        """Count messages as held no more, and ask for more if there were too many.

        The thread that reads asks: here a signal handler could end a request that is half made, and there was no other.
        """
        with self.lock:
            self.backlog.hand_out(chunk)
            idle = not self._pulling
        if idle:
            self._client.connections.later(0.0, self.pull)

    def finish(self, chunk: Chunk) -> None:
        """Count messages as done, and ask for more if there were too many."""
        with self.lock:
            self.backlog.finish(chunk)
            idle = not self._pulling
        if idle:
            self.pull()

    def report(self) -> None:
        """Do nothing: what is done is written by whoever keeps offsets."""

    def seek(self, offset: int) -> None:
        """Go on at another place; what is out counts no more, and what comes for the old place is left aside."""
        with self.lock:
            self._client.connections.later(0.0, self.pull)  # first: a signal handler may raise behind any call
            self.backlog.reset(offset)
            self._pulling = False

    def drop(self) -> None:
        """Ask for nothing more."""
        with self.lock:
            self.dropped = True
