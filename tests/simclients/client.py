"""A process with a client of RocketMQ, as Java's behaves: heartbeats, rebalances, locks, commits, resets.

What it believes is what the laws compare: which queues it counts as its own, and of which reset its offsets are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dataproxy.hub.rocketmq.clients.actions import Peer
from dataproxy.wire.rocketmq.queues import Queue
from tests.support.rocketclients import heartbeat

__all__ = ["BELIEF_S", "HEARTBEAT_S", "RESET_S", "TURN_S", "Consumer", "Line", "Process", "Progress", "share"]

HEARTBEAT_S = 30.0
TURN_S = 20.0  #: between two rebalances, and between two renewals of locks
COMMIT_S = 5.0
RESET_S = 10.0  #: that a consumer waits before it commits what it was told
BELIEF_S = 30.0  #: from an answer on, for which a lock counts as its own


def share(queues: Iterable[Queue], members: Iterable[str], me: str) -> set[Queue]:
    """Return what a member takes: ranges of the queues in order, as even as can be."""
    ordered, ids = sorted(queues), sorted(members)
    if me not in ids:
        return set()
    i, n, most = ids.index(me), len(ordered), len(ids)
    least, more = divmod(n, most)
    begin = i * least + min(i, more)
    return set(ordered[begin : begin + least + (i < more)])


@dataclass(eq=False)
class Line:
    """A connection: each side may think that it has ended before the other does."""

    number: int
    peer: Peer
    here: bool = True  #: for the client
    there: bool = True  #: for the hub
    in_at: float = 0.0  #: when the last bytes arrive at the hub, and at the client
    out_at: float = 0.0


@dataclass
class Progress:
    """How far a consumer is in a queue that it reads."""

    offset: int
    based: int  #: the number of the reset that it knows
    resumes: float = 0.0  #: until then it does as it was told by a reset: it waits


@dataclass(eq=False)
class Consumer:
    """A consumer of a process, of one group."""

    group: str
    topics: dict[str, str]
    version: int
    is_pull: bool
    reads: dict[Queue, Progress] = field(default_factory=dict)
    believes: dict[Queue, float] = field(default_factory=dict)  #: until when
    gave_up: dict[Queue, float] = field(default_factory=dict)  #: when it gave it up last
    beginning: dict[Queue, float] = field(default_factory=dict)  #: when it asked where to begin
    mine: set[Queue] = field(default_factory=set)  #: by its last rebalance


@dataclass(eq=False)
class Process:
    """A process; one that is started anew is another one."""

    id: str
    language: str
    has_side_line: bool  #: a VIP channel: locks, offsets and lists go another way than heartbeats
    consumers: dict[str, Consumer] = field(default_factory=dict)
    produces: tuple[str, ...] = ()
    line: Line | None = None
    side: Line | None = None
    alive: bool = True
    frozen_until: float = 0.0
    is_twin: bool = False  #: another process has its id
    cut_at: float = -1e9  #: when its main connection ended last, or another process with its id began, or it awoke then
    turn: int = 0  #: counts its plans to rebalance; only the last one holds

    def body(self) -> bytes:
        """Return its heartbeat."""
        versions = {one.version for one in self.consumers.values()} or {1}
        kind = "CONSUME_ACTIVELY" if any(one.is_pull for one in self.consumers.values()) else "CONSUME_PASSIVELY"
        wishes = {group: one.topics for group, one in self.consumers.items()}
        return heartbeat(self.id, wishes, self.produces, version=max(versions), kind=kind)

    def owns(self, group: str, queue: Queue, now: float) -> bool:
        """Tell whether it consumes a queue now, as its own."""
        one = self.consumers.get(group)
        return self.alive and one is not None and one.believes.get(queue, -1.0) > now
