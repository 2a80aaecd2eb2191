"""Members that hold queues and do not pull: their messages wait, and no other member gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dataproxy.hub.idling import MOST, Alarms, Idle
from dataproxy.hub.rocketmq.clients.members import Member, Members
from dataproxy.hub.rocketmq.groups.holdings import Holdings
from dataproxy.hub.rocketmq.groups.resets import Queues
from dataproxy.wire.rocketmq.bodies import ConsumeType
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Idling", "Silent"]

Silent = tuple[int, str, str, int]
"""A connection that has not pulled in a group and topic since a time, in us; 0: never."""


class Idling:
    """Looks for members that hold queues and do not pull.  One thread; times are seconds of the hub's clock.

    A member is one if nothing has come from it for ``limit_s`` in a topic of which it holds queues with messages that
    the group has not confirmed; a client that waits for messages asks again within a minute.  A pull consumer decides
    for itself when to pull, and is one only if its group locks its queues; one that is pushed to is none.  ``held``:
    what the members of a group hold.  ``told`` hears of events.
    """

    def __init__(
        self,
        members: Members,
        queues: Queues,
        held: Callable[[str], Holdings],
        has_locks: Callable[[str], bool],
        limit_s: float,
        told: Callable[..., None],
    ) -> None:
        self._members, self._queues, self._held, self._has_locks = members, queues, held, has_locks
        self._limit_s, self._alarms = limit_s, Alarms(told)
        self._faces: dict[str, tuple[tuple[str, ...], float]] = {}  # of groups: their members, and since when

    def look(self, silent: Iterable[Silent], now: float) -> None:
        """Raise alarms and end them.  ``silent``: who has not pulled within ``limit_s``; others are not looked at."""
        self._note_members(now)
        self._alarms.update(self._find(silent, now), now)

    def now(self) -> tuple[Idle, ...]:
        """Return the members for which there is an alarm."""
        return self._alarms.now()

    def _find(self, silent: Iterable[Silent], now: float) -> Iterator[Idle]:
        held: dict[str, Holdings] = {}
        found = 0
        for connection, group, topic, pulled_us in silent:
            member = self._members.at(group, connection)
            if member is None or member is not self._members.find(group, member.client_id):
                continue
            since = max(pulled_us / 1e6, member.since, self._faces[group][1])
            if now - since < self._limit_s or not self._pulls_by_itself(member):
                continue
            if group not in held:
                held[group] = self._held(group)
            one = self._judge(member, topic, held[group].get(member.client_id, ()), since)
            if one is not None:
                yield one
                found += 1
                if found == MOST:
                    return

    def _note_members(self, now: float) -> None:
        """Note when groups have changed: a member that gets queues then has not pulled from them yet."""
        faces = {}
        for group in self._members.names():
            ids = tuple(sorted(self._members.ids(group)))
            before = self._faces.get(group)
            faces[group] = before if before is not None and before[0] == ids else (ids, now)
        self._faces = faces

    def _pulls_by_itself(self, member: Member) -> bool:
        way = member.data.consume_type
        return way is ConsumeType.PUSH or (way is not ConsumeType.SERVER_PUSH and self._has_locks(member.group))

    def _judge(self, member: Member, topic: str, held: tuple[Queue, ...], since: float) -> Idle | None:
        behind: dict[int, int] = {}
        for queue in held:
            if queue.topic == topic:
                at = self._queues.committed(member.group, topic, queue.queue_id)
                behind[queue.queue_id] = self._queues.latest(topic, queue.queue_id) - max(at or 0, 0)
        waiting = {queue: n for queue, n in behind.items() if n > 0}
        if not waiting:
            return None
        return Idle(
            "rocketmq", member.group, member.client_id, topic, member.peer.address, tuple(sorted(waiting)),
            sum(waiting.values()), since,
        )  # fmt: skip
