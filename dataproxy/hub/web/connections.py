"""Limits for the peers of an HTTP server: time, connections, memory.

The server itself has no time limit for the rest of a body, nor for a peer that does not read its answer.  So each of
its protocols is wrapped in a ``_Guarded``, which has timers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from dataproxy.logs import logger

__all__ = ["Connections", "HttpLimits", "server_log"]

_log: Final = logger("hub.manager")
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 1\r\n\r\n"


def server_log() -> logging.Logger:
    """Return the logger for the HTTP server; a faulty request is not logged as an error of the hub."""
    own = logging.getLogger("dataproxy.hub.http")
    own.addFilter(_is_of_the_hub)  # always the same function, so logging adds it once
    return own


def _is_of_the_hub(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    # Faults of a peer: in the head; in a body that no handler reads; in an ``Expect`` header, which the server quotes.
    # Exceptions of the hub's own handlers are answered before this.
    if not isinstance(error, (HttpProcessingError, web.RequestPayloadError, UnicodeEncodeError)):
        return True
    _log.debug("a request was refused: %r", error)
    return False


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Hold the limits for HTTP peers; times are in seconds.

    ``request``: from a request's first byte (or the connect) to the end of its head, and from there to the end of its
    body.  ``answer``: for a peer to read an answer.  ``idle``: until the next request begins.  ``connections``: the
    number of open ones; for one more, a connection that the hub waits for is closed, of the address that has most of
    these.  ``pages``: pages of records that are read and written at a time.  For one more, a peer that does not read
    its page is disconnected: at once if the new peer's address has fewer pages, else after ``stalled`` (after a tenth
    of it if the new peer has read its last page).  ``streams``: streams of events at a time; ``alive``: until a stream
    without events gets a comment.  ``stop``: for requests in progress when the server closes.
    """

    request: float = 10.0
    idle: float = 15.0
    answer: float = 30.0
    stalled: float = 5.0
    stop: float = 1.0
    connections: int = 1000
    pages: int = 32
    streams: int = 32
    alive: float = 10.0


class Connections:
    """Make the protocols of a server and apply the limits to their peers.  On the server's loop only."""

    def __init__(self, make: Callable[[], asyncio.Protocol], limits: HttpLimits) -> None:
        self._make = make
        self._open: dict[_Guarded, None] = {}  # the longest silent one first
        self.limits = limits

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol for a new connection."""
        return _Guarded(self, self._make())

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, new: _Guarded) -> bool:
        """Count a connection; if there are too many, close one that the hub waits for.  False: none can be closed."""
        if len(self._open) >= self.limits.connections:
            slow = self._slowest()
            if slow is None:
                return False
            slow.drop()
        self._open[new] = None
        return True

    def _slowest(self) -> _Guarded | None:
        """Return the longest silent connection of the address with most connections that the hub waits for."""
        slow = [one for one in self._open if one.waits]
        crowds = Counter(one.address for one in slow)
        most = max(crowds.values(), default=0)
        return next((one for one in slow if crowds[one.address] == most), None)

    def heard(self, one: _Guarded) -> None:
        """Note that bytes came on a connection."""
        if one in self._open:
            del self._open[one]
            self._open[one] = None

    def gone(self, one: _Guarded) -> None:
        """Forget a connection."""
        self._open.pop(one, None)

    def drop(self, *, idle: bool = False) -> None:
        """End all connections, or with ``idle`` those without a request in progress."""
        for one in list(self._open):
            if not (idle and one.busy):
                one.drop()


class _Guarded(asyncio.Protocol):
    """Wrap the server's protocol for one connection, and watch its transport."""

    def __init__(self, book: Connections, inner: asyncio.Protocol) -> None:
        self._book = book
        self._inner: asyncio.Protocol | None = inner
        self._transport: asyncio.Transport | None = None
        self._request: asyncio.TimerHandle | None = None
        self._answer: asyncio.TimerHandle | None = None
        self._body: StreamReader | None = None
        self._lost: Callable[[], None] | None = None
        self.address = ""
        self.busy = 0
        self.stalled_since: float | None = None
        self.reads = False  # the peer has read its last page completely; set by the Manager server

    @property
    def waits(self) -> bool:
        """Tell whether the hub waits for the peer: no request is in progress, or its body is not complete."""
        return not self.busy or (self._body is not None and not self._body.is_eof())

    def begin(self, body: StreamReader) -> None:
        """Note that the head of a request has come; ``body`` will get its body."""
        self.busy += 1
        self._body = body
        if self._request is not None:
            self._request.cancel()
            self._request = None

    def end(self) -> None:
        """Note that a request is answered."""
        self.busy -= 1
        self._body = None

    @contextlib.contextmanager
    def streaming(self, lost: Callable[[], None]) -> Iterator[None]:
        """Hold while an answer without an end is written; ``lost`` is called when the connection ends.

        Whoever sends another request meanwhile is disconnected: requests that wait would take memory without bound.
        """
        self._lost = lost
        try:
            yield
        finally:
            self._lost = None

    def drop(self) -> None:
        """End the connection now; unsent bytes are lost."""
        self._book.gone(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No check of its class: transports of other loops do not derive from asyncio's.
        self._transport = transport = cast("asyncio.Transport", transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called for every byte that waits
        if not self._book.admit(self):
            self._inner = None
            transport.write(_FULL)
            transport.close()
            return
        self._wait_for_request()
        assert self._inner is not None
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            return
        if self._lost is not None:
            self.drop()
            return
        self._book.heard(self)
        if not self.busy:
            self._wait_for_request()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._answer is None:
            loop = asyncio.get_running_loop()
            self.stalled_since = loop.time()
            self._answer = loop.call_later(self._book.limits.answer, self.drop)
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None
            self.stalled_since = None
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._request, self._answer):
            if timer is not None:
                timer.cancel()
        self._book.gone(self)
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(exc)
        if self._lost is not None:
            self._lost()

    def _wait_for_request(self) -> None:
        if self._request is None:
            loop = asyncio.get_running_loop()
            self._request = loop.call_later(self._book.limits.request, self.drop)
