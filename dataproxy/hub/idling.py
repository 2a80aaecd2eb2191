"""Alarms for members that hold queues and do not ask for their messages, whatever their protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from dataproxy.logs import logger

__all__ = ["MOST", "Alarms", "Idle", "nobody"]

_log: Final = logger("hub.clients")
MOST: Final = 10_000  #: alarms at a time


class Idle(NamedTuple):
    """A member that does not ask for messages of a topic of which it holds queues."""

    protocol: str
    group: str
    client: str
    topic: str
    address: str
    queues: tuple[int, ...]  #: those with messages
    behind: int  #: messages in them that the group has not confirmed
    since: float  #: when it asked last, or could have begun to ask; seconds of the hub's clock


class Alarms:
    """The alarms that there are.  One thread; ``told`` hears when one begins ("idle") and ends ("pulls again")."""

    def __init__(self, told: Callable[..., None]) -> None:
        self._told = told
        self._now: dict[tuple[str, str, str], Idle] = {}

    def update(self, found: Iterable[Idle], now: float) -> None:
        """Begin the alarms that are new, and end those that are not found any more."""
        new = {(one.group, one.client, one.topic): one for one in found}
        for key, one in new.items():
            if key not in self._now:
                self._say("idle", one)
                _log.warning(
                    "the client %r of the group %r holds queues of the topic %r, in which %d messages wait, and has not"
                    " asked for them for %.0f s", one.client, one.group, one.topic, one.behind, now - one.since,
                )  # fmt: skip
        for key, one in self._now.items():
            if key not in new:
                self._say("pulls again", one)
        self._now = new

    def now(self) -> tuple[Idle, ...]:
        """Return the alarms that there are."""
        return tuple(self._now.values())

    def _say(self, kind: str, one: Idle) -> None:
        fields = one._asdict()
        del fields["since"]
        self._told(kind, **{**fields, "queues": list(one.queues)})


def nobody(_kind: str, **_fields: object) -> None:
    """Hear of an event that nobody wants to hear of."""
