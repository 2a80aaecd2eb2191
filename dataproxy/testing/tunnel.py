"""One connection through a fault proxy: two directions, and the effect of faults on each."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
from collections import deque
from collections.abc import Iterable
from typing import Final

from dataproxy.testing.blackhole import lose_packets, take_packets
from dataproxy.testing.proxyfault import ArmedProxyFault

__all__ = ["Direction", "Tunnel"]

_CHUNK: Final = 65536
_HELD: Final = 262144  # most bytes of one direction that are read and not yet written
_STEPS: Final = 100  # writes a second of a direction with a bandwidth
_STOPS: Final = ("freeze", "vanish")  # faults that hold until they are removed
_ENDINGS: Final = ("reset", "close", "half_close", *_STOPS)
_RESET: Final = struct.pack("ii", 1, 0)


class Direction:
    """Carry bytes from one socket to the other.  Only the proxy's thread calls it."""

    def __init__(self, side: str, source: socket.socket, sink: socket.socket) -> None:
        self.side = side
        self.source = source
        self.sink = sink
        self.taken = 0  # bytes read from the source
        self.given = 0  # bytes written to the sink
        self.ended = False  # the source has no more
        self.closed = False  # the sink was told that there is no more
        self.lost = False  # what the source sends gets lost on its way
        self._queue: deque[tuple[float, bytes]] = deque()  # (when it may go, bytes)
        self._held = 0
        self._again = 0.0  # time from which the bandwidth allows the next write

    def wants_bytes(self) -> bool:
        """Tell whether the source should be read."""
        return not self.ended and not self.closed and self._held < _HELD

    def take(self, faults: Iterable[ArmedProxyFault], now: float) -> None:
        """Read the available bytes of the source.  Raises OSError."""
        try:
            data = bytearray(self.source.recv(_CHUNK))
        except BlockingIOError:
            return
        if not data:
            self.ended = True
            return
        due = now
        for armed in faults:
            if armed.fault.kind == "corrupt":
                at = armed.fault._parameter("at_byte") - 1 - self.taken
                if 0 <= at < len(data):
                    data[at] ^= armed.fault._parameter("mask")
                    armed.fired += 1
            elif armed.fault.kind == "delay":
                seconds = armed.fault._parameter("seconds")
                due = max(due, now + seconds if seconds else float("inf"))
                armed.fired += 1
        self.taken += len(data)
        self._held += len(data)
        self._queue.append((due, bytes(data)))

    def discard(self) -> None:
        """Read the available bytes of the source and drop them.  Raises OSError."""
        with contextlib.suppress(BlockingIOError):
            self.ended = not self.source.recv(_CHUNK)

    def lose(self, lost: bool) -> None:
        """Drop all packets from the source, or stop dropping them.  Raises OSError."""
        if lost != self.lost:
            (lose_packets if lost else take_packets)(self.source)
            self.lost = lost

    def release(self, now: float) -> None:
        """Let delayed bytes go: the delay was removed."""
        self._queue = deque((min(due, now), data) for due, data in self._queue)

    def due(self, now: float) -> float | None:
        """Return when the next byte may be written; None if none waits, or only the end of a fault releases it."""
        if self.closed or not self._queue or self._queue[0][0] == float("inf"):
            return None
        return max(self._queue[0][0], self._again, now)

    def give(self, faults: Iterable[ArmedProxyFault], now: float) -> ArmedProxyFault | None:
        """Write one piece; return the fault that ends or stops the direction here.  Raises OSError."""
        stop = self._ending(faults)
        if stop is not None and self.given >= stop.fault._parameter("at_byte"):
            return stop
        due = self.due(now)
        if due is None or due > now:
            self._finish()
            return None
        when, data = self._queue.popleft()
        most, rate = self._allowance(faults)
        if stop is not None:
            most = min(most, stop.fault._parameter("at_byte") - self.given)
        try:
            sent = self.sink.send(data[:most])
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._queue.appendleft((when, data[sent:]))
        self.given += sent
        self._held -= sent
        if rate:
            self._again = now + sent / rate
        self._finish()
        return stop if stop is not None and self.given >= stop.fault._parameter("at_byte") else None

    def _ending(self, faults: Iterable[ArmedProxyFault]) -> ArmedProxyFault | None:
        ends = [armed for armed in faults if armed.fault.kind in _ENDINGS]
        return min(ends, key=lambda armed: int(armed.fault._parameter("at_byte")), default=None)

    def _allowance(self, faults: Iterable[ArmedProxyFault]) -> tuple[int, int]:
        most, rate = _CHUNK, 0
        for armed in faults:
            if armed.fault.kind == "slice":
                most = min(most, armed.fault._parameter("size"))
                armed.fired += 1
            elif armed.fault.kind == "bandwidth":
                rate = armed.fault._parameter("bytes_per_second")
                most = min(most, max(1, rate // _STEPS))
                armed.fired += 1
        return most, rate

    def _finish(self) -> None:
        if self.ended and not self._queue and not self.closed:
            self.half_close()

    def half_close(self) -> None:
        """Tell the sink that nothing more comes.  Raises OSError."""
        self.closed = True
        self.sink.shutdown(socket.SHUT_WR)


class Tunnel:
    """Join a client and the server behind the proxy.  Only the proxy's thread calls it."""

    def __init__(self, number: int, client: socket.socket, server: socket.socket) -> None:
        self.number = number
        self.client = client
        self.server = server
        self.connected = False
        self.parting = False  # both sides were told the end; bytes that they still send are dropped
        self.gone = False
        self.directions = (Direction("to_server", client, server), Direction("to_client", server, client))
        self._struck: set[tuple[int, str]] = set()
        for one in (client, server):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def events(self, faults: list[ArmedProxyFault], now: float) -> dict[socket.socket, int]:
        """Return the events to wait for, by socket."""
        wanted = {self.client: 0, self.server: 0}
        if not self.connected:
            wanted[self.server] = selectors.EVENT_WRITE
            return wanted
        if self.parting:
            return {one.source: 0 if one.ended else selectors.EVENT_READ for one in self.directions}
        for one in self.directions:
            if self._stopped(one, faults, _STOPS):
                continue
            if one.wants_bytes():
                wanted[one.source] |= selectors.EVENT_READ
            due = one.due(now)
            if due is not None and due <= now:
                wanted[one.sink] |= selectors.EVENT_WRITE
        return wanted

    def due(self, faults: list[ArmedProxyFault], now: float) -> float | None:
        """Return when the next delayed byte may go, None without one."""
        times = [one.due(now) for one in self.directions if not self._stopped(one, faults, _STOPS)]
        return min((when for when in times if when is not None and when > now), default=None)

    def _stopped(self, one: Direction, faults: list[ArmedProxyFault], kinds: tuple[str, ...]) -> bool:
        return any(
            armed.fault.kind in kinds and one.given >= armed.fault._parameter("at_byte")
            for armed in self._concerned(one, faults)
        )

    def _concerned(self, one: Direction, faults: list[ArmedProxyFault]) -> list[ArmedProxyFault]:
        return [armed for armed in faults if armed._strikes(one.side) and armed._chooses(self.number)]

    def finish_connect(self) -> bool:
        """Tell whether the server took the connection; false: the client is reset."""
        error = self.server.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self.reset()
            return False
        self.connected = True
        return True

    def lose(self, faults: list[ArmedProxyFault]) -> None:
        """Drop the packets of the directions that faults name, and of no other."""
        for one in self.directions:
            one.lose(self.connected and self._stopped(one, faults, ("vanish",)))

    def step(self, ready: dict[socket.socket, int], faults: list[ArmedProxyFault], now: float) -> None:
        """Move bytes in both directions."""
        if self.parting:
            self._part(ready)
            return
        for one in self.directions:
            concerned = self._concerned(one, faults)
            try:
                if ready.get(one.source, 0) & selectors.EVENT_READ:
                    one.take(concerned, now)
                self._act(one.give(concerned, now), one)
            except OSError:
                self.reset()
            if self.gone or self.parting:
                return
        self.lose(faults)
        if all(one.closed for one in self.directions):
            self.close()

    def _part(self, ready: dict[socket.socket, int]) -> None:
        try:
            for one in self.directions:
                if ready.get(one.source, 0) & selectors.EVENT_READ:
                    one.discard()
        except OSError:
            self.close()
        if all(one.ended for one in self.directions):
            self.close()

    def _act(self, armed: ArmedProxyFault | None, one: Direction) -> None:
        if armed is None:
            return
        if (id(armed), one.side) not in self._struck:
            self._struck.add((id(armed), one.side))
            armed.fired += 1
        if armed.fault.kind == "reset":
            self.reset()
        elif armed.fault.kind == "close":
            self.parting = True  # closing with unread bytes would be a reset
            for each in self.directions:
                if not each.closed:
                    each.half_close()
        elif armed.fault.kind == "half_close" and not one.closed:
            one.half_close()

    def release(self, now: float) -> None:
        """Let delayed bytes of both directions go."""
        for one in self.directions:
            one.release(now)

    def reset(self) -> None:
        """Tell the proxy to close both sides with RST."""
        for one in (self.client, self.server):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()

    def close(self) -> None:
        """Tell the proxy to close both sides."""
        self.gone = True

    def dispose(self) -> None:
        """Close the sockets; the kernel then ends the connections."""
        self.lose([])
        self.client.close()
        self.server.close()
