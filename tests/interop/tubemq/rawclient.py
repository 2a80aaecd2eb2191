"""A TubeMQ client without an engine: one socket, one call at a time; each message is made and read as the test says."""

from __future__ import annotations

import itertools
import socket
from typing import Any, Self

from dataproxy.wire.tubemq import messages
from tests.native import probe_tubemq as wire

__all__ = ["Connection", "RpcError"]

MASTER, READ, WRITE = 1, 2, 3
METHODS = {
    "RegisterRequestP2M": (1, MASTER, "RegisterResponseM2P"),
    "HeartRequestP2M": (2, MASTER, "HeartResponseM2P"),
    "CloseRequestP2M": (3, MASTER, "CloseResponseM2P"),
    "RegisterRequestC2M": (4, MASTER, "RegisterResponseM2C"),
    "HeartRequestC2M": (5, MASTER, "HeartResponseM2C"),
    "CloseRequestC2M": (6, MASTER, "CloseResponseM2C"),
    "SendMessageRequestP2B": (13, WRITE, "SendMessageResponseB2P"),
    "RegisterRequestC2B": (15, READ, "RegisterResponseB2C"),
    "HeartBeatRequestC2B": (16, READ, "HeartBeatResponseB2C"),
    "GetMessageRequestC2B": (17, READ, "GetMessageResponseB2C"),
    "CommitOffsetRequestC2B": (18, READ, "CommitOffsetResponseB2C"),
    "RegisterRequestC2MV2": (20, MASTER, "RegisterResponseM2CV2"),
    "HeartRequestC2MV2": (21, MASTER, "HeartResponseM2CV2"),
    "GetPartMetaRequestC2M": (22, MASTER, "GetPartMetaResponseM2C"),
}


class RpcError(Exception):
    """The server answered with an exception."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


class Connection:
    """One connection to a master or a broker."""

    def __init__(self, port: int, seconds: float = 15) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._stream = wire.Stream()
        self._serials = itertools.count(1)
        self._found: dict[int, bytes] = {}

    def post(self, name: str, **fields: Any) -> int:
        """Send a request and return its number."""
        kind: Any = getattr(messages, name)
        return self._post(name, kind(**fields).SerializeToString())

    def _post(self, name: str, request: bytes) -> int:
        method, service, _ = METHODS[name]
        serial = next(self._serials)
        self._socket.sendall(wire.frame(serial, wire.call(service, 3, method, 10_000, request)))
        return serial

    def post_data(self, name: str, **fields: Any) -> int:
        """Send a request that compiled code writes; texts are bytes."""
        return self._post(name, wire.write(name, fields))

    def answer(self, serial: int, name: str) -> Any:
        """Return the answer to a request.  Raises RpcError for an exception, ConnectionError at the end."""
        kind: Any = getattr(messages, METHODS[name][2])
        return kind.FromString(self._answer(serial))

    def answer_data(self, serial: int, name: str) -> dict[str, Any]:
        """Return the answer to a request as compiled code reads it."""
        return dict(wire.read(METHODS[name][2], self._answer(serial)))

    def _answer(self, serial: int) -> bytes:
        while serial not in self._found:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._found.update(self._stream.push(data))
        found = wire.read_answers(self._found.pop(serial))
        if found["status"]:
            raise RpcError(found["exceptionName"].decode(), found["stackTrace"].decode())
        return bytes(found["data"])

    def ask_data(self, name: str, **fields: Any) -> dict[str, Any]:
        """Send a request that compiled code writes, and return its answer as compiled code reads it."""
        return self.answer_data(self.post_data(name, **fields), name)

    def ask_message(self, name: str, message: Any) -> Any:
        """Send a request that is a message already, and return its answer."""
        return self.answer(self._post(name, message.SerializeToString()), name)

    def ask(self, name: str, **fields: Any) -> Any:
        """Send a request and return its answer."""
        return self.answer(self.post(name, **fields), name)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
