"""What has happened at a hub: the newest events, each with a number, for any number of readers."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from dataproxy.hub.clients import End, Identity

__all__ = ["KINDS", "Event", "Events", "Page"]

KINDS: Final = (
    "came", "gone", "reset", "idle", "pulls again", "push paused", "push resumed", "push evicted",
)  # fmt: skip
"""What may happen: a client comes or goes, offsets of a group are reset, a member of a group does not ask for messages
of queues that it holds, and does again; one that is pushed to does not acknowledge, does again, is removed."""
_MOST: Final = 4096
_TEXT_MOST: Final = 256  # characters of a name that a client has given


class Event(NamedTuple):
    """One event.  ``number`` counts from 1 while a hub runs; ``wall_ms`` is the time of day."""

    number: int
    wall_ms: int
    kind: str
    fields: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"number": self.number, "time_ms": self.wall_ms, "event": self.kind, **self.fields}


class Page(NamedTuple):
    """Events behind a number.  ``missed``: so many before them are not kept any more."""

    events: tuple[Event, ...]
    next: int
    missed: int


class Events:
    """The newest events of a hub.  Any thread.

    ``most`` of them are kept, however many readers there are and however slow they are: a reader asks for what is
    behind the last number that it knows, and is told how many it has missed.  ``wall_ms``: the time of day.  ``run``
    names the run of the hub that the numbers belong to.
    """

    def __init__(self, most: int = _MOST, wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._kept: deque[Event] = deque(maxlen=most)
        self._wall_ms = wall_ms
        self._lock = threading.Lock()
        self._last = 0
        self._listeners: tuple[Callable[[], None], ...] = ()  # replaced under the lock, never changed
        self.run: Final = os.urandom(6).hex()
        self._counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self._ends: Counter[str] = Counter({why.name.lower(): 0 for why in End})

    def add(self, kind: str, **fields: Any) -> None:
        """Take an event; texts are cut to 256 characters."""
        kept = {name: value[:_TEXT_MOST] if isinstance(value, str) else value for name, value in fields.items()}
        with self._lock:
            self._last += 1
            self._counts[kind] += 1
            self._kept.append(Event(self._last, self._wall_ms(), kind, kept))
            listeners = self._listeners
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called behind each event, on the thread that the event comes from; it must not block."""
        with self._lock:
            self._listeners += (listener,)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Undo `listen`; a call may still be on its way."""
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one != listener)

    def client(self, identity: Identity, why: End | None) -> None:
        """Take the coming of a client (``why`` is None), or its end; what `Clients` is given to tell."""
        fields = {name: value for name, value in identity._asdict().items() if value}
        if why is None:
            self.add("came", **fields)
            return
        with self._lock:
            self._ends[why.name.lower()] += 1
        self.add("gone", **fields, why=why.value)

    def after(self, number: int, most: int) -> Page:
        """Return up to ``most`` events behind a number, the oldest first.

        A number that this hub has not given yet is one of an earlier hub: then all that is kept follows.
        """
        with self._lock:
            first = self._last - len(self._kept) + 1
            begin = number + 1 if 0 <= number <= self._last else first
            missed = max(first - begin, 0)
            skip = max(begin - first, 0)
            found = tuple(islice(self._kept, skip, skip + most))
        return Page(found, found[-1].number if found else max(begin - 1, first - 1), missed)

    def counts(self) -> dict[str, int]:
        """Return how many events of each kind there were since the start."""
        with self._lock:
            return dict(self._counts)

    def ends(self) -> dict[str, int]:
        """Return how many clients have gone since the start, by the reason."""
        with self._lock:
            return dict(self._ends)
