"""Resets of offsets (222, 220), and commits that belong to the time before them.

A reset is computed and checked whole, then stored, and then told to the members.  A push consumer that is told goes on
committing what it had for ten seconds, then commits the new offset itself, and begins there.  So each queue that was
reset has an epoch: of a member that was there before it, no commit counts until it has committed the new offset, or
has asked where to begin.  A pull consumer takes no notice of resets, and its commits do not count until it asks.

A consumer that was told twice obeys twice, each time ten seconds later, and may have given up a queue, taken it again
and asked where to begin in between.  So an offset that an earlier reset has told is taken for that, from whom ever it
comes: whoever is really there says so again.

What is known of epochs is kept with the store, so that a hub that is started anew still knows who may come late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from dataproxy.hub.rocketmq.clients.actions import Outbox, RefusedError, Send
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.members import Member, Members
from dataproxy.logs import logger
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import LEAST_VERSIONS, Answer, Code
from dataproxy.wire.rocketmq.headers import ResetOffset
from dataproxy.wire.rocketmq.queues import Queue, write_offset_list, write_offsets

__all__ = ["Epochs", "Queues", "Resets"]

_log: Final = logger("hub.rocketmq")
_VERSION: Final = LEAST_VERSIONS["reset offsets, tell offsets"]
_END: Final = -1  # a timestamp
_LISTS: Final = "CPP"  # the language whose clients read offsets as a list
_SAID_S: Final = 10.0  # from the first time that a connection commits what an earlier reset has told
_TOLD_MOST: Final = 16  # of earlier resets of a queue
_SAVE_S: Final = 1.0  # between two times that the epochs of a topic are kept, and for each 10,000 names in them
_NAMES: Final = 10_000
_NEVER: Final = float("inf")


class Queues(Protocol):
    """What the store knows of queues and of the offsets of groups."""

    def read_queues(self, topic: str) -> int | None:
        """Return how many queues of a topic are read, None if there is no such topic."""
        ...

    def committed(self, group: str, topic: str, queue: int) -> int | None:
        """Return the offset that a group has committed, None if it has none."""
        ...

    def at_time(self, topic: str, queue: int, ms: int) -> int:
        """Return the offset of the first message that was stored at a time or later."""
        ...

    def latest(self, topic: str, queue: int) -> int:
        """Return the offset that the next message will have."""
        ...

    def store(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set the offsets of a group by queue, all of them or none; raises if they could not be stored."""
        ...


class Epochs(Protocol):
    """Where the epochs of resets are kept: by group and topic, a value of JSON each."""

    def load(self, now: float) -> Iterable[tuple[str, str, Any]]:
        """Return (group, topic, value) of all; their times are those of a clock that says ``now``."""
        ...

    def save(self, group: str, topic: str, value: Any, now: float) -> None:
        """Keep a value; None removes it."""
        ...


class _Planned(NamedTuple):
    offsets: dict[Queue, int]  # of all queues
    moved: dict[Queue, int]


@dataclass(slots=True)
class _Epoch:
    offset: int
    at: float
    header: ResetOffset
    old: dict[int, str]  #: connections that may still commit what was before, and whose they are
    lost: dict[int, float] = field(default_factory=dict)  #: of these, the ones that have ended, and when
    knowing: set[str] = field(default_factory=set)  #: clients that know it
    told: dict[int, dict[int, float]] = field(default_factory=dict)  #: by earlier resets: who has said so, and when
    is_open: bool = False  #: others than `old` may come from before it, too: the hub had just begun


class Resets:
    """Resets of all groups.  One thread; times are seconds of a monotonic clock."""

    def __init__(
        self,
        members: Members,
        broker: str,
        queues: Queues,
        limits: Limits,
        outbox: Outbox,
        now: float,
        kept: Epochs | None = None,
    ) -> None:
        self._members, self._broker, self._queues, self._limits = members, broker, queues, limits
        self._outbox, self._began, self._kept = outbox, now, kept
        self._epochs: dict[tuple[str, str], dict[int, _Epoch]] = {}  # by group and topic, then by queue
        self._lost: dict[str, dict[str, tuple[int, float]]] = {}  # by group and client: its last connection, and when
        self._knowing: dict[int, set[tuple[str, str, int]]] = {}  # connections that are no members, and which resets
        self._changed: set[tuple[str, str]] = set()  # what is to be kept
        self._save_at, self._pause_s = _NEVER, _SAVE_S
        self.refused = self.done = 0
        for group, topic, value in kept.load(now) if kept is not None else ():
            self._restore(group, topic, value, now)

    def reset(self, header: ResetOffset, now: float) -> dict[Queue, int]:
        """Set a group's offsets and return those of all queues.  Raises RefusedError; then nothing has changed."""
        n = self._reads(header.topic)
        members = self._members.of(header.group)
        planned = self._plan(header, n, members)
        self._carry_out(header, planned.moved, members, now)
        return planned.offsets

    def check(self, group: str, topic: str) -> None:
        """Raise RefusedError if `move` would, for a reason that is known before: no topic, or a member is too old."""
        self._reads(topic)
        self._check_members(self._members.of(group))

    def move(self, header: ResetOffset, offsets: Mapping[int, int], now: float) -> None:
        """Set a group's offsets in some queues of a topic, whether it has members or not.

        ``header``: what members are told, beside the offsets.  Raises RefusedError; then nothing has changed.
        """
        group, topic = header.group, header.topic
        self.check(group, topic)
        moved = {
            Queue(self._broker, queue, topic): offset
            for queue, offset in offsets.items()
            if self._queues.committed(group, topic, queue) != offset
        }
        self._carry_out(header, moved, self._members.of(group), now)

    def _reads(self, topic: str) -> int:
        n = self._queues.read_queues(topic)
        if n is None:
            raise RefusedError(Answer.SYSTEM_ERROR, f"there is no topic {shown(topic)} in this broker")
        return n

    def _carry_out(self, header: ResetOffset, moved: dict[Queue, int], members: tuple[Member, ...], now: float) -> None:
        """Store offsets, begin their epochs, and tell the members.  Raises RefusedError if they cannot be stored."""
        group, topic = header.group, header.topic
        is_shared = not members or any(not one.is_broadcasting for one in members)
        try:
            if is_shared and moved:
                self._queues.store(group, topic, {queue.queue_id: offset for queue, offset in moved.items()})
        except Exception as error:
            text = f"the offsets of the group {shown(group)} could not be stored: {error}"
            raise RefusedError(Answer.SYSTEM_ERROR, text) from error
        if moved:
            self._begin(header, moved, now)
        self.done += 1
        _log.info("the group %r was reset in %d queues of the topic %r", group, len(moved), topic)

    def _begin(self, header: ResetOffset, moved: dict[Queue, int], now: float) -> None:
        group, topic = header.group, header.topic
        records = self._members.records(group)
        old = {one.peer.connection: one.client_id for one in records if not one.is_broadcasting}
        lost = dict(self._lost.get(group, {}))
        old |= {connection: client for client, (connection, _) in lost.items()}
        epochs = self._epochs.setdefault((group, topic), {})
        is_open = now - self._began < self._limits.returns
        for queue, offset in moved.items():
            for known in self._knowing.values():
                known.discard((group, topic, queue.queue_id))
            before = epochs.get(queue.queue_id)
            epoch = _Epoch(offset, now, header, dict(old), dict(lost.values()), is_open=is_open)
            if before is not None:
                epoch.told = {was: {} for was in [*before.told, before.offset][-_TOLD_MOST:] if was != offset}
            epochs[queue.queue_id] = epoch
        self._save(group, topic, now)
        for one in records:
            self._tell(one, header, moved)

    def admits(self, group: str, connection: int, topic: str, queue: int, offset: int, now: float) -> bool:
        """Tell whether a commit counts; one that a member makes of what was before a reset does not."""
        epoch = self._epochs.get((group, topic), {}).get(queue)
        if epoch is None:
            return True
        member = self._members.at(group, connection)
        if offset in epoch.told and now - epoch.told[offset].setdefault(connection, now) < _SAID_S:
            admitted = False
        elif member is not None and connection not in epoch.old:
            admitted = True
        else:
            # Without a member it is a client's second connection, or its next one before its heartbeat has come: whose
            # it is cannot be told, so it has to show itself that it knows.
            admitted = offset == epoch.offset or (group, topic, queue) in self._knowing.get(connection, ())
            if admitted:
                self.asked(group, connection, topic, queue)
        self.refused += not admitted
        return admitted

    def asked(self, group: str, connection: int, topic: str, queue: int) -> None:
        """Note that a connection has asked for the offset of a queue (14): it begins with what it is told."""
        epoch = self._epochs.get((group, topic), {}).get(queue)
        if epoch is None:
            return
        self._knows(epoch, connection)
        self._changed.add((group, topic))
        member = self._members.at(group, connection)
        if member is not None:
            epoch.knowing.add(member.client_id)
        else:
            self._knowing.setdefault(connection, set()).add((group, topic, queue))

    def closed(self, connection: int) -> None:
        """Forget what a connection knows that has ended."""
        self._knowing.pop(connection, None)

    def ended(self, member: Member, now: float, *, lost: bool) -> None:
        """Note that a member has gone; one whose connection was lost may come back with what it had."""
        connection = member.peer.connection
        if lost and not member.is_broadcasting:
            self._lost.setdefault(member.group, {})[member.client_id] = connection, now
        for (name, topic), epochs in self._epochs.items():
            if name == member.group:
                for epoch in epochs.values():
                    if not lost:
                        self._knows(epoch, connection)
                        self._changed.add((name, topic))
                    elif connection in epoch.old:
                        epoch.lost[connection] = now

    def came(self, member: Member) -> None:
        """Tell a client again that comes on another connection and may not have heard: the first may have been lost."""
        gone = self._lost.get(member.group, {})
        gone.pop(member.client_id, None)
        for (group, topic), epochs in self._epochs.items():
            if group != member.group:
                continue
            missed = {
                Queue(self._broker, queue, topic): epoch
                for queue, epoch in epochs.items()
                if self._may_be_late(epoch, member.client_id)
            }
            for epoch in missed.values():
                for connection in [one for one in epoch.lost if epoch.old[one] == member.client_id]:
                    self._knows(epoch, connection)
                epoch.old[member.peer.connection] = member.client_id
            if missed:
                self._changed.add((group, topic))
            for header in dict.fromkeys(epoch.header for epoch in missed.values()):
                offsets = {queue: epoch.offset for queue, epoch in missed.items() if epoch.header == header}
                self._tell(member, header, offsets)

    def tick(self, now: float) -> None:
        """Forget the clients that have gone long ago, and the resets that all members know."""
        for key, epochs in list(self._epochs.items()):
            for queue, epoch in list(epochs.items()):
                for connection in [one for one, at in epoch.lost.items() if now - at > self._limits.returns]:
                    self._knows(epoch, connection)
                for said in epoch.told.values():
                    for connection in [one for one, at in said.items() if now - at > self._limits.returns]:
                        del said[connection]
                if not epoch.old and now - epoch.at > self._limits.returns:
                    del epochs[queue]
            self._changed.add(key)
            if not epochs:
                del self._epochs[key]
        for group, clients in list(self._lost.items()):
            self._lost[group] = {one: found for one, found in clients.items() if now - found[1] <= self._limits.returns}
            if not self._lost[group]:
                del self._lost[group]

    def save(self, now: float) -> None:
        """Keep what has changed, a second after it was kept last, or later if it is much.

        What members have heard since then is lost if the hub is killed: the next one tells them again.
        """
        if self._kept is None or not self._changed:
            self._changed.clear()
            self._save_at = _NEVER
            return
        if self._save_at == _NEVER:
            self._save_at = now + self._pause_s
        if now >= self._save_at:
            changed, self._save_at = sorted(self._changed), _NEVER
            names = sum(self._save(group, topic, now) for group, topic in changed)
            self._pause_s = _SAVE_S * max(1.0, names / _NAMES)

    @property
    def next_save(self) -> float:
        """Return when `save` has to be called next; infinity if nothing waits that it has seen."""
        return self._save_at

    def __len__(self) -> int:
        return sum(map(len, self._epochs.values()))

    def _may_be_late(self, epoch: _Epoch, client_id: str) -> bool:
        """Tell whether a client that comes may have offsets of before a reset: from here, or from an earlier hub."""
        return client_id in epoch.old.values() or (epoch.is_open and client_id not in epoch.knowing)

    def _save(self, group: str, topic: str, now: float) -> int:
        """Keep the epochs of a topic as they are: of each queue offset, time, what was told, and who is late.

        Returns how many names of clients were kept.
        """
        self._changed.discard((group, topic))
        if self._kept is None:
            return 0
        epochs = self._epochs.get((group, topic), {})
        rows = {
            str(queue): [
                one.offset, one.at, one.header.timestamp, one.header.is_force, sorted(set(one.old.values())),
                one.is_open, sorted(one.knowing) if one.is_open else [], list(one.told),
            ]
            for queue, one in epochs.items()
        }  # fmt: skip
        self._kept.save(group, topic, rows or None, now)
        return sum(len(one.old) + len(one.knowing) for one in epochs.values())

    def _restore(self, group: str, topic: str, rows: Any, now: float) -> None:
        """Take the epochs of a topic from an earlier hub; its members may come back, on connections that are new."""
        epochs = {}
        try:
            for queue, (offset, at, timestamp, is_force, late, is_open, knowing, told) in rows.items():
                header = ResetOffset(topic, group, int(timestamp), bool(is_force))
                # No connection has a number below 0.
                old = {-i: str(client) for i, client in enumerate(late, 1)}
                lost = dict.fromkeys(old, now)
                epochs[int(queue)] = _Epoch(
                    int(offset), float(at), header, old, lost, set(map(str, knowing)),
                    {int(was): {} for was in told}, bool(is_open),
                )  # fmt: skip
        except (ValueError, TypeError, AttributeError):
            _log.error("what was kept of resets of the group %r in the topic %r cannot be read", group, topic)
            return
        if epochs:
            self._epochs[group, topic] = epochs

    @staticmethod
    def _knows(epoch: _Epoch, connection: int) -> None:
        client = epoch.old.pop(connection, None)
        if client is not None:
            epoch.knowing.add(client)
        epoch.lost.pop(connection, None)

    def _plan(self, header: ResetOffset, n: int, members: tuple[Member, ...]) -> _Planned:
        """Compute what every queue gets, and see that every member can be told."""
        group, topic, time_ms = header.group, header.topic, header.timestamp
        if time_ms < _END:
            text = f"timestamp is {time_ms}; expected ms since 1970, or -1 for the end"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        committed = [self._queues.committed(group, topic, queue) for queue in range(n)]
        if not members:
            if all(one is None for one in committed):
                raise RefusedError(Answer.SYSTEM_ERROR, f"there is no consumer group {shown(group)} of {shown(topic)}")
            raise RefusedError(Answer.CONSUMER_NOT_ONLINE, f"the group {shown(group)} has no member that is connected")
        self._check_members(members)
        offsets, moved = {}, {}
        for queue, before in enumerate(committed):
            end = time_ms == _END
            target = self._queues.latest(topic, queue) if end else self._queues.at_time(topic, queue, time_ms)
            target = max(target, 0)
            new = target if header.is_force or before is None or target < before else before
            offsets[Queue(self._broker, queue, topic)] = new
            if new != before:
                moved[Queue(self._broker, queue, topic)] = new
        return _Planned(offsets, moved)

    @staticmethod
    def _check_members(members: tuple[Member, ...]) -> None:
        for one in members:
            if one.peer.version < _VERSION:
                raise RefusedError(
                    Answer.SYSTEM_ERROR,
                    f"the version of the client {shown(one.client_id)} is {one.peer.version}, and {_VERSION} is the"
                    " first that can be told of a reset; nothing has changed",
                )

    def _tell(self, member: Member, header: ResetOffset, offsets: Mapping[Queue, int]) -> None:
        peer = member.peer
        # Objects for keys are what all Java's clients read; one of them that gets a list loses the reset.
        body = write_offset_list(offsets) if peer.language == _LISTS else write_offsets(offsets, objects=True)
        self._outbox.append(Send(peer.connection, Code.RESET_CONSUMER_CLIENT_OFFSET, header, body))
