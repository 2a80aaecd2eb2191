"""Lives of a hub: two producers send and a group reads while it is killed; its store is compared with what was told."""

from __future__ import annotations

import random
import threading
import time
from itertools import chain
from pathlib import Path
from typing import Any, Final

from dataproxy import DataProxyError, Producer
from dataproxy.hub import open_store
from tests.campaigns.chaos.processes import HubProcess
from tests.campaigns.histories.bodies import make_body, read_body
from tests.campaigns.readers.members import Group, drain, offsets_of
from tests.campaigns.readers.reading import Name, Reading

__all__ = ["Rounds"]

_DIRECT: Final = "direct"  # the topic of TubeMQ's producer; the other one's is its group
_GO_ON_S: Final = 60.0  # within which the group has to confirm something after the hub came back
_DRAIN_S: Final = 120.0
_MEMBERS: Final = 2
_CHANGES: Final = 0.1  # share of the lives after which a member leaves and another one joins
_OPTIONS: Final[dict[str, Any]] = {
    "linger": 0.001, "reconnect_backoff": 0.02, "reconnect_backoff_max": 0.1, "retry_backoff": 0.02,
    "retry_backoff_max": 0.1, "delivery_timeout": 60,
}  # fmt: skip


class _Feed:
    """A producer in a thread, and what it was told to be delivered."""

    def __init__(self, name: str, topic: str, target: str, seed: int, **options: Any) -> None:
        self._name, self._topic = name, topic
        self._random = random.Random(seed)
        self._producer = Producer(target, **_OPTIONS, **options)
        self._stops = threading.Event()
        self._sent = 0
        self.delivered: set[Name] = set()
        self.failed = 0
        self._thread = threading.Thread(target=self._send, name=name)
        self._thread.start()

    def _send(self) -> None:
        while not self._stops.wait(self._random.random() * 0.05):
            numbers = range(self._sent, self._sent + self._random.choice((1, 3, 20)))
            self._sent = numbers.stop
            size = self._random.choice((0, 100, 5000))
            waiting = [(i, self._producer.send(self._topic, make_body(self._name, i, size=size))) for i in numbers]
            for i, delivery in waiting:
                try:
                    delivery.result()
                except DataProxyError:
                    self.failed += 1
                else:
                    self.delivered.add((self._name, i))

    def close(self) -> None:
        """End it when everything has its result."""
        self._stops.set()
        self._thread.join()
        self._producer.close()


class Rounds:
    """Kill one hub again and again; ``problems`` are what did not hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        self._hub = HubProcess(folder, "hub", queue=True)
        self.reading = Reading(raw=[_DIRECT])
        self.problems: list[str] = []
        self.kills = 0
        self._told: set[Name] = set()
        self.delivered = self.failed = self.stored = 0
        self.back_s: list[float] = []  #: from a hub that listens again until a pack is confirmed

    def run(self, kills: int) -> None:
        """Kill it, then let it live until everything is read."""
        hub = self._hub
        hub.start()
        feeds, group = [], None
        try:
            feeds = [
                _Feed("dataproxy", "s", f"tcp://127.0.0.1:{hub.port}", self._random.getrandbits(32), group_id="g"),
                _Feed("tubemq", _DIRECT, f"tubemq://127.0.0.1:{hub.tubemq_port}", self._random.getrandbits(32)),
            ]
            target = f"tubemq://127.0.0.1:{hub.tubemq_port}"
            group = Group(self.reading, "hub", target, ["g", _DIRECT], _MEMBERS, self._random.randrange(1 << 16))
            for _ in range(kills):
                if not self._life():
                    break
                if self._random.random() < _CHANGES:
                    group.change()
            while feeds:
                self._take(feeds.pop())
            if not self.problems:
                drain(self.reading, [hub.folder], _DRAIN_S)
            group.close()
        finally:
            for feed in feeds:
                self._take(feed)
            if group is not None:
                group.close()
            hub.close()
        self._judge()

    def _life(self) -> bool:
        """Let the hub live, and die; False if the group does not read on."""
        began = time.monotonic()
        while self.reading.confirmed_at < began:
            if time.monotonic() - began > _GO_ON_S:
                self.problems.append(f"life {self.kills}: nothing was confirmed within {_GO_ON_S:g} s")
                return False
            time.sleep(0.005)
        self.back_s.append(self.reading.confirmed_at - began)
        time.sleep(self._random.choice((0.0, 0.05, 0.5)) * self._random.random())
        self._hub.kill()
        self.kills += 1
        self.reading.compare(offsets_of([self._hub.folder]))
        self._hub.start()
        return True

    def _take(self, feed: _Feed) -> None:
        feed.close()
        self._told |= feed.delivered
        self.failed += feed.failed

    def _judge(self) -> None:
        stored: set[Name] = set()
        with open_store(self._hub.folder) as store:
            for record in chain(store.records("g"), store.records(_DIRECT)):
                said = read_body(record.body)
                if said is None or not said.intact:
                    self.problems.append(f"{record.topic} at {record.offset}: {record.body[:60]!r} was not sent")
                else:
                    stored.add((said.producer, said.sequence))
        if lost := self._told - stored:
            self.problems.append(f"{len(lost)} acknowledged messages are not stored, such as {min(lost)}")
        self.delivered, self.stored = len(self._told), len(stored)
        self.problems += self.reading.judge(stored)
