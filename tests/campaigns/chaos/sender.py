"""A producer under load that logs all it was told.

``python -m tests.campaigns.chaos.sender NAME TARGET LOG [option=value]``

Threads send one by one and wait, send with keys, send batches, and send without waiting; all of them until standard
input ends.  Then everything is flushed, the producer closed, and its last accounting is written.
"""

from __future__ import annotations

import ast
import random
import sys
import threading
import time
import zlib
from collections import deque
from pathlib import Path
from typing import Any

from dataproxy import Producer
from dataproxy.errors import BufferFullError, DeliveryError
from dataproxy.outcomes import Sent
from tests.campaigns.chaos.toldlog import ToldLog
from tests.campaigns.histories.bodies import make_body

_OUTCOMES = {"DeliveryFailed": "failed", "DeliveryExpired": "expired", "DeliveryDropped": "dropped"}
_CLOSE_SECONDS = 60.0


class Sender:
    """One producer and the threads that use it."""

    def __init__(self, name: str, target: str, log: ToldLog, options: dict[str, Any]) -> None:
        self.name = name
        self.log = log
        self.pace = float(options.pop("pace", 0.01))
        self.keys = int(options.pop("keys", 20))
        self.producer = Producer(target, group_id="g", **options)
        self.config = self.producer.config
        self.stopping = threading.Event()

    def accepted(self, who: str, sequence: int, key: str, stream: str, body: bytes) -> None:
        limit = self.config.delivery_timeout
        self.log.line("A", who, sequence, key, stream, zlib.crc32(body), f"{time.time():.6f}", limit)

    def result(self, who: str, sequence: int, delivery: Any) -> None:
        """Log the result of one message, which is there."""
        try:
            good = delivery.result(0)
        except DeliveryError as error:
            self.failed(who, sequence, error)
        else:
            outcome = "sent" if isinstance(good, Sent) else "delivered"
            self.log.line("R", who, sequence, outcome, 0, f"{time.time():.6f}", good.id)

    def failed(self, who: str, sequence: int, error: DeliveryError, own: str | None = None) -> None:
        """Log an error as the result of one message."""
        maybe = int(bool(error.details["maybe_delivered"]))
        outcome = _OUTCOMES[type(error).__name__]
        self.log.line("R", who, sequence, outcome, maybe, f"{time.time():.6f}", error.id if own is None else own)

    def one_by_one(self, who: str, key: str, rng: random.Random) -> None:
        """Send and wait for each result."""
        sequence = 0
        while not self.stopping.is_set():
            body = make_body(who, sequence, key, rng.choice((0, 60, 200, 1000)))
            delivery = self.producer.send("sync", body, **self.key(key))
            self.accepted(who, sequence, key, "sync", body)
            delivery.exception()
            self.result(who, sequence, delivery)
            sequence += 1
            time.sleep(self.pace * rng.random())

    def streaming(self, who: str, rng: random.Random) -> None:
        """Send without waiting, with many keys; results are looked at in the order of sending."""
        waiting: deque[tuple[str, int, Any]] = deque()
        numbers = dict.fromkeys((f"k{i}" for i in range(self.keys)), 0) if self.keys else {"": 0}
        sequence = 0
        while not self.stopping.is_set() or waiting:
            for _ in range(0 if self.stopping.is_set() else 8):
                key = rng.choice(list(numbers))
                body = make_body(who, sequence, key, rng.choice((0, 60, 200)))
                try:
                    delivery = self.producer.send("flow", body, **self.key(key))
                except BufferFullError:
                    break
                self.accepted(who, sequence, key, "flow", body)
                waiting.append((who, sequence, delivery))
                sequence += 1
            while waiting and (waiting[0][2].done() or len(waiting) > 5000 or self.stopping.is_set()):
                waiting[0][2].exception()
                self.result(*waiting.popleft())
            time.sleep(self.pace * rng.random())

    def batches(self, who: str, rng: random.Random) -> None:
        """Send batches and wait for each."""
        sequence = 0
        while not self.stopping.is_set():
            bodies = [make_body(who, sequence + i, "", 100) for i in range(rng.choice((1, 5, 40)))]
            delivery = self.producer.send_batch("bulk", bodies)
            for i, body in enumerate(bodies):
                self.accepted(who, sequence + i, "", "bulk", body)
            done = delivery.result()
            errors = {}
            for failure in done.failures:
                for i in range(failure.first, failure.first + failure.messages):
                    errors[i] = failure.error
            for i in range(len(bodies)):
                if i in errors:
                    self.failed(who, sequence + i, errors[i], "")
                else:
                    outcome = "sent" if done.sent else "delivered"
                    self.log.line("R", who, sequence + i, outcome, 0, f"{time.time():.6f}", "")
            sequence += len(bodies)
            time.sleep(self.pace * rng.random())

    def key(self, key: str) -> dict[str, str]:
        """Return the argument that orders the messages of a key, if the producer orders them."""
        return {"key": key} if key and getattr(self.config, "ordering", "none") == "key" else {}

    def look(self, *, final: bool = False) -> None:
        """Log the producer's accounting."""
        s = self.producer.report() if final else self.producer.stats()
        buffered = 0 if final else s.buffered_bytes
        self.log.line(
            "B", self.name, f"{time.time():.6f}", s.accepted, s.delivered, s.failed, s.expired, s.dropped, s.pending,
            buffered, self.config.buffer_bytes, int(final), s.sent,
        )  # fmt: skip

    def run(self) -> None:
        """Send until standard input ends."""
        rng = random.Random(self.name)
        jobs: list[tuple[Any, tuple[Any, ...]]] = [
            (self.one_by_one, (f"{self.name}.sync", "", random.Random(rng.random()))),
            (self.one_by_one, (f"{self.name}.key", "solo" if self.keys else "", random.Random(rng.random()))),
            (self.streaming, (f"{self.name}.flow", random.Random(rng.random()))),
            (self.batches, (f"{self.name}.bulk", random.Random(rng.random()))),
        ]
        threads = [threading.Thread(target=job, args=arguments) for job, arguments in jobs]
        for thread in threads:
            thread.start()
        print("sending", flush=True)
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        sys.stdin.read()
        self.stopping.set()
        for thread in threads:
            thread.join()
        watcher.join()
        called = time.time()
        self.producer.close(_CLOSE_SECONDS)
        self.log.line("C", self.name, f"{called:.6f}", f"{time.time():.6f}", _CLOSE_SECONDS)
        self.look(final=True)
        self.log.line("X", self.name, self.producer.stats().retries)
        self.log.close()
        print(self.producer.report(), flush=True)

    def _watch(self) -> None:
        while not self.stopping.wait(0.05):
            self.look()


if __name__ == "__main__":
    chosen = dict(word.split("=", 1) for word in sys.argv[4:])
    values = {key: ast.literal_eval(value) if value[:1].isdigit() else value for key, value in chosen.items()}
    Sender(sys.argv[1], sys.argv[2], ToldLog(Path(sys.argv[3])), values).run()
