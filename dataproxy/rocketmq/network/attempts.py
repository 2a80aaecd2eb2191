"""Connections that are being made: sockets, and handshakes of TLS on them, which another thread can end."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from dataproxy.errors import TransportError
from dataproxy.process.changes import Event
from dataproxy.process.threads import start_quiet
from dataproxy.rocketmq.network.target import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataproxy._core.remoting.link import Link
    from dataproxy.rocketmq.network.seal import Seal, Trusted

__all__ = ["Attempts", "Beside"]


class Attempts:
    """Make the sockets of connections.  Any thread.  A look-up of a name cannot be ended, all other waits can."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may call `end` in the middle; nobody waits while having it
        self._under_way: dict[socket.socket, int] = {}  # with the number of its thread
        self._over = False
        self._forsaken: set[int] = set()

    def make(self, address: Address, seconds: float, trusted: Trusted | None) -> tuple[socket.socket, Seal | None]:
        """Return a socket that is connected to a server, and what seals it; ``trusted``: for TLS.

        ``seconds`` bound the connection, of each address that the name has, and all with the handshake.  Raises
        OSError, UnicodeError, TransportError: a handshake that has failed.
        """
        until = time.monotonic() + seconds
        made = self._connected(address, seconds)
        if trusted is None:
            return made, None
        with self._held(made):
            return made, trusted.shake_hands(made, address.host, until - time.monotonic())

    def end(self) -> None:
        """Let all attempts fail, those too that are begun later; this waits for nothing."""
        with self._lock:
            self._over = True
            for made in list(self._under_way):  # others take theirs out
                with contextlib.suppress(OSError):
                    made.shutdown(socket.SHUT_RDWR)

    def forsake(self, thread: int) -> None:
        """Let all attempts of a thread fail, as `end` does for all threads; ``thread`` is its number."""
        with self._lock:
            self._forsaken.add(thread)
            for made in [one for one, number in self._under_way.items() if number == thread]:
                with contextlib.suppress(OSError):
                    made.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _held(self, made: socket.socket) -> Iterator[None]:
        """Let `end` know of a socket for a while; one with which something fails is closed."""
        try:
            with self._lock:
                self._check()
                self._under_way[made] = threading.get_ident()
            yield
        except BaseException:
            made.close()
            raise
        finally:
            self._under_way.pop(made, None)

    def _check(self) -> None:
        if self._over or threading.get_ident() in self._forsaken:
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))

    def _connected(self, address: Address, seconds: float) -> socket.socket:
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for left, (family, kind, protocol, _, place) in zip(range(len(places) - 1, -1, -1), places, strict=True):
            made = socket.socket(family, kind, protocol)
            try:
                with self._held(made):
                    self._connect(made, place, seconds)
            except OSError:
                if not left:
                    raise
            else:
                return made
        raise OSError(errno.EADDRNOTAVAIL, "the name has no address")

    def _connect(self, made: socket.socket, place: Any, seconds: float) -> None:
        made.setblocking(False)
        with self._lock:  # `end` finds one that is begun, or none is begun any more
            self._check()
            code = made.connect_ex(place)
        if code == errno.EINPROGRESS:
            with selectors.DefaultSelector() as selector:
                selector.register(made, selectors.EVENT_WRITE)
                if not selector.select(seconds):
                    raise TimeoutError("no answer in time")
            code = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))


class _Making:
    """A connection that a thread makes, for all who want it."""

    def __init__(self) -> None:
        self.done = Event()  # also for an application's thread, which a signal handler may interrupt
        self.link: Link | None = None
        self.error: BaseException | None = None


class Beside:
    """Make connections on threads of their own, one for each server, for callers who wait for a moment only.

    ``make`` returns the connection to a server.  Any thread.
    """

    def __init__(self, make: Callable[[Address], Link]) -> None:
        self._make = make
        self._lock = threading.RLock()
        self._under_way: dict[Address, _Making] = {}

    def open(self, address: Address, seconds: float) -> Link:
        """Return the connection to a server; one that is not made in time is made all the same.

        Raises TransportError, ClosedError.
        """
        with self._lock:
            making = self._under_way.get(address)
            if making is None:
                making = _Making()
                found = making  # of the thread's own
                start_quiet("dataproxy-rocketmq-connect", lambda: self._run(address, found))
                self._under_way[address] = making
        if not making.done.wait(seconds):
            raise TransportError(f"no connection to {address}: no answer in time", code="CONNECT_FAILED")
        if making.error is not None:
            raise making.error
        assert making.link is not None
        return making.link

    def _run(self, address: Address, making: _Making) -> None:
        try:
            making.link = self._make(address)
        except BaseException as error:  # noqa: BLE001 - who waits gets it
            making.error = error
        with self._lock:
            self._under_way.pop(address, None)
        making.done.set()
