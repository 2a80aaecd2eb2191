"""HTTP connections that one thread can end while another thread waits on them."""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    import ssl

__all__ = ["Calls"]


class Calls:
    """Hold a pool of HTTP connections and the sockets of all of them.  ``context``: for those with TLS.

    ``end`` may be called by any thread; a thread that waits on a connection then gets an error, except during a TLS
    handshake, which has its own time limit.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._lock = threading.Lock()
        self._connections: weakref.WeakSet[Any] = weakref.WeakSet()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # a response may keep a socket alive
        self._ended = False
        self.pool = urllib3.PoolManager(retries=False, ssl_context=context)
        self.pool.pool_classes_by_scheme = {
            "http": self._pool_class(urllib3.HTTPConnectionPool, HTTPConnection),
            "https": self._pool_class(urllib3.HTTPSConnectionPool, HTTPSConnection),
        }

    def _pool_class(self, pool: type[Any], connection: type[Any]) -> type[Any]:
        noted = type("NotedConnection", (connection,), {"connect": lambda one: self._connect(one, connection)})
        return type("NotedPool", (pool,), {"ConnectionCls": noted})

    def _connect(self, one: Any, kind: type[Any]) -> None:
        with self._lock:
            if self._is_over():
                raise urllib3.exceptions.NewConnectionError(one, "the time limit has passed")
            self._connections.add(one)
        kind.connect(one)
        with self._lock:
            self._sockets.add(one.sock)
        if self._is_over():  # ``end`` was called before there was a socket
            _shut(one.sock)

    def _is_over(self) -> bool:
        return self._ended

    def end(self) -> None:
        """End every connection, and refuse new ones."""
        with self._lock:
            self._ended = True
            known = [one.sock for one in self._connections] + list(self._sockets)
        for sock in known:
            _shut(sock)

    def close(self) -> None:
        """Close idle connections."""
        self.pool.clear()


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with contextlib.suppress(OSError):  # already disconnected
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS: no closing message is sent
