"""The embedded hub: DataProxy ports, a Manager port and a store in one object."""

from __future__ import annotations

import atexit
import contextlib
import functools
import ipaddress
import os
import secrets
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

from dataproxy._core.server.core import HubCore
from dataproxy._core.server.faults.core import FaultCore
from dataproxy._core.server.store.core import StoreCore
from dataproxy.config import HUB, HubConfig, conceal, load_hub_config
from dataproxy.errors import ClosedError, ConfigError, ForkedError, HubError
from dataproxy.hub.addresses import addresses_of
from dataproxy.hub.faults.armed import Faults
from dataproxy.hub.health import health_of
from dataproxy.hub.listeners import Listener, Shutters, bracketed, listen_error
from dataproxy.hub.nodes import Node, checked_load, make_nodes, service_code
from dataproxy.hub.numbering import parse_numbers
from dataproxy.hub.overview.events import Events
from dataproxy.hub.overview.producers import Producers
from dataproxy.hub.overview.view import View
from dataproxy.hub.reading.records import Record, StreamCount, read_entries, read_records
from dataproxy.hub.reading.verify import check_pages
from dataproxy.hub.rocketmqport import make_remoting, make_rocketmq, second_port
from dataproxy.hub.tokenfile import make_token, remove_token, write_token
from dataproxy.hub.tubedoor import (
    make_calls,
    make_cluster,
    make_service,
    message_bytes,
    open_offsets,
    partition_count,
)  # fmt: skip
from dataproxy.logs import logger
from dataproxy.problems import seconds
from dataproxy.process.threads import finish
from dataproxy.stored.entry import StoredEntry
from dataproxy.trust.files import hub_trust
from dataproxy.unmade import made_by_init

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Unpack

    from dataproxy._core.server.rocketmq.core import RemotingCore
    from dataproxy._core.server.tubemq.callcore import CallsCore
    from dataproxy.config.typed import HubOptions
    from dataproxy.hub.leader.cluster import Cluster
    from dataproxy.hub.rocketmq.service import Service as RocketService
    from dataproxy.hub.tubemq.service import Service
    from dataproxy.hub.web.manager import ManagerServer
    from dataproxy.hub.web.settings import ManagerSettings
    from dataproxy.hub.zookeeper.offsets import OffsetKeeper
    from dataproxy.trust.watched import Trust

__all__ = ["Hub"]

_log: Final = logger("hub")
_LONGEST: Final = 1e9  # seconds
#: Unread replies of one connection, in bytes; past it the connection is not read (strict) or closed (compat).
_REPLY_BYTES: Final = 65536
_LAST_OFFSETS_SECONDS: Final = 5.0  # for ZooKeeper
_JOIN_SECONDS: Final = 60.0  # a committer may wait for its disk
_LEAVE_SECONDS: Final = 5.0  # of a close, for ZooKeeper to hear that this hub leaves its cluster
#: Most bytes of a store in memory unless ``max_store_bytes`` is given; the oldest entries make room.
_MEMORY_BYTES: Final = 1 << 30
_ID_BYTES: Final = 40 + 8  # bytes of an id in the window, with its place in the table (server/store/window/dedupe)
_BLOCK_BYTES: Final = 64 + 8  # the same for a block of rows (server/store/window/rowblocks)
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_live: Final[weakref.WeakSet[Hub]] = weakref.WeakSet()


class Hub:
    """Run a hub until ``close``: it accepts InLong DataProxy requests and keeps them in a store.

    ``store`` is a directory (an ack is given after the data is on disk), or None to keep entries in memory only.
    It listens on loopback unless ``host`` says otherwise; if ``host`` is a name with IPv4 and IPv6 addresses, on one of
    each.  The kernel chooses ports that are 0, the same for both families; ``target`` and ``manager_url`` then have
    them.  Every option of the hub in CONFIGURATION.md can be a keyword argument; or ``config`` has all of them.
    Methods may be called from any thread.

    Raises ConfigError, StoreError, and HubError if it cannot listen on an address.
    """

    config: HubConfig = made_by_init()
    _closed = True
    _host: str = made_by_init()
    _lock: threading.Lock = made_by_init()
    _manager: ManagerServer | None = made_by_init()
    _nodes: tuple[Node, ...] = made_by_init()
    _offsets: OffsetKeeper | None = made_by_init()
    _pid: int = made_by_init()
    _port: int = made_by_init()
    _token: str = made_by_init()
    _trust: Trust | None = made_by_init()
    _tubemq: Service | None = made_by_init()
    _tubemq_listener: Listener | None = made_by_init()
    _cluster: Cluster | None = made_by_init()
    _rocketmq: RocketService | None = made_by_init()
    _rocketmq_listener: Listener | None = made_by_init()
    _events: Events = made_by_init()
    _overview: View = made_by_init()

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        *,
        config: HubConfig | None = None,
        config_file: str | Path | None = None,
        **options: Unpack[HubOptions],
    ) -> None:
        conceal(HUB, cast("dict[str, Any]", options))
        if config is not None and (store is not None or options or config_file is not None):
            raise ConfigError(
                "config was given together with other options", hint="give either a config or single options"
            )
        self.config = config if config is not None else load_hub_config(store, file=config_file, **options)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._manager = None
        self._tubemq = self._tubemq_listener = self._cluster = self._offsets = None
        self._rocketmq = self._rocketmq_listener = None
        self._addresses = addresses_of(self.config.host)
        self._host = self._addresses[0]
        for address in self._addresses:
            _check_exposure(self.config, address)
        self._trust = hub_trust(self.config)
        self._token = self.config.token.reveal() or make_token()
        self._events = Events()
        self._start()

    def _start(self) -> None:
        undo = contextlib.ExitStack()
        calls, remoting = make_calls(self.config), make_remoting(self.config)
        with undo:
            self._store = _open_store(self.config)
            undo.callback(self._store.close)
            self._store_name = _name_of_store(self.config.store)
            table = FaultCore()
            self._core = _make_core(self._store, table, self._addresses, self.config, self._trust, calls, remoting)
            self._port = _listen(self._core, self.config)
            undo.callback(self._core.close_listener)
            self._core.set_load(checked_load(self.config.load))
            shutters = Shutters(self._core, self.config.host)
            self._faults = Faults(self._core, table, shutters)
            host, tls = _reachable(self._host), self._trust is not None
            self._nodes = make_nodes(self._core, shutters, host, tls=tls)
            if calls is not None:
                self._tubemq_listener = Listener(self._core, shutters, self._core.tubemq, host, tls=tls)
                self._cluster = make_cluster(self._core, self.config, self._host)
                self._tubemq = make_service(
                    self._core, calls, self._store, self.config, self._host, self._cluster, self._events
                )
                self._offsets = open_offsets(self._tubemq, self.config)
            if remoting is not None:
                self._rocketmq_listener = Listener(self._core, shutters, self._core.rocketmq, host, tls=tls)
                self._rocketmq = self._make_rocketmq(remoting)
            if self._offsets is not None:
                undo.callback(self._offsets.stop, 0.0)
            if self._cluster is not None:
                undo.callback(self._cluster.stop)
                self._cluster.start()
            self._overview = View(
                self._core.clock_us, Producers(self._core, self._events.client), self._events, self._store,
                self._tubemq, self._rocketmq,
            )  # fmt: skip
            self._manager = _open_manager(self)
            undo.callback(self._manager.close)
            if self.config.token_file:
                write_token(Path(self.config.token_file), self._token)
            undo.pop_all()
        self._closed = False
        self._spawn("dataproxy-hub-commit", self._store.run_committer)
        for i in range(self.config.threads):
            self._spawn(f"dataproxy-hub-loop-{i}", functools.partial(self._core.run_loop, i))
        if self._tubemq is not None:
            self._spawn("dataproxy-hub-tubemq", self._tubemq.serve)
        if self._rocketmq is not None:
            self._spawn("dataproxy-hub-rocketmq", self._rocketmq.serve)
        if self._trust is not None:
            self._trust.follow(self._spawn_follower)
        _live.add(self)
        _log.info(
            "hub listens on %s, Manager on %s, store %s", self.target, self.manager_url, self.store_path or "memory"
        )
        for address in self._addresses[1:]:
            _log.info("hub listens on the same ports of %s", address)

    def _make_rocketmq(self, remoting: RemotingCore) -> RocketService:
        registrations = None if self._tubemq is None else self._tubemq.registrations
        return make_rocketmq(self._core, remoting, self._store, self.config, self._host, registrations, self._events)

    @staticmethod
    def _spawn_follower(name: str, run: Callable[[], None]) -> None:
        """Start the thread that looks for changed certificates; it ends with the hub and is never waited for."""
        threading.Thread(target=run, name=name, daemon=True).start()

    def _spawn(self, name: str, run: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                run()
            except BaseException:  # noqa: BLE001 - said before the thread ends
                _log.exception("the thread %s failed; restart the hub", name)

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def host(self) -> str:
        """Return the numeric address that the hub listens on; for a name with both families the one of IPv4."""
        return self._host

    @property
    def port(self) -> int:
        """Return the TCP port for producers, the first if there are several."""
        return self._port

    @property
    def http_port(self) -> int:
        """Return the port of the HTTP report, the first if there are several; -1 without one."""
        return -1 if self._nodes[0].http is None else self._nodes[0].http.port

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return the listeners for TCP, one for each node; each can be refused, killed and restarted separately."""
        return tuple(node.tcp for node in self._nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes: each acts as a separate proxy, and can be drained, killed and restarted separately."""
        return self._nodes

    @property
    def faults(self) -> Faults:
        """Return the faults of this hub, to add and to remove them.  Raises ClosedError."""
        self._ensure_open()
        return self._faults

    @property
    def tubemq_port(self) -> int:
        """Return the port of TubeMQ's master and broker; -1 without one."""
        return -1 if self._tubemq_listener is None else self._tubemq_listener.port

    @property
    def tubemq_listener(self) -> Listener | None:
        """Return the listener for TubeMQ, which can be refused, killed and restarted; None without one."""
        return self._tubemq_listener

    @property
    def tubemq_target(self) -> str:
        """Return the target for producers and consumers of TubeMQ.  Raises HubError without such a port."""
        if self._tubemq_listener is None:
            raise HubError("the hub has no port for TubeMQ", hint="start it with tubemq_port=0")
        return self._tubemq_listener.target

    @property
    def rocketmq_port(self) -> int:
        """Return the port of RocketMQ's name server and broker; -1 without one."""
        return -1 if self._rocketmq_listener is None else self._rocketmq_listener.port

    @property
    def rocketmq_listener(self) -> Listener | None:
        """Return the listener for RocketMQ, which can be refused, killed and restarted; None without one."""
        return self._rocketmq_listener

    @property
    def rocketmq_target(self) -> str:
        """Return the target for clients of RocketMQ; for Java's, what is behind ``//`` is the name server.

        Raises HubError without such a port.
        """
        if self._rocketmq_listener is None:
            raise HubError("the hub has no port for RocketMQ", hint="start it with rocketmq_port=0")
        return self._rocketmq_listener.target

    @property
    def manager_port(self) -> int:
        """Return the HTTP port of the Manager."""
        return self._serving.port

    @property
    def target(self) -> str:
        """Return the target for producers: all nodes, over TCP."""
        return self._target([node.tcp.address for node in self._nodes])

    @property
    def http_target(self) -> str:
        """Return the target for producers with ``protocol="http"``: all nodes.  Raises HubError without such ports."""
        found = [node.http.address for node in self._nodes if node.http is not None]
        if not found:
            raise HubError("the hub has no port for HTTP reports", hint="start it with http_port=0")
        return self._target(found)

    def _target(self, addresses: list[str]) -> str:
        return f"{'tcp' if self._trust is None else 'tls'}://{','.join(addresses)}"

    @property
    def manager_url(self) -> str:
        """Return the base URL of the Manager, which is also a target for producers."""
        scheme = "http" if self._trust is None else "https"
        return f"{scheme}://{bracketed(_reachable(self._host))}:{self._serving.port}"

    @property
    def token(self) -> str:
        """Return the token for changes over HTTP (``Authorization: Bearer``); code in this process needs none."""
        return self._token

    @property
    def store_path(self) -> str | None:
        """Return the directory of the durable store, None in memory mode."""
        return self.config.store or None

    @property
    def manager(self) -> ManagerSettings:
        """Return what the Manager answers; its attributes may be changed at any time."""
        return self._serving.settings

    @property
    def _serving(self) -> ManagerServer:
        if self._manager is None:
            raise ClosedError("the hub was not started", hint="make a new Hub")
        return self._manager

    def records(
        self,
        group_id: str,
        stream_id: str | None = None,
        *,
        start: int = 0,
        at: Mapping[int, int] | None = None,
        follow: bool = False,
    ) -> Iterator[Record]:
        """Return the decoded records of a group, or of one stream of it, from offset ``start`` of each log on.

        ``at`` gives first offsets by partition; ``start`` holds for the others.  With ``follow`` the iterator waits for
        new records until the hub closes.  Raises StoreError, ClosedError.
        """
        self._ensure_open()
        return read_records(self._store, group_id, stream_id, start=start, at=at, follow=follow)

    def entries(
        self, group_id: str, stream_id: str | None = None, *, start: int = 0, at: Mapping[int, int] | None = None
    ) -> Iterator[StoredEntry]:
        """Return the requests of a group, or of one of its streams, that are stored now, not decoded.

        ``at`` gives first offsets by partition; ``start`` holds for the others.  Raises StoreError, ClosedError.
        """
        self._ensure_open()
        return read_entries(self._store, group_id, stream_id, start=start, at=at)

    def counts(self) -> dict[tuple[str, str], StreamCount]:
        """Return entries, records and bytes by (group, stream).  Raises ClosedError."""
        self._ensure_open()
        return {key: StreamCount(*numbers) for key, numbers in self._store.counts().items()}

    def _count_page(
        self, after: tuple[int, int, int, str, str] | None, most: int
    ) -> tuple[list[tuple[str, int, str, int, int, int]], tuple[int, int, int, str, str] | None]:
        """Return up to ``most`` rows (group, partition, stream, entries, records, bytes), and the place of the next.

        ``after`` is the place that the call before returned, None for the first call; at the end the place is None.
        The order is the store's own.  Streams that appear or vanish between calls may be left out.  Raises StoreError,
        ClosedError.
        """
        self._ensure_open()
        return self._store.stream_page(after, most)

    def _view(self) -> StoreCore:
        """Return the store, for pages that read it.  Raises ClosedError."""
        self._ensure_open()
        return self._store

    def stats(self) -> dict[str, Any]:
        """Return the counters of the hub, with those of the store under ``store``.  Raises ClosedError.

        ``duplicates`` are messages that were answered and not stored again, ``conflicts`` those whose id was known
        with other bytes: the option ``dedupe_conflict`` and the origin of the id decide whether these are stored.
        """
        self._ensure_open()
        store = self._store.stats()
        known = {name: store.get(name, 0) for name in ("duplicates", "conflicts")}
        calls = {} if self._tubemq is None else self._tubemq.stats()
        remoting = {} if self._rocketmq is None else {"rocketmq": self._rocketmq.stats()}
        return {**self._core.stats(), **known, **calls, **remoting, "store": store}

    def health(self) -> dict[str, Any]:
        """Return what ``/healthz`` answers: ``{"ok": True}``, or why it can store nothing now.  Raises ClosedError."""
        self._ensure_open()
        return health_of(self._store.stats())

    def set_service(self, state: str) -> None:
        """Answer data requests as in state "running", "not_ready" (code 1) or "stopped" (code 2), on all nodes.

        Heartbeats over TCP are answered in every state; over HTTP they get the same code.

        Raises ConfigError, ClosedError.
        """
        code = service_code(state)
        self._ensure_open()
        self._core.set_service(code)

    def set_load(self, load: int | str) -> None:
        """Answer heartbeats with "auto" (how full the queue is), "unknown" or a number from 0 to 65534, on all nodes.

        Raises ConfigError, ClosedError.
        """
        self._ensure_open()
        self._core.set_load(checked_load(str(load)))

    def close(self, timeout: float | timedelta = 10.0) -> None:
        """Stop: accept nothing more, commit and answer what was accepted, and end the threads.

        Answering takes at most ``timeout`` seconds (or a timedelta); after that it waits only for the disk.
        Idempotent; does nothing in a forked child.  What a signal handler raises meanwhile (Ctrl-C) is raised at the
        end.  Raises ConfigError for an invalid timeout.
        """
        limit = min(seconds(timeout), _LONGEST)
        with self._lock:
            if self._closed:
                return
            self._closed = True
        _live.discard(self)
        if self._trust is not None:
            self._trust.stop()
        if self._pid == os.getpid():
            finish("dataproxy-close-hub", functools.partial(self._end, limit))

    def _end(self, limit: float) -> None:
        """End all threads, and close the store; once."""
        self._faults._end()
        if self._cluster is not None:  # another hub leads from now on
            began = time.monotonic()
            self._cluster.stop(min(limit, _LEAVE_SECONDS))
            limit = max(limit - (time.monotonic() - began), 0.0)
        self._core.stop(limit)  # first, so that slow HTTP peers do not delay it
        if self._manager is not None:
            self._manager.close()
        if self.config.token_file:
            remove_token(Path(self.config.token_file), self._token)
        loops = 1 + self.config.threads
        for thread in self._threads[1:loops]:
            thread.join(_JOIN_SECONDS)
        if self._tubemq is not None:  # loops have waited for its answers
            self._tubemq.stop()
        if self._rocketmq is not None:
            self._rocketmq.stop()
        for thread in self._threads[loops:]:
            thread.join(_JOIN_SECONDS)
        if self._offsets is not None:  # behind the last confirm
            self._offsets.stop(_LAST_OFFSETS_SECONDS)
        self._core.close_listener()
        self._store.close()
        for thread in self._threads[:1]:  # the list is empty if the first thread could not be started
            thread.join(_JOIN_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            self._core.release()
        _log.info("hub on port %d is closed", self._port)

    def _ensure_open(self) -> None:
        if self._pid != os.getpid():
            raise ForkedError("the hub was started before a fork", hint="start a hub of its own in the child process")
        if self._closed:
            raise ClosedError("the hub is closed", hint="make a new Hub")

    def __enter__(self) -> Self:
        self._ensure_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed and self._pid == os.getpid():
            warnings.warn(f"hub on port {self._port} was not closed", ResourceWarning, source=self, stacklevel=1)
            self.close(timeout=1.0)

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.target}, {self.store_path or 'memory'}"
        return f"<Hub {state}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise HubError("a hub cannot be pickled", hint="pass its target text instead")


def _check_exposure(config: HubConfig, host: str) -> None:
    """Refuse to listen beyond this machine without credentials, unless ``insecure`` says so.  Raises ConfigError."""
    if config.insecure or config.secret_id or ipaddress.ip_address(host).is_loopback:
        return
    raise ConfigError(
        f"the hub would listen on {host} without credentials: anyone who reaches it could read every message",
        code="INSECURE",
        hint="set secret_id and secret_key, or set insecure=true (dataproxy hub --insecure)",
        details={"host": host},
    )


def _reachable(host: str) -> str:
    """Return the address by which this machine reaches what listens on ``host``."""
    return _WILDCARDS.get(host, host)


def _store_limit(config: HubConfig) -> int:
    """Return the most bytes to store; in memory without the option, 1 GiB or a quarter of the machine's memory."""
    if config.store or not config.origin("max_store_bytes").startswith("default"):
        return config.max_store_bytes
    return min(_MEMORY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


def _places(memory: int, size: int) -> int:
    """Return how many entries of ``size`` bytes fit: a table's size is a power of two, and a quarter stays free."""
    return (1 << (memory // size).bit_length() - 1) * 3 // 4


def _open_store(config: HubConfig) -> StoreCore:
    if config.store:
        check_pages(config.store)
    return StoreCore(
        config.store or None,
        max_bytes=_store_limit(config),
        retention_bytes=config.retention_bytes,
        retention_ms=int(config.retention_age * 1000),
        queue_bytes=config.queue_bytes,
        dedupe_ms=int(config.dedupe_window * 1000),
        dedupe_ids=_places(config.dedupe_memory // 2, _ID_BYTES) if config.dedupe == "ids" else 0,
        dedupe_rows_ms=int(config.dedupe_rows_window * 1000),
        dedupe_blocks=_places(config.dedupe_memory // 2, _BLOCK_BYTES),
        first_wins=config.dedupe_conflict == "first",
    )


def _name_of_store(path: str) -> str:
    """Return the name of a store: readers compare it to notice that offsets belong to another store."""
    if not path:
        return secrets.token_hex(8)
    found = (Path(path) / "data.mdb").stat()
    return f"{found.st_dev:x}-{found.st_ino:x}"


def _make_core(
    store: StoreCore,
    faults: FaultCore,
    addresses: tuple[str, ...],
    config: HubConfig,
    trust: Trust | None,
    calls: CallsCore | None,
    remoting: RemotingCore | None,
) -> HubCore:
    return HubCore(
        store,
        faults,
        host=addresses[0],
        other_host=addresses[1] if len(addresses) > 1 else "",
        port=config.port,
        http_port=config.http_port,
        nodes=config.nodes,
        threads=config.threads,
        max_frame=config.max_frame_bytes,
        max_connections=config.max_connections,
        read_idle=config.read_idle,
        reply_bytes=_REPLY_BYTES,
        queue_bytes=config.queue_bytes,
        compat=config.profile == "compat",
        compress_entries=config.compress_entries,
        node_ip=config.node_ip,
        partitions=config.partitions,
        topics=config.topics,
        numbers=parse_numbers(config.numeric_ids),
        tls=None if trust is None else trust.contexts,
        calls=calls,
        tubemq_port=config.tubemq_port,
        tubemq_message=0 if calls is None else message_bytes(config),
        tubemq_partitions=1 if calls is None else partition_count(store, config),
        remoting=remoting,
        rocketmq_port=config.rocketmq_port,
        rocketmq_second_port=second_port(config),
    )


def _listen(core: HubCore, config: HubConfig) -> int:
    """Bind the ports for producers and return the first.  Raises HubError."""
    try:
        return core.open()
    except OSError as error:
        kind, _, port = str(error.filename).partition(" ")
        what = {
            "http": "the port of the HTTP report",
            "tubemq": "the port of TubeMQ",
            "rocketmq": "the port of RocketMQ",
        }.get(kind, "the producers' port")
        raise listen_error(what, config.host, int(port), error) from error


def _open_manager(hub: Hub) -> ManagerServer:
    try:
        from dataproxy.hub.web.manager import ManagerServer
    except ImportError as error:
        raise HubError(
            f"the Manager port needs a package that is not installed: {error.name}",
            hint="pip install 'dataproxy-sdk[hub]'",
        ) from error
    return ManagerServer(hub, hub._addresses, hub.config.manager_port, trust=hub._trust)


@atexit.register
def _close_all() -> None:
    deadline = time.monotonic() + 5.0
    for hub in list(_live):
        hub.close(timeout=max(0.1, deadline - time.monotonic()))
