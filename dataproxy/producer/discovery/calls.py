"""HTTP connections that one thread can end while another waits on them, and answers of a bounded size."""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import threading
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    import ssl

__all__ = ["Calls", "TooLargeError"]

_PART_BYTES: Final = 1 << 16
_ROOM_BYTES: Final = 1 << 20  # for what is around a body: the head, and the sizes of chunks
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})  # by servers that nobody has asked to
_ANY_HEAD: Final = 47  # to zlib: the head says whether it is gzip's
_SHOWN: Final = 40


class TooLargeError(Exception):
    """Report that an answer has more than ``most_bytes``, as it travels or unpacked."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"more than {most_bytes} bytes")
        self.most_bytes = most_bytes


class Calls:
    """Hold a pool of HTTP connections and the sockets of all of them.  ``context``: for those with TLS.

    An answer has at most ``most_bytes``: its head, its body as it travels, and its body unpacked.  More raise
    TooLargeError, wherever they are read.  ``end`` may be called by any thread; a thread that waits on a connection
    then gets an error, except during a TLS handshake, which has its own time limit.
    """

    def __init__(self, context: ssl.SSLContext | None = None, *, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._left = 0  # bytes that the answer may still have, as it travels; one thread reads one answer at a time
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
        # The class of answers is bound to this object: below it, lines and numbers of chunks have no bound at all.
        # Weakly, as that of connections: urllib3 holds those until their pool is freed, which this object holds.
        mine = weakref.ref(self)

        def connect(one: Any) -> None:
            calls = mine()
            if calls is None:
                raise urllib3.exceptions.NewConnectionError(one, "nobody waits for it")
            calls._connect(one, connection)

        whole = {"connect": connect, "response_class": _answer_class(mine)}
        noted = type("NotedConnection", (connection,), whole)
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

    def renew(self) -> None:
        """Let the answer that is read have as many bytes again: who reads a stream bounds its parts."""
        self._left = self._most_bytes + _ROOM_BYTES

    def _count(self, n: int) -> None:
        self._left -= n
        if self._left < 0:
            raise TooLargeError(self._most_bytes)

    def read(self, response: urllib3.BaseHTTPResponse) -> bytes:
        """Return the whole body of an answer that came without ``preload_content``, unpacked.

        Its connection goes back to the pool, or is closed if this raises: TooLargeError, and urllib3's HTTPError for a
        body that breaks off, or that is packed in a way that no server does unasked.
        """
        try:
            body = self._unpacked(response)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return body

    def _unpacked(self, response: urllib3.BaseHTTPResponse) -> bytes:
        name = response.headers.get("content-encoding", "").strip().lower()
        if name not in {"", "identity", *_PACKED}:
            raise urllib3.exceptions.DecodeError(f"the answer is packed as {name[:_SHOWN]!r}, which nobody asked for")
        unpacking = zlib.decompressobj(_ANY_HEAD) if name in _PACKED else None
        body = bytearray()
        part = b""
        for part in response.stream(_PART_BYTES, decode_content=False):
            try:
                body += part if unpacking is None else unpacking.decompress(part, self._most_bytes + 1 - len(body))
            except zlib.error as error:
                raise urllib3.exceptions.DecodeError(f"the answer is not packed as {name!r}: {error}") from None
            if len(body) > self._most_bytes:
                raise TooLargeError(self._most_bytes)
            if unpacking is not None and unpacking.unused_data:  # which would be copied with each part more
                raise urllib3.exceptions.DecodeError(f"the answer, packed as {name!r}, is longer than that")
        if unpacking is not None and part and not unpacking.eof:  # a refusal may be empty
            raise urllib3.exceptions.DecodeError(f"the answer, packed as {name!r}, breaks off")
        return bytes(body)

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


def _answer_class(mine: weakref.ref[Calls]) -> type[http.client.HTTPResponse]:
    class BoundedAnswer(http.client.HTTPResponse):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            calls = mine()
            if calls is None:
                raise urllib3.exceptions.ProtocolError("nobody waits for this answer")
            calls.renew()
            self.fp = io.BufferedReader(_Counted(self.fp.detach(), calls))

    return BoundedAnswer


class _Counted(io.RawIOBase):
    """What comes from a socket, counted."""

    def __init__(self, raw: io.RawIOBase, calls: Calls) -> None:
        self._raw, self._calls = raw, calls

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        n = self._raw.readinto(buffer)
        self._calls._count(n or 0)
        return n

    def close(self) -> None:
        self._raw.close()
        super().close()


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with contextlib.suppress(OSError):  # already disconnected
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS: no closing message is sent
