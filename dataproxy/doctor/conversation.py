"""One connection whose calls all have an end, and answers that are recognised whatever they are."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from types import TracebackType
from typing import Any, Final, Self

from dataproxy.wire.inlong import Frame, read_frames

__all__ = ["Closed", "Conversation", "Foreign", "start_of"]

_LONGEST_ANSWER: Final = 1 << 20  # bytes; servers echo at most 64 KiB of attributes
_CHUNK: Final = 1 << 16
_SHOWN: Final = 48
_GIST_BYTES: Final = 256  # of a foreign answer that are waited for, so that it can be recognised
_GIST_SECONDS: Final = 0.2
_TYPE_MASK: Final = 0x1F
_TYPES: Final = range(1, 9)
_HTTP: Final = re.compile(rb"HTTP/\d|\s*<(?:!doctype|html|\?xml|head)\b", re.IGNORECASE)
_TLS: Final = re.compile(rb"[\x14-\x17]\x03[\x00-\x04]", re.DOTALL)


class Closed(Exception):  # noqa: N818 - an outcome
    """The peer closed the connection; ``partial`` is what came of an answer."""

    def __init__(self, partial: bytes) -> None:
        super().__init__(partial)
        self.partial = partial


class Foreign(Exception):  # noqa: N818 - an outcome
    """Bytes that are no answer; ``kind`` is ``http``, ``tls``, ``banner`` (text of another program) or ``garbage``.

    ``wrong``: what breaks the protocol in an answer that begins as one should.
    """

    def __init__(self, data: bytes, wrong: str = "") -> None:
        super().__init__(data, wrong)
        self.data, self.wrong = data, wrong
        self.kind = _kind_of(data)


def start_of(data: bytes) -> str:
    """Return how an answer begins: its first line if it is text, else its first bytes as hex digits."""
    line = data.lstrip()[: 4 * _SHOWN].split(b"\n")[0].strip()
    text = line.decode("utf-8", "replace")
    if line and "\ufffd" not in text and text.isprintable():
        return repr(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))
    return data[:16].hex(" ") + (" ..." if len(data) > 16 else "")


def _kind_of(data: bytes) -> str:
    if _HTTP.match(data):
        return "http"
    if _TLS.match(data):
        return "tls"
    line = data.split(b"\n")[0].strip()
    printable = len(line) >= 3 and all(32 <= byte < 127 for byte in line)
    return "banner" if printable else "garbage"


class Conversation:
    """A connection to ``where``, an address as ``socket.getaddrinfo`` gives it; ``name`` is the server's.  One thread.

    ``over``: nothing more is sent on it.  All calls take ``end``, a moment of ``time.monotonic``,
    and raise TimeoutError at it, other OSError for what the operating system says, and Closed when the peer has closed.
    """

    def __init__(self, family: int, where: tuple[Any, ...], end: float, name: str = "") -> None:
        self.name = name
        self.over = False
        self._sock: socket.socket = socket.socket(family, socket.SOCK_STREAM)
        self._got = bytearray()
        try:
            self._limit(end)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock.connect(where)
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def came(self) -> bytearray:
        """Return what has come and was not taken: the beginning of an answer."""
        return self._got

    def is_itself(self) -> bool:
        """Tell whether the kernel connected the socket with itself: that can happen on ports without a listener."""
        return bool(self._sock.getsockname()[:2] == self._sock.getpeername()[:2])

    def close(self) -> None:
        """Close the connection without waiting; may be called again."""
        with contextlib.suppress(OSError):
            self._sock.close()

    def secure(self, context: ssl.SSLContext, host: str, end: float) -> ssl.SSLSocket:
        """Speak TLS from now on and return the socket.  Raises ssl.SSLError too, and ValueError for the host."""
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=host)  # a socket would leak at an odd name
        self._limit(end)
        secured = context.wrap_socket(self._sock, server_hostname=host, do_handshake_on_connect=False)
        self._sock = secured
        secured.do_handshake()
        return secured

    def send(self, data: bytes, end: float) -> None:
        """Send all of it."""
        self._limit(end)
        self._sock.sendall(data)

    def frame(self, end: float) -> Frame:
        """Return the next frame of a server; what is wrong with it is in its ``problems``.  Raises Foreign."""
        while True:
            if len(self._got) >= 5 and self._got[4] & _TYPE_MASK not in _TYPES:
                raise Foreign(self.gist(end))
            if len(self._got) >= 4:
                size = int.from_bytes(self._got[:4], "big")
                if not 0 < size <= _LONGEST_ANSWER:
                    raise Foreign(self.gist(end))
                if len(self._got) >= 4 + size:
                    data = bytes(self._got[: 4 + size])
                    del self._got[: 4 + size]
                    return next(iter(read_frames(data, "server")))
            self.receive(end)

    def receive(self, end: float) -> None:
        """Wait for more bytes, which ``came`` has then."""
        self._limit(end)
        part = self._sock.recv(_CHUNK)
        if not part:
            raise Closed(bytes(self._got))
        self._got += part

    def take(self, size: int) -> None:
        """Drop so many bytes that were read in ``came``."""
        del self._got[:size]

    def gist(self, end: float) -> bytes:
        """Return the beginning of what is no answer; waits a moment for more of it."""
        end = min(end, time.monotonic() + _GIST_SECONDS)
        with contextlib.suppress(OSError, Closed):
            while len(self._got) < _GIST_BYTES:
                self.receive(end)
        return bytes(self._got[:_GIST_BYTES])

    def _limit(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
