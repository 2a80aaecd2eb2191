"""The part of the Manager server that arms faults over HTTP, and that carries out faults of discovery requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final

from aiohttp import web

from dataproxy.errors import ConfigError
from dataproxy.hub.faults.armed import ArmedFault
from dataproxy.hub.faults.fault import Fault
from dataproxy.hub.listeners import Listener
from dataproxy.hub.web.pages.served import Served
from dataproxy.shown import json_text

__all__ = ["FaultApi", "disturb"]

_NUMBER: Final = "{number:[0-9]{1,18}}"


class FaultApi:
    """Serve ``/hub/faults`` and ``/hub/listeners``; ``hub`` gives the hub or raises ClosedError.

    A request's body must be complete within ``body_seconds``.
    """

    def __init__(self, hub: Callable[[], Served], body_seconds: float) -> None:
        self._hub = hub
        self._body_seconds = body_seconds

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the paths; the router's are below ``/hub``."""
        router.add_get("/faults", self._list)
        router.add_post("/faults", self._add)
        router.add_delete("/faults", self._clear)
        router.add_get(f"/faults/{_NUMBER}", self._show)
        router.add_delete(f"/faults/{_NUMBER}", self._remove)
        router.add_get("/listeners", self._listeners)
        router.add_post(f"/listeners/{_NUMBER}/{{what:kill|refuse|restart}}", self._command)

    def _allowed(self) -> Served:
        """Return the hub if faults may be armed over HTTP.  Raises HTTPForbidden."""
        hub = self._hub()
        if hub.config.fault_api == "off":
            raise web.HTTPForbidden(reason="faults over HTTP are switched off; start the hub with fault_api=on")
        return hub

    async def _list(self, _request: web.Request) -> web.Response:
        return _json({"faults": [armed.to_json() for armed in self._allowed().faults]})

    async def _add(self, request: web.Request) -> web.Response:
        hub = self._allowed()
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await request.read()
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}", hint='send {"kind": "drop_reply"}') from None
        fault = Fault.from_json(value)
        return _json((await asyncio.to_thread(hub.faults.add, fault)).to_json(), 201)

    async def _show(self, request: web.Request) -> web.Response:
        return _json(_armed(self._allowed(), request).to_json())

    async def _remove(self, request: web.Request) -> web.Response:
        armed = _armed(self._allowed(), request)
        await asyncio.to_thread(armed.remove)
        return _json(armed.to_json())

    async def _clear(self, _request: web.Request) -> web.Response:
        hub = self._allowed()
        gone = list(hub.faults)
        await asyncio.to_thread(hub.faults.clear)
        return _json({"faults": [armed.to_json() for armed in gone]})

    async def _listeners(self, _request: web.Request) -> web.Response:
        return _json({"listeners": [listener.to_json() for listener in _listeners(self._allowed())]})

    async def _command(self, request: web.Request) -> web.Response:
        hub = self._allowed()
        index = int(request.match_info["number"])
        listeners = _listeners(hub)
        if index >= len(listeners):
            raise web.HTTPNotFound(reason=f"there is no listener {index}")
        listener = listeners[index]
        act = {"kill": listener.kill, "refuse": listener.refuse, "restart": listener.restart}
        await asyncio.to_thread(act[request.match_info["what"]])
        return _json(listener.to_json())


async def disturb(hub: Served, request: web.Request, group: str) -> web.Response | None:
    """Count a discovery request; return the wrong answer of a fault, None for the normal answer."""
    armed = hub.faults._manager_fault(group)
    if armed is None:
        return None
    fault = armed.fault
    if fault.kind == "manager_answer":
        return web.Response(status=fault._parameter("status"), body=fault._parameter("data"))
    if fault.kind == "manager_slow":
        if fault._parameter("seconds"):
            await asyncio.sleep(fault._parameter("seconds"))
        else:
            await asyncio.shield(asyncio.wrap_future(armed.gone))
        return None
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)


def _armed(hub: Served, request: web.Request) -> ArmedFault:
    armed = hub.faults.get(int(request.match_info["number"]))
    if armed is None:
        raise web.HTTPNotFound(reason=f"there is no fault {request.match_info['number']}")
    return armed


def _listeners(hub: Served) -> list[Listener]:
    """Return the listeners of all nodes in the order of their indices: TCP, then HTTP."""
    return sorted((one for node in hub.nodes for one in node.listeners), key=lambda one: one.index)


def _json(value: object, status: int = 200) -> web.Response:
    return web.json_response(value, status=status, dumps=json_text)
