"""Bytes under way between simulated producers and hubs: delays, cuts, losses, resets, and answers that go astray.

What a side writes lies in its socket, which is full some time, until the network takes it: as much as the other side's
window lets go, as fast as the link is, and nothing when the other host is gone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.native.probe_net import Net
from tests.sim.answers import AnswerOrder
from tests.sim.proxy import frame_seq, is_http, is_refusal, message_size, take_frame

__all__ = ["AckFault", "Connection", "Network"]

CLIENT, SERVER = 0, 1
_RESET, _REFUSED = 104, 111
_WINDOW = 65536
_BUFFERS = (512, 4096, 16384, 65536, 65536)
_HEARTBEATS = (1, 8)
_CHUNK_MS = 2  # of a slow link
_BINARY = 7
#: What becomes of answers without a number, which a client would take for that of its next request.
_IN_TURN = {
    "twice": "late", "foreign": "gateway", "near": "gateway", "elsewhere": "gateway", "settled": "gateway",
}  # fmt: skip
_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 504 Gateway Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>ok</html>",
)


@dataclass
class AckFault:
    """What happens to answers of one hub until a time."""

    kind: str
    chance: float
    until: int


def _note_requests(c: Connection, data: bytes) -> None:
    c.sending += data
    while (frame := take_frame(c.sending)) is not None:
        if _has_number(frame):
            c.carried.append(frame_seq(frame))


@dataclass
class Connection:
    """One pipe and what the network does to it."""

    index: int
    node: int
    rng: random.Random
    window: int = _WINDOW
    buffer: int = _WINDOW
    free_at: int = 0  # when a slow link takes bytes again
    owes: bool = False  # the client's socket holds something
    moved: int = 0  # when some of it last arrived, or a reply came
    written: bytearray = field(default_factory=bytearray)  # of a frame that the network has not taken whole
    landed: bytearray = field(default_factory=bytearray)  # of a frame that has not arrived whole
    on_way: Counter[int] = field(default_factory=Counter)  # frames that have not arrived, by hash
    arrives: list[int] = field(default_factory=lambda: [0, 0])  # by receiving side: bytes come in order
    deaf: bool = False  # nothing arrives any more, and nobody notices
    stale: bytes = b""  # an answer kept back, to come late
    rest: bytes = b""  # part of an answer of which the rest was not written yet
    order: AnswerOrder = field(default_factory=AnswerOrder)
    sending: bytearray = field(default_factory=bytearray)  # part of a request, as long as the rest was not written
    carried: list[int] = field(default_factory=list)  # numbers of the requests of type 7 that were written whole
    settled: int | None = None  # the newest of them that was answered with success


def _has_number(answer: bytes) -> bool:
    """Tell whether an answer has its number in the header: it is of type 7."""
    return answer[:1] == b"\x00" and answer[4] & 0x1F == _BINARY


def _frames(kept: bytearray, data: bytes) -> list[int]:
    """Return the hashes of the data frames that ``data`` ends; what it begins is kept."""
    kept += data
    found = []
    while (frame := take_frame(kept)) is not None:
        if is_http(frame):
            form = frame[frame.find(b"\r\n\r\n") + 4 :]  # the head names the server
            found += [hash(form)] if form else []
        elif frame[4] not in _HEARTBEATS:
            found.append(hash(frame))
    return found


class Network:
    """Carry bytes; ``later(at, function, *args)``, ``poke`` (wake who got something) and the clock are the world's.

    ``hasty`` counts frames that were sent again while an open connection still carried their last copy.
    """

    def __init__(
        self,
        seed: int,
        later: Callable[..., None],
        poke: Callable[[int, int], None],
        say: Callable[..., None],
        clock: Callable[[], int],
    ) -> None:
        self.net = Net()
        self.seed = seed
        self.later = later
        self.poke = poke
        self.say = say
        self.clock = clock
        self.tries: dict[int, Connection] = {}  # hash of a frame -> who has its newest copy
        self.hasty = 0
        self.slow: dict[int, tuple[int, int]] = {}  # node -> (until, bytes in a millisecond)
        self.connections: list[Connection] = []
        self.held: dict[int, tuple[int, int]] = {}  # node -> (until, which way: 0 to the hub, 1 to the client, 2 both)
        self.narrow: dict[int, tuple[int, int]] = {}  # node -> (until, window)
        self.acks: dict[int, AckFault] = {}
        self.client_bytes = 0
        self.lost_acks = 0
        self.disorder: list[str] = []

    def join(self, index: int, node: int, now: int) -> Connection:
        """Take a new connection to one node."""
        connection = Connection(index, node, random.Random(self.seed * 1009 + index))
        connection.buffer = random.Random(self.seed * 7919 + index).choice(_BUFFERS)
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
            if side in (CLIENT, SERVER):
                self._forward(c, side, now)
            else:
                self._end(c, 3 - side, now)

    def _forward(self, c: Connection, side: int, now: int) -> None:
        """Take what a side wrote, as much as can go now; the rest stays in its socket."""
        if side == CLIENT and not c.owes and self.net.held(c.index, CLIENT):
            c.owes = True
            c.moved = now
        if c.deaf:
            return
        n = self.net.open(c.index, side)
        until, rate = self.slow.get(c.node, (0, 0))
        if side == CLIENT and now < until and n:
            if now < c.free_at:
                return
            n = min(n, rate * _CHUNK_MS)
            c.free_at = now + n * 1000 // rate
            self.later(c.free_at, self._on_free, c, c.free_at)
        if n:
            self._take(c, side, n, now)

    def _take(self, c: Connection, side: int, n: int, now: int) -> None:
        data = self.net.take(c.index, side, n)
        if side == SERVER:
            self._answers(c, data, now)
            return
        self.client_bytes += len(data)
        _note_requests(c, data)
        for frame in () if self.net.closed(c.index, CLIENT) else _frames(c.written, data):
            before = self.tries.get(frame)
            if before is not None and before.on_way[frame] and not self.net.closed(before.index, CLIENT):
                self.hasty += 1
                self.say("hasty", before.index, c.index)
            self.tries[frame] = c
            c.on_way[frame] += 1
        self._carry(c, SERVER, data, now)

    def stuck(self, limit: int) -> list[Connection]:
        """Return the connections that clients keep though nothing has moved on them for so long."""
        now = self.clock()
        return [
            c for c in self.live() if c.owes and now - c.moved > limit and not self.net.closed(c.index, CLIENT)
        ]  # fmt: skip

    def _end(self, c: Connection, side: int, now: int) -> None:
        if not c.deaf:
            self._take(c, 1 - side, 1 << 30, now)  # a socket that is closed sends what it holds
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
        """Send a hub's answers on, as its faults allow; what it wrote itself is in the order of the requests."""
        c.order.answered(data)
        if c.order.wrong:
            self.disorder.append(f"connection {c.index}: {c.order.wrong}")
        fault = self.acks.get(c.node)
        if fault is None or now >= fault.until:
            if c.rest:
                data, c.rest = c.rest + data, b""
            self._carry(c, CLIENT, data, now)
            return
        data = c.rest + data
        while size := message_size(data):
            frame, data = data[:size], data[size:]
            if c.rng.random() >= fault.chance:
                self._carry(c, CLIENT, frame, now)
                if _has_number(frame) and not is_refusal(frame):
                    # Once it has arrived; until then it waits for its answer.
                    self.later(c.arrives[CLIENT], setattr, c, "settled", int.from_bytes(frame[5:9], "big"))
            else:
                self._astray(c, frame, fault.kind, now)
        c.rest = data

    def _astray(self, c: Connection, frame: bytes, kind: str, now: int) -> None:
        """Have one answer go wrong."""
        if kind == "twice" and is_refusal(frame):
            # Of two refusals over one connection nobody can tell whether the second is for the next attempt.
            self._carry(c, CLIENT, frame, now)
            return
        if is_http(frame):
            kind = _IN_TURN.get(kind, kind)
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
        elif kind in ("foreign", "near", "elsewhere", "settled"):
            c.arrives[CLIENT] = max(now + c.rng.choice((30, 300, 2000)), c.arrives[CLIENT])
            self.later(c.arrives[CLIENT], self._on_foreign, c, frame, kind)
            if c.rng.random() < 0.5 and not is_refusal(frame):
                self._carry(c, CLIENT, frame, c.arrives[CLIENT])
        elif kind == "unknown":
            self._carry(c, CLIENT, b"\x00\x00\x00\x03\x7fxx" + frame, now)
        elif kind == "gateway":
            self._carry(c, CLIENT, c.rng.choice(_GATEWAY), now)
        elif kind == "garbage":
            self._carry(c, CLIENT, b"SSH-2.0-x\r\n" if is_http(frame) else b"HTTP/1.1 400 Bad Request\r\n\r\n", now)
        elif kind == "slice":
            for k in range(len(frame)):
                self._carry(c, CLIENT, frame[k : k + 1], now)

    def _number(self, c: Connection, frame: bytes, kind: str) -> int | None:
        """Return the number of another request for an answer; None for one that has none.

        It is never one that waits for its answer here at this moment: whether that answer is true nobody could tell.
        """
        if not _has_number(frame):
            return None
        own = int.from_bytes(frame[5:9], "big")
        if self.net.held(c.index, CLIENT):
            return own  # requests that were not seen yet may wait in the socket
        if kind == "settled":
            return own if c.settled is None else c.settled
        if kind == "elsewhere":
            others = [other.carried[-1] for other in self.connections if other is not c and other.carried]
            number = c.rng.choice(others) if others else own
        else:
            number = (own + c.rng.choice((-1, 1)) if kind == "near" else own ^ 0x55000000) & 0xFFFFFFFF
        return own if number in c.carried else number

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
        """End every fault of the network."""
        self.held.clear()
        self.slow.clear()
        self.narrow.clear()
        self.acks.clear()
        for c in self.live():
            self.narrow_to(c, _WINDOW)

    # --- events

    def _on_bytes(self, c: Connection, side: int, data: bytes) -> None:
        if c.deaf:
            return  # nobody acknowledges it: it stays in the writer's socket
        may_write = self.net.under_way(c.index, side, -len(data))
        c.moved = self.clock()
        if side == SERVER:
            c.owes = self.net.held(c.index, CLIENT) > 0
            c.on_way.subtract(_frames(c.landed, data))
            c.order.asked(data)
        self.net.give(c.index, side, data)
        self.poke(side, c.node)
        if may_write:
            self.poke(1 - side, c.node)

    def _on_free(self, c: Connection, now: int) -> None:
        if not self.net.dead(c.index):
            self._forward(c, CLIENT, now)

    def _on_late(self, c: Connection, frame: bytes) -> None:
        if not c.deaf and not self.net.dead(c.index):
            self.net.give(c.index, CLIENT, frame)
            self.poke(CLIENT, c.node)

    def _on_foreign(self, c: Connection, frame: bytes, kind: str) -> None:
        number = self._number(c, frame, kind)
        self._on_late(c, frame if number is None else frame[:5] + number.to_bytes(4, "big") + frame[9:])

    def _on_end(self, c: Connection, side: int) -> None:
        if not c.deaf:
            self.net.end(c.index, side)
            self.poke(side, c.node)

    def _on_break(self, c: Connection, side: int, forget: bool = False) -> None:
        self.net.break_off(c.index, side, _RESET, forget)
        self.poke(side, c.node)
