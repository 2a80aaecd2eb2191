"""The part of the Manager server that shows and changes what the Manager answers, and the nodes of the hub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from dataproxy.errors import ConfigError
from dataproxy.hub.listeners import is_compat
from dataproxy.hub.nodes import Node, checked_load, service_code
from dataproxy.hub.web.pages.served import Served
from dataproxy.hub.web.settings import ManagerSettings
from dataproxy.problems import shown
from dataproxy.shown import json_text

__all__ = ["SettingsApi"]

_NUMBER: Final = "{number:[0-9]{1,9}}"
#: What raises ConfigError for a value that a setting of a node cannot have.
_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "load": checked_load,
    "service": service_code,
    "profile": is_compat,
}
_COMMANDS: Final = ("drain", "undrain", "kill", "refuse", "restart")


class SettingsApi:
    """Serve ``/hub/manager`` and ``/hub/nodes``; ``hub`` gives the hub or raises ClosedError.

    A request's body must be complete within ``body_seconds``.
    """

    def __init__(self, hub: Callable[[], Served], settings: ManagerSettings, body_seconds: float) -> None:
        self._hub = hub
        self._settings = settings
        self._body_seconds = body_seconds

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the paths; the router's are below ``/hub``."""
        router.add_get("/manager", self._show)
        router.add_post("/manager", self._change)
        router.add_get("/nodes", self._list)
        router.add_post(f"/nodes/{_NUMBER}", self._set)
        router.add_post(f"/nodes/{_NUMBER}/{{what:{'|'.join(_COMMANDS)}}}", self._command)

    async def _show(self, _request: web.Request) -> web.Response:
        return _json(self._settings.to_json())

    async def _change(self, request: web.Request) -> web.Response:
        self._settings.change(await self._read(request))
        return _json(self._settings.to_json())

    async def _list(self, _request: web.Request) -> web.Response:
        return _json({"nodes": [node.to_json() for node in self._hub().nodes]})

    async def _set(self, request: web.Request) -> web.Response:
        node = self._node(request)
        value = await self._read(request)
        known = {"load": node.set_load, "service": node.set_service, "profile": node.set_profile}
        if not isinstance(value, dict) or not value or not value.keys() <= known.keys():
            raise ConfigError(
                f"the settings {shown(value)} are not those of a node", hint=f"known are {', '.join(known)}"
            )
        for name, given in value.items():
            if isinstance(given, bool) or not isinstance(given, (str, int)):
                raise ConfigError(f"the setting {name} is {shown(given)}", hint="give a text or a number")
            _CHECKS[name](str(given))  # of all before the first is made: all or none
        await asyncio.to_thread(lambda: [known[name](str(given)) for name, given in value.items()])
        return _json(node.to_json())

    async def _command(self, request: web.Request) -> web.Response:
        node = self._node(request)
        act = {name: getattr(node, name) for name in _COMMANDS}
        await asyncio.to_thread(act[request.match_info["what"]])
        return _json(node.to_json())

    def _node(self, request: web.Request) -> Node:
        nodes = self._hub().nodes
        index = int(request.match_info["number"])
        if index >= len(nodes):
            raise web.HTTPNotFound(reason=f"there is no node {index}")
        return nodes[index]

    async def _read(self, request: web.Request) -> Any:
        try:
            async with asyncio.timeout(self._body_seconds):
                return json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}", hint='send {"isSwitch": 1}') from None


def _json(value: object) -> web.Response:
    return web.json_response(value, dumps=json_text)
