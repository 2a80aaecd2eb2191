"""Producers of DataProxy in the registry of clients: a connection is one, from its accept to its end.

Server loops count what a connection sends, without the interpreter; here their lists are read when somebody asks, or
once a second if connections have come or gone.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple, Protocol

from dataproxy.hub.clients import Clients, End, Identity, Told

__all__ = ["KIND", "Lists", "Producer", "Producers"]

KIND: Final = "dataproxy producer"  #: in the registry of clients
_US: Final = 1_000_000
_LIMIT_S: Final = 1e9  # the server loops themselves close what is silent
_ProducerRow = tuple[int, str, str, int, int, int, int, tuple[tuple[str, str], ...], int, str | None]


class Lists(Protocol):
    """What has the lists of the server loops: `HubCore`."""

    def producers(self) -> tuple[list[_ProducerRow], list[_ProducerRow], int]:
        """Return who is connected, who has ended since the last call, and how many more have."""
        ...


class Producer(NamedTuple):
    """A connection and what has come by it; times are seconds of the hub's clock."""

    number: int
    protocol: str  #: "dataproxy", or "http" for reports
    address: str
    since: float
    seen: float
    requests: int
    messages: int
    streams: tuple[tuple[str, str], ...]  #: (group, stream) of the first ones
    unnamed: int  #: requests of streams beyond those


class Producers:
    """The producers of DataProxy that are connected.  Any thread, one after the other.

    ``told``: hears who comes and goes.
    """

    def __init__(self, lists: Lists, told: Told | None = None) -> None:
        self._lists = lists
        self._lock = threading.Lock()
        self._clients = Clients(told)
        self._clients.add_kind(KIND, _LIMIT_S, _ended, _identity)
        self._changes: object = None

    def follow(self, now: float) -> tuple[Producer, ...]:
        """Bring the registry up to date, and return all that are there.  ``now``: seconds of the hub's clock."""
        with self._lock:
            there, ended, forgotten = self._lists.producers()
            for row in ended:
                one = _producer(row)
                self._take(one, now)  # one that came and went since the last time is told as both
                self._clients.close(one.number, now)
            found = tuple(map(_producer, there))
            for one in found:
                self._take(one, now)
            if forgotten:
                known = {one.number for one in found}
                for number in [name for name, *_ in self._clients.each(KIND) if name not in known]:
                    self._clients.close(number, now)
        return found

    def look(self, changes: object, now: float) -> None:
        """Do as `follow`, if connections have come or gone: ``changes`` is then another value than the last time."""
        if changes != self._changes:
            self._changes = changes
            self.follow(now)

    def _take(self, one: Producer, now: float) -> None:
        self._clients.register(KIND, one.number, one, now, one.number)


def _producer(row: _ProducerRow) -> Producer:
    number, kind, address, since, seen, requests, messages, streams, unnamed, _ = row
    protocol = "http" if kind == "http" else "dataproxy"
    return Producer(number, protocol, address, since / _US, seen / _US, requests, messages, streams, unnamed)


def _identity(_number: int, one: Producer) -> Identity:
    groups = dict.fromkeys(group for group, _ in one.streams)
    return Identity(one.protocol, "producer", one.address, ",".join(groups), one.address)


def _ended(_number: int, _one: Producer, _now: float, _why: End) -> None:
    """Nothing else is kept of a producer."""
