"""A proxy over real sockets that does what a test's script says, built on the wire's server role."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Self

from dataproxy._core.wire.inlong.message import records
from tests.native.probe_wire import Server

__all__ = ["Peer", "Scripted", "ack", "good", "only_accept", "refusal", "silent"]

SECONDS = 30.0
HEARTBEATS = (1, 8)


def ack(frame: bytes) -> bytes:
    """Return the success answer to one frame."""
    return Server(load=5).serve(frame, 1_700_000_000_000)["reply"]


def refusal(frame: bytes, code: int, text: bytes = b"no") -> bytes:
    """Return the answer to one frame with an error code."""
    return Server().refuse(ack(frame), code, text)


def good(peer: Peer, frame: bytes) -> None:
    """Answer as a healthy proxy does."""
    peer.send(ack(frame))


def silent(peer: Peer, frame: bytes) -> None:
    """Take the frame and say nothing."""


class Peer:
    """One accepted connection."""

    def __init__(self, owner: Scripted, sock: socket.socket, number: int) -> None:
        self.owner = owner
        self.sock = sock
        self.number = number

    def send(self, data: bytes) -> None:
        """Send all of it; a connection that is gone is no error here."""
        with contextlib.suppress(OSError):
            self.sock.sendall(data)

    def send_single(self, data: bytes) -> None:
        """Send byte by byte, each in a segment of its own."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            self.send(data[i : i + 1])

    def close(self) -> None:
        """End the connection; the thread that reads it closes the descriptor."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Close with a reset; only from ``react`` and ``on_connect``."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.shutdown(socket.SHUT_RD)
        self.sock.close()


class Scripted:
    """Listen on a free port; ``react(peer, frame)`` runs for each data frame on the connection's own thread.

    ``frames`` and ``heartbeats`` hold (connection number, bytes) in the order of arrival; ``wait`` waits for a
    condition on them.  ``reading`` cleared makes every connection stop reading.
    """

    def __init__(
        self, react: Callable[[Peer, bytes], object] = good, *, port: int = 0, receive_buffer: int = 0
    ) -> None:
        self.react = react
        self.on_heartbeat: Callable[[Peer, bytes], object] = good
        self.on_connect: Callable[[Peer], object] = lambda peer: None
        self.changed = threading.Condition()
        self.frames: list[tuple[int, bytes]] = []
        self.heartbeats: list[tuple[int, bytes]] = []
        self.peers: list[Peer] = []
        self.ended: list[int] = []
        self.partial: dict[int, int] = {}
        self.reading = threading.Event()
        self.reading.set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket()
        if receive_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"127.0.0.1:{self.port}"

    @property
    def target(self) -> str:
        """Return the producer's target."""
        return f"tcp://{self.address}"

    def wait(self, condition: Callable[[], Any]) -> None:
        """Wait until ``condition()`` holds; it is looked at after each event of the server."""
        with self.changed:
            assert self.changed.wait_for(condition, SECONDS), "the condition did not come true in time"

    def wait_frames(self, n: int) -> list[bytes]:
        """Wait for so many data frames and return all that came."""
        self.wait(lambda: len(self.frames) >= n)
        return [frame for _, frame in self.frames]

    def bodies(self) -> list[bytes]:
        """Return the bodies of all frames in the order of arrival, resent ones too."""
        server = Server()
        return [body for _, frame in list(self.frames) for body, _ in records(server.serve(frame, 0)["entry"])]

    def messages(self) -> list[tuple[bytes, dict[str, str]]]:
        """Return the bodies with their attributes."""
        server = Server()
        return [message for _, frame in list(self.frames) for message in records(server.serve(frame, 0)["entry"])]

    def note(self) -> None:
        """Have waiting conditions looked at again."""
        with self.changed:
            self.changed.notify_all()

    def close(self) -> None:
        """Stop listening, close every connection, wait for the threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.reading.set()
        for peer in list(self.peers):
            peer.close()
        for thread in self._threads:
            thread.join(SECONDS)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self.changed:
                peer = Peer(self, sock, len(self.peers))
                self.peers.append(peer)
                self.changed.notify_all()
            self.on_connect(peer)
            self._start(self._serve, peer)

    def _serve(self, peer: Peer) -> None:
        received = bytearray()
        while True:
            self.reading.wait()
            try:
                part = peer.sock.recv(65536)
            except OSError:
                part = b""
            if not part:
                break
            received += part
            self.partial[peer.number] = len(received)
            while len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4], "big"):
                size = 4 + int.from_bytes(received[:4], "big")
                frame = bytes(received[:size])
                del received[:size]
                self.partial[peer.number] = len(received)
                self._take(peer, frame)
        with self.changed:
            self.ended.append(peer.number)
            self.changed.notify_all()
        peer.sock.close()

    def _take(self, peer: Peer, frame: bytes) -> None:
        beat = frame[4] in HEARTBEATS
        with self.changed:
            (self.heartbeats if beat else self.frames).append((peer.number, frame))
        (self.on_heartbeat if beat else self.react)(peer, frame)
        self.note()


@contextlib.contextmanager
def only_accept():
    """Yield a target whose listener never takes a connection: its backlog is full."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
