"""Lives of a hub: a producer and a raw connection send while it is killed; after each life the counts are compared."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from dataproxy import DeliveryPending, Producer
from dataproxy._core.wire.inlong import message
from tests.campaigns.crashpoints.hubs import Nursery
from tests.campaigns.crashpoints.ledger import Ledger

__all__ = ["EVENTS", "Rounds", "events"]

#: Where a hub is killed, and the most passages before it.  The store's stages, the system calls of the library's
#: commit ("torn": half of the bytes are written), and any time.
EVENTS = {
    "opening": 2,
    "taken": 12,
    "begun": 12,
    "put": 12,
    "forgotten": 6,
    "dropped": 1,
    "catalog": 12,
    "written": 12,
    "committed": 12,
    "answered": 12,
    "write": 40,
    "torn": 40,
    "wrote": 40,
    "sync": 12,
    "synced": 12,
    "any time": 40,
}
_LIFE_SECONDS = 1.0
#: Bodies of one life; less than the hubs' retention leaves, so that nothing is dropped before it was read.
_LIFE_BYTES = 1 << 20
_OPEN_BATCHES = 6
_PRODUCER = {
    "linger": 0.0005,
    "connections": 2,
    "reconnect_backoff": 0.005,
    "reconnect_backoff_max": 0.02,
    "retry_backoff": 0.005,
    "retry_backoff_max": 0.02,
    "ack_timeout": 1.0,
}


@dataclass
class Canary:
    """Send frames by hand, remember which were answered, and send answered ones again."""

    first: int
    answered: deque[tuple[bytes, int]] = field(default_factory=lambda: deque(maxlen=5))
    unanswered: tuple[bytes, int] | None = None
    sent_again: int = 0
    done: set[int] = field(default_factory=set)
    _connection: socket.socket | None = None
    _next: int = 0
    _named: set[int] = field(default_factory=set)

    def turn(self, port: int, rng: random.Random) -> None:
        """Send one frame: the one without an answer, or one that had an answer, or a new one."""
        with contextlib.suppress(OSError):
            if self._connection is None:
                self._connection = socket.create_connection(("127.0.0.1", port), timeout=1.0)
                for frame, _ in list(self.answered):  # the window has to know them after each restart
                    self._ask(frame)
                    self.sent_again += 1
            frame, number = self.unanswered or self._made(rng)
            self.unanswered = frame, number
            self._ask(frame)
            self.unanswered = None
            self.answered.append((frame, number))
            self.done.add(number)
            return
        self.hang_up()

    def _made(self, rng: random.Random) -> tuple[bytes, int]:
        """Return a frame with the next number; some repeat an answered message beside it."""
        number = self.first + self._next
        self._next += 1
        attrs = {"groupId": "canary", "streamId": "s", "sid": f"c-{number}"}
        item = (b"%d." % number, {"msgid": f"m{number}"})
        items: list = [b"%d." % number]
        if rng.random() < 0.5:
            known = [int(old) for _, old in self.answered]
            items = [(b"%d." % old, {"msgid": f"m{old}"}) for old in known if old in self._named][-2:]
            items.insert(rng.randrange(len(items) + 1), item)
            self._named.add(number)
        return message.encode(4, [(attrs, items)], create_time_ms=int(time.time() * 1000))[2:-2], number

    def _ask(self, frame: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(frame)
        size = struct.unpack(">I", self._exactly(4))[0]
        if b"errCode" in self._exactly(size):
            raise OSError("refused")

    def _exactly(self, n: int) -> bytes:
        assert self._connection is not None
        got = b""
        while len(got) < n:
            part = self._connection.recv(n - len(got))
            if not part:
                raise OSError("ended")
            got += part
        return got

    def hang_up(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Rounds:
    """Kill the hub of one store again and again; ``problems`` are what did not hold."""

    def __init__(self, nursery: Nursery, store: Path, seed: int) -> None:
        self.nursery = nursery
        self.store = store
        self.rng = random.Random(seed)
        self.ledger = Ledger(store)
        self.kills: Counter[str] = Counter()
        self.accepted = 0
        self.retries = 0
        self._sent_bytes = 0
        self.canary = Canary(1 << 40)
        self._open: deque = deque()
        self._acknowledged: set[int] = set()

    @property
    def problems(self) -> list[str]:
        """Return what did not hold."""
        return self.ledger.problems

    def run(self, events: list[str]) -> None:
        """Let a hub die at each of the events, then let one live until everything is delivered."""
        with Producer(f"tcp://127.0.0.1:{self.nursery.port}", group_id="g", **_PRODUCER) as producer:
            for event in events:
                self._life(producer, event)
                self._check()
                if self.problems:
                    return
            self.nursery.start(self.store, "any time", 0)
            while self.canary.unanswered is not None:
                self.canary.turn(self.nursery.port, self.rng)
            producer.flush(60)
            report = producer.close()
        self.canary.hang_up()
        self._settle(wait=True)
        self.nursery.kill()
        self._check()
        self.retries = report.retries
        if not report.ok or len(self._acknowledged) != self.accepted + len(self.canary.done):
            self.problems.append(f"not everything was delivered: {report}")
        if self.ledger.read != self.accepted + len(self.canary.done):
            self.problems.append(f"{self.ledger.read} messages are stored, {self.accepted} + canaries were sent")

    def _life(self, producer: Producer, event: str) -> None:
        passages = self.rng.randint(1, EVENTS[event])
        self._sent_bytes = 0
        started = self.nursery.start(self.store, event, passages)
        until = time.monotonic() + (passages / 1000 if event == "any time" else _LIFE_SECONDS)
        while started and not self.nursery.is_dead() and time.monotonic() < until:
            self._send(producer)
            self.canary.turn(self.nursery.port, self.rng)
            self._settle(wait=False)
        self.kills["any time" if started and not self.nursery.is_dead() else event] += 1
        self.nursery.kill()
        self.canary.hang_up()

    def _send(self, producer: Producer) -> None:
        if len(self._open) >= _OPEN_BATCHES or (self._open and self._sent_bytes > _LIFE_BYTES):
            with contextlib.suppress(DeliveryPending):
                self._open[0][0].result(timeout=0.002)
            return
        if self._sent_bytes > _LIFE_BYTES:
            return
        n = self.rng.choice((1, 5, 40))
        numbers = range(self.accepted, self.accepted + n)
        bodies = [b"%d." % i + self.rng.randbytes(self.rng.choice((0, 10, 3000))) for i in numbers]
        self._sent_bytes += sum(map(len, bodies))
        ids = [f"id{i}" for i in numbers] if self.rng.random() < 0.3 else None
        batch = producer.send_batch(f"s{self.rng.randrange(5)}", bodies, message_ids=ids)
        self.accepted += n
        self._open.append((batch, numbers))

    def _settle(self, *, wait: bool) -> None:
        """Note the numbers of batches that were acknowledged."""
        left: deque = deque()
        for batch, numbers in self._open:
            if wait or batch.done():
                batch.result(timeout=10)
                self._acknowledged.update(numbers)
            else:
                left.append((batch, numbers))
        self._open = left

    def _check(self) -> None:
        self._settle(wait=False)
        self._acknowledged |= self.canary.done
        self.ledger.check(self._acknowledged)


def events(seed: int, n: int) -> list[str]:
    """Return ``n`` events of a seed; the first ones hit a store that is being made."""
    rng = random.Random(seed)
    return ["opening", "opening", *rng.choices(list(EVENTS), k=n)][:n]
