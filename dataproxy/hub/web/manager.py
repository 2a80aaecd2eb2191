"""The Manager server: the HTTP calls by which SDKs discover proxies, and the hub's own HTTP API."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from dataproxy.errors import ClosedError, DataProxyError, StoreError
from dataproxy.hub.addresses import ANY6, bind_all
from dataproxy.hub.descriptors import Shortage
from dataproxy.hub.health import ForgottenLog, HealthLog, health_of
from dataproxy.hub.listeners import listen_error
from dataproxy.hub.web.access import HubAccess, has_credentials
from dataproxy.hub.web.connections import Connections, HttpLimits, server_log
from dataproxy.hub.web.eventstream import EventStreams
from dataproxy.hub.web.faultapi import FaultApi, disturb
from dataproxy.hub.web.pages.answers import counts_page, records_page
from dataproxy.hub.web.pages.entries import ARROW_STREAM, Range, entries_page, logs_page
from dataproxy.hub.web.pages.front import METRICS_TYPE, front_page, metrics_text
from dataproxy.hub.web.pages.records import Place
from dataproxy.hub.web.pages.served import Served
from dataproxy.hub.web.pages.slots import PageSlots
from dataproxy.hub.web.settings import ManagerCluster, ManagerSettings
from dataproxy.hub.web.settingsapi import SettingsApi
from dataproxy.hub.web.tubeapi import TubeApi
from dataproxy.hub.web.viewapi import ViewApi
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.shown import json_text

if TYPE_CHECKING:
    import ssl

    from dataproxy.trust.watched import Trust

__all__ = ["ManagerServer"]

_log: Final = logger("hub.manager")
_STOP_SECONDS: Final = 60.0
_BODY_BYTES: Final = 64 << 10
#: Longest request line: a place in 1024 partitions must fit.
_LINE_BYTES: Final = 64 << 10
#: Send buffer of a socket; the kernel doubles it for its own data.  It is smaller than a page of records, so that a
#: peer cannot ask for a second page before it has read the first one.
_SOCKET_BYTES: Final = 256 << 10
_LOOK_SECONDS: Final = 1.0
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ROWS_MOST: Final = 10_000
_RECORDS: Final = 100  # in a page, unless the request gives a number
_STREAMS: Final = 1000
_OFFSET_MOST: Final = 2**63 - 1
_PARTITION_MOST: Final = 2**32 - 1
_DIGITS: Final = 20  # of a number; Python refuses to convert very long texts
_UNKNOWN_LOAD: Final = 65535
_PROTOCOLS: Final = ("TCP", "HTTP")
_WORKERS: Final = "dataproxy-hub-reader"
_JSON: Final = "application/json"
_MAPPED: Final = "::ffff:"  # an IPv4 address on a socket of both families
_OPENAPI: Final = "/inlong/manager/openapi/dataproxy"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ManagerServer:
    """Serve HTTP on its own thread until ``close``.

    With ``trust`` connections have TLS, with its newest settings.  Raises HubError when the address cannot be listened
    on.
    """

    def __init__(
        self,
        hub: Served,
        addresses: tuple[str, ...],
        port: int,
        limits: HttpLimits | None = None,
        *,
        trust: Trust | None = None,
    ) -> None:
        config = hub.config
        self.settings = ManagerSettings(cluster_id=config.cluster_id)
        if config.secret_id:
            self.settings.secrets = {config.secret_id: config.secret_key.reveal()}
        self.port = port
        self._ids: dict[tuple[str, int], int] = {}
        self._addresses = addresses
        self._trust = trust
        self.limits = limits or HttpLimits()
        # Weak: the running thread must not keep a forgotten hub alive.
        self._hub_ref = weakref.ref(hub)
        self._access = HubAccess(hub.token, (config.host, *config.allowed_hosts), lambda: self.settings.secrets)
        self._shortage = Shortage()
        self._health_log = HealthLog()
        self._forgotten_log = ForgottenLog()
        self._pages = PageSlots(self.limits.pages, self.limits.stalled)
        self._streams = EventStreams(lambda: self._hub, self.limits)
        # Always asyncio's loop, not that of the application's policy: the limits depend on its transports.
        self._loop = asyncio.SelectorEventLoop()
        self._loop.set_exception_handler(self._tell)
        # Not the loop's default executor: to close that needs a new thread, which is refused at interpreter exit.
        self._workers = ThreadPoolExecutor(2, thread_name_prefix=_WORKERS)
        # For the first page of each connection.  A peer that has read its pages never waits behind these requests.
        self._strangers = ThreadPoolExecutor(2, thread_name_prefix=_WORKERS)
        self._loop.set_default_executor(self._workers)
        self._runner: web.AppRunner | None = None
        self._listeners: list[asyncio.Server] = []
        self.connections: Connections | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="dataproxy-hub-manager", daemon=True)
        self._thread.start()
        try:
            # On the server's own thread: the caller's thread may be running a loop already.
            asyncio.run_coroutine_threadsafe(self._open(port), self._loop).result(_STOP_SECONDS)
        except BaseException:
            self.close()
            raise

    def _serve(self) -> None:
        """Run the loop until ``close``, also after exceptions; the body of the thread."""
        while not self._stopping:
            try:
                self._loop.run_forever()
            except BaseException:  # noqa: BLE001 - of a log handler of the application's, say
                _log.exception("the Manager port had an error and continues")

    async def _open(self, port: int) -> None:
        limits = self.limits
        self._runner = web.AppRunner(
            self._application(), access_log=None, logger=server_log(), keepalive_timeout=limits.idle,
            lingering_time=limits.request, shutdown_timeout=limits.stop, max_line_size=_LINE_BYTES,
        )  # fmt: skip
        await self._runner.setup()
        assert self._runner.server is not None
        self.connections = Connections(self._runner.server, limits)
        try:
            await self._listen(bind_all(self._addresses, port), self.connections)
        except OSError as error:
            raise listen_error("the Manager port", self._hub.config.host, port, error) from error
        self._loop.call_later(_LOOK_SECONDS, self._look)

    async def _listen(self, sockets: list[socket.socket], connections: Connections) -> None:
        self.port = int(sockets[0].getsockname()[1])
        for one in sockets:
            # On the listening socket, so that its connections have it from the beginning.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
            server = await self._loop.create_server(
                connections, sock=one, backlog=128, start_serving=False, **self._encryption()
            )
            self._listeners.append(server)
        for listener in self._listeners:
            await listener.start_serving()

    def _encryption(self) -> dict[str, Any]:
        """Return the arguments with which connections of a server have TLS."""
        trust = self._trust
        if trust is None:
            return {}

        def newest(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = trust.context

        context = trust.context
        context.sni_callback = newest  # called for each handshake
        return {"ssl": context, "ssl_handshake_timeout": self.limits.request}

    @property
    def _hub(self) -> Served:
        hub = self._hub_ref()
        if hub is None:
            raise ClosedError("the hub is closed")
        return hub

    def close(self) -> None:
        """Stop serving and end the thread; requests in progress have ``limits.stop`` seconds.  Idempotent.

        On a thread of the server itself (if a request held the last reference to the hub) another thread does it.
        """
        if self._loop.is_closed():
            return
        own = threading.current_thread()
        if own is self._thread or own.name.startswith(_WORKERS):
            threading.Thread(target=self.close, name="dataproxy-hub-manager-close", daemon=True).start()
            return
        with contextlib.suppress(TimeoutError):  # logged below; the rest must be closed nevertheless
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_STOP_SECONDS)
        self._stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        for pool in (self._workers, self._strangers):
            pool.shutdown(cancel_futures=True)
        if self._thread.is_alive():
            _log.error("the Manager port does not close; its thread ends with the process")
            return
        self._loop.close()

    async def _stop(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._streams.close()
        if self.connections is not None:
            self.connections.drop(idle=True)
        if self._runner is not None:
            await self._runner.cleanup()  # requests in progress end, or are cancelled
        if self.connections is not None:
            self.connections.drop()  # peers that do not read their answers
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _tell(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the loop in one line, without a traceback.  After a shortage it accepts again in a second."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _SHORTAGES:
            self._shortage.tell("the Manager port")
        else:
            _log.error("%s: %r", context.get("message"), error)

    def _look(self) -> None:
        """Check each second whether the server loops are short of descriptors, and whether the store works."""
        hub = self._hub_ref()
        if hub is not None:
            with contextlib.suppress(DataProxyError):  # the hub is closing
                found = hub.stats()
                self._health_log.note(health_of(found["store"]))
                self._forgotten_log.note(found["store"])
                self._shortage.look(found["accept_pauses"])
                hub._overview.producers.look((found["accepted"], found["closed"]), hub._overview.now)
            self._loop.call_later(_LOOK_SECONDS, self._look)

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_BYTES, middlewares=[self._guard])
        application.on_response_prepare.append(_number_answer)
        application.router.add_get("/healthz", self._health)
        application.router.add_get("/", self._front)
        metrics = web.Application(middlewares=[self._access.check])
        metrics.router.add_get("", self._metrics)
        application.add_subapp("/metrics", metrics)
        manager = web.Application(middlewares=[self._known])
        manager.router.add_post("/getIpList/{name}", self._by_group)
        manager.router.add_post("/getIpListByClusterName/{name}", self._by_cluster)
        application.add_subapp(_OPENAPI, manager)
        hub = web.Application(middlewares=[self._access.check])
        hub.router.add_get("/stats", self._stats)
        hub.router.add_get("/counts", self._counts)
        hub.router.add_get("/records", self._records)
        hub.router.add_get("/logs", self._logs)
        hub.router.add_get("/entries", self._entries)
        FaultApi(lambda: self._hub, self.limits.request).add_routes(hub.router)
        SettingsApi(lambda: self._hub, self.settings, self.limits.request).add_routes(hub.router)
        tubemq = TubeApi(lambda: self._hub, self._paged, self.limits.request)
        tubemq.add_routes(hub.router)
        ViewApi(lambda: self._hub, self._paged, self.limits.request).add_routes(hub.router)
        self._streams.add_routes(hub.router)
        application.add_subapp("/hub", hub)
        calls = web.Application(middlewares=[self._access.check_reading])  # changes have their token in the query
        tubemq.add_calls(calls.router)
        application.add_subapp("/webapi.htm", calls)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Apply the time limits to a request, and turn errors into JSON answers."""
        keeper: Any = None if request.transport is None else request.transport.get_protocol()
        if keeper is None:  # the peer has closed the connection
            return _failure(503, "nobody is there")
        keeper.begin(request.content)
        try:
            return await self._answered(request, handler)
        finally:
            keeper.end()

    @web.middleware
    async def _known(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Check the credentials of a request to the Manager; every host name is allowed for it."""
        secrets = self.settings.secrets
        if secrets and not has_credentials(request.headers.get("authorization", ""), secrets):
            return _failure(403, "authentication failed: wrong or missing secret id or key")
        return await handler(request)

    async def _answered(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _failure(error.status, error.reason, error.headers.get("Allow"))
        except TimeoutError:
            return _ended(_failure(408, f"the request did not come within {self.limits.request:g} s"))
        except ConnectionError:  # the peer has gone
            return _ended(_failure(400, "the peer has closed the connection"))
        except web.RequestPayloadError as error:
            return await _cut(request, _failure(400, f"the body cannot be read: {error}"))
        except OSError as error:
            _log.warning("%r failed: %s", request.path, error)
            return _failure(500, error.strerror or str(error))
        except (ValueError, LookupError) as error:  # from texts, numbers and character sets of the request
            return _failure(400, str(error))
        except DataProxyError as error:
            level = logging.DEBUG if isinstance(error, ClosedError) else logging.WARNING  # closed: the hub is ending
            _log.log(level, "%r failed: %s", request.path, error)
            # Readers must not learn the store's path on this machine.
            text = str(error).replace(f" {error.details.get('path')!r}", "")
            return _failure(500 if isinstance(error, StoreError) else 503, text, behind=error.details.get("next"))

    async def _by_group(self, request: web.Request) -> web.StreamResponse:
        group = request.match_info["name"]
        topics = self._hub.config.topics
        if group in self.settings.denied:
            return _json({"success": False, "errMsg": f"inlong group {group} is not allowed", "data": None})
        if topics and group not in {topic.partition("/")[0] for topic in topics}:
            return _json({"success": False, "errMsg": f"inlong group {group} does not exist", "data": None})
        return await self._node_list(request, group, self.settings.groups.get(group, ""))

    async def _by_cluster(self, request: web.Request) -> web.StreamResponse:
        """Answer for a cluster by its name; without ``clusters`` every name is that of this hub."""
        name = request.match_info["name"]
        if self.settings.clusters and name not in self.settings.clusters:
            return _json({"success": False, "errMsg": f"cluster {name} does not exist", "data": None})
        return await self._node_list(request, "", name)

    async def _node_list(self, request: web.Request, group: str, cluster: str) -> web.StreamResponse:
        wrong = await disturb(self._hub, request, group)
        if wrong is not None:
            return wrong
        settings = self.settings
        async with asyncio.timeout(self.limits.request):
            wanted = (await _parameter(request, "protocolType")).upper()
        values = settings.clusters.get(cluster, settings)
        nodes = self._nodes(request, wanted or "TCP", values) if wanted in ("", *_PROTOCOLS) else []
        data: dict[str, Any] = {
            "clusterId": values.cluster_id if nodes else None,
            "reportSourceType": None,
            "isIntranet": settings.is_intranet,
            "isSwitch": values.is_switch,
            "load": settings.load,
            "maxPacketLength": values.max_packet_length,
            "nodeList": nodes or None,
        }
        return _json({"success": True, "errMsg": None, "data": data})

    def _nodes(
        self, request: web.Request, protocol: str, values: ManagerSettings | ManagerCluster
    ) -> list[dict[str, Any]]:
        """Return the entries of a list; an address keeps its id, since clients take another id for another proxy."""
        given = values.nodes if protocol == "TCP" else values.http_nodes
        nodes = [(*one, _UNKNOWN_LOAD) for one in given]
        if not nodes and (values is self.settings or not (values.nodes or values.http_nodes)):
            nodes = self._own_nodes(request, protocol)
        return [
            {
                "id": self._ids.setdefault((host, port), len(self._ids) + 1),
                "ip": host,
                "port": port,
                "protocolType": protocol,
                "nodeLoad": load,
            }
            for host, port, load in nodes
        ]

    def _own_nodes(self, request: web.Request, protocol: str) -> list[tuple[str, int, int]]:
        """Return address, port and load of the nodes that are not drained and have a listener of the protocol."""
        address, drained = self._own_address(request), self._hub.faults._drained()
        found = [(node, node.tcp if protocol == "TCP" else node.http) for node in self._hub.nodes if not node.drained]
        return [(address, one.port, node._told_load) for node, one in found if one and one.index not in drained]

    def _own_address(self, request: web.Request) -> str:
        """Return the address for the answer: of several, the one that the caller's connection came to."""
        if self._addresses[1:] == () and self._hub.host not in ("0.0.0.0", ANY6):
            return self._hub.host
        name = None if request.transport is None else request.transport.get_extra_info("sockname")
        return str(name[0]).removeprefix(_MAPPED) if name else self._hub.config.node_ip

    async def _health(self, _request: web.Request) -> web.Response:
        health = self._hub.health()
        return _json(health, 200 if health["ok"] else 503)

    async def _front(self, _request: web.Request) -> web.Response:
        return web.Response(text=front_page(self._hub.target), content_type="text/html", charset="utf-8")

    async def _metrics(self, _request: web.Request) -> web.Response:
        hub = self._hub
        stats, clients = await asyncio.to_thread(lambda: (hub.stats(), hub._overview.metrics()))
        text = metrics_text(stats, hub.health(), clients)
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS_TYPE})

    async def _stats(self, _request: web.Request) -> web.Response:
        return _json(await asyncio.to_thread(self._hub.stats))

    async def _counts(self, request: web.Request) -> web.StreamResponse:
        limit = _number("limit", request.query.get("limit", ""), _STREAMS, _ROWS_MOST)
        start = request.query.get("start", "")
        return await self._paged(request, lambda: counts_page(self._hub, start, limit))

    async def _records(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        group, stream = _given(query, "group"), query.get("stream") or None
        place = Place.parse(query.get("start", ""))
        limit = _number("limit", query.get("limit", ""), _RECORDS, _ROWS_MOST)
        return await self._paged(request, lambda: records_page(self._hub, group, stream, place, limit))

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        group, given = _given(request.query, "group"), request.query.get("time", "")
        time_ms = _number("time", given, 0, _OFFSET_MOST) if given else None
        return await self._paged(request, lambda: logs_page(self._hub, group, time_ms))

    async def _entries(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        wanted = Range(
            _given(query, "group"),
            query.get("stream") or None,
            _number("partition", _given(query, "partition"), 0, _PARTITION_MOST),
            _number("from", _given(query, "from"), 0, _OFFSET_MOST),
            _number("to", _given(query, "to"), 0, _OFFSET_MOST),
        )
        return await self._paged(request, lambda: entries_page(self._hub, wanted), ARROW_STREAM)

    async def _paged(self, request: web.Request, make: Callable[[], bytes], kind: str = _JSON) -> web.StreamResponse:
        """Answer with a page that ``make`` returns on a reading thread: its work would block the loop too long."""
        keeper: Any = None if request.transport is None else request.transport.get_protocol()
        if keeper is None or not self._pages.take(keeper, self._loop.time()):
            answer = _failure(503, "too many pages are read at this moment")
            answer.headers["Retry-After"] = "1"
            return answer
        try:
            pool = self._workers if keeper.reads else self._strangers
            keeper.reads = False
            answer = _answer(await self._loop.run_in_executor(pool, make), kind=kind)
            with contextlib.suppress(ConnectionError):  # the server notices a lost connection itself
                await answer.prepare(request)
                await answer.write_eof()
                keeper.reads = True
            return answer
        finally:
            self._pages.give_back(keeper)


async def _parameter(request: web.Request, name: str) -> str:
    """Return a parameter from query, form or headers, "" if it is in none of them."""
    if name in request.query:
        return request.query[name].strip()
    if request.content_type == "application/x-www-form-urlencoded":
        value = (await request.post()).get(name)
        if isinstance(value, str):
            return value.strip()
    return request.headers.get(name, "").strip()


def _given(query: Mapping[str, str], name: str) -> str:
    if not query.get(name):
        raise ValueError(f"the parameter {name} is missing")
    return query[name]


def _number(name: str, text: str, default: int, most: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS or int(text) > most:
        raise ValueError(f"the parameter {name}={shown(text)} must be a number from 0 to {most}")
    return int(text)


def _failure(status: int, text: str, allow: str | None = None, behind: object = None) -> web.Response:
    """Return an error answer; ``behind``, if given, is the place after the entry that cannot be read."""
    value = {"success": False, "errMsg": text, "data": None}
    answer = _json(value if behind is None else {**value, "next": behind}, status)
    if allow is not None:
        answer.headers["Allow"] = allow
    return answer


def _ended(answer: web.Response) -> web.Response:
    """Return an answer after which the connection closes: later bytes of the peer cannot be split into requests."""
    answer.force_close()
    return answer


async def _cut(request: web.Request, answer: web.Response) -> web.Response:
    """Send an answer and close at once: aiohttp would first read a body to its end."""
    _ended(answer)
    with contextlib.suppress(ConnectionError):  # the peer may be gone
        await answer.prepare(request)
        await answer.write_eof()
    request.protocol.force_close()
    return answer


async def _number_answer(_request: web.Request, answer: web.StreamResponse) -> None:
    answer.headers["trace-id"] = os.urandom(16).hex()


def _json(value: object, status: int = 200) -> web.Response:
    return _answer(json_text(value).encode(), status)


def _answer(body: bytes, status: int = 200, kind: str = _JSON) -> web.Response:
    return web.Response(status=status, body=body, content_type=kind, charset="utf-8" if kind == _JSON else None)
