"""Hostile TCP clients of a hub's DataProxy port, as a table: what they send, whether they read, how many there are.

    with Siege(("127.0.0.1", hub.port), BESIEGERS["half_sent_frames"]) as siege:
        siege.established.wait(10)      # every one of them has done what it can without the hub's help
        ...                             # what honest clients do meanwhile has to work

One thread moves all of them.  A client whose connection the hub closes comes back at once, for as long as the siege
lasts.
"""

from __future__ import annotations

import itertools
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.campaigns.httppeers.names import STORED
from tests.support.reference.snappy import pack_repeats

__all__ = ["BESIEGERS", "Besieger", "Siege", "besieger"]

_READ = 1 << 16
_SMALL_BUFFER = 4096
_TURN = 0.02


@dataclass(frozen=True)
class Besieger:
    """One kind of hostile client; ``sends`` makes the byte stream of one connection.

    Who does not read sends without end, since it would not notice that its connection is closed.
    """

    name: str
    text: str
    connections: int
    sends: Callable[[], Iterator[bytes]]
    reads: bool


BESIEGERS: dict[str, Besieger] = {}


def besieger(
    connections: int, *, reads: bool
) -> Callable[[Callable[[], Iterator[bytes]]], Callable[[], Iterator[bytes]]]:
    """Put a generator of bytes into the table, under its own name."""

    def enter(sends: Callable[[], Iterator[bytes]]) -> Callable[[], Iterator[bytes]]:
        text = (sends.__doc__ or "").strip()
        BESIEGERS[sends.__name__] = Besieger(sends.__name__, text, connections, sends, reads)
        return sends

    return enter


# --- frames


def _framed(rest: bytes) -> bytes:
    return len(rest).to_bytes(4, "big") + rest


def binary(
    body: bytes, attrs: bytes = b"groupId=siege&streamId=s", *, ext: int = 4, kind: int = 7, count: int = 1
) -> bytes:
    """Return a frame of type 7; ``kind`` 0x27: the body is a snappy block, bit 0 of ``ext``: of pairs."""
    head = bytes([kind]) + bytes(4) + ext.to_bytes(2, "big") + (1_700_000_000).to_bytes(4, "big")
    head += count.to_bytes(2, "big") + (1).to_bytes(4, "big") + len(body).to_bytes(4, "big")
    return _framed(head + body + len(attrs).to_bytes(2, "big") + attrs + b"\xee\x01")


def text(kind: int, body: bytes, attrs: bytes) -> bytes:
    """Return a frame of types 3 to 6."""
    return _framed(bytes([kind]) + len(body).to_bytes(4, "big") + body + len(attrs).to_bytes(4, "big") + attrs)


def beat(attrs: bytes) -> bytes:
    """Return a heartbeat of type 8, whose answer echoes the attributes."""
    return _framed(b"\x08" + bytes(4) + b"\x01" + bytes(4) + len(attrs).to_bytes(2, "big") + attrs + b"\xee\x01")


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


# --- the table


@besieger(96, reads=True)
def half_sent_frames() -> Iterator[bytes]:
    """Frames of 512 KiB, but for their last byte."""
    yield binary(_sized(b"h" * 520_000))[:-1]


@besieger(96, reads=True)
def frames_in_drops() -> Iterator[bytes]:
    """Frames of 512 KiB of which a little comes at a time, and the last byte never."""
    frame = binary(_sized(b"h" * 520_000))[:-1]
    yield frame[:300_000]
    for at in range(300_000, len(frame), 64):
        yield frame[at : at + 64]


@besieger(200, reads=True)
def many_beginnings() -> Iterator[bytes]:
    """Two bytes of a length."""
    yield b"\x00\x00"


@besieger(32, reads=False)
def heartbeats_unread() -> Iterator[bytes]:
    """Heartbeats with 32,000 bytes of attributes, whose answers nobody reads."""
    return itertools.repeat(beat(b"k" * 32_000))


@besieger(32, reads=False)
def refusals_unread() -> Iterator[bytes]:
    """Requests that are refused with an echo of their attributes, which nobody reads."""
    return itertools.repeat(text(3, b"x", b"streamId=s&long=" + b"v" * 60_000))


@besieger(32, reads=False)
def acks_unread() -> Iterator[bytes]:
    """Requests with long attributes, whose acks nobody reads."""
    return itertools.repeat(binary(_sized(b"x"), b"groupId=siege&streamId=unread&long=" + b"v" * 30_000))


@besieger(8, reads=False)
def answers_behind_commits() -> Iterator[bytes]:
    """Heartbeats that have to wait for the requests between them."""
    return itertools.cycle([binary(_sized(b"x"), b"groupId=siege&streamId=mixed"), *[beat(b"k" * 20_000)] * 20])


@besieger(2, reads=True)
def own_attributes_without_keys() -> Iterator[bytes]:
    """A snappy body of one message whose own attributes are 11 MB of `=&`."""
    body = pack_repeats([(_sized(b"x"), 1), ((11_000_000).to_bytes(4, "big"), 1), (b"=&", 5_500_000)])
    return itertools.repeat(binary(body, ext=5, kind=0x27))


@besieger(2, reads=True)
def attributes_without_keys() -> Iterator[bytes]:
    """Attributes of 60 kB of `=&`."""
    return itertools.repeat(text(3, b"x", b"=&" * 30_000))


@besieger(2, reads=True)
def attributes_of_many_keys() -> Iterator[bytes]:
    """Attributes of 60 kB with a different key in every four bytes."""
    keys = b"&".join(b"%x=" % n for n in range(12_000))[:60_000].rpartition(b"&")[0]
    return itertools.repeat(text(3, b"x", b"groupId=siege&" + keys))


@besieger(1, reads=True)
def records_with_long_attributes() -> Iterator[bytes]:
    """37 kB of snappy that are 30,000 tiny messages with 30 kB of attributes: each would cost a reader all of them."""
    body = pack_repeats([(_sized(b"x"), 30_000)])
    yield binary(body, b"groupId=siege&streamId=poison&long=" + b"v" * 30_000, kind=0x27, count=30_000)


@besieger(2, reads=True)
def names_that_are_new() -> Iterator[bytes]:
    """Requests with 2,000 names of groups and streams, as long as they may be, that nobody had before."""
    own = os.urandom(4).hex()
    for n in range(2000):
        name = f"{own}{n:x}".encode().ljust(255, b"n")
        yield binary(_sized(b"x"), b"groupId=" + name + b"&streamId=" + name)


@besieger(2, reads=True)
def names_to_obey() -> Iterator[bytes]:
    """Requests with names, attributes and bodies that a terminal, a log or a table would obey."""
    for word in itertools.islice(itertools.cycle(STORED.values()), 400):
        name = word.replace("&", "").encode("utf-8", "replace")
        yield text(5, _sized(name), b"groupId=" + name + b"&streamId=" + name + b"&k=" + name)


@besieger(8, reads=True)
def noise() -> Iterator[bytes]:
    """Bytes of another protocol."""
    return itertools.repeat(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n" * 20)


# --- the siege


@dataclass
class _Client:
    socket: socket.socket
    stream: Iterator[bytes]
    rest: memoryview = field(default_factory=lambda: memoryview(b""))
    settled: bool = False  # the first part of what it sends has left, or the hub takes no more


class Siege:
    """Clients of one kind against one address, from construction until ``close``.

    source: the address that they come from, on loopback any 127.x.y.z.  Counters: ``sent`` and ``received`` bytes,
    ``opened`` connections and those ``turned_away``, which the hub closed.  Any thread may look at them.
    """

    def __init__(self, address: tuple[str, int], kind: Besieger, *, source: str = "127.0.0.1") -> None:
        self.kind = kind
        self.sent = self.received = self.opened = self.turned_away = 0
        self.established = threading.Event()
        self._address, self._source = address, source
        self._ends = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._clients: list[_Client] = []
        self._thread = threading.Thread(target=self._run, name=f"siege-{kind.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Go home."""
        self._ends.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                while len(self._clients) < self.kind.connections and self._open():
                    pass
                busy = self._selector.select(_TURN)
                for key, ready in busy:
                    self._turn(key.data, ready)
                if not busy:
                    for client in self._clients:
                        client.settled = True
                if len(self._clients) == self.kind.connections and all(one.settled for one in self._clients):
                    self.established.set()
        finally:
            for client in self._clients:
                client.socket.close()
            self._selector.close()

    def _open(self) -> bool:
        try:
            one = socket.create_connection(self._address, timeout=5, source_address=(self._source, 0))
        except OSError:
            return False
        if not self.kind.reads:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        one.setblocking(False)
        client = _Client(one, self.kind.sends())
        self._clients.append(client)
        self.opened += 1
        self._selector.register(one, selectors.EVENT_WRITE | selectors.EVENT_READ * self.kind.reads, client)
        return True

    def _turn(self, client: _Client, ready: int) -> None:
        try:
            if ready & selectors.EVENT_READ:
                data = client.socket.recv(_READ)
                if not data:
                    raise ConnectionResetError
                self.received += len(data)
            if ready & selectors.EVENT_WRITE:
                self._send(client)
        except BlockingIOError:
            pass
        except OSError:
            self.turned_away += 1
            self._selector.unregister(client.socket)
            client.socket.close()
            self._clients.remove(client)

    def _send(self, client: _Client) -> None:
        if not client.rest:
            client.rest = memoryview(next(client.stream, b""))
        if not client.rest:  # it has said all, and keeps the connection
            self._selector.modify(client.socket, selectors.EVENT_READ, client)
            return
        n = client.socket.send(client.rest)
        self.sent += n
        client.rest = client.rest[n:]
        client.settled = client.settled or not client.rest
