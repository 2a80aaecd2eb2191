"""Members of a consumer group, each with a thread that reads, confirms, and at times gives a pack back."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from dataproxy import Consumer, DataProxyError
from dataproxy._core.server.store.core import StoreCore
from dataproxy.hub import open_store
from tests.campaigns.readers.reading import INDEX, Log, Reading
from tests.native.probe_visits import stored_offsets

__all__ = ["GROUP", "Group", "Member", "drain", "ends_of", "offsets_of"]

GROUP: Final = "readers"
_POLL_S: Final = 0.2
_ROLL_BACK, _NO_WAIT = 0.1, 0.3  # shares of the packs
_CLOSE_S: Final = 30.0


class Member:
    """One member; it reads until ``close``."""

    def __init__(self, reading: Reading, hub: str, target: str, topics: list[str], seed: int) -> None:
        self._reading, self._hub = reading, hub
        self._random = random.Random(seed)
        self._stops = threading.Event()
        name = f"{hub}-{seed}"
        self._consumer = Consumer(
            target, group=GROUP, topics=topics, heartbeat_interval=1,
            on_assigned=lambda key: reading.assigned(name, self._log(key)),
            on_revoked=lambda key, lost: reading.revoked(name, self._log(key)),
        )  # fmt: skip
        self._thread = threading.Thread(target=self._read, name=name)
        self._thread.start()

    def _log(self, key: str) -> Log:
        _, topic, partition = key.rsplit(":", 2)
        return Log(self._hub, topic, int(partition))

    def _read(self) -> None:
        while not self._stops.is_set():
            try:
                pack = self._consumer.poll(_POLL_S)
            except DataProxyError:  # the group is refused, or there is no master: it goes on by itself
                self._stops.wait(_POLL_S)
                continue
            if pack is not None:
                self._work(pack)

    def _work(self, pack: object) -> None:
        log, end = self._reading.taken(self._hub, pack)
        if self._random.random() < _ROLL_BACK:
            pack.rollback()  # type: ignore[attr-defined]
        else:
            self._reading.asks(log, end)
            with contextlib.suppress(DataProxyError):
                pack.confirm()  # type: ignore[attr-defined]
        self._reading.ended(log, end, pack.outcome)  # type: ignore[attr-defined]
        self._stops.wait(self._random.random() * 0.02)

    def close(self) -> None:
        """Leave the group in order."""
        self._stops.set()
        self._thread.join()
        self._consumer.close(_CLOSE_S)


class Group:
    """The members at one hub; ``change`` lets one leave and another one join."""

    def __init__(self, reading: Reading, hub: str, target: str, topics: list[str], members: int, seed: int) -> None:
        self._make: Callable[[int], Member] = lambda number: Member(reading, hub, target, topics, number)
        self._numbers = iter(range(seed * 1000, 1 << 60))
        self.members = [self._make(next(self._numbers)) for _ in range(members)]

    def change(self) -> None:
        """Let the oldest member leave, and another one join."""
        self.members.pop(0).close()
        self.members.append(self._make(next(self._numbers)))

    def close(self) -> None:
        """Let all leave."""
        while self.members:
            self.members.pop().close()


def ends_of(stores: Iterable[Path], topics: Collection[str] = ()) -> dict[Log, int]:
    """Return the offset behind the last entry of logs of some stores, by the names of their folders.

    Without ``topics`` those of all topics.
    """
    found = {}
    for path in stores:
        with open_store(path) as store:
            for log in store.logs():
                if topics and log.topic not in topics:
                    continue
                found[Log(path.name, log.topic, log.partition)] = log.next_offset * INDEX
    return found


def offsets_of(stores: Iterable[Path]) -> dict[Log, int]:
    """Return the group's offsets in some stores whose hubs are dead."""
    found = {}
    for path in stores:
        store = StoreCore(str(path))
        try:
            rows = stored_offsets(store)
        finally:
            store.close()
        found |= {Log(path.name, topic, partition): at for topic, partition, group, at, _ in rows if group == GROUP}
    return found


def drain(reading: Reading, stores: list[Path], seconds: float, topics: Collection[str] = ()) -> None:
    """Wait until everything in the stores of living hubs is confirmed; what is not in time is a violation.

    Without ``topics`` all topics are meant.
    """
    deadline = time.monotonic() + seconds
    ends: dict[Log, int] = {}
    while ends != (ends := ends_of(stores, topics)):  # seldom: a large store takes long to open
        while left := reading.left_over(ends):
            if time.monotonic() > deadline:
                reading.problems.append(f"R1 after {seconds:g} s {left}")
                return
            time.sleep(0.2)
