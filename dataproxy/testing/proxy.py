"""A TCP proxy that misbehaves on request, in front of any server."""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self

from dataproxy.errors import ClosedError, ConfigError, HubError
from dataproxy.testing.blackhole import check_can_lose, lose_packets, take_packets
from dataproxy.testing.proxyfault import ArmedProxyFault, ProxyFault
from dataproxy.testing.tunnel import Tunnel

__all__ = ["FaultProxy"]

_BACKLOG: Final = 128
_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.1  # before the next attempt, if there were no descriptors
_NO_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_RESET: Final = struct.pack("ii", 1, 0)


class FaultProxy:
    """Pass TCP connections on to ``upstream`` ("tcp://host:port" or "host:port") and disturb them as requested.

    It runs on its own thread until ``close``; ``port`` 0 takes a free port, which ``target`` shows.  Methods may be
    called from any thread; a change applies when the call returns.  Raises ConfigError, HubError.
    """

    def __init__(self, upstream: str, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._upstream = _address(upstream)
        self._lock = threading.Lock()
        self._faults: list[ArmedProxyFault] = []
        self._orders: list[tuple[Callable[[], object], threading.Event]] = []
        self._tunnels: set[Tunnel] = set()
        self._shut = False
        self._hidden = False
        self._choked = False
        self._closed = False
        self.connections = 0
        self._listener = _listen(host, port)
        self.host, self.port = self._listener.getsockname()[:2]
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="dataproxy-fault-proxy", daemon=True)
        self._thread.start()

    @property
    def target(self) -> str:
        """Return the target for producers."""
        return f"tcp://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        """Return the number of open connections."""
        return len(self._tunnels)

    def add(self, fault: ProxyFault | str, **options: Any) -> ArmedProxyFault:
        """Arm a fault: a ProxyFault, or a kind with fields as keywords.  Raises ConfigError, ClosedError, HubError."""
        if not isinstance(fault, ProxyFault):
            fault = ProxyFault._of(fault, options)
        elif options:
            raise ConfigError("a ProxyFault was given together with fields", hint="put the fields into the ProxyFault")
        if fault.kind == "vanish":
            check_can_lose()
        armed = ArmedProxyFault(fault)
        self._order(lambda: self._faults.append(armed))
        return armed

    def remove(self, armed: ArmedProxyFault) -> None:
        """Remove a fault; what it froze or delayed continues.  Raises ClosedError."""

        def act() -> None:
            if armed in self._faults:
                self._faults.remove(armed)
            if armed.fault.kind == "delay":
                for tunnel in self._tunnels:
                    tunnel.release(time.monotonic())

        self._order(act)

    @contextlib.contextmanager
    def fault(self, fault: ProxyFault | str, **options: Any) -> Iterator[ArmedProxyFault]:
        """Arm a fault for the time of a ``with`` block."""
        armed = self.add(fault, **options)
        try:
            yield armed
        finally:
            if not self._closed:
                self.remove(armed)

    def clear(self) -> None:
        """Remove all faults."""
        for armed in tuple(self._faults):
            self.remove(armed)

    def reset_all(self) -> None:
        """Reset every open connection.  Raises ClosedError."""

        def act() -> None:
            for tunnel in self._tunnels:
                tunnel.reset()

        self._order(act)

    def close(self) -> None:
        """Close every connection and end the thread.  Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._ring()
        self._thread.join(_SECONDS)
        for one in (self._listener, self._wake, self._woken):
            one.close()

    def _order(self, act: Callable[[], object]) -> None:
        """Call ``act()`` on the proxy's thread and wait for its end.  Raises ClosedError, HubError."""
        done = threading.Event()
        with self._lock:
            if self._closed:
                raise ClosedError("the fault proxy is closed", hint="make a new FaultProxy")
            self._orders.append((act, done))
        self._ring()
        if not done.wait(_SECONDS):
            raise HubError("the fault proxy's thread does not answer", code="FAULTS", hint="close it")

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a wake-up is waiting already
            self._wake.send(b"!")

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            while True:
                self._watch(selector)
                self._listen_again(selector)
                ready = {key.fileobj: mask for key, mask in selector.select(self._timeout())}
                if self._woken in ready:
                    self._woken.recv(4096)
                self._serve(ready)
                with self._lock:
                    orders, self._orders = self._orders, []
                    closed = self._closed
                for act, _ in orders:
                    act()
                if orders:
                    self._obey(selector)
                self._sweep(selector)
                for _, done in orders:
                    done.set()
                if closed:
                    break
            for tunnel in self._tunnels:
                tunnel.close()
            self._sweep(selector)

    def _obey(self, selector: selectors.BaseSelector) -> None:
        """Shut or hide the listener while a fault requires it; the socket keeps its port all the time."""
        for tunnel in self._tunnels:
            tunnel.lose(self._faults)
        hidden = any(armed.fault._hides_host() for armed in self._faults)
        if hidden != self._hidden:
            self._hidden = hidden
            self._accept()  # clients that connected before the change are connections like others
            (lose_packets if hidden else take_packets)(self._listener)
        shut = any(armed.fault.kind == "refuse" for armed in self._faults)
        if shut == self._shut:
            return
        self._shut = shut
        if shut:
            self._accept()  # clients that connected before the change continue
            if self._listener in selector.get_map():
                selector.unregister(self._listener)
            self._listener.shutdown(socket.SHUT_RDWR)
        else:
            self._listener.listen(_BACKLOG)

    def _listen_again(self, selector: selectors.BaseSelector) -> None:
        """Stop accepting while there are no descriptors, and try again a little later."""
        registered = self._listener in selector.get_map()
        if self._choked and registered:
            selector.unregister(self._listener)
        elif not self._choked and not registered and not self._shut:
            selector.register(self._listener, selectors.EVENT_READ)

    def _timeout(self) -> float | None:
        now = time.monotonic()
        if self._choked:
            self._choked = False
            return _PAUSE_SECONDS
        times = [when for tunnel in self._tunnels if (when := tunnel.due(self._faults, now)) is not None]
        return max(0.0, min(times) - now) if times else None

    def _watch(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for tunnel in self._tunnels:
            for one, events in tunnel.events(self._faults, now).items():
                known = one in selector.get_map()
                if events and known:
                    selector.modify(one, events, tunnel)
                elif events:
                    selector.register(one, events, tunnel)
                elif known:
                    selector.unregister(one)

    def _serve(self, ready: dict[Any, int]) -> None:
        now = time.monotonic()
        if self._listener in ready:
            self._accept()
        for tunnel in self._tunnels:
            if not tunnel.gone and (tunnel.connected or (tunnel.server in ready and tunnel.finish_connect())):
                tunnel.step(ready, self._faults, now)

    def _sweep(self, selector: selectors.BaseSelector) -> None:
        for tunnel in [one for one in self._tunnels if one.gone]:
            for one in (tunnel.client, tunnel.server):
                if one in selector.get_map():
                    selector.unregister(one)
            tunnel.dispose()
            self._tunnels.discard(tunnel)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._choked = True
                return
            try:
                server = socket.socket(self._upstream[0])
            except OSError:  # no descriptor for the connection to the server: the client is dropped
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                client.close()
                self._choked = True
                return
            self.connections += 1
            tunnel = Tunnel(self.connections, client, server)
            if server.connect_ex(self._upstream[1]) not in (0, errno.EINPROGRESS):
                tunnel.reset()
            self._tunnels.add(tunnel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FaultProxy {'closed' if self._closed else self.target}>"


def _address(text: str) -> tuple[int, Any]:
    """Return (family, address) of the server behind the proxy.  Raises ConfigError."""
    host, colon, port = text.removeprefix("tcp://").rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"upstream {text!r} is no address of one server", hint="give tcp://host:port")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"upstream {text!r} cannot be resolved: {error}", hint="check the host's name") from error
    return found[0][0], found[0][4]


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket that keeps its port when it stops listening.  Raises HubError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    chooser, listener = socket.socket(family), socket.socket(family)
    try:
        with chooser:
            for one in (chooser, listener):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            chooser.bind((host, port))
            # A socket that stops listening gives up a port that the kernel chose, but keeps a port that was named.
            listener.bind(chooser.getsockname())
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise HubError(f"the fault proxy cannot listen on {host}:{port}: {error}", code="LISTEN") from error
    return listener
