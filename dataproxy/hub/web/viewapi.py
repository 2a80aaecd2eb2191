"""The part of the Manager server for the operator's view: clients, groups, locks, transactions, events, offsets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from dataproxy.errors import ClosedError, ConfigError
from dataproxy.hub.overview.pages import read_key
from dataproxy.hub.overview.places import AbsentError
from dataproxy.hub.overview.view import View
from dataproxy.hub.web.pages.served import Served
from dataproxy.hub.web.tubeapi import Paged
from dataproxy.problems import shown
from dataproxy.shown import json_text

__all__ = ["ViewApi"]

_USUAL, _MOST = 100, 1000  # rows of a page
_LARGEST: Final = 2**31 - 1
_NUMBER_MOST: Final = 2**62
_CLIENT: Final = (str, str, str, str, str)
_GROUP: Final = (str, str)
_LOCK: Final = (str, str, int)
_TRANSACTION: Final = (int,)
_FIELDS: Final = ("group", "topic", "partition", "to", "protocol", "execute")


class ViewApi:
    """Serve ``/hub/clients``, ``groups``, ``locks``, ``transactions``, ``events`` and ``offsets``.

    ``hub`` gives the hub or raises ClosedError.  A request's body must be complete within ``body_seconds``.  All is
    done on reading threads.
    """

    def __init__(self, hub: Callable[[], Served], page: Paged, body_seconds: float) -> None:
        self._hub, self._page, self._body_seconds = hub, page, body_seconds

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the paths; the router's are below ``/hub``."""
        router.add_get("/clients", self._clients)
        router.add_get("/groups", self._groups)
        router.add_get("/locks", self._locks)
        router.add_get("/transactions", self._transactions)
        router.add_get("/events", self._events)
        router.add_post("/offsets", self._reset)

    async def _clients(self, request: web.Request) -> web.StreamResponse:
        start, limit = read_key(request.query.get("start", ""), _CLIENT), _limit(request)
        return await self._told(request, lambda view: view.clients(start, limit))

    async def _groups(self, request: web.Request) -> web.StreamResponse:
        start, limit = read_key(request.query.get("start", ""), _GROUP), _limit(request)
        only = request.query.get("group") or None
        return await self._told(request, lambda view: view.groups(start, limit, only))

    async def _locks(self, request: web.Request) -> web.StreamResponse:
        start, limit = read_key(request.query.get("start", ""), _LOCK), _limit(request)
        return await self._told(request, lambda view: view.locks(start, limit))

    async def _transactions(self, request: web.Request) -> web.StreamResponse:
        start, limit = read_key(request.query.get("start", ""), _TRANSACTION), _limit(request)
        return await self._told(request, lambda view: view.transactions(start, limit))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        after, limit = _number(request, "after", 0, _NUMBER_MOST), _limit(request)
        return await self._told(request, lambda view: view.events_after(after, limit))

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        value = await self._read(request)
        group, topic, protocol = (_text(value, name) for name in ("group", "topic", "protocol"))
        partition, execute = value.get("partition"), value.get("execute", False)
        if partition is not None and (type(partition) is not int or not 0 <= partition <= _LARGEST):
            raise ConfigError(f"partition={shown(partition)} is no number of one", hint="give a number from 0 on")
        if not isinstance(execute, bool):
            raise ConfigError(f"execute={shown(execute)} is neither true nor false", hint="give one of both")
        return await self._told(
            request, lambda view: view.reset(group, topic, partition, value.get("to"), protocol, execute=execute)
        )

    async def _told(self, request: web.Request, work: Callable[[View], Any]) -> web.StreamResponse:
        """Answer with what ``work`` returns on a reading thread; what is not there is 404."""
        view = self._hub()._overview

        def make() -> bytes:
            try:
                return json_text(work(view)).encode()
            except AbsentError as error:
                raise web.HTTPNotFound(reason=str(error.args[0])) from None
            except LookupError as error:  # the caller of this one takes it for a mistake in the request
                raise RuntimeError("the operator's view has failed") from error
            except TimeoutError as error:
                raise ClosedError(str(error), hint="look what there is, and try again") from None

        return await self._page(request, make)

    async def _read(self, request: web.Request) -> dict[str, Any]:
        """Return the object in a request's body, which has known names alone.  Raises ConfigError."""
        try:
            async with asyncio.timeout(self._body_seconds):
                value = json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}", hint=f"names are {', '.join(_FIELDS)}") from None
        if not isinstance(value, dict) or not value.keys() <= set(_FIELDS):
            raise ConfigError(
                f"the body {shown(value)} is not that of this request", hint=f"names: {', '.join(_FIELDS)}"
            )
        return value


def _limit(request: web.Request) -> int:
    limit = _number(request, "limit", _USUAL, _MOST)
    if not limit:
        raise ValueError(f"the parameter limit=0 must be a number from 1 to {_MOST}")
    return limit


def _number(request: web.Request, name: str, usual: int, most: int) -> int:
    text = request.query.get(name, "") or str(usual)
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)) or int(text) > most:
        raise ValueError(f"the parameter {name}={shown(text)} must be a number from 0 to {most}")
    return int(text)


def _text(value: dict[str, Any], name: str) -> str:
    given = value.get(name, "")
    if not isinstance(given, str):
        raise ConfigError(f"{name}={shown(given)} is no name", hint=f"give {name} as a text")
    return given
