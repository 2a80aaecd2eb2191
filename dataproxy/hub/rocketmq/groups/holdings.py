"""Which queues the members of a group hold: by their locks, or as RocketMQ's clients divide them by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dataproxy.hub.rocketmq.clients.locks import Locked
from dataproxy.hub.rocketmq.clients.members import Member
from dataproxy.wire.rocketmq.bodies import ConsumeType
from dataproxy.wire.rocketmq.queues import Queue

__all__ = ["Holdings", "holdings"]

Holdings = dict[str, tuple[Queue, ...]]
"""Queues by the id of a client."""


def holdings(
    members: Iterable[Member], locks: Iterable[Locked], broker: str, reads: Callable[[str], int | None]
) -> Holdings:
    """Return what each member of a group holds, as far as the hub can know it.

    ``locks``: those of the group, which members of orderly groups take.  Other members tell nobody what they hold: each
    takes a range of a topic's queues, by its place among the sorted ids; this is what is returned.  Members that are
    pushed to say which queues they have.  Members that get all messages hold nothing.  ``reads``: how many queues of a
    topic are read, None for one that is not there.
    """
    locked: dict[str, list[Queue]] = {}
    for lock in locks:
        locked.setdefault(lock.client_id, []).append(lock.queue)
    sharing = [one for one in members if not one.is_broadcasting]
    said = {one.client_id: _said(one, broker) for one in sharing if one.data.consume_type is ConsumeType.SERVER_PUSH}
    if locked:
        return {one.client_id: tuple(sorted(locked.get(one.client_id, ()))) for one in sharing} | said
    ordered = sorted(sharing, key=lambda one: one.client_id)
    found: dict[str, tuple[Queue, ...]] = {}
    counts = {topic: reads(topic) or 0 for one in ordered for topic in one.subscriptions}
    for i, one in enumerate(ordered):
        found[one.client_id] = tuple(
            Queue(broker, queue, topic)
            for topic in sorted(one.subscriptions)
            for queue in _range(counts[topic], len(ordered), i)
        )
    return found | said


def _said(member: Member, broker: str) -> tuple[Queue, ...]:
    """Return the queues that a member has named in its heartbeats."""
    wanted = member.subscriptions
    return tuple(sorted(Queue(broker, queue, topic) for topic in wanted for queue in wanted[topic].pushed_queues))


def _range(n: int, members: int, i: int) -> range:
    """Return the queues of member ``i`` of so many: ranges in order, as even as can be."""
    least, more = divmod(n, members)
    begin = i * least + min(i, more)
    return range(begin, begin + least + (i < more))
