"""Connections between the nodes and the servers of a simulated run.

TCP gives bytes once and in order, late or not at all.  So a line delays, cuts and breaks; doubled, swapped and missing
answers are a server's.  When a line breaks, the server has worked off some of what was written, and works off nothing
of it later, unless the run says so (``World.late``): docs/consumer.md, "What TubeMQ leaves open".
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from dataproxy.wire.tubemq.calls import METHODS
from tests.native.probe_tubemq import Stream, answer, exception, frame, read_calls
from tests.simgroup.plan import S
from tests.support.tubeserver.answers import ServerError, failure

if TYPE_CHECKING:
    from tests.simgroup.hosts import Host
    from tests.simgroup.node import Node
    from tests.simgroup.world import World

__all__ = ["Line"]

_LOST, _TIMEOUT = 2, 3
_CONNECT_US: Final = 2 * S
_CODES: Final = {
    "GetMessageRequestC2B": (301, 403, 452, 500, 503),
    "CommitOffsetRequestC2B": (500, 503),
    "RegisterRequestC2B": (403, 500, 503),
    "HeartBeatRequestC2B": (500, 415),
    "RegisterRequestC2M": (400, 500),
    "HeartRequestC2M": (415, 500),
    "CloseRequestC2M": (500,),
}
_EXCEPTIONS: Final = (
    b"org.apache.inlong.tubemq.corerpc.exception.ServerNotReadyException",
    b"java.lang.reflect.InvocationTargetException",
    b"org.apache.inlong.tubemq.corerpc.exception.OverflowException",
)


class Line:
    """The connection of a node to a server, and what travels on it."""

    def __init__(self, node: Node, host: Host) -> None:
        self.node, self.host = node, host
        self._epoch = 0  # what was under way before a break is of an older one
        self._stream = Stream()
        self._flying: deque[tuple[int, bytes]] = deque()  # written, not worked off
        self._arrived = 0  # of them, those that the server has
        self._out_at = self._back_at = 0  # when the newest request, and the newest answer, arrives
        self._gone = False  # the server knows nothing of it, and the node does not know that
        self.cut_until = 0  #: no packet comes through until then; the kernels send them again

    @property
    def _world(self) -> World:
        return self.node.world

    def _when(self) -> int:
        world = self._world
        return max(world.now, self.cut_until) + world.latency()

    # --- the node's side

    def connect(self) -> None:
        """Begin to connect."""
        self._epoch += 1
        self._gone = False
        self._out_at = self._back_at = 0
        self.node.reader.connecting(self.host.label, _CONNECT_US / S)
        if self.host.up or not self.host.silent:
            self._world.at(self._when(), partial(self._finish_connect, self._epoch))

    def _finish_connect(self, epoch: int) -> None:
        if epoch != self._epoch or not self.node.alive:
            return
        if self.node.paused(partial(self._finish_connect, epoch)):
            return
        reader = self.node.awake()
        if not self.host.up:
            self._epoch += 1
            reader.lost(self.host.label, _LOST, 111)
        else:
            self._stream = Stream()
            reader.connected(self.host.label)
        self.node.work()

    def write(self) -> None:
        """Let what the node has written travel."""
        world = self._world
        frames = self._stream.push(self.node.reader.written(self.host.label))
        self._flying += frames
        self._out_at = max(self._out_at, self._when())
        world.at(self._out_at, partial(self._arrive, self._epoch, len(frames)))
        if world.loss and world.random.random() < world.loss:
            world.at(self._out_at + world.random.choice((-1, 1)), partial(self._reset, self._epoch))

    def late(self) -> None:
        """End a connection, or a connect, whose time is over; the node is at work."""
        self._break()
        self.node.reader.lost(self.host.label, _TIMEOUT if self.node.is_open(self.host.label) else _LOST, 110)

    def _reset(self, epoch: int) -> None:
        if epoch == self._epoch:
            self.reset()

    def reset(self) -> None:
        """Break the connection, if there is one."""
        if not self.node.alive or self.node.paused(self.reset):
            return
        state = self.node.reader.connection(self.host.label)[0]
        if state in ("open", "connecting"):
            self._world.note(f"{self.node.client} loses its connection to {self.host.label}")
            self._break()
            self.node.awake().lost(self.host.label, _LOST, 104)
            self.node.work()

    def end(self) -> None:
        """Break the connection with the node's process."""
        self._break()

    def vanish(self) -> None:
        """Break the connection without a sign: the server is gone, and nothing comes any more."""
        self._flying.clear()
        self._arrived = 0
        self._epoch += 1
        self._gone = True

    def heal(self) -> None:
        """End a cut, and let the server work off what it has; what waits in a kernel is not waited for."""
        if self._world.now < self.cut_until:
            self.cut_until = 0
            self.reset()
        self._serve(self._epoch)

    def _break(self) -> None:
        self._epoch += 1
        flying, self._flying, self._arrived = list(self._flying), deque(), 0
        world = self._world
        if not self.host.up or self._gone:
            return
        done = world.random.randint(0, len(flying))
        for serial, payload in flying[:done]:
            self._work(serial, payload)
        if world.late:
            for serial, payload in flying[done:]:
                world.at(world.now + world.random.randrange(3 * S), partial(self._work_late, serial, payload))
        self.host.left(self)

    def _work_late(self, serial: int, payload: bytes) -> None:
        if self.host.up:
            self._work(serial, payload)

    # --- the server's side

    def _arrive(self, epoch: int, n: int) -> None:
        if epoch != self._epoch:
            return
        if self._gone:
            if self.host.up:
                self.reset()
            return
        self._arrived += n
        self._serve(epoch)

    def _serve(self, epoch: int) -> None:
        world = self._world
        if epoch != self._epoch or not self._arrived or not self.host.up:
            return
        if world.now < self.host.frozen_until:
            world.at(self.host.frozen_until, partial(self._serve, epoch))
            return
        frames: list[bytes] = []
        waits = 0
        while self._arrived:
            self._arrived -= 1
            serial, payload = self._flying.popleft()
            odd = world.odd if world.odd and world.random.random() < 0.3 else ""
            frames += self._answers(serial, payload, odd)
            if odd == "late":
                waits = self._wait()
            elif odd == "swap":
                frames.reverse()
        if epoch == self._epoch:
            self._travel(frames, waits)

    def _answers(self, serial: int, payload: bytes, odd: str) -> list[bytes]:
        """Return the frames that go back for a request."""
        rng = self._world.random
        if odd == "garbage":
            return [bytes([rng.randrange(256)]) * 24]
        if odd == "exception":
            return [frame(serial, exception(1, rng.choice(_EXCEPTIONS), b"not now"))]
        if odd == "code":
            method = METHODS[read_calls(payload)["method"]]
            message = failure(method.request, rng.choice(_CODES[method.request]), "not now")
            return [frame(serial, answer(method.number, message.SerializeToString()))]
        if odd == "drop" and rng.random() < 0.5:
            return []
        return _odd_frames(self._work(serial, payload), odd, serial + 1000)

    def _work(self, serial: int, payload: bytes) -> list[bytes]:
        """Let the server do a request; return the frames that come back at once."""
        try:
            return self.host.exchange(self, serial, payload)
        except ServerError as error:
            method, name = METHODS[read_calls(payload)["method"]], error.name.rpartition(".")[2]
            self._world.note(f"{self.host.label} {method.request} of {self.node.client}: {name}")
            return [frame(serial, exception(1, error.name.encode(), error.text.encode()))]

    def push(self, frames: list[bytes]) -> None:
        """Let answers travel that the server has made later than their requests came."""
        world = self._world
        odd = world.odd if world.odd and world.random.random() < 0.3 else ""
        frames = [bytes([world.random.randrange(256)]) * 24] if odd == "garbage" else _odd_frames(frames, odd, 1)
        self._travel(frames[::-1] if odd == "swap" else frames, self._wait() if odd == "late" else 0)

    def _wait(self) -> int:
        return int(self._world.random.uniform(0.2, 1.6) * self._world.plan.times.call * S)

    def _travel(self, frames: list[bytes], waits: int) -> None:
        if frames:
            self._back_at = max(self._back_at, self._when() + waits)
            self._world.at(self._back_at, partial(self._deliver, self._epoch, b"".join(frames)))

    def _deliver(self, epoch: int, data: bytes) -> None:
        if epoch != self._epoch or not self.node.alive or self.node.paused(partial(self._deliver, epoch, data)):
            return
        if self._world.now < self.cut_until:
            self._world.at(self.cut_until, partial(self._deliver, epoch, data))
            return
        label, rng = self.host.label, self._world.random
        reader = self.node.awake()
        if len(data) > 1 and rng.random() < 0.1:
            first = rng.randrange(1, len(data))
            good = reader.receive(label, data[:first])
            data = data[first:]
            if not good:
                self._break()
            self.node.work()
            if epoch != self._epoch or reader.connection(label)[0] != "open":
                return
        if not reader.receive(label, data):
            self._break()
        self.node.work()


def _odd_frames(frames: list[bytes], odd: str, foreign: int) -> list[bytes]:
    """Return what comes in the place of frames: nothing, each of them twice, or one that nobody asked for before."""
    if odd == "drop":
        return []
    if odd == "twice":
        return [one for one in frames for _ in range(2)]
    return [frame(foreign, answer(17, b"")), *frames] if odd == "foreign" else frames
