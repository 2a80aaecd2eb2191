"""What a peer of an HTTP server may take: time, connections, memory.

The server itself waits for ever for the rest of a body, and for a peer that does not read its answer.  Each of its
protocols stands behind a ``_Guarded`` that keeps the clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
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
    """Return the logger for the HTTP server's own words; what is wrong with a request is no error of the hub."""
    own = logging.getLogger("dataproxy.hub.http")
    own.addFilter(_is_of_the_hub)  # one function: it is added once
    return own


def _is_of_the_hub(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    # Of a head; of a body nobody waits for; of an expectation that the server quotes, whatever bytes are in it (what
    # the hub's own code raises is answered before it comes here).
    if not isinstance(error, (HttpProcessingError, web.RequestPayloadError, UnicodeEncodeError)):
        return True
    _log.debug("a request was refused: %r", error)
    return False


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Say what HTTP peers may take.

    A request's head has to be there ``request`` seconds after its first byte (or the connect), its body ``request``
    seconds later; an answer has to be read in ``answer`` seconds, and the next request to begin in ``idle`` seconds.
    Of ``connections`` one makes room that is waited for, of the address that has most of them; ``pages`` of records are
    read and written at a time, and who does not read his makes room, for an address that has fewer at once, for others
    after ``stalled`` seconds (a tenth of it for who has read his last page).  When the door closes, what is under way
    has ``stop`` seconds.
    """

    request: float = 10.0
    idle: float = 15.0
    answer: float = 30.0
    stalled: float = 5.0
    stop: float = 1.0
    connections: int = 1000
    pages: int = 32


class Connections:
    """Make the protocols of a server and bound what their peers take.  On the server's loop only."""

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
        """Take a connection in; where there are too many, one goes that is waited for.  False: all are at work."""
        if len(self._open) >= self.limits.connections:
            slow = self._slowest()
            if slow is None:
                return False
            slow.drop()
        self._open[new] = None
        return True

    def _slowest(self) -> _Guarded | None:
        """Return the longest silent connection of the address that keeps most of them waiting."""
        slow = [one for one in self._open if one.waits]
        crowds = Counter(one.address for one in slow)
        most = max(crowds.values(), default=0)
        return next((one for one in slow if crowds[one.address] == most), None)

    def heard(self, one: _Guarded) -> None:
        """Note that a connection is not silent."""
        if one in self._open:
            del self._open[one]
            self._open[one] = None

    def gone(self, one: _Guarded) -> None:
        """Forget a connection."""
        self._open.pop(one, None)

    def drop(self, *, idle: bool = False) -> None:
        """End all connections, or those without a request under way."""
        for one in list(self._open):
            if not (idle and one.busy):
                one.drop()


class _Guarded(asyncio.Protocol):
    """Stand between a transport and the server's protocol for it."""

    def __init__(self, book: Connections, inner: asyncio.Protocol) -> None:
        self._book = book
        self._inner: asyncio.Protocol | None = inner
        self._transport: asyncio.Transport | None = None
        self._request: asyncio.TimerHandle | None = None
        self._answer: asyncio.TimerHandle | None = None
        self._body: StreamReader | None = None
        self.address = ""
        self.busy = 0
        self.stalled_since: float | None = None
        self.reads = False  # it has taken all of the last page that it got; the Manager door says so

    @property
    def waits(self) -> bool:
        """Tell whether the hub waits for the peer: there is no request under way, or its body is not there."""
        return not self.busy or (self._body is not None and not self._body.is_eof())

    def begin(self, body: StreamReader) -> None:
        """Note that the head of a request is there, and where its body will be."""
        self.busy += 1
        self._body = body
        if self._request is not None:
            self._request.cancel()
            self._request = None

    def end(self) -> None:
        """Note that a request is answered."""
        self.busy -= 1
        self._body = None

    def drop(self) -> None:
        """End the connection now, whatever is not written."""
        self._book.gone(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asked for its class: transports of other loops have none of asyncio's.
        self._transport = transport = cast("asyncio.Transport", transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        transport.set_write_buffer_limits(high=0)  # so that we are told of every byte that waits
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

    def _wait_for_request(self) -> None:
        if self._request is None:
            loop = asyncio.get_running_loop()
            self._request = loop.call_later(self._book.limits.request, self.drop)
