"""Positions of groups at ZooKeeper: read at the start of a hub, written every few seconds and at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, Protocol

from dataproxy.hub.zookeeper.nodes import Nodes, Place, plain, position_text, read_position
from dataproxy.logs import logger

__all__ = ["Client", "OffsetKeeper", "Registrations", "Unwritten", "load"]

_log: Final = logger("hub.zookeeper")
_PERIOD_S: Final = 5.0
_AGAIN_S: Final = 0.2  # at the end, until what has failed is written again
_AT_ONCE: Final = 4096  # nodes in one call


class Client(Protocol):
    """What calls ZooKeeper: `servers.Servers`."""

    def children(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the names below each path."""
        ...

    def values(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return what each node holds, None where it is not there."""
        ...

    def write(self, nodes: Sequence[tuple[str, bytes]]) -> list[Exception | None]:
        """Write values to nodes; return what went wrong with each."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class Registrations(Protocol):
    """What the hub's broker knows: `RegistrationsCore`."""

    def found(self) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return (group, topic, partition, owner, confirmed, pending) of all."""
        ...

    def changed(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return (group, topic, partition, confirmed) of what has changed since the last call."""
        ...

    def restore(self, group: bytes, topic: bytes, partition: int, position: int) -> bool:
        """Take a position; False if there is no room."""
        ...


class Unwritten:
    """Positions that ZooKeeper does not have yet: the newest of each place, the place that waits longest first."""

    def __init__(self) -> None:
        self._positions: dict[Place, int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, changed: Iterable[tuple[Place, int]]) -> None:
        """Take positions that have changed."""
        self._positions.update(changed)

    def first(self, n: int) -> list[tuple[Place, int]]:
        """Return some that are to be written now."""
        return list(islice(self._positions.items(), n))

    def written(self, place: Place, position: int) -> None:
        """Note that ZooKeeper has a position; a newer one of that place stays."""
        if self._positions.get(place) == position:
            del self._positions[place]

    def failed(self, place: Place) -> None:
        """Let a place wait behind the others: what is refused for ever must not keep them from being written."""
        position = self._positions.pop(place, None)
        if position is not None:
            self._positions[place] = position


def load(client: Client, nodes: Nodes) -> dict[Place, int]:
    """Return the positions that are stored for a broker.  Raises HubError.

    A node that holds no position is told in the log, and is none.
    """
    found: dict[Place, int] = {}
    groups = client.children([nodes.groups])[0]
    topics = client.children([nodes.topics(plain(group)) for group in groups])
    pairs = [(plain(g), plain(t)) for g, below in zip(groups, topics, strict=True) for t in below]
    partitions = client.children([nodes.partitions(*pair) for pair in pairs])
    places = [
        Place(*pair, partition)
        for pair, names in zip(pairs, partitions, strict=True)
        for name in names
        if (partition := nodes.partition(name)) is not None
    ]
    paths = [nodes.path(place) for place in places]
    for place, path, value in zip(places, paths, client.values(paths), strict=True):
        position = read_position(value) if value is not None else None
        if position is not None:
            found[place] = position
        elif value is not None:
            _log.warning("%s at ZooKeeper holds no position: %r", path, value[:100])
    return found


class OffsetKeeper:
    """Keeps the positions of a hub's groups at ZooKeeper, from ``start`` to ``stop``; a thread of its own writes.

    A position that the hub knows already, from its store, is newer than ZooKeeper's, which is some seconds old when a
    hub dies.  What could not be written is written later.  ``start`` and ``stop`` are for one thread.
    """

    def __init__(
        self, client: Client, nodes: Nodes, registrations: Registrations, *, period_s: float = _PERIOD_S
    ) -> None:
        self._client, self._nodes, self._registrations, self._period_s = client, nodes, registrations, period_s
        self._unwritten = Unwritten()
        self._asked = threading.Condition()  # guards the two below
        self._stopping = False
        self._until = 0.0
        self._failing = ""  # why nothing can be written, "" if it can
        self._thread = threading.Thread(target=self._run, name="dataproxy-hub-offsets", daemon=True)

    def start(self) -> int:
        """Read the positions that are stored, before consumers come; return how many were new.  Raises HubError."""
        stored = load(self._client, self._nodes)
        known = {
            (group, topic, partition)
            for group, topic, partition, _, confirmed, _ in self._registrations.found()
            if confirmed >= 0
        }
        taken = lost = 0
        for place, position in stored.items():
            key = (place.group.encode(), place.topic.encode(), place.partition)
            if key in known:
                continue
            if self._registrations.restore(*key, position):
                taken += 1
            else:
                lost += 1
        if lost:
            _log.warning("there is no room for %d of %d positions from ZooKeeper", lost, len(stored))
        self._take()
        for place, position in stored.items():
            self._unwritten.written(place, position)
        self._thread.start()
        _log.info("%d positions of groups were taken from ZooKeeper", taken)
        return taken

    def stop(self, limit: float) -> int:
        """Write what is left, within ``limit`` seconds, and end the session; return how many positions are not there.

        Idempotent.
        """
        with self._asked:
            first = not self._stopping
            self._stopping = True
            if first:
                self._until = time.monotonic() + limit
            self._asked.notify()
        if self._thread.ident is None:  # it was not started
            self._client.close()
        else:
            self._thread.join(limit)
        left = len(self._unwritten)
        if first and left:
            _log.warning(
                "%d positions of groups are not at ZooKeeper: %s", left, self._failing or "there was no time left"
            )
        return left

    def _run(self) -> None:
        """Write in every period, and at the end until all is written or its time is over; the body of the thread."""
        while True:
            with self._asked:
                self._asked.wait_for(lambda: self._stopping, self._period_s)
                stopping = self._stopping
            try:
                self._take()
                self._write()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next period tries again
                self._tell(error)
            if stopping:
                if not self._unwritten or time.monotonic() + _AGAIN_S >= self._until:  # for which `stop` waits
                    break
                time.sleep(_AGAIN_S)
        self._client.close()

    def _take(self) -> None:
        self._unwritten.add(
            (Place(group.decode("utf-8", "replace"), topic.decode("utf-8", "replace"), partition), position)
            for group, topic, partition, position in self._registrations.changed()
        )

    def _write(self) -> None:
        """Write what waits now, each once; a place whose write fails waits for the next period."""
        left = len(self._unwritten)
        while left > 0 and not self._is_over():
            some = self._unwritten.first(min(left, _AT_ONCE))
            left -= len(some)
            errors = self._client.write([(self._nodes.path(place), position_text(at)) for place, at in some])
            for (place, at), error in zip(some, errors, strict=True):
                if error is None:
                    self._unwritten.written(place, at)
                else:
                    self._unwritten.failed(place)
            first = next((error for error in errors if error is not None), None)
            self._tell(first)
            if all(error is not None for error in errors):
                break

    def _is_over(self) -> bool:
        with self._asked:
            return self._stopping and time.monotonic() >= self._until

    def _tell(self, error: Exception | None) -> None:
        """Say once that writing has begun to fail, and once that it works again."""
        text = "" if error is None else f"{type(error).__name__}: {error}".removesuffix(": ")
        if text and not self._failing:
            _log.warning("positions of groups cannot be written to ZooKeeper, and wait: %s", text)
        elif self._failing and not text:
            _log.info("positions of groups are written to ZooKeeper again")
        self._failing = text
