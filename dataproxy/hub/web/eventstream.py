"""Events of a hub as they happen: a stream of server-sent events for each operator who looks on.

An event's ``id`` names the hub's run and the event's number.  A client that comes again with the last one that it has
(``Last-Event-ID``) goes on behind it; what the hub does not keep any more is told as a number (``event: missed``).

Nothing is queued for a stream: each reads for itself from the events that the hub keeps, a portion at a time, and waits
until its peer has taken that.  A peer that takes nothing for ``HttpLimits.answer`` is disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from dataproxy.errors import ClosedError
from dataproxy.hub.overview.events import Event, Events
from dataproxy.hub.web.connections import HttpLimits
from dataproxy.hub.web.pages.served import Served
from dataproxy.problems import shown
from dataproxy.shown import json_text

__all__ = ["EventStreams"]

_PORTION: Final = 100  # events that are written at a time
_NUMBER_MOST: Final = 2**62
_ID_MOST: Final = 64  # characters
_HEAD: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
#: A first comment, so that proxies pass the head on, and ms until a client comes again.
_FIRST: Final = b": events of a dataproxy hub\nretry: 1000\n\n"
_ALIVE: Final = b": alive\n\n"


class EventStreams:
    """Serve ``/hub/events/stream``.  On the server's loop only.

    ``hub`` gives the hub or raises ClosedError.  Of ``limits``, ``streams`` are open at a time, and each gets a comment
    after ``alive`` seconds without an event.
    """

    def __init__(self, hub: Callable[[], Served], limits: HttpLimits) -> None:
        self._hub, self._limits = hub, limits
        self._open: dict[Any, asyncio.Event] = {}  # by connection: its wake-up
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = False  # a wake-up is on its way
        self._closing = False

    def __len__(self) -> int:
        return len(self._open)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the path; the router's are below ``/hub``."""
        router.add_get("/events/stream", self._serve)

    def close(self) -> None:
        """End all streams; those whose peers do not read are cut off."""
        self._closing = True
        for keeper, wake in list(self._open.items()):
            wake.set()
            if keeper.stalled_since is not None:
                keeper.drop()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        events = self._hub()._overview.events
        number = _start(request, events)
        keeper: Any = None if request.transport is None else request.transport.get_protocol()
        if request.method == "HEAD":
            return web.Response(headers=_HEAD)
        if keeper is None or self._closing or len(self._open) >= self._limits.streams:
            raise web.HTTPServiceUnavailable(
                reason=f"{len(self._open)} streams of events are open, the most that there may be; or ask for pages"
            )
        self._loop = asyncio.get_running_loop()
        wake = asyncio.Event()
        if not self._open:
            events.listen(self._tell)
        self._open[keeper] = wake
        answer = web.StreamResponse(headers=_HEAD)
        try:
            with contextlib.suppress(ConnectionError, ClosedError), keeper.streaming(wake.set):
                await answer.prepare(request)
                await answer.write(_FIRST)
                await self._follow(request, answer, events, number, wake)
        finally:
            del self._open[keeper]
            if not self._open:
                events.unlisten(self._tell)
        return answer

    async def _follow(
        self, request: web.Request, answer: web.StreamResponse, events: Events, number: int, wake: asyncio.Event
    ) -> None:
        """Write events behind a number until the server closes or the peer has gone.  Raises ConnectionError."""
        while not self._closing and request.transport is not None:
            wake.clear()  # before the look: what comes behind it wakes again
            page = events.after(number, _PORTION)
            number = page.next
            if page.events or page.missed:
                missed = f'event: missed\ndata: {{"missed": {page.missed}}}\n\n' if page.missed else ""
                text = missed + "".join(_message(events.run, one) for one in page.events)
                await answer.write(text.encode())
                await asyncio.sleep(0)  # others have their turn also while this one has much to read
                continue
            try:
                async with asyncio.timeout(self._limits.alive):
                    await wake.wait()
            except TimeoutError:
                self._hub()  # a hub that was forgotten has no more events
                await answer.write(_ALIVE)

    def _tell(self) -> None:
        """Wake all streams: an event has come.  Any thread."""
        if not self._told and self._loop is not None:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop is closed, by another thread than this one
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._told = False
        for wake in self._open.values():
            wake.set()


def _message(run: str, event: Event) -> str:
    return f"id: {run}-{event.number}\ndata: {json_text(event.to_json())}\n\n"


def _start(request: web.Request, events: Events) -> int:
    """Return the number behind which a stream begins.  Raises ValueError."""
    last = request.headers.get("last-event-id", "")
    if last:
        run, dash, text = last.rpartition("-")
        if not dash or not _is_number(text) or len(last) > _ID_MOST:
            raise ValueError(
                f"Last-Event-ID={shown(last)} is no id of this stream: leave it out, or send the last one that came"
            )
        return int(text) if run == events.run else 0  # another run: all of this one is new
    text = request.query.get("after", "") or "0"
    if not _is_number(text):
        raise ValueError(f"the parameter after={shown(text)} must be a number from 0 to {_NUMBER_MOST}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(_NUMBER_MOST)) and int(text) <= _NUMBER_MOST
