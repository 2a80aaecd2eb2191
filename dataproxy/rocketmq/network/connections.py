"""Connections, and the one thread that reads them."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataproxy._core.remoting.answers import Answer, Incoming
from dataproxy._core.remoting.link import Link, Request
from dataproxy._core.remoting.sends import Send
from dataproxy.errors import ClosedError, DataProxyError, LocalProtocolError, RemoteProtocolError, TransportError
from dataproxy.logs import SparingLog, logger
from dataproxy.process.changes import Event
from dataproxy.process.threads import is_here, is_ours, join, start_quiet
from dataproxy.rocketmq.network.attempts import Attempts, Beside
from dataproxy.rocketmq.network.target import Address
from dataproxy.shown import foreign

if TYPE_CHECKING:
    from dataproxy.rocketmq.network.seal import Trusted

__all__ = ["Answered", "Connections", "answer_fault"]

_LOG: Final = logger("rocketmq")
_GATHER_S: Final = 0.003
_CROWD: Final = 64  # sends of a connection under way, from which on frames and answers are gathered
_TURN: Final = 256  # events taken at once
_JOIN_S: Final = 5.0
_SILENT_MS: Final = 15_000  # that a server takes no bytes before its connection is given up
_REFUSED_S: Final = 1.0  # in which a server that could not be reached is not tried again
_LONGEST_S: Final = 1e6  # of a connection that is made, or of a sleep; the system takes no longer ones


class Answered(Request):
    """A request that is told its end, on the thread that reads."""

    def _answered(self, answer: Any) -> None:
        """Take the answer."""

    def _lost(self, error: DataProxyError) -> None:
        """Take the news that there will be no answer: the connection ended, or time is over."""


class _Watcher(Protocol):
    """What is told by the thread that reads; its calls must not wait."""

    def asked(self, address: Address, link: Link, incoming: Incoming) -> None:
        """Take a request of a server."""

    def heard(self, address: Address, link: Link) -> None:
        """Take the news that answers were told."""

    def joined(self, address: Address) -> None:
        """Take the news of a connection, on the thread that made it."""

    def parted(self, address: Address, error: DataProxyError) -> None:
        """Take the end of a connection; its requests were told before."""

    def failed(self, error: DataProxyError) -> None:
        """Take the news that the thread ends, and why: nothing will be read any more, and no connection is left."""


class _Call(Answered):
    """A call that a thread waits for."""

    __slots__ = ("done", "found")

    def __init__(self) -> None:
        self.done = Event()
        self.found: Any = None

    def _answered(self, answer: Any) -> None:
        self.found = answer
        self.done.set()

    def _lost(self, error: DataProxyError) -> None:
        self.found = error
        self.done.set()


class Connections:
    """Hold one connection to each server.  Any thread, unless a method says otherwise.

    ``connect_s`` and ``call_s``: how long a connection, or an answer, may take.  ``trusted``: for TLS.
    """

    def __init__(self, connect_s: float, call_s: float, watcher: _Watcher, trusted: Trusted | None = None) -> None:
        self._wake = -1
        self.connect_s, self.call_s = min(connect_s, _LONGEST_S), call_s
        self.failure = ""  # why the thread that reads has ended before `close`
        #: That a caller waits for a connection, at most; one that is not made by then is made all the same.
        self.patience_s = math.inf
        self._hurry_by = math.inf  # when callers wait for a connection no more, see `hurry`
        self._calls: dict[int, _Call] = {}  # that threads wait for, by their numbers
        self._forsaken: set[int] = set()  # threads that are to wait for nothing any more
        self._watcher, self._trusted, self._attempts = watcher, trusted, Attempts()
        self._beside = Beside(self._open)
        self.connects = 0  # that were made, since the beginning
        self._past_sent = self._past_read = 0  # bytes of connections that have ended
        self._links: dict[Address, Link] = {}
        self.get: Final = self._links.get  #: the connection to a server if there is one
        self._by_number: dict[int, tuple[Address, Link]] = {}
        self._connecting: dict[Address, threading.Lock] = {}
        self._lock = threading.RLock()  # a signal handler may close in the middle; of the tables above
        self._refused: dict[Address, tuple[float, TransportError | None]] = {}  # until when, and why
        self._read: Link | None = None  # the connection whose answers are told now
        self._dirty: set[Link] = set()  # frames lie there that were not written, to be gathered
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._due = math.inf  # when the first request is late, or before
        self._due_lock = threading.RLock()
        self._closed = False
        self._warnings = SparingLog(_LOG)
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        try:
            self._thread = start_quiet("dataproxy-rocketmq-io", self._run)
        except BaseException:  # of a signal handler, too, when the thread runs already
            self._closed = True
            os.eventfd_write(self._wake, 1)
            raise

    def open(self, address: Address) -> Link:
        """Return the connection to a server, and make it if there is none.

        Waits for up to ``connect_s``, or ``patience_s`` if that is less.  Raises TransportError, ClosedError;
        LocalProtocolError where it would wait on the thread that reads.
        """
        self._check_thread()
        found = self._links.get(address)
        if found is not None:
            return found
        self.check_may_wait()
        patience = min(self.patience_s, max(0.0, self._hurry_by - time.monotonic()))
        if patience >= self.connect_s:
            return self._open(address)
        self._check_refused(address)
        return self._beside.open(address, patience)

    def hurry(self, seconds: float) -> None:
        """Let nobody wait for connections from ``seconds`` on; for a client that takes its leave."""
        self._hurry_by = time.monotonic() + seconds

    def forsake(self, thread: threading.Thread) -> None:
        """Let a thread wait no more: its call and its attempt to connect end now, and those that it begins later.

        They raise ClosedError.  A look-up of a name cannot be ended.  Any thread.
        """
        number = thread.ident
        if number is None:
            return
        self._forsaken.add(number)
        self._attempts.forsake(number)
        call = self._calls.get(number)
        if call is not None:
            call._lost(ClosedError("the client was closed"))

    def check_may_wait(self) -> None:
        """Raise LocalProtocolError on the thread that reads: nothing that it waited for would come."""
        if is_here(self._thread):
            raise LocalProtocolError(
                "a callback may not wait for a server", code="IN_CALLBACK", hint="wait on a thread of your own"
            )

    def _check_thread(self) -> None:
        if self._forsaken and get_ident() in self._forsaken:
            raise ClosedError("the client was closed")

    def _check_refused(self, address: Address) -> None:
        """Raise TransportError for a server that could not be reached a moment ago."""
        until, why = self._refused.get(address, (0.0, None))
        if why is not None and time.monotonic() < until:
            raise TransportError(why.message, code=why.code, hint=why.hint)

    def _open(self, address: Address) -> Link:
        with self._lock:
            turn = self._connecting.setdefault(address, threading.Lock())
        with turn:
            found = self._links.get(address)
            if found is not None:
                return found
            self._check_refused(address)
            try:
                return self._connect(address)
            except TransportError as error:
                self._refused[address] = (time.monotonic() + _REFUSED_S, error)
                raise

    def _connect(self, address: Address) -> Link:
        self._check()
        try:
            made, seal = self._attempts.make(address, self.connect_s, self._trusted)
        except (TransportError, OSError, UnicodeError) as error:
            self._check()  # what `end` has ended is no fault
            if isinstance(error, TransportError):
                code, hint, text = error.code, error.hint, error.message
            else:
                code, hint = "CONNECT_FAILED", ""
                late = isinstance(error, TimeoutError)
                text = "no answer in time" if late else str(getattr(error, "strerror", "") or error)
            raise TransportError(f"no connection to {address}: {text}", code=code, hint=hint) from None
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_MS)
        link = Link(made.detach(), seal)
        with self._lock:
            if self._closed:
                link.close()
            self._check()
            try:
                self._epoll.register(link.fileno(), select.EPOLLIN)
            except OSError as error:
                raise TransportError(f"no connection to {address}: {error.strerror}", code="CONNECT_FAILED") from None
            self._links[address] = link
            self._by_number[link.fileno()] = (address, link)
            self.connects += 1
        _LOG.info("connected to %s", address)
        self._watcher.joined(address)
        return link

    def call(
        self, address: Address, code: int, fields: Mapping[str, str], body: bytes = b"", seconds: float | None = None,
    ) -> Answer:  # fmt: skip
        """Make a call and wait for its answer, whatever its code is.

        Raises TransportError (no connection, or it ended, or no answer in time), RemoteProtocolError, ClosedError;
        LocalProtocolError on the thread that reads.
        """

        def write(link: Link, request: Request) -> None:
            link.call(request, code, dict(fields), body)

        found: Answer = self.ask(address, write, seconds)
        return found

    def ask(self, address: Address, write: Callable[[Link, Request], None], seconds: float | None = None) -> Any:
        """Let ``write`` put a request on the connection to a server, and return the answer.  Raises as `call`."""
        self.check_may_wait()
        link, call = self.open(address), _Call()
        limit = self.call_s if seconds is None else seconds
        self.watch(call, limit)
        write(link, call)
        self.look_by(call._until)
        self.push(link)
        number = get_ident()
        self._calls[number] = call
        try:
            self._check_thread()  # behind the line above: `forsake` finds the call, or this finds what it says
            if not call.done.wait(limit + 1.0):
                raise TransportError(f"{address} did not answer within {limit:g} s", code="NO_ANSWER")
        finally:
            self._calls.pop(number, None)
        if isinstance(call.found, DataProxyError):
            raise call.found
        return call.found

    def tell(self, address: Address, code: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        """Make a call that has no answer.  Raises TransportError, ClosedError."""
        link = self.open(address)
        link.call(None, code, dict(fields), body)
        self.push(link)

    def watch(self, request: Request, seconds: float) -> None:
        """Set when a request is late; before it is written.  `look_by` comes afterwards."""
        request._until = time.monotonic() + seconds

    def look_by(self, due: float) -> None:
        """Look for late requests at this time, or before; when the request is written, else a look could miss it."""
        if due >= self._due:
            return
        with self._due_lock:
            first = due < self._due
            if first:
                self._due = due
        if first:
            self.wake()

    def traffic(self) -> tuple[int, int]:
        """Return how many bytes the system has taken, and has given, since the beginning."""
        with self._lock:
            links = list(self._links.values())
            return (
                self._past_sent + sum(link.sent_bytes for link in links),
                self._past_read + sum(link.read_bytes for link in links),
            )

    def push_all(self) -> None:
        """Write what was put on connections, for a caller whose thread was interrupted before it could."""
        for link in list(self._links.values()):
            self.write(link)

    def write(self, link: Link) -> None:
        """Write what was put on a connection, now."""
        if not link.flush():
            self._want_room(link)

    def push(self, link: Link) -> None:
        """Write what was put on a connection; while much is under way, gather it for a moment first.

        What the thread that reads puts there while it tells answers of this connection is written behind them.
        """
        if link.sends < _CROWD:
            if link is not self._read or get_ident() != self._thread.ident:
                self.write(link)
        elif link not in self._dirty:
            self._dirty.add(link)
            if len(self._dirty) == 1:
                self.wake()

    def later(self, seconds: float, body: Callable[[], None]) -> None:
        """Call ``body`` on the thread that reads; it must not wait."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), body))
        self.wake()

    def wake(self) -> None:
        """Let the thread that reads look at what is due."""
        if get_ident() != self._thread.ident:
            with contextlib.suppress(OSError, BlockingIOError):  # it is closed, or awake
                os.eventfd_write(self._wake, 1)

    def drop(self, address: Address, error: DataProxyError) -> None:
        """End the connection to a server, if there is one; its requests are told."""
        with self._lock:
            link = self._links.pop(address, None)
            if link is None:
                return
            self._by_number.pop(link.fileno(), None)
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(link.fileno())
            self._dirty.discard(link)
            self._past_sent += link.sent_bytes
            self._past_read += link.read_bytes
            waiting = link.close()
        if not self._closed:
            self._warnings.warning("%s", error.message)
        for request in waiting:
            self._tell(request, error)
        self._watcher.parted(address, error)

    def end(self) -> None:
        """Let the thread end all connections, and itself, and let nobody make one; this does not wait for it."""
        with self._lock:
            self._closed = True
        self._attempts.end()
        self.wake()

    def close(self) -> BaseException | None:
        """End all connections and the thread; return what a signal handler raised meanwhile."""
        self.end()
        return None if is_ours() else join(self._thread, _JOIN_S)

    def check_failure(self) -> None:
        """Raise a DataProxyError if the thread that reads has ended before `close`."""
        if self.failure:
            raise _failure(self.failure)

    def _check(self) -> None:
        self.check_failure()
        self._check_thread()
        if self._closed:
            raise ClosedError("the client was closed")

    def _want_room(self, link: Link) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._epoll.modify(link.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _run(self) -> None:
        """Read until `close`.  If that fails, everybody who waits is told: nobody would answer them any more."""
        error: DataProxyError = ClosedError("the client was closed")
        try:
            while not self._closed:
                self._turn()
        except BaseException as reason:  # noqa: BLE001 - it is logged, and told to all who wait
            _LOG.log(logging.ERROR, "the thread that reads connections has failed", exc_info=True)
            self.failure = f"{type(reason).__name__}: {reason}"
            error = _failure(self.failure)
        with self._lock:
            self._closed = True  # from here on there are no new connections
        for address in list(self._links):
            try:
                self.drop(address, error)
            except Exception:  # noqa: BLE001 - the others are told, too
                _LOG.log(logging.ERROR, "the end of the connection to %s was not told", address, exc_info=True)
        self._epoll.close()
        if self.failure:
            self._watcher.failed(error)

    def __del__(self) -> None:
        if self._wake >= 0:
            os.close(
                self._wake
            )  # not before: `wake` may be called at any time, and the number be another file's by then

    def _turn(self) -> None:
        """Wait for something, and do it."""
        if self._crowded():
            time.sleep(_GATHER_S)
        self._flush_gathered()
        for number, events in self._epoll.poll(self._patience(), _TURN):
            if number == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                continue
            found = self._by_number.get(number)
            if found is None:
                continue
            address, link = found
            if events & select.EPOLLOUT and link.flush():
                with contextlib.suppress(OSError, ValueError):
                    self._epoll.modify(number, select.EPOLLIN)
            if events & ~select.EPOLLOUT:
                self._receive(address, link)
        now = time.monotonic()
        self._run_timers(now)
        if now >= self._due:
            self._end_late(now)

    def _crowded(self) -> bool:
        return bool(self._dirty) or any(link.sends >= _CROWD for link in list(self._links.values()))

    def _flush_gathered(self) -> None:
        while self._dirty:
            self.write(self._dirty.pop())

    def _patience(self) -> float:
        """Return the seconds until something is due, -1 for ever."""
        due = min(self._due, self._timers[0][0] if self._timers else math.inf)
        if self._dirty:
            return 0.0
        return -1 if due == math.inf else min(max(0.0, due - time.monotonic()), _LONGEST_S) + 0.001

    def _run_timers(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            body = heapq.heappop(self._timers)[2]
            try:
                body()
            except BaseException:  # noqa: BLE001 - it is logged, and the thread goes on
                _LOG.log(logging.ERROR, "what was due has failed", exc_info=True)

    def _receive(self, address: Address, link: Link) -> None:
        try:
            found = link.receive()
        except (RemoteProtocolError, MemoryError) as error:
            text = error.message if isinstance(error, RemoteProtocolError) else str(error)
            self.drop(address, RemoteProtocolError(f"{address}: {text}"))
            return
        if found is None:
            why = os.strerror(link.errno) if link.errno else "the server ended it"
            self.drop(address, TransportError(f"the connection to {address} has ended: {why}", code="CONNECTION_LOST"))
            return
        self._read = link
        try:
            self._tell_all(address, link, found)
        finally:
            self._read = None
        self.push(link)

    def _tell_all(self, address: Address, link: Link, found: list[tuple[Request | None, Any]]) -> None:
        if found and isinstance(found[0][0], Send):  # then most are: all of one producer
            found = found[0][0]._handler.settle_all(found)
        for request, answer in found:
            if request is None and isinstance(answer, RemoteProtocolError):
                self.drop(address, RemoteProtocolError(f"{address}: {answer.message}"))
                return
            if request is None:
                self._watcher.asked(address, link, answer)
            else:
                self._tell(request, answer)
        self._watcher.heard(address, link)

    def _tell(self, request: Any, answer: Any) -> None:
        try:
            if isinstance(answer, DataProxyError):
                request._lost(answer)
            else:
                request._answered(answer)
        except BaseException:  # noqa: BLE001 - it is logged, and the thread goes on
            _LOG.log(logging.ERROR, "an answer could not be taken", exc_info=True)

    def _end_late(self, now: float) -> None:
        """End requests that are late, and find out when the next one is."""
        with self._due_lock:
            self._due = math.inf
        due = math.inf
        late: list[tuple[Address, Link]] = []
        for address, link in list(self._links.items()):
            for number in [number for number, one in list(link.requests.items()) if one._until <= now]:
                request = link.forget(number)
                if request is not None:
                    self._tell(request, TransportError(f"{address} did not answer in time", code="NO_ANSWER"))
                    late.append((address, link))
            due = min([due, *(one._until for one in list(link.requests.values()))])
        with self._due_lock:
            self._due = min(self._due, due)
        for address, link in dict(late).items():
            self._watcher.heard(address, link)  # there is room again


def _failure(reason: str) -> DataProxyError:
    return DataProxyError(
        f"the client has failed ({reason})", fatal=True, hint="make a new one; the log has where it failed"
    )


def answer_fault(address: Address, what: str, answer: Answer) -> RemoteProtocolError:
    """Return the error for an answer whose code says that a call has failed."""
    from dataproxy.wire.rocketmq.codes import answer_name

    said = f": {foreign(answer.remark)}" if answer.remark else ""
    name = answer_name(answer.code) or "an unknown code"
    return RemoteProtocolError(
        f"{address} refused {what} with code {answer.code} ({name}){said}",
        code="CALL_REFUSED", retriable=answer.code in (1, 2, 14, 215),
        details={"code": answer.code, "remark": answer.remark},
    )  # fmt: skip
