"""What has to hold at every moment of a run, as seen from outside: by what clients believe and what was sent."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from dataproxy.hub.clients import SCAN_S
from dataproxy.hub.rocketmq.clients.actions import Send
from dataproxy.wire.rocketmq.codes import Code

if TYPE_CHECKING:
    from dataproxy.hub.rocketmq.clients.members import Member
    from dataproxy.wire.rocketmq.queues import Queue
    from tests.simclients.client import Process
    from tests.simclients.world import World

__all__ = ["GHOST_S", "WINDOW_S", "LawError", "Laws"]

GHOST_S = 120.0 + SCAN_S + 0.01  #: after its last heartbeat nobody is a member any more
WINDOW_S = 0.1
_EPS = 1e-6
_CUT_S = 62.0  # after a cut, a client says with its next heartbeat on which connection it is, and believes that long


class LawError(AssertionError):
    """A promise was broken."""


class Laws:
    """The laws of one run; they begin anew with a hub that is started again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heard: dict[tuple[str, int], float] = {}  #: when a heartbeat for the group last came on the connection
        self._left: set[tuple[str, int]] = set()  # groups that a connection has left in order
        self._sure: dict[str, float] = {}  # until when nobody can be in a group any more who must not
        self._seen: dict[str, tuple[Member, ...]] = {}
        self._faces: dict[str, Any] = {}
        self._unheard: dict[str, float] = {}  # when a group changed of which not all members have heard
        self._told: dict[tuple[int, str], float] = {}
        self.table: dict[tuple[int, str], Any] = {}  #: what the compiled side was told of subscriptions
        self.asked: dict[int, float] = {}  #: questions of administrators without a reply, and when they were asked

    def _broken(self, law: str, text: str) -> None:
        raise LawError(f"{law}: {text} at {self._world.now:.3f}")

    # --- what clients say

    def leaves(self, group: str, connection: int) -> None:
        """Take the end of a member."""
        self._left.add((group, connection))
        self._sure.pop(group, None)

    def has_left(self, group: str, connection: int) -> bool:
        """Tell whether a connection has left a group, and has not come back."""
        return (group, connection) in self._left

    def comes_back(self, group: str, connection: int) -> None:
        """Take a heartbeat for a group, of after its end if there was one."""
        self._left.discard((group, connection))

    # --- what comes out of the hub

    def sent(self, action: Send) -> None:
        """Look at a notification."""
        if action.code != Code.NOTIFY_CONSUMER_IDS_CHANGED:
            return
        group, now = action.header.consumer_group, self._world.now  # type: ignore[union-attr]
        last = self._told.get((action.connection, group), -1.0)
        if now - last < WINDOW_S - _EPS:
            self._broken("coalesced", f"{action.connection} hears of {group} twice in {now - last:.3f} s")
        self._told[action.connection, group] = now

    def replied(self, call: int) -> None:
        """Look at a reply to an administrator."""
        if self.asked.pop(call, None) is None:
            self._broken("replied", f"question {call} has two replies")

    def committed(
        self, process: Process, queue: tuple[str, int], based: int, offset: int, target: int, number: int
    ) -> None:
        """Look at a commit that counts: one of before a reset must not.

        Who was at the very offset all the same has lost nothing by the reset, and goes on from there.
        """
        aligned = self._world.aligned
        if offset == target:
            aligned.add((process.id, queue, number))
        if based < number and not process.is_twin and (process.id, queue, number) not in aligned:
            self._broken("reset", f"{process.id} commits {offset} of {based} in {queue}, whose last reset is {number}")

    def believed(self, process: Process, group: str, queue: Queue) -> None:
        """Look at a client that counts a queue as its own from now on: no other one does."""
        # After a cut nobody can tell a process from another one with its id.
        world = self._world
        owners = [
            one
            for one in world.processes
            if one.owns(group, queue, world.now) and not (one.is_twin and world.now - one.cut_at < _CUT_S)
        ]
        if len(owners) > 1 and process in owners:
            self._broken("owner", f"{queue.queue_id} of {group} is {', '.join(one.id for one in owners)}'s")

    # --- what is true after every step of the hub

    def look(self) -> None:
        """Look at everything."""
        members, now = self._world.registry.members, self._world.now
        for group in members.names():
            self._seen.setdefault(group, ())
        for group, seen in self._seen.items():
            records = members.records(group)
            if len(seen) != len(records) or not all(map(is_, seen, records)):
                self._changed(group, records)
                self._sure.pop(group, None)
            if now > self._sure.get(group, -1.0):
                self._sure[group] = self._until_when_sure(group, records)
            if group in self._unheard:
                self._hears(group, records)
        if self.asked:
            self._questions()

    def _changed(self, group: str, records: tuple[Member, ...]) -> None:
        members = self._world.registry.members
        ids = members.ids(group)
        if len(set(ids)) != len(ids):
            self._broken("once", f"{ids} are the members of {group}")
        face = {
            one.client_id: (
                one.data.consume_type,
                one.data.message_model,
                {topic: of.sub_string for topic, of in one.subscriptions.items()},
            )
            for one in members.of(group)
        }
        if face != self._faces.get(group, {}):
            self._faces[group] = face
            self._unheard.setdefault(group, self._world.now)
        self._seen[group] = records
        for one in records:
            if self.table.get((one.peer.connection, group)) != dict(one.subscriptions):
                self._broken("table", f"{one.client_id} in {group} is not what the compiled side knows")

    def _until_when_sure(self, group: str, records: tuple[Member, ...]) -> float:
        """Check who is in a group; return until when they may be, if neither they nor who has left are others."""
        now, first = self._world.now, float("inf")
        for one in records:
            connection = one.peer.connection
            heard = self.heard.get((group, connection), -1e9)
            if now - heard > GHOST_S:
                self._broken("ghost", f"{one.client_id} is in {group} without a heartbeat")
            if (group, connection) in self._left:
                self._broken("ghost", f"{one.client_id} is in {group}, which it has left")
            first = min(first, heard)
        return first + GHOST_S - _EPS

    def _hears(self, group: str, records: tuple[Member, ...]) -> None:
        """Check that who is in a group hears in time that it has changed."""
        since = self._unheard[group]
        present = {one.peer.connection for one in records if not one.is_broadcasting}
        late = {one for one in present if self._told.get((one, group), -1.0) < since}
        if not late:
            del self._unheard[group]
        elif self._world.now > since + WINDOW_S + _EPS:
            self._broken("told", f"{sorted(late)} do not hear what changed in {group} at {since:.3f}")

    def _questions(self) -> None:
        now = self._world.now
        if now > next(iter(self.asked.values())) + 5.0 + _EPS:  # the first was asked first
            late = [call for call, at in self.asked.items() if now > at + 5.0 + _EPS]
            self._broken("replied", f"questions {late} have no reply")
