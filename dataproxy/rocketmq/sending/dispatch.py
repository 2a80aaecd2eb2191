"""Which queue a message goes to, when it is written, and whether it is tried again."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from dataproxy._core.remoting.sends import Sends
from dataproxy.errors import (
    BufferFullError,
    ClosedError,
    DataProxyError,
    DeliveryExpired,
    DeliveryFailed,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
)
from dataproxy.process.changes import Changes
from dataproxy.shown import foreign
from dataproxy.wire.rocketmq.codes import Answer, answer_name

if TYPE_CHECKING:
    from dataproxy._core.remoting.answers import SendAnswer
    from dataproxy.rocketmq.network.client import Client
    from dataproxy.rocketmq.network.target import Address
    from dataproxy.rocketmq.sending.deliveries import Delivery

__all__ = ["Dispatcher", "Limits", "Report"]

_BACKOFF_S: Final = 0.05
_LONGEST_BACKOFF_S: Final = 1.0
_LOOK_S: Final = 0.25  # between two looks for messages that wait too long
_AWAY_S: Final = 1.0  # between two attempts to connect to a broker that cannot be reached
#: Codes with which a broker says that it has stored nothing, now: it is asked again.
_BUSY: Final = frozenset((Answer.SYSTEM_BUSY, Answer.SERVICE_NOT_AVAILABLE, Answer.FLOW_CONTROL))
#: Codes after which another broker, or the same one a little later, may do better; a few times.
_ELSEWHERE: Final = frozenset(
    (Answer.SYSTEM_ERROR, Answer.NO_PERMISSION, Answer.TOPIC_NOT_EXIST, Answer.NO_BUYER_ID, Answer.NOT_IN_CURRENT_UNIT)
)
_FEW: Final = 2
_Place = TypeVar("_Place")


class Limits(NamedTuple):
    """Bounds of a producer: seconds, bytes, sends of a connection that wait for answers."""

    delivery_timeout: float
    request_timeout: float
    buffer_bytes: int
    max_block: float
    in_flight: int


class Report(NamedTuple):
    """Count messages by outcome: ``accepted = delivered + failed + expired + pending``, at any moment.

    ``duplicates_possible``: delivered, and perhaps stored more than once.  ``maybe_delivered``: not delivered as far as
    is known, and perhaps stored.
    """

    accepted: int
    delivered: int
    failed: int
    expired: int
    pending: int
    duplicates_possible: int
    maybe_delivered: int
    buffered_bytes: int


class _Flush:
    """A wait for results of what was accepted up to a message: how many messages have none yet, ``but`` for some."""

    __slots__ = ("but", "last", "left")

    def __init__(self, last: int, left: int, but: frozenset[int]) -> None:
        self.last, self.left, self.but = last, left, but


class Dispatcher(Sends):
    """Bring messages to brokers.  Any thread.  Locks: that of `Sends`."""

    def __init__(self, client: Client, group: bytes, limits: Limits) -> None:
        self._changes = Changes()
        super().__init__(client, group, limits, self._changes.lock)
        self._within = threading.Condition(self._lock)  # who waits there: signal handlers in the middle of a send
        self._client, self._limits = client, limits
        self._connections, self._routes = client.connections, client.routes
        client.on_heard = self.pump
        client.on_parted = self._parted
        client.on_failed = self._end

    def check_own(self) -> None:
        """Raise ForkedError in a forked child."""
        self._client.check_own()

    @property
    def inherited(self) -> bool:
        """Return whether it was made before a fork."""
        return self._client.inherited

    def check_may_wait(self) -> None:
        """Raise LocalProtocolError on a thread that results need."""
        if self._client.works_here():
            raise LocalProtocolError(
                "a callback may not wait for results", code="IN_CALLBACK", hint="wait on a thread of your own"
            )

    def report(self) -> Report:
        """Return the counts.  Raises ForkedError."""
        self.check_own()
        with self._lock:
            n = self._counts
            pending = sum(one._count for one in self._open)
            accepted = n["delivered"] + n["failed"] + n["expired"] + pending
            return Report(
                accepted, n["delivered"], n["failed"], n["expired"], pending, n["twice"], n["maybe"], self._bytes
            )

    def _wait_for_room(self, size: int, begun: float) -> None:
        """Wait for room, at most ``max_block`` since ``begun``.  Raises BufferFullError."""
        limit = self._limits.max_block if not self._client.works_here() else 0.0

        def is_so() -> bool:
            if self._over or self._fits(size):
                return True
            self._awaited = True
            return False

        found = self._wait(is_so, begun + limit - time.monotonic())
        if not found:
            raise BufferFullError(
                f"{self._bytes} bytes wait to be delivered, allowed are {self._limits.buffer_bytes}",
                hint="send more slowly, or raise buffer_bytes",
            )

    def _wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so, and tell whether it is.

        A signal handler that interrupted its own thread while that had the lock gives it away for the time: it could
        wait for ever for what others change under the lock.
        """
        if self._lock._is_owned():
            with self._lock:
                return self._within.wait_for(is_so, seconds)
        until = time.monotonic() + seconds
        while True:
            with self._lock:
                if is_so():
                    return True
                waiter = self._changes.waiter()
            self._changes.wait(waiter, until - time.monotonic())
            if time.monotonic() >= until:
                with self._lock:
                    return is_so()

    def wait_settled(self, seconds: float) -> int:
        """Wait until each message accepted so far has its result; return how many have none then.

        In a signal handler that interrupted a send of its own thread, that message is not waited for: it goes on when
        the handler returns.
        """
        me = get_ident()
        self._connections.push_all()  # the thread may have been interrupted before it did that
        with self._lock:
            own = frozenset(one._number for one in self._open if one._by == me)
            flush = _Flush(self._last, sum(one._count for one in self._open if one._by != me), own)
            self._flushes.append(flush)
        try:
            self._wait(lambda: flush.left <= 0, seconds)
        finally:
            with self._lock:
                self._flushes.remove(flush)
        return max(0, flush.left)

    def shut(self) -> None:
        """Take no more messages."""
        with self._lock:
            self._over = True
            self._tell()

    def _end(self, error: DataProxyError) -> None:
        """End everything: the client has failed.  Thread: the one that reads."""
        self.shut()
        self.give_up(error)

    def give_up(self, error: DataProxyError | None = None) -> None:
        """End what has no result: it fails with code CLOSED, or as ``error`` says."""
        code, why = ("CLOSED", "before the producer was closed") if error is None else ("ABORTED", error.message)
        with self._lock:
            left = list(self._open)
            for waiting in (self._unrouted, self._held):
                waiting.clear()
        for one in left:
            one._maybe = one._maybe or one._written
            text = f"message {one.id} was not delivered{' ' if error is None else ': '}{why}"
            self._fail(one, DeliveryFailed(text, code=code, details=_facts(one)))

    def _refuse_queue(self, delivery: Delivery) -> None:
        """End a message whose queue does not take messages."""
        text = f"topic {delivery._topic!r} has no queue {delivery._fixed} that takes messages"
        self._refuse(delivery, DeliveryFailed(text, code="NO_QUEUE"), "NO_QUEUE")

    def _unwritten(self, delivery: Delivery, error: DataProxyError | MemoryError) -> None:
        """Take the news that a message could not be put on a connection.  Needs the lock."""
        if isinstance(error, ClosedError):  # it ended at this moment
            self._connections.later(0.0, partial(self._try_again, delivery, error))
        elif isinstance(error, MemoryError):
            lack = TransportError("there was no memory for a request")
            self._connections.later(0.0, partial(self._try_again, delivery, lack))
        else:
            self._connections.later(0.0, partial(self._refuse, delivery, error))

    def _parted(self, address: Address, _error: DataProxyError) -> None:
        """Connect again if messages wait for it.  Thread: the one that reads, or that dropped the connection."""
        if address in self._held:
            self._client.keeper.soon(self._connect)

    def _find_routes(self) -> None:
        """Ask where topics are, for messages that wait for it.  Thread: the keeper."""
        with self._lock:
            topics = list(self._unrouted)
        for topic in topics:
            try:
                self._client.find(topic, template=True)
            except DataProxyError as error:
                self._client.keeper.soon(self._find_routes, _LONGEST_BACKOFF_S)
                self._note(topic, error)
                return
            self._again(self._unrouted, topic)
        with self._lock:
            if self._unrouted:  # no broker takes messages of these topics now
                self._client.keeper.soon(self._find_routes, _LONGEST_BACKOFF_S)

    def _note(self, topic: str, error: DataProxyError) -> None:
        with self._lock:
            for one in self._unrouted.get(topic, ()):
                one._why = error.message

    def _again(self, place: dict[_Place, deque[Delivery]], key: _Place) -> None:
        with self._lock:
            waiting = place.pop(key, ())
        for one in waiting:
            self.dispatch(one)

    def _connect(self) -> None:
        """Make connections for which messages wait.  Thread: the keeper."""
        now = time.monotonic()
        with self._lock:
            self._away = {address: until for address, until in self._away.items() if until > now}
            wanted = [one for one in self._held if one not in self._away and self._connections.get(one) is None]
        for address in wanted:
            try:
                link = self._connections.open(address)
            except ClosedError:
                return
            except DataProxyError as error:
                self._unreached(address, error)
                continue
            self.pump(address, link)
        with self._lock:
            due = min(self._away.values(), default=None)
        if due is not None:  # also without messages for it: then it may be chosen again
            self._client.keeper.soon(self._connect, max(0.0, due - time.monotonic()))

    def _unreached(self, address: Address, error: DataProxyError) -> None:
        """Let messages of a broker that cannot be reached go to others; those that cannot wait for it together."""
        stays: dict[tuple[object, ...], bool] = {}
        left: deque[Delivery] = deque()
        moved: list[Delivery] = []
        with self._lock:
            self._away[address] = time.monotonic() + _AWAY_S
            for one in self._held.pop(address, ()):
                one._why = error.message
                one._avoided = one._queue.broker_name if one._queue is not None else ""
                choice = (one._topic, one._fixed, one._bucket)
                if choice not in stays:
                    stays[choice] = self._address(one) == address
                (left if stays[choice] else moved).append(one)
            if left:
                self._held[address] = left
        for one in moved:
            self.dispatch(one)

    def _address(self, delivery: Delivery) -> Address | None:
        """Return where a message would go now, None if that is not known.  Needs the lock."""
        route = self._routes.known(delivery._topic)
        queue = None if route is None else self._pick(delivery, route)
        return None if route is None or queue is None else route.masters[queue.broker_name]

    def _refused(self, delivery: Delivery, answer: SendAnswer) -> None:
        """Take the answer of a broker that has not stored a message.  Thread: the one that reads."""
        name = answer_name(answer.code) or "an unknown code"
        said = f": {foreign(answer.remark)}" if answer.remark else ""
        error = RemoteProtocolError(
            f"broker {delivery._queue.broker_name} refused it with code {answer.code} ({name}){said}",
            code="CALL_REFUSED", details={"code": answer.code, "remark": answer.remark},
        )  # fmt: skip
        delivery._maybe = delivery._maybe or answer.code == Answer.SYSTEM_ERROR
        if answer.code in _BUSY:
            self._try_again(delivery, error)
        elif answer.code in _ELSEWHERE and delivery._refusals < _FEW:
            delivery._refusals += 1
            if answer.code in (Answer.TOPIC_NOT_EXIST, Answer.NO_PERMISSION):
                self._client.keeper.soon(self._client.refresh)
            self._try_again(delivery, error)
        else:
            self._refuse(delivery, error)

    def lost(self, delivery: Delivery, error: DataProxyError) -> None:
        """Take the news that there is no answer: the message may be stored."""
        delivery._maybe = True
        if isinstance(error, RemoteProtocolError):
            delivery._refusals += 1
        if error.fatal:
            return  # the producer was closed: `give_up` has its result
        if delivery._refusals > _FEW:
            self._refuse(delivery, error)
        else:
            self._try_again(delivery, error)

    def _try_again(self, delivery: Delivery, error: DataProxyError) -> None:
        delivery._why = error.message
        wait = min(_BACKOFF_S * (1 << min(delivery._attempts, 6)), _LONGEST_BACKOFF_S)
        if time.monotonic() + wait >= delivery._deadline:
            wait = max(0.0, delivery._deadline - time.monotonic())
        self._connections.later(wait, lambda: self.dispatch(delivery))

    def _refuse(self, delivery: Delivery, error: DataProxyError, code: str = "SEND_REFUSED") -> None:
        self._fail(delivery, DeliveryFailed(
            f"message {delivery.id} was not delivered: {error.message}", code=code, hint=error.hint,
            details={**_facts(delivery), **error.details},
        ))  # fmt: skip

    def _fail(self, delivery: Delivery, error: DataProxyError) -> None:
        self._settle(delivery, "failed", error)

    def _expire(self, delivery: Delivery) -> None:
        why = f": {delivery._why}" if delivery._why else ""
        self._settle(delivery, "expired", DeliveryExpired(
            f"message {delivery.id} was not delivered within {self._limits.delivery_timeout:g} s{why}",
            details=_facts(delivery),
        ))  # fmt: skip

    def _tell(self) -> None:
        """Let everybody look who waits.  Needs the lock."""
        self._awaited = False
        self._changes.tell()
        self._within.notify_all()

    def _look(self) -> None:
        """End messages that have waited too long.  Thread: the one that reads."""
        now = time.monotonic()
        with self._lock:
            late = _take_late(self._unrouted, now) + _take_late(self._held, now)
            late += [one for one in self._open if one._deadline + _LOOK_S <= now]  # whatever became of them
            self._looking = bool(self._open)
        for one in late:
            one._maybe = one._maybe or one._written
            self._expire(one)
        if self._looking:
            self._connections.later(_LOOK_S, self._look)


def _take_late(place: dict[_Place, deque[Delivery]], now: float) -> list[Delivery]:
    """Return the messages that have waited too long, and let them wait no more."""
    late = []
    for key, waiting in list(place.items()):
        while waiting and waiting[0]._deadline <= now:  # they are in the order of their deadlines, but for a few
            late.append(waiting.popleft())
        if not waiting:
            del place[key]
    return late


def _facts(delivery: Delivery) -> dict[str, object]:
    return {
        "id": delivery.id, "topic": delivery._topic, "attempts": delivery._attempts, "maybe_delivered": delivery._maybe
    }  # fmt: skip
