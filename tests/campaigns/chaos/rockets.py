"""A producer and a consumer group of RocketMQ at one hub under faults, and what must hold of them.

Q1 what the producer was told to be stored is done by a listener in the end.  Q2 what a listener gets was sent, byte by
byte.  Q3 each accepted message has one result, and the counts say so.  Q4 clients end in time, with all their threads.
Copies are allowed: each message comes at least once.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from typing import Any, Final

from dataproxy import DataProxyError
from dataproxy.rocketmq import Delivery, Producer, PushConsumer, RetryLater
from tests.campaigns.histories.bodies import make_body, read_body

__all__ = ["TOPIC", "Rockets", "drain_rockets"]

TOPIC: Final = "rockets"
GROUP: Final = "rocketreaders"
_AGAIN: Final = 0.02  # share of the messages that a listener wants to get again
_SOON: Final = 1  # the level of a second
_CLOSE_S: Final = 15.0  # of a client whose hub may be frozen
_PAUSE_S: Final = 0.01
_WAITING: Final = 2000  # messages without a result


class Rockets:
    """The producer and the members at one hub; ``change`` lets a member leave, and another one join.

    ``pushed``: the hub sends messages to members, which else ask for them.
    """

    def __init__(self, hub: str, port: int, members: int, seed: int, *, pushed: bool) -> None:
        self._hub, self._target, self._pushed = hub, f"rocketmq://127.0.0.1:{port}", pushed
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._stops = threading.Event()
        self.problems: list[str] = []
        self.acked: set[int] = set()
        self.outcomes: Counter[str] = Counter()
        self.done: Counter[int] = Counter()
        self._sent = 0
        self._producer = Producer(self._target, "rocketsenders", delivery_timeout=60, request_timeout=1)
        self.members = [self._member() for _ in range(members)]
        self._thread = threading.Thread(target=self._send, name=f"rockets of {hub}")
        self._thread.start()

    def _member(self) -> PushConsumer:
        return PushConsumer(
            self._target, GROUP, TOPIC, self._listen, begin="first", threads=2, batch=4, push=self._pushed,
            request_timeout=1, connect_timeout=1,
        )  # fmt: skip

    def change(self) -> None:
        """Let the oldest member leave, and another one join."""
        self._close(self.members.pop(0))
        self.members.append(self._member())

    def _listen(self, messages: list[Any]) -> None:
        with self._lock:
            if self._random.random() < _AGAIN:
                raise RetryLater(_SOON)
            for one in messages:
                said = read_body(one.body)
                if said is None or not said.intact or said.producer != self._hub:
                    self.problems.append(f"Q2 {self._hub}: {one.body[:60]!r} is not what was sent")
                else:
                    self.done[said.sequence] += 1

    def _send(self) -> None:
        """Send until ``finish``, without waiting for each."""
        waiting: deque[tuple[int, Delivery]] = deque()
        while not self._stops.wait(_PAUSE_S) or waiting:
            if not self._stops.is_set():
                self._some(waiting)
            while waiting and (waiting[0][1].done() or self._stops.is_set() or len(waiting) > _WAITING):
                number, delivery = waiting.popleft()
                error = delivery.exception(120)
                self.outcomes["delivered" if error is None else type(error).__name__] += 1
                if error is None:
                    self.acked.add(number)

    def _some(self, waiting: deque[tuple[int, Delivery]]) -> None:
        for _ in range(4):
            body = make_body(self._hub, self._sent, "", self._random.choice((0, 200, 6000)))  # some are compressed
            try:
                waiting.append((self._sent, self._producer.send(TOPIC, body)))
            except DataProxyError as error:
                self.problems.append(f"Q3 {self._hub}: a message was not accepted: {error}")
                return
            self._sent += 1

    def finish(self) -> None:
        """Send no more, and wait for the results."""
        self._stops.set()
        self._thread.join()
        report = self._producer.report()
        told = sum(self.outcomes.values())
        if not report.accepted == self._sent == told or report.pending:
            self.problems.append(f"Q3 {self._hub}: {self._sent} were accepted, {told} have a result; {report}")

    @property
    def missing(self) -> set[int]:
        """Return what was told to be stored, and no listener has done."""
        with self._lock:
            return self.acked - self.done.keys()

    @property
    def again(self) -> int:
        """Return how many messages were done more than once, counted each time."""
        return sum(self.done.values()) - len(self.done)

    def _close(self, client: Producer | PushConsumer) -> None:
        keeper, began = client._client.keeper._thread, time.monotonic()
        client.close(_CLOSE_S)
        if (took := time.monotonic() - began) > _CLOSE_S + 5.0:
            self.problems.append(f"Q4 {self._hub}: a {type(client).__name__} took {took:.1f} s to close")
        keeper.join(5.0)
        if keeper.is_alive():
            self.problems.append(f"Q4 {self._hub}: a thread of a {type(client).__name__} goes on after its close")

    def close(self) -> None:
        """End all clients."""
        self._stops.set()
        self._thread.join()
        for client in (*self.members, self._producer):
            self._close(client)
        self.members.clear()


def drain_rockets(all_of_them: list[Rockets], seconds: float) -> None:
    """Wait until everything that was told to be stored is done; what is not in time is a violation."""
    deadline = time.monotonic() + seconds
    for one in all_of_them:
        one.finish()
    for one in all_of_them:
        while one.missing and time.monotonic() < deadline:
            time.sleep(0.2)
        if missing := one.missing:
            trouble = [member.trouble for member in one.members]
            one.problems.append(
                f"Q1 {one._hub}: {len(missing)} of {len(one.acked)} messages are stored and were never done,"
                f" such as {min(missing)}; trouble of members: {trouble}"
            )
