"""Who is connected: clients of every protocol, each with a time limit that its heartbeats begin anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dataproxy.logs import logger

__all__ = ["SCAN_S", "Clients"]

_log: Final = logger("hub.clients")
SCAN_S: Final = 1.0  #: between two scans for clients whose time is over
_NEVER: Final = float("inf")


@dataclass(slots=True)
class _Kind:
    """The clients of one kind, in the order of their last heartbeats: all have the same limit."""

    limit_s: float
    ended: Callable[[str, Any, float], None]
    nodes: dict[str, tuple[float, Any]] = field(default_factory=dict)


class Clients:
    """The registry of clients by kind and name.  One thread; times are seconds of a monotonic clock.

    A kind, such as ``"consumer"``, is added once with its limit and with a function that is called with (name, value,
    now) when a client's time is over.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._scan_at = -_NEVER

    def add_kind(self, kind: str, limit_s: float, ended: Callable[[str, Any, float], None]) -> None:
        """Add a kind of clients."""
        self._kinds[kind] = _Kind(limit_s, ended)

    def register(self, kind: str, name: str, value: Any, now: float) -> None:
        """Take a client, in the place of one with its name if there is one; its time begins."""
        of = self._kinds[kind]
        of.nodes.pop(name, None)  # the newest is the last
        of.nodes[name] = (now + of.limit_s, value)

    def update(self, kind: str, name: str, now: float) -> bool:
        """Let a client's time begin anew; False if it is not known, or its time is over and no scan has seen it yet."""
        of = self._kinds[kind]
        until, value = of.nodes.get(name, (-_NEVER, None))
        if until < now:
            return False
        del of.nodes[name]
        of.nodes[name] = (now + of.limit_s, value)
        return True

    def unregister(self, kind: str, name: str) -> Any:
        """Remove a client and return its value, None if there was none; nothing else is called."""
        return self._kinds[kind].nodes.pop(name, (0.0, None))[1]

    def value(self, kind: str, name: str) -> Any:
        """Return the value of a client, None if it is not known."""
        return self._kinds[kind].nodes.get(name, (0.0, None))[1]

    def count(self, kind: str) -> int:
        """Return how many clients of a kind there are."""
        return len(self._kinds[kind].nodes)

    def each(self, kind: str) -> Iterator[tuple[str, float, Any]]:
        """Yield (name, time at which it ends, value) of a kind's clients; the one that ends first is the first."""
        for name, (until, value) in self._kinds[kind].nodes.items():
            yield name, until, value

    def scan(self, now: float) -> None:
        """Once a second, end the clients whose time is over; one that cannot be ended in order does not stop it."""
        if now < self._scan_at:
            return
        self._scan_at = now + SCAN_S
        for kind, of in self._kinds.items():
            for name, value in self._over(of, now):
                try:
                    of.ended(name, value, now)
                except Exception:  # noqa: BLE001 - whatever it is, the others have to end
                    _log.exception("the end of the %s %r was not worked off", kind, name)

    @property
    def next_scan(self) -> float:
        """Return when ``scan`` has to be called next."""
        return self._scan_at

    @staticmethod
    def _over(of: _Kind, now: float) -> list[tuple[str, Any]]:
        """Remove what is over before anything is called, so that a call finds none of it."""
        found = []
        for name, (until, value) in of.nodes.items():
            if until >= now:
                break
            found.append((name, value))
        for name, _ in found:
            del of.nodes[name]
        return found
