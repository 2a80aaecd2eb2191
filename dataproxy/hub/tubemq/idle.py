"""Members that have registered partitions and do not ask for messages: nobody else gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from dataproxy.hub.idling import MOST, Alarms, Idle

__all__ = ["IDLE_S", "Idling", "Silences"]

IDLE_S: Final = 90.0  #: without a request for messages, until a member that holds partitions with some is an alarm
_LOOK_S: Final = 10.0
_MESSAGE: Final = 28  # of an offset, for each message
_US: Final = 1_000_000


class Silences(Protocol):
    """What has the registrations of a broker: `RegistrationsCore`."""

    def idle(self, before_us: int) -> list[tuple[bytes, bytes, int, bytes, int, int]]:
        """Return (group, topic, partition, owner, confirmed, us) of owners that have asked for nothing since a time."""
        ...


class Idling:
    """Looks for such members every 10 s.  One thread; times are seconds of the hub's clock.

    ``extents``: the offsets of the oldest and the next message of a topic, by partition.  ``told`` hears of events.
    """

    def __init__(
        self, registered: Silences, extents: Callable[[str], dict[int, tuple[int, int]]], told: Callable[..., None]
    ) -> None:
        self._registered, self._extents, self._alarms = registered, extents, Alarms(told)
        self.next_look = 0.0

    def look(self, now: float) -> None:
        """Raise alarms and end them, if it is time."""
        if now >= self.next_look:
            self.next_look = now + _LOOK_S
            self._alarms.update(self._find(now), now)

    def now(self) -> tuple[Idle, ...]:
        """Return the members for which there is an alarm."""
        return self._alarms.now()

    def _find(self, now: float) -> Iterator[Idle]:
        found: dict[tuple[str, str, str], Idle] = {}
        known: dict[str, dict[int, tuple[int, int]]] = {}
        for raw_group, raw_topic, partition, raw_owner, confirmed, asked_us in self._registered.idle(
            int((now - IDLE_S) * _US)
        ):
            group, topic, owner = (one.decode("utf-8", "replace") for one in (raw_group, raw_topic, raw_owner))
            if topic not in known:
                known[topic] = self._extents(topic)
            first, following = known[topic].get(partition, (0, 0))
            behind = (following - max(confirmed, first)) // _MESSAGE
            key = group, owner, topic
            if behind <= 0 or (key not in found and len(found) >= MOST):
                continue
            before = found.get(key, Idle("tubemq", group, owner, topic, "", (), 0, now))
            found[key] = before._replace(
                queues=(*before.queues, partition), behind=before.behind + behind,
                since=min(before.since, asked_us / _US),
            )  # fmt: skip
        yield from found.values()
