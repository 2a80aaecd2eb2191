"""Locks of queues (41, 42): at any moment one member of a group alone consumes an orderly queue.

A client counts a lock as its own for up to `Limits.belief` after the last time that it was granted, even if its
connection is gone.  So a lock of an owner that is gone is not given to another before that, and to the owner's next
connection at once.  An owner that leaves its group in order has given up its queues: then they are free at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nextafter
from typing import Final, NamedTuple

from dataproxy.hub.rocketmq.clients.actions import Holder, RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["OVERLAP_S", "Locked", "Locks"]

OVERLAP_S: Final = 5.0  #: a client that reconnects has both connections for so long at most
_NEVER: Final = float("inf")
_SWEEP_S: Final = 10.0  # between two looks for leases that are over


class Locked(NamedTuple):
    """A lock at one moment, for readers."""

    group: str
    queue: Queue
    client_id: str
    connection: int
    age_s: float  #: since its owner got it
    granted_s: float  #: since it was granted last
    is_orphan: bool  #: its owner's connection is gone


@dataclass(slots=True)
class _Lock:
    client_id: str
    connection: int
    since: float
    granted: float
    free_at: float  #: for others
    orphan_since: float | None = None

    @property
    def is_orphan(self) -> bool:
        return self.orphan_since is not None

    def comes_back(self, holder: Holder) -> bool:
        """Tell whether this is the owner's next connection, and none that another process with its id had before."""
        return self.orphan_since is not None and holder.since >= self.orphan_since - OVERLAP_S


class Locks:
    """The locks of all groups.  One thread; times are seconds of a monotonic clock.

    Who asks is a client by the connection by which it is a member of the group.
    """

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._quiet_until = now + limits.quiet
        self._groups: dict[str, dict[Queue, _Lock]] = {}
        self._owned: dict[tuple[str, int], dict[Queue, None]] = {}  # by group and connection
        self._orphans: dict[tuple[str, Queue], float] = {}  # when they are free
        self._sweep_at = now + _SWEEP_S
        self._count = 0

    def lock(self, group: str, queue: Queue, holder: Holder, now: float) -> bool:
        """Give a queue to a member; False if it is another one's.  Raises RefusedError if there are too many locks."""
        if now < self._quiet_until:
            return False
        found = self._groups.get(group, {}).get(queue)
        if found is not None and not self._may_take(found, holder, now):
            return False
        is_same = found is not None and found.client_id == holder.client_id and now <= found.free_at
        since = found.since if found is not None and is_same else now
        if found is not None:
            self._drop(group, queue, found)
        elif self._count >= self._limits.locks:
            raise RefusedError(Answer.SYSTEM_BUSY, f"the hub has {self._count} locks and has room for no more")
        self._count += 1
        self._groups.setdefault(group, {})[queue] = _Lock(
            holder.client_id, holder.connection, since, now, now + self._limits.lease
        )
        self._owned.setdefault((group, holder.connection), {})[queue] = None
        return True

    def unlock(self, group: str, queue: Queue, holder: Holder) -> bool:
        """Take a queue back from its owner; False if it is another one's, or nobody's."""
        found = self._groups.get(group, {}).get(queue)
        if found is None or found.client_id != holder.client_id:
            return False
        if found.connection != holder.connection and not found.comes_back(holder):
            return False
        self._drop(group, queue, found)
        return True

    def left(self, group: str, connection: int) -> None:
        """Free what a member had that has left its group."""
        for queue in self._of(group, connection):
            self._drop(group, queue, self._groups[group][queue])

    def lost(self, group: str, connection: int, now: float) -> None:
        """Let the locks of a member end soon whose connection is gone."""
        limits = self._limits
        for queue in self._of(group, connection):
            one = self._groups[group][queue]
            one.orphan_since = now
            one.free_at = min(one.free_at, max(now + limits.grace, one.granted + limits.belief))
            self._orphans[group, queue] = one.free_at

    def moved(self, group: str, connection: int, to: int) -> None:
        """Let another connection of the same client have what one had that is gone."""
        for queue in self._of(group, connection):
            one = self._groups[group][queue]
            del self._owned[group, connection][queue]
            one.connection = to
            self._owned.setdefault((group, to), {})[queue] = None
        self._owned.pop((group, connection), None)

    def owner(self, group: str, queue: Queue, now: float) -> tuple[str, int] | None:
        """Return the client and the connection that have a queue."""
        found = self._groups.get(group, {}).get(queue)
        return (found.client_id, found.connection) if found is not None and now <= found.free_at else None

    def tick(self, now: float) -> tuple[str, ...]:
        """Forget the locks whose time is over, and return the groups in which a queue has become free."""
        freed: dict[str, None] = {}
        for (group, queue), at in list(self._orphans.items()):
            if at < now:
                self._drop(group, queue, self._groups[group][queue])
                freed[group] = None
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_S
            for group, locks in list(self._groups.items()):
                for queue, one in list(locks.items()):
                    if one.free_at < now:
                        self._drop(group, queue, one)
                        freed[group] = None
        return tuple(freed)

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next."""
        if not self._orphans:
            return self._sweep_at
        return min(self._sweep_at, nextafter(min(self._orphans.values()), _NEVER))

    def snapshot(self, now: float) -> tuple[Locked, ...]:
        """Return all locks as they are now."""
        return tuple(one for group in self._groups for one in self.of(group, now))

    def of(self, group: str, now: float) -> tuple[Locked, ...]:
        """Return the locks of a group as they are now."""
        return tuple(
            Locked(group, queue, one.client_id, one.connection, now - one.since, now - one.granted, one.is_orphan)
            for queue, one in self._groups.get(group, {}).items()
            if now <= one.free_at
        )

    def has(self, group: str) -> bool:
        """Tell whether members of a group have locks."""
        return group in self._groups

    def __len__(self) -> int:
        return self._count

    def _may_take(self, found: _Lock, holder: Holder, now: float) -> bool:
        if now > found.free_at:
            return True
        if found.client_id != holder.client_id:
            return False
        # Two connections with one id may be two processes: the second gets nothing that the first counts as its own.
        is_own = found.connection == holder.connection or found.comes_back(holder)
        return is_own or now - found.granted > self._limits.belief

    def _of(self, group: str, connection: int) -> tuple[Queue, ...]:
        return tuple(self._owned.get((group, connection), ()))

    def _drop(self, group: str, queue: Queue, one: _Lock) -> None:
        """Take a lock out of every table."""
        self._count -= 1
        owned = self._owned[group, one.connection]
        del owned[queue], self._groups[group][queue]
        if not owned:
            del self._owned[group, one.connection]
        if not self._groups[group]:
            del self._groups[group]
        self._orphans.pop((group, queue), None)
