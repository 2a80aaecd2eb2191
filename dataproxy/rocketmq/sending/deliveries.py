"""One message under way, and its result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy._core.remoting.answers import SendAnswer
from dataproxy._core.remoting.sends import Send
from dataproxy.errors import DataProxyError, DeliveryPending
from dataproxy.logs import logger
from dataproxy.problems import callback_problem
from dataproxy.process.changes import Event
from dataproxy.process.threads import end_child, is_ours
from dataproxy.rocketmq.arguments import limit
from dataproxy.wire.rocketmq.codes import answer_name

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["Delivered", "Delivery"]

_LOG: Final = logger("rocketmq")


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


class Delivery(Send):
    """Future result of a message.  Any thread."""

    __slots__ = ()

    @property
    def id(self) -> str:
        """Return the id made for the message."""
        return self._id

    def done(self) -> bool:
        """Return whether there is a result.  Raises ForkedError in a forked child, in which none would ever come."""
        self._handler.check_own()
        return self._result is not None

    def result(self, timeout: float | timedelta | None = None) -> Delivered:
        """Wait for the result, and return it.

        Raises DeliveryFailed, DeliveryExpired; DeliveryPending after ``timeout`` (seconds or a timedelta; None and
        infinity are no limit); ForkedError in a forked child: the results are the parent's.
        """
        found = self._wait(timeout)
        if isinstance(found, DataProxyError):
            raise copy(found)  # each raise adds to an error's traceback, which keeps the variables of who has asked
        if isinstance(found, SendAnswer):
            found = self._result = self._delivered(found)
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
        with self._handler._lock:
            if self._result is None:
                self._callbacks = [*(self._callbacks or ()), callback]
                return
        self._call(callback)

    def __reduce__(self) -> Any:
        raise TypeError("a Delivery belongs to its producer and cannot be copied or pickled; use its result")

    def __repr__(self) -> str:
        found = self._result
        state = "pending" if found is None else "failed" if isinstance(found, DataProxyError) else "delivered"
        return f"<Delivery of {self._id} to {self._topic!r}, {state}>"

    def _wait(self, timeout: float | timedelta | None) -> SendAnswer | Delivered | DataProxyError:
        patience = None if timeout is None else limit(timeout)
        self._handler.check_own()
        if self._result is None:
            self._handler.check_may_wait()
            with self._handler._lock:
                if self._event is None and self._result is None:
                    self._event = Event()
                event = self._event
            if event is not None:
                event.wait(patience)
        found: SendAnswer | Delivered | DataProxyError | None = self._result
        if found is None:
            raise DeliveryPending(f"message {self.id} has no result yet")
        return found

    def _delivered(self, answer: SendAnswer) -> Delivered:
        return Delivered(
            self.id, tuple(answer.ids.split(",")), self._topic, self._queue.broker_name, answer.queue, answer.offset,
            answer_name(answer.code) if answer.code else "OK", self._attempts, self._ended - self._begun,
            answer.transaction,
        )  # fmt: skip

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
