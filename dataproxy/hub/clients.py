"""Who is connected: clients of every protocol, each with a time limit that its heartbeats begin anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from dataproxy.logs import logger

__all__ = ["SCAN_S", "Client", "Clients", "End", "Identity", "Told"]

_log: Final = logger("hub.clients")
SCAN_S: Final = 1.0  #: between two scans for clients whose time is over
_NEVER: Final = float("inf")


class End(Enum):
    """Why a client is not there any more."""

    LEFT = "it left"
    CLOSED = "its connection ended"
    SILENT = "it was silent for too long"
    EVICTED = "it was evicted"
    FORGOTTEN = "all of its kind were forgotten"


class Identity(NamedTuple):
    """Who a client is, in the words that all protocols share; what a protocol does not know is empty."""

    protocol: str
    role: str  #: such as "producer" or "consumer"
    client: str
    group: str = ""
    address: str = ""
    language: str = ""
    version: str = ""


class Client(NamedTuple):
    """A client at one moment, for readers: nothing of it changes, and any thread may read it."""

    identity: Identity
    silent_s: float  #: since its last heartbeat
    limit_s: float


_Ended = Callable[[Any, Any, float, End], None]
Told = Callable[[Identity, End | None], None]
"""Hears of each client that comes (None), and of each that goes, and why."""


@dataclass(slots=True)
class _Kind:
    """The clients of one kind, in the order of their last heartbeats: all have the same limit."""

    limit_s: float
    ended: _Ended
    identify: Callable[[Any, Any], Identity]
    nodes: dict[Hashable, tuple[float, Any, int | None]] = field(default_factory=dict)


class Clients:
    """The registry of clients by kind and name.  One thread; times are seconds of a monotonic clock.

    A kind, such as ``"consumer"``, is added once with its limit and with a function that is called with (name, value,
    now, why) when a client's time or its connection is over, or when it is told to leave.  A client may belong to a
    connection, which is a number that is never used again; a connection may have many clients.

    ``told`` hears of all that come and go, of each kind; it may not fail.
    """

    def __init__(self, told: Told | None = None) -> None:
        self.told = told
        self._kinds: dict[str, _Kind] = {}
        self._connections: dict[int, dict[tuple[str, Hashable], None]] = {}
        self._scan_at = -_NEVER

    def add_kind(
        self, kind: str, limit_s: float, ended: _Ended, identify: Callable[[Any, Any], Identity] | None = None
    ) -> None:
        """Add a kind of clients.  ``identify`` says who one is, from its name and value."""
        if identify is None:
            self._kinds[kind] = _Kind(limit_s, ended, lambda name, value: Identity("", kind, str(name)))
        else:
            self._kinds[kind] = _Kind(limit_s, ended, identify)

    def register(self, kind: str, name: Hashable, value: Any, now: float, connection: int | None = None) -> None:
        """Take a client, in the place of one with its name if there is one; its time begins."""
        of = self._kinds[kind]
        before = of.nodes.get(name)
        if before is not None and before[2] == connection:
            del of.nodes[name]  # the newest is the last
        else:
            self._remove(kind, name)
            if connection is not None:
                self._connections.setdefault(connection, {})[kind, name] = None
        of.nodes[name] = (now + of.limit_s, value, connection)
        if before is None and self.told is not None:
            self.told(of.identify(name, value), None)

    def update(self, kind: str, name: Hashable, now: float) -> bool:
        """Let a client's time begin anew; False if it is not known, or its time is over and no scan has seen it yet."""
        of = self._kinds[kind]
        found = of.nodes.get(name)
        if found is None or found[0] < now:
            return False
        del of.nodes[name]
        of.nodes[name] = (now + of.limit_s, found[1], found[2])
        return True

    def unregister(self, kind: str, name: Hashable) -> Any:
        """Remove a client and return its value, None if there was none; only ``told`` hears of it."""
        self._tell(kind, name, End.LEFT)
        return self._remove(kind, name)

    def end(self, kind: str, name: Hashable, now: float, why: End = End.LEFT) -> bool:
        """End a client, as a scan does; False if there is none."""
        if name not in self._kinds[kind].nodes:
            return False
        self._tell(kind, name, why)
        self._kinds[kind].ended(name, self._remove(kind, name), now, why)
        return True

    def close(self, connection: int, now: float, why: End = End.CLOSED) -> int:
        """End all clients of a connection that has ended, or that is to end; return how many there were."""
        return self._end([*self._connections.get(connection, ())], now, why)

    def end_all(self, kind: str, now: float) -> None:
        """End all clients of a kind, as if their time were over."""
        self._end([(kind, name) for name in self._kinds[kind].nodes], now, End.FORGOTTEN)

    def value(self, kind: str, name: Hashable) -> Any:
        """Return the value of a client, None if it is not known."""
        found = self._kinds[kind].nodes.get(name)
        return None if found is None else found[1]

    def count(self, kind: str) -> int:
        """Return how many clients of a kind there are."""
        return len(self._kinds[kind].nodes)

    @property
    def total(self) -> int:
        """Return how many clients of all kinds there are."""
        return sum(len(of.nodes) for of in self._kinds.values())

    def has_connection(self, connection: int) -> bool:
        """Tell whether any client belongs to a connection."""
        return connection in self._connections

    def each(self, kind: str) -> Iterator[tuple[Any, float, Any]]:
        """Yield (name, time at which it ends, value) of a kind's clients; the one that ends first is the first."""
        for name, (until, value, _) in self._kinds[kind].nodes.items():
            yield name, until, value

    def heard(self, kind: str, name: Hashable) -> float:
        """Return when a client that is there had its last heartbeat."""
        of = self._kinds[kind]
        return of.nodes[name][0] - of.limit_s

    def snapshot(self, now: float) -> tuple[Client, ...]:
        """Return all clients of all protocols as they are now; any thread may read the result."""
        return tuple(
            Client(of.identify(name, value), now - (until - of.limit_s), of.limit_s)
            for of in self._kinds.values()
            for name, (until, value, _) in of.nodes.items()
        )

    def scan(self, now: float) -> None:
        """Once a second, end the clients whose time is over; one that cannot be ended in order does not stop it."""
        if now < self._scan_at:
            return
        self._scan_at = now + SCAN_S
        for kind, of in self._kinds.items():
            over = []
            for name, (until, _, _) in of.nodes.items():
                if until >= now:
                    break
                over.append((kind, name))
            self._end(over, now, End.SILENT)

    @property
    def next_scan(self) -> float:
        """Return when ``scan`` has to be called next."""
        return self._scan_at

    def _end(self, ones: list[tuple[str, Hashable]], now: float, why: End) -> int:
        """Remove clients before anything is called, so that a call finds none of them; then call."""
        for kind, name in ones:
            self._tell(kind, name, why)
        for kind, name, value in [(kind, name, self._remove(kind, name)) for kind, name in ones]:
            try:
                self._kinds[kind].ended(name, value, now, why)
            except Exception:  # noqa: BLE001 - whatever it is, the others have to end
                _log.exception("the end of the %s %r was not worked off", kind, name)
        return len(ones)

    def _tell(self, kind: str, name: Hashable, why: End) -> None:
        """Say that a client goes, while what its identity is read from is still there."""
        of = self._kinds[kind]
        found = of.nodes.get(name)
        if found is not None and self.told is not None:
            self.told(of.identify(name, found[1]), why)

    def _remove(self, kind: str, name: Hashable) -> Any:
        """Take a client out of every table: whoever leaves, leaves through here."""
        _, value, connection = self._kinds[kind].nodes.pop(name, (0.0, None, None))
        if connection is not None:
            own = self._connections[connection]
            del own[kind, name]
            if not own:
                del self._connections[connection]
        return value
