"""Members that are to hear that their group has changed (40): what changes in a short time is told once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dataproxy.hub.rocketmq.clients.actions import Outbox, Send
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import ConsumerOf

__all__ = ["Notices"]

_NEVER: Final = float("inf")


class Notices:
    """Groups that wait to be told.  One thread; times are seconds of a monotonic clock.

    ``told``: the connections of a group that shall hear of it; at the time of the telling, so that who has just come
    hears of it, and nobody is told who has gone.
    """

    def __init__(self, window_s: float, told: Callable[[str], Iterable[int]], outbox: Outbox) -> None:
        self._window_s, self._told, self._outbox = window_s, told, outbox
        self._due: dict[str, float] = {}  # the first is due first
        self.sent = 0

    def changed(self, group: str, now: float) -> None:
        """Let a group be told soon; if that is to happen anyway, nothing is added."""
        self._due.setdefault(group, now + self._window_s)

    def tick(self, now: float) -> None:
        """Tell the groups that are due."""
        due = []
        for group, at in self._due.items():
            if at > now:
                break
            due.append(group)
        for group in due:
            del self._due[group]
            for connection in self._told(group):
                self._outbox.append(Send(connection, Code.NOTIFY_CONSUMER_IDS_CHANGED, ConsumerOf(group)))
                self.sent += 1

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next; infinity if nobody waits."""
        return next(iter(self._due.values()), _NEVER)

    def __len__(self) -> int:
        return len(self._due)
