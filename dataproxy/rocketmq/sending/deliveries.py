"""One message under way, and its result."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy.errors import DataProxyError, DeliveryPending
from dataproxy.logs import logger
from dataproxy.problems import callback_problem
from dataproxy.process.changes import Event
from dataproxy.process.threads import end_child, is_ours
from dataproxy.rocketmq.arguments import limit
from dataproxy.rocketmq.network.connections import Answered

if TYPE_CHECKING:
    from datetime import timedelta

    from dataproxy._core.remoting.answers import SendAnswer
    from dataproxy.rocketmq.sending.messages import Encoded
    from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Delivered", "Delivery"]

_LOG: Final = logger("rocketmq")
_results = threading.RLock()  # of results, and of who waits for them; held for assignments alone


def _renew_lock() -> None:
    global _results
    _results = threading.RLock()  # a thread of the parent's may have held it


os.register_at_fork(after_in_child=_renew_lock)


class Delivered(NamedTuple):
    """Say where and how a message, or a batch of them, was stored.

    ``id``: the one made for it, of a batch that of its first message.  ``offset_ids``: the broker's, one of each
    message.  ``offset``: in the queue, of the first message.  ``status``: ``OK``, or what the broker could not wait for
    (``FLUSH_DISK_TIMEOUT``, ``SLAVE_NOT_AVAILABLE``, ``FLUSH_SLAVE_TIMEOUT``): it is stored all the same.  ``latency``
    in seconds.
    """

    id: str
    offset_ids: tuple[str, ...]
    topic: str
    broker: str
    queue: int
    offset: int
    status: str
    attempts: int
    latency: float
    transaction_id: str


class Delivery(Answered):
    """Future result of a message.  Any thread."""

    __slots__ = (
        "_attempts",
        "_avoided",
        "_batch",
        "_begun",
        "_bucket",
        "_by",
        "_callbacks",
        "_content",
        "_count",
        "_deadline",
        "_event",
        "_fixed",
        "_handler",
        "_maybe",
        "_number",
        "_queue",
        "_refusals",
        "_result",
        "_size",
        "_topic",
        "_why",
        "_written",
    )  # fmt: skip

    def __init__(self, topic: str, content: Encoded, count: int, handler: Any) -> None:
        self._topic, self._content, self._count, self._handler = topic, content, count, handler
        self._size = len(content.body) + len(content.properties)
        self._begun = self._deadline = time.monotonic()  # the latter is set when it is accepted
        self._attempts = self._refusals = self._number = 0
        self._by = 0  # the thread that sends it, until it is written, or waits for that
        self._bucket: int | None = None  # of the key
        self._batch = False
        self._fixed: int | None = None  # number of the queue that the caller chose
        self._avoided = ""  # broker of the last attempt
        self._queue: Queue | None = None
        self._why = ""  # it has no result
        self._written = False  # and no answer is there
        self._maybe = False  # an attempt may have stored it
        self._result: Delivered | DataProxyError | None = None
        self._event: Event | None = None
        self._callbacks: list[Callable[[Delivery], object]] | None = None

    @property
    def id(self) -> str:
        """Return the id made for the message."""
        return self._content.id

    def done(self) -> bool:
        """Return whether there is a result."""
        return self._result is not None

    def result(self, timeout: float | timedelta | None = None) -> Delivered:
        """Wait for the result, and return it.

        Raises DeliveryFailed, DeliveryExpired; DeliveryPending after ``timeout`` (seconds or a timedelta; None and
        infinity are no limit); ForkedError in a forked child: the results are the parent's.
        """
        found = self._wait(timeout)
        if isinstance(found, DataProxyError):
            raise found
        return found

    def exception(self, timeout: float | timedelta | None = None) -> DataProxyError | None:
        """Wait for the result, and return its error, None for a message that was delivered."""
        found = self._wait(timeout)
        return found if isinstance(found, DataProxyError) else None

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call ``callback`` with this object when there is a result, at once if there is one.

        It is called on a thread of the client and must not wait; its exceptions are logged.  A child that it forks
        there ends when it does.
        """
        if not callable(callback):
            raise callback_problem(callback)
        self._handler.check_own()
        with _results:
            if self._result is None:
                self._callbacks = [*(self._callbacks or ()), callback]
                return
        self._call(callback)

    def _wait(self, timeout: float | timedelta | None) -> Delivered | DataProxyError:
        patience = None if timeout is None else limit(timeout)
        self._handler.check_own()
        if self._result is None:
            self._handler.check_may_wait()
            with _results:
                if self._event is None and self._result is None:
                    self._event = Event()
                event = self._event
            if event is not None:
                event.wait(patience)
        if self._result is None:
            raise DeliveryPending(f"message {self.id} has no result yet")
        return self._result

    def _settle(self, result: Delivered | DataProxyError) -> None:
        """Set the result, once."""
        with _results:
            self._result = result
            callbacks, self._callbacks = self._callbacks, None
            event = self._event
        if event is not None:
            event.set()
        for callback in callbacks or ():
            self._call(callback)

    def _call(self, callback: Callable[[Delivery], object]) -> None:
        try:
            try:
                callback(self)
            finally:
                end_child(self._handler.inherited)
        except BaseException as error:
            if not isinstance(error, Exception) and not is_ours():
                raise  # the application's own thread: its Ctrl-C, or its exit
            _LOG.log(logging.ERROR, "a callback has failed", exc_info=True)

    def _answered(self, answer: SendAnswer) -> None:
        """Take a broker's answer.  Thread: the one that reads."""
        self._handler.answered(self, answer)

    def _lost(self, error: DataProxyError) -> None:
        """Take the news that there is no answer.  Thread: the one that reads, or that dropped the connection."""
        self._handler.lost(self, error)
