"""One connection to a master, on which one call is made after the other."""

from __future__ import annotations

import os
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, Self

from dataproxy.errors import RemoteProtocolError
from dataproxy.shown import foreign
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS, TOKEN, read_calls
from dataproxy.wire.tubemq.reading import has_texts

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MasterConnection", "ServerFault", "fault_text"]

_MASTER_SERVICE: Final = 1
_VERSION: Final = 3
_HEAD: Final = 12
_SLICE: Final = 8192  # bytes of a slice that is written
_MOST_SLICES: Final = 3584
_LARGEST_SLICE: Final = 65536
_LARGEST_FRAME: Final = 32 << 20
_PIECE: Final = 1 << 20
_BY_NAME: Final = {one.request: one for one in METHODS.values()}


class ServerFault(Exception):  # noqa: N818 - a master's, not this program's
    """Report that a master answered with an exception in place of an answer; the text has its name."""


class MasterConnection:
    """A connection to a master.  One thread.

    ``name`` is the one that its certificate must be for.  Raises OSError where no connection can be made in
    ``connect_s``.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, name: str, connect_s: float) -> None:
        self._serial = 0
        try:
            self._socket = socket.create_connection((host, port), timeout=connect_s)
        except UnicodeError as error:
            raise OSError(f"{host!r} has no address: {error}") from None
        if context is None:
            return
        plain = self._socket
        try:
            self._socket = context.wrap_socket(plain, server_hostname=name)
        except OSError:
            plain.close()
            raise
        except ValueError as error:  # a name that no certificate can be for
            plain.close()
            raise OSError(f"{name!r} is no name for TLS: {error}") from None

    @property
    def own_host(self) -> str:
        """Return this machine's address on this connection."""
        return str(self._socket.getsockname()[0])

    def ask(self, name: str, message: Any, seconds: float) -> Any:
        """Make a call, named by its request's message, and return the message of its answer.

        Raises OSError (TimeoutError after ``seconds``), ServerFault, RemoteProtocolError.
        """
        method = _BY_NAME[name]
        self._serial += 1
        until = time.monotonic() + seconds
        self._limit(until)
        self._socket.sendall(_frame(self._serial, method.number, message.SerializeToString(), seconds))
        call = next(read_calls(self._read_frame(until), "server"))
        if call.problems:
            problem = call.problems[0]
            raise RemoteProtocolError(f"its answer is none of TubeMQ's protocol: {problem.field}: {problem.text}")
        if call.serial != self._serial:
            raise RemoteProtocolError(f"its answer has the number {call.serial}, expected {self._serial}")
        last = call.parts[-1]
        if last.name == "RspExceptionBody":
            said = last.message.stackTrace.strip().partition("\n")[0]
            name = last.message.exceptionName or "an exception without a name"
            raise ServerFault(foreign(f"{name}: {said}" if said else name))
        if last.name != method.answer:
            raise RemoteProtocolError(f"it answers {name} with {last.name}, expected {method.answer}")
        if not has_texts(last.message):
            raise RemoteProtocolError(f"a text in its answer to {name} is not UTF-8")
        return last.message

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _limit(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(left)

    def _read_frame(self, until: float) -> bytes:
        """Return the bytes of the next frame; no more than a frame may have is read, whatever its lengths say."""
        frame = bytearray(self._read(_HEAD, until))
        if not frame.startswith(TOKEN):
            raise RemoteProtocolError(f"its answer begins with {bytes(frame[:4]).hex()}, expected {TOKEN.hex()}")
        slices = int.from_bytes(frame[8:12])
        if not 1 <= slices <= _MOST_SLICES:
            raise RemoteProtocolError(f"its answer has {slices} slices, expected 1 to {_MOST_SLICES}")
        for _ in range(slices):
            head = self._read(4, until)
            size = int.from_bytes(head)
            if not 1 <= size <= _LARGEST_SLICE or len(frame) + size > _LARGEST_FRAME:
                raise RemoteProtocolError(f"its answer has a slice of {size} bytes behind {len(frame)} others")
            frame += head + self._read(size, until)
        return bytes(frame)

    def _read(self, size: int, until: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._limit(until)
            try:
                piece = self._socket.recv(min(size - len(data), _PIECE))
            except TimeoutError:
                raise TimeoutError("no answer in time") from None
            if not piece:
                raise ConnectionError("the connection ended before the answer")
            data += piece
        return bytes(data)


def fault_text(error: OSError) -> str:
    """Return what is wrong with a connection, in few words."""
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}"
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _frame(serial: int, method: int, request: bytes, seconds: float) -> bytes:
    parts = (
        messages.RpcConnHeader(flag=0),
        messages.RequestHeader(serviceType=_MASTER_SERVICE, protocolVer=_VERSION),
        messages.RequestBody(method=method, timeout=int(seconds * 1000), request=request),
    )
    payload = b"".join(_delimited(part.SerializeToString()) for part in parts)
    slices = [payload[at : at + _SLICE] for at in range(0, len(payload), _SLICE)]
    head = TOKEN + serial.to_bytes(4) + len(slices).to_bytes(4)
    return head + b"".join(len(one).to_bytes(4) + one for one in slices)


def _delimited(message: bytes) -> bytes:
    """Return a message behind its length, which is a varint."""
    head, rest = bytearray(), len(message)
    while rest > 0x7F:
        head.append(rest & 0x7F | 0x80)
        rest >>= 7
    head.append(rest)
    return bytes(head) + message
