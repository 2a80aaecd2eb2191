"""Bytes under way between simulated producers and hubs: delays, cuts, losses, resets, and answers that go astray."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from dataproxy._core.testing.probe_net import Net

__all__ = ["AckFault", "Connection", "Network"]

CLIENT, SERVER = 0, 1
_RESET, _REFUSED = 104, 111
_WINDOW = 65536


@dataclass
class AckFault:
    """What happens to answers of one hub until a time."""

    kind: str
    chance: float
    until: int


@dataclass
class Connection:
    """One pipe and what the network does to it."""

    index: int
    node: int
    rng: random.Random
    window: int = _WINDOW
    arrives: list[int] = field(default_factory=lambda: [0, 0])  # by receiving side: bytes come in order
    deaf: bool = False  # nothing arrives any more, and nobody notices
    stale: bytes = b""  # an answer kept back, to come late
    rest: bytes = b""  # part of an answer of which the rest was not written yet


class Network:
    """Carry bytes; ``later(at, function, *args)`` and ``poke`` (wake who got something) are the world's."""

    def __init__(
        self, seed: int, later: Callable[..., None], poke: Callable[[int, int], None], say: Callable[..., None]
    ) -> None:
        self.net = Net()
        self.seed = seed
        self.later = later
        self.poke = poke
        self.say = say
        self.connections: list[Connection] = []
        self.held: dict[int, tuple[int, int]] = {}  # node -> (until, which way: 0 to the hub, 1 to the client, 2 both)
        self.narrow: dict[int, tuple[int, int]] = {}  # node -> (until, window)
        self.acks: dict[int, AckFault] = {}
        self.client_bytes = 0
        self.lost_acks = 0

    def join(self, index: int, node: int, now: int) -> Connection:
        """Take a new connection to one node."""
        connection = Connection(index, node, random.Random(self.seed * 1009 + index))
        until, window = self.narrow.get(node, (0, 0))
        if now < until:
            connection.window = window
        self.connections.append(connection)
        return connection

    def pump(self, now: int) -> None:
        """Take what both sides wrote, and notice closed ends."""
        net = self.net
        for index, side in net.sweep():
            c = self.connections[index]
            if side == CLIENT:
                data = net.take(index, CLIENT)
                self.client_bytes += len(data)
                self._carry(c, SERVER, data, now)
            elif side == SERVER:
                self._answers(c, net.take(index, SERVER), now)
            else:
                self._end(c, 3 - side, now)

    def _end(self, c: Connection, side: int, now: int) -> None:
        at = max(now + c.rng.randrange(20, 300), c.arrives[side])
        at = max(at, self._held_until(c, side, now))
        if c.deaf:
            return
        if c.rng.random() < 0.3:  # closed with something unread: the peer sees a reset
            self.later(at, self._on_break, c, side)
        else:
            self.later(at, self._on_end, c, side)

    def _held_until(self, c: Connection, side: int, now: int) -> int:
        until, way = self.held.get(c.node, (0, 2))
        return until if now < until and way in (2, 1 - side) else 0

    def _carry(self, c: Connection, side: int, data: bytes, now: int) -> None:
        """Send bytes on their way to a side, whole or in pieces."""
        if c.deaf:
            return
        self.net.under_way(c.index, side, len(data))
        rng = c.rng
        at = 0
        while at < len(data):
            n = len(data) - at
            if n > 1 and rng.random() < 0.25:
                n = rng.randint(1, n)
            wait = rng.choice((30, 100, 100, 300, 2000))
            due = max(now + wait, c.arrives[side], self._held_until(c, side, now))
            c.arrives[side] = due
            self.later(due, self._on_bytes, c, side, data[at : at + n])
            at += n

    def _answers(self, c: Connection, data: bytes, now: int) -> None:
        """Send a hub's answers on, as its faults allow."""
        fault = self.acks.get(c.node)
        if fault is None or now >= fault.until:
            if c.rest:
                data, c.rest = c.rest + data, b""
            self._carry(c, CLIENT, data, now)
            return
        data = c.rest + data
        while len(data) >= 4:
            size = 4 + int.from_bytes(data[:4], "big")
            if len(data) < size:
                break
            frame, data = data[:size], data[size:]
            if c.rng.random() >= fault.chance:
                self._carry(c, CLIENT, frame, now)
            else:
                self._astray(c, frame, fault.kind, now)
        c.rest = data

    def _astray(self, c: Connection, frame: bytes, kind: str, now: int) -> None:
        if kind == "twice" and b"errCode" in frame:
            # Of two refusals over one connection nobody can tell whether the second is for the next attempt.
            self._carry(c, CLIENT, frame, now)
            return
        self.say("answer", kind, c.index)
        self.lost_acks += 1
        if kind == "late":
            self.later(now + c.rng.choice((5000, 60_000, 700_000)), self._on_late, c, frame)
        elif kind == "twice":
            self._carry(c, CLIENT, frame, now)
            self.later(now + c.rng.choice((1, 9000, 300_000)), self._on_late, c, frame)
        elif kind == "reorder":
            c.stale, frame = frame, c.stale
            if frame:
                self._carry(c, CLIENT, frame, now)
        elif kind == "foreign":
            foreign = bytearray(frame)
            if frame[4] & 0x1F == 7 and len(frame) > 12:
                foreign[9] ^= 0x55  # the number of the answered frame
            self._carry(c, CLIENT, bytes(foreign) + frame, now)
        elif kind == "unknown":
            self._carry(c, CLIENT, b"\x00\x00\x00\x03\x63xx" + frame, now)
        elif kind == "garbage":
            self._carry(c, CLIENT, b"HTTP/1.1 400 Bad Request\r\n\r\n", now)
        elif kind == "slice":
            for k in range(len(frame)):
                self._carry(c, CLIENT, frame[k : k + 1], now)

    # --- faults

    def reset(self, c: Connection, now: int, forget: bool) -> None:
        """Break a connection for both sides, at slightly different times."""
        if self.net.dead(c.index):
            return
        for side in (CLIENT, SERVER):
            self.later(now + c.rng.randrange(300), self._on_break, c, side, forget)
        c.deaf = True  # what is under way is lost

    def of(self, node: int) -> list[Connection]:
        """Return the open connections of one node."""
        return [c for c in self.live() if c.node == node and self.net.up(c.index)]

    def live(self) -> list[Connection]:
        """Return the connections that are not closed on both sides."""
        return [c for c in self.connections if not self.net.dead(c.index)]

    def narrow_to(self, c: Connection, window: int) -> None:
        """Change how many bytes may be under way on a connection."""
        c.window = window
        if self.net.up(c.index):
            self.net.set_window(c.index, window)

    def calm(self) -> None:
        """End every fault of the network; silent connections break, as a keep-alive would break them."""
        self.held.clear()
        self.narrow.clear()
        self.acks.clear()
        for c in self.live():
            self.narrow_to(c, _WINDOW)

    # --- events

    def _on_bytes(self, c: Connection, side: int, data: bytes) -> None:
        self.net.under_way(c.index, side, -len(data))
        if not c.deaf:
            self.net.give(c.index, side, data)
            self.poke(side, c.node)

    def _on_late(self, c: Connection, frame: bytes) -> None:
        if not c.deaf and not self.net.dead(c.index):
            self.net.give(c.index, CLIENT, frame)
            self.poke(CLIENT, c.node)

    def _on_end(self, c: Connection, side: int) -> None:
        if not c.deaf:
            self.net.end(c.index, side)
            self.poke(side, c.node)

    def _on_break(self, c: Connection, side: int, forget: bool = False) -> None:
        self.net.break_off(c.index, side, _RESET, forget)
        self.poke(side, c.node)
