"""Ports of loopback and their connections; the requests of one connection are worked off in order."""

from __future__ import annotations

import asyncio
import socket

from tests.support.reference.tubemq import WireError, take_frame
from tests.support.tubeserver.service import HangUp, Service

__all__ = ["Listener"]

_BACKLOG = 100


class Listener:
    """One port, which stays this listener's while nobody listens on it.  One event loop.

    Sockets are used without asyncio's streams: so none is accepted that `stop` and `cut` do not know.
    """

    def __init__(self, service: Service, failures: list[Exception]) -> None:
        self._service, self._failures = service, failures
        self._listens = False
        self._connections: dict[asyncio.Task[None], socket.socket] = {}
        self._socket = self._bound(0)
        self.port: int = self._socket.getsockname()[1]

    def start(self) -> None:
        """Take connections."""
        if not self._listens:
            self._listens = True
            self._socket.listen(_BACKLOG)
            asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        """Take no more connections and end those that are there."""
        if self._listens:
            self._listens = False
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = self._bound(self.port)
        await self.cut()

    async def cut(self) -> None:
        """End all connections, whatever is under way on them."""
        ended = dict(self._connections)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        for task, connection in ended.items():  # a task that had not begun has closed nothing
            connection.close()
            self._connections.pop(task, None)

    async def close(self) -> None:
        """Stop, and give the port back."""
        await self.stop()
        self._socket.close()

    @staticmethod
    def _bound(port: int) -> socket.socket:
        """Return a socket that has the port but does not listen: connections are refused, and nobody else gets it."""
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.setblocking(False)
        return bound

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return  # it has gone already
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._connections[task] = connection

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._converse(connection)
        except (HangUp, WireError, ConnectionError):
            pass  # who sends no frames is left, as by the real ones
        except Exception as error:
            self._failures.append(error)  # of this server, not of the test's client
        finally:
            connection.close()
            task = asyncio.current_task()
            assert task is not None
            self._connections.pop(task, None)

    async def _converse(self, connection: socket.socket) -> None:
        loop, received = asyncio.get_running_loop(), bytearray()
        while data := await loop.sock_recv(connection, 1 << 16):
            received += data
            await asyncio.sleep(0)  # with always something to read, none of the calls here gives others a turn
            while (frame := take_frame(received)) is not None:
                serial, payload, end = frame
                del received[:end]
                answer = await self._service.answer(serial, payload)
                if answer is not None:
                    await loop.sock_sendall(connection, answer)
