"""Ports of loopback for servers that are named before they listen, or that die and come back."""

from __future__ import annotations

import socket
import weakref

__all__ = ["HeldPorts"]


class HeldPorts:
    """Ports that the system gives nobody else until ``close``, or until the object is forgotten; on one thread.

    A port that was only looked up may belong to another by the time its server starts, and again whenever that server
    is dead: the system gives it to any connection that begins.  So a socket stays bound to each, without listening.
    A server that sets SO_REUSEADDR, as the hub does and Java's do, listens there nevertheless.
    """

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses or ("127.0.0.1",)
        self._sockets: list[socket.socket] = []
        self.close = weakref.finalize(self, _close, self._sockets)  # given back once

    def take(self, *distances: int) -> int:
        """Return one more port that nobody has at any of the addresses; those at the distances are held too."""
        while True:
            port = self._hold(self._addresses[0], 0)
            first = len(self._sockets)
            try:
                for address in self._addresses[1:]:
                    self._hold(address, port)
                for distance in distances:
                    for address in self._addresses:
                        self._hold(address, port + distance)
            except OSError:
                _close(self._sockets, first)  # the port itself stays held: it is not tried again
                continue
            return port

    def _hold(self, address: str, port: int) -> int:
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self._sockets.append(one)
        one.bind((address, port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not before: another holder's would be no hindrance
        return int(one.getsockname()[1])


def _close(sockets: list[socket.socket], first: int = 0) -> None:
    while len(sockets) > first:
        sockets.pop().close()
