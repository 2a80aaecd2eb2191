"""The Manager door: the HTTP calls that SDKs discover proxies with, and a small read-only API of the hub."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from dataproxy.errors import ClosedError, DataProxyError, StoreError
from dataproxy.hub.faultdoor import FaultDoor, disturb
from dataproxy.hub.records import records_of
from dataproxy.logs import logger

if TYPE_CHECKING:
    from dataproxy.hub.records import Record
    from dataproxy.hub.server import Hub

__all__ = ["ManagerDoor", "ManagerSettings"]

_log: Final = logger("hub.manager")
_STOP_SECONDS: Final = 60.0
_BODY_BYTES: Final = 64 << 10
_RECORDS_MOST: Final = 10_000
_OFFSET_MOST: Final = 2**63 - 1
_PARTITION_MOST: Final = 2**32 - 1
#: A page of records ends when its bodies have so many bytes.
_PAGE_BYTES: Final = 8 << 20
_UNKNOWN_LOAD: Final = 65535
_WORKERS: Final = "dataproxy-hub-reader"
_OPENAPI: Final = "/inlong/manager/openapi/dataproxy"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class ManagerSettings:
    """Hold what the Manager door answers; every attribute may be changed while the hub runs.

    ``nodes`` lists (address, port) of the proxies to name, empty for this hub alone.  ``denied`` groups get
    ``success: false``.  ``secrets`` maps ids to keys for Basic authentication; empty switches it off.
    ``max_packet_length`` is in bytes, None for no limit.
    """

    cluster_id: int = 1
    is_intranet: int | None = None
    is_switch: int | None = None
    load: int = 20
    max_packet_length: int | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    denied: frozenset[str] = frozenset()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


class ManagerDoor:
    """Serve HTTP on a thread of its own until ``close``.

    Raises HubError when the address cannot be listened on.
    """

    def __init__(self, hub: Hub, host: str, port: int) -> None:
        self.settings = ManagerSettings(cluster_id=hub.config.cluster_id)
        self.port = port
        # Weak: the running thread must not keep a forgotten hub alive.
        self._hub_ref = weakref.ref(hub)
        self._loop = asyncio.new_event_loop()
        # Of our own: closing the loop's default one needs a thread, which the interpreter's exit refuses.
        self._workers = ThreadPoolExecutor(4, thread_name_prefix=_WORKERS)
        self._loop.set_default_executor(self._workers)
        self._runner: web.AppRunner | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="dataproxy-hub-manager", daemon=True)
        self._thread.start()
        try:
            # On its own thread: the caller's may be running a loop already.
            asyncio.run_coroutine_threadsafe(self._open(host, port), self._loop).result(_STOP_SECONDS)
        except BaseException:
            self.close()
            raise

    async def _open(self, host: str, port: int) -> None:
        from dataproxy.hub.server import listen_error

        self._runner = web.AppRunner(self._application(), access_log=None, keepalive_timeout=15.0, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            raise listen_error("the Manager door", host, port, error) from error
        self.port = int(self._runner.addresses[0][1])

    @property
    def _hub(self) -> Hub:
        hub = self._hub_ref()
        if hub is None:
            raise ClosedError("the hub is closed")
        return hub

    def close(self) -> None:
        """Stop serving and end the thread.  Idempotent.

        On a thread of the door itself (a request held the last reference to the hub) another one does it.
        """
        if self._loop.is_closed():
            return
        own = threading.current_thread()
        if own is self._thread or own.name.startswith(_WORKERS):
            threading.Thread(target=self.close, name="dataproxy-hub-manager-close", daemon=True).start()
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        self._workers.shutdown()
        self._loop.close()

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_BYTES, middlewares=[self._guard])
        application.router.add_post(f"{_OPENAPI}/getIpList/{{name}}", self._by_group)
        application.router.add_post(f"{_OPENAPI}/getIpListByClusterName/{{name}}", self._by_cluster)
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/hub/stats", self._stats)
        application.router.add_get("/hub/counts", self._counts)
        application.router.add_get("/hub/records", self._records)
        FaultDoor(lambda: self._hub).add_routes(application.router)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Check the authentication, name the request, and turn errors into JSON answers."""
        if request.path != "/healthz" and not self._allowed(request.headers.get("authorization", "")):
            answer: web.StreamResponse = _failure(403, "authentication failed: wrong or missing secret id or key")
        else:
            try:
                answer = await handler(request)
            except web.HTTPException as error:
                answer = _failure(error.status, error.reason, error.headers.get("Allow"))
            except ValueError as error:
                answer = _failure(400, str(error))
            except DataProxyError as error:
                _log.warning("%s failed: %s", request.path, error)
                answer = _failure(500 if isinstance(error, StoreError) else 503, str(error))
        answer.headers["trace-id"] = os.urandom(16).hex()
        return answer

    def _allowed(self, header: str) -> bool:
        """Tell whether the header carries a known id and key; the scheme word is compared to the letter."""
        if not self.settings.secrets:
            return True
        scheme, _, encoded = header.partition(" ")
        if scheme != "Basic":
            return False
        try:
            name, colon, key = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        expected = self.settings.secrets.get(name)
        return bool(colon) and expected is not None and hmac.compare_digest(expected.encode(), key.encode())

    async def _by_group(self, request: web.Request) -> web.StreamResponse:
        group = request.match_info["name"]
        topics = self._hub.config.topics
        if group in self.settings.denied:
            return _json({"success": False, "errMsg": f"inlong group {group} is not allowed", "data": None})
        if topics and group not in {topic.partition("/")[0] for topic in topics}:
            return _json({"success": False, "errMsg": f"inlong group {group} does not exist", "data": None})
        return await self._node_list(request, group)

    async def _by_cluster(self, request: web.Request) -> web.StreamResponse:
        return await self._node_list(request, "")

    async def _node_list(self, request: web.Request, group: str) -> web.StreamResponse:
        wrong = await disturb(self._hub, request, group)
        if wrong is not None:
            return wrong
        settings = self.settings
        wanted = (await _parameter(request, "protocolType")).upper()
        nodes = self._nodes(request) if wanted in ("", "TCP") else []
        data: dict[str, Any] = {
            "clusterId": settings.cluster_id if nodes else None,
            "reportSourceType": None,
            "isIntranet": settings.is_intranet,
            "isSwitch": settings.is_switch,
            "load": settings.load,
            "maxPacketLength": settings.max_packet_length,
            "nodeList": nodes or None,
        }
        return _json({"success": True, "errMsg": None, "data": data})

    def _nodes(self, request: web.Request) -> list[dict[str, Any]]:
        nodes = self.settings.nodes or self._own_nodes(request)
        return [
            {"id": i, "ip": host, "port": port, "protocolType": "TCP", "nodeLoad": _UNKNOWN_LOAD}
            for i, (host, port) in enumerate(nodes, start=1)
        ]

    def _own_nodes(self, request: web.Request) -> tuple[tuple[str, int], ...]:
        """Return the listeners that are not drained."""
        address, drained = self._own_address(request), self._hub.faults.drained()
        return tuple((address, one.port) for one in self._hub.listeners if one.index not in drained)

    def _own_address(self, request: web.Request) -> str:
        """Return the address to name: the one listened on, or for a wildcard the one the caller reached us by."""
        if self._hub.host not in ("0.0.0.0", "::"):
            return self._hub.host
        name = None if request.transport is None else request.transport.get_extra_info("sockname")
        return str(name[0]) if name else self._hub.config.node_ip

    async def _health(self, _request: web.Request) -> web.Response:
        return _json({"ok": True})

    async def _stats(self, _request: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(self._hub.stats))

    async def _counts(self, _request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._hub.counts)
        rows = [
            {"group": group, "stream": stream, "entries": c.entries, "records": c.records, "bytes": c.bytes}
            for (group, stream), c in sorted(found.items())
        ]
        return _json({"streams": rows})

    async def _records(self, request: web.Request) -> web.Response:
        query = request.query
        if not query.get("group"):
            raise ValueError("the parameter group is missing")
        place = _Place.parse(query.get("start", ""))
        limit = _number("limit", query.get("limit", ""), 100, _RECORDS_MOST)
        return _json(await asyncio.to_thread(self._read, query["group"], query.get("stream") or None, place, limit))

    def _read(self, group: str, stream: str | None, place: _Place, limit: int) -> dict[str, Any]:
        """Return whole entries from a place on, as far as ``limit`` and the size of a page allow, and the next place.

        One entry is always given unless ``limit`` is 0.
        """
        rows: list[dict[str, Any]] = []
        left = _PAGE_BYTES
        for entry in self._hub.entries(group, stream, start=place.start, at=dict(place.at)):
            if len(rows) >= limit or left <= 0:
                break
            for record in records_of(entry):
                rows.append(_row(record))
                left -= len(record.body)
            place.at[entry.partition] = entry.offset + 1
        return {"records": rows, "next": str(place)}


@dataclass(slots=True)
class _Place:
    """Hold where to read on: an offset for each partition in ``at``, ``start`` for all others.

    Its text is ``START[,PARTITION:OFFSET]...``, so a plain number is a place, too.
    """

    start: int = 0
    at: dict[int, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> _Place:
        first, *rest = text.split(",")
        place = cls(_number("start", first, 0, _OFFSET_MOST))
        for item in rest:
            partition, _, offset = item.partition(":")
            place.at[_number("start", partition, -1, _PARTITION_MOST)] = _number("start", offset, -1, _OFFSET_MOST)
        if -1 in place.at or -1 in place.at.values():
            raise ValueError(f"the parameter start={text!r} is no place: give a number, or what next said")
        return place

    def __str__(self) -> str:
        return ",".join([str(self.start), *(f"{partition}:{offset}" for partition, offset in self.at.items())])


def _row(record: Record) -> dict[str, Any]:
    """Return a record as it is shown in JSON."""
    return {
        "group_id": record.group_id,
        "stream_id": record.stream_id,
        "body": base64.b64encode(record.body).decode(),
        "attrs": record.attrs,
        "dt_ms": record.dt_ms,
        "partition": record.partition,
        "offset": record.offset,
        "index": record.index,
        "receive_ms": record.receive_ms,
        "source": record.source,
    }


async def _parameter(request: web.Request, name: str) -> str:
    """Return a parameter from query, form or headers, "" if it is nowhere."""
    if name in request.query:
        return request.query[name].strip()
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        value = (await request.post()).get(name)
        if isinstance(value, str):
            return value.strip()
    return request.headers.get(name, "").strip()


def _number(name: str, text: str, default: int, most: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or int(text) > most:
        raise ValueError(f"the parameter {name}={text!r} must be a number from 0 to {most}")
    return int(text)


def _failure(status: int, text: str, allow: str | None = None) -> web.Response:
    answer = _json({"success": False, "errMsg": text, "data": None}, status)
    if allow is not None:
        answer.headers["Allow"] = allow
    return answer


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(
        status=status,
        body=json.dumps(value, ensure_ascii=False).encode(),
        content_type="application/json",
        charset="utf-8",
    )
