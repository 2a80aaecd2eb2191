"""A TCP proxy that lets every answer wait."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from typing import Self

__all__ = ["Delay"]


class Delay:
    """Listen on a free port and pass everything on to ``port``; what comes back is ``seconds`` late."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._seconds = seconds
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.target = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for sock in (self._listener, *self._sockets):
            sock.close()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._sockets += [client, server]
            late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            self._start(self._forward, client, server)
            self._start(self._collect, server, late)
            self._start(self._release, client, late)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _collect(self, source: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            late.put((time.monotonic() + self._seconds, data))

    def _release(self, sink: socket.socket, late: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        while True:
            due, data = late.get()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError):
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
