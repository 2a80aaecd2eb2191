"""One hub's seat in a cluster: whether it leads, until when, and what it knows of the document that all hubs share.

It decides, and does nothing by itself: the time, the state of a session at ZooKeeper and the ends of commands come in,
commands go out, one at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Self

from dataproxy.hub.leader.commands import Command, End, Kind, Outcome, Seen
from dataproxy.logs import logger

__all__ = ["Hub", "NotLeaderError", "Seat", "SeatTimes", "Ticket"]

_log: Final = logger("hub.cluster")
_NEVER: Final = float("inf")
_LEASE: Final = 2 / 3  # of the session's time; ZooKeeper may count up to half of its tick less than we do
_TOUCHES: Final = 12  # in the session's time
_NOT_READ: Final = -1  # version of a document that was never read


class NotLeaderError(Exception):
    """The hub does not lead, or has ceased to before ZooKeeper had the write."""


@dataclass(frozen=True)
class SeatTimes:
    """Seconds."""

    look_s: float = 1.0  #: between two looks of a standby
    call_s: float = 2.0  #: after which a command without an answer has ended, nobody knows how
    fresh_s: float = 3.0  #: the greatest age of a standby's view


class Hub(NamedTuple):
    """A hub of the cluster, as others reach it."""

    id: int
    host: str
    port: int

    def text(self, nonce: str, epoch: int) -> bytes:
        """Return what its nodes hold."""
        return json.dumps({**self._asdict(), "nonce": nonce, "epoch": epoch}).encode()

    @classmethod
    def read(cls, data: bytes) -> tuple[Self, str, int] | None:
        """Return (hub, nonce, epoch) of a node; None if it holds none."""
        try:
            found = json.loads(data)
            return cls(int(found["id"]), str(found["host"]), int(found["port"])), found["nonce"], int(found["epoch"])
        except (ValueError, KeyError, TypeError):
            return None


class _State(Enum):
    STANDBY = "standby"
    WON = "won"  # the election; the document is still to be read
    LEADS = "leads"
    LEAVES = "leaves"  # its node is still to be deleted


@dataclass(eq=False)
class Ticket:
    """A write of the document."""

    data: bytes
    unsure: bool = False  #: an earlier try may have had its effect
    counted: bool | None = None  #: None: not known yet; False: it is not, or nobody will know


class Seat:
    """One thread; times are seconds of a monotonic clock, which also counts while the machine sleeps.

    ``nonce`` tells this process from all others.
    """

    def __init__(self, hub: Hub, nonce: str, times: SeatTimes | None = None) -> None:
        self.hub, self._nonce = hub, nonce
        self._times = times if times is not None else SeatTimes()
        self._state = _State.STANDBY
        self._session_s = 0.0
        self._connected = self._enrolled = self._ending = False
        self._refused = False  # was told in the log
        self._command: Command | None = None
        self._next_look = self._next_enrol = self._next_touch = 0.0
        self._lease = -_NEVER
        self._seen: Seen | None = None  # by a look of this connection that nothing has made void
        self._writes: deque[Ticket] = deque()
        self._as_of = -_NEVER
        self.epoch = 0  #: under which this hub leads, or led last
        self.document, self.version = b"", _NOT_READ  #: as ZooKeeper had it
        self.leader: Hub | None = None  #: as far as this hub knows
        self.hubs: Mapping[int, Hub] = {}  #: that are connected, by the last look

    # --- what others ask

    def leads(self, now: float) -> bool:
        """Tell whether this hub is the leader at this moment."""
        return self._state is _State.LEADS and now < self._lease

    @property
    def leads_until(self) -> float:
        """Return when it ceases to lead unless ZooKeeper answers before."""
        return self._lease if self._state is _State.LEADS else -_NEVER

    def is_fresh(self, now: float) -> bool:
        """Tell whether the document has every write that counted until 3 s ago."""
        return self.leads(now) or now - self._as_of <= self._times.fresh_s

    @property
    def proposed(self) -> bytes:
        """Return the document with the writes that do not count yet."""
        return self._writes[-1].data if self._writes else self.document

    def write(self, data: bytes, now: float) -> Ticket:
        """Begin to write the document.  Raises NotLeaderError."""
        if not self.leads(now) or self._ending:
            raise NotLeaderError("this hub does not lead the cluster")
        ticket = Ticket(data)
        self._writes.append(ticket)
        return ticket

    # --- what happens to the session

    def connected(self, session_s: float, now: float) -> None:
        """Take a connection of the session, whose time is ``session_s``."""
        self._session_s, self._connected = session_s, True
        self._void(now)
        self._next_enrol = now

    def suspended(self, now: float) -> None:
        """Take the end of the connection; the session may live on, and so does what leads until its time is over."""
        self._connected = False
        self._void(now)

    def lost(self, now: float) -> None:
        """Take the end of the session: its nodes are gone."""
        self.suspended(now)
        self._enrolled = False
        if self._state is not _State.STANDBY:
            self._step_down("its session at ZooKeeper is over")
            self._state = _State.STANDBY

    def noticed(self, now: float) -> None:
        """Look soon: something has changed at ZooKeeper."""
        self._next_look = min(self._next_look, now)

    def end(self, now: float) -> None:
        """Resign, and do not run again."""
        self._ending = True
        self.tick(now)
        if self._state is not _State.STANDBY:
            self._step_down("the hub ends")

    @property
    def is_out(self) -> bool:
        """Tell, behind ``end``, that nothing is left to be done."""
        return self._command is None and (self._state is _State.STANDBY or not self._connected)

    # --- commands

    def tick(self, now: float) -> None:
        """Let time pass."""
        if self._command is not None and now >= self._command.began + self._times.call_s:
            self._finish(self._command, Outcome(End.UNKNOWN), now)
        if self._state in (_State.WON, _State.LEADS) and now >= self._lease:
            self._step_down("ZooKeeper has not answered for two thirds of the session's time")

    def next_command(self, now: float) -> Command | None:
        """Return what is to be asked of ZooKeeper now; its end is to be told by ``ended``."""
        self.tick(now)
        if self._command is not None or not self._connected:
            return None
        self._command = self._choose(now)
        return self._command

    @property
    def next_at(self) -> float:
        """Return when ``next_command`` has to be asked next, if nothing happens before."""
        due = [self._lease] if self._state in (_State.WON, _State.LEADS) else []
        if self._command is not None:
            due.append(self._command.began + self._times.call_s)
        elif self._connected:
            due += [self._next_look] if self._enrolled else [self._next_look, self._next_enrol]
            if self._state is _State.LEADS:
                due.append(self._next_touch)
            if self._state in (_State.WON, _State.LEAVES) or (self._state is _State.LEADS and self._writes):
                due.append(-_NEVER)
        return min(due, default=_NEVER)

    def _choose(self, now: float) -> Command | None:
        if self._state is _State.LEAVES:
            return Command(Kind.RESIGN, now, self.epoch)
        if self._ending:
            return None
        if self._state is _State.WON:
            return Command(Kind.READ, now)
        if self._state is _State.LEADS:
            if now >= self._next_touch:
                return Command(Kind.TOUCH, now, self.epoch)
            if self._writes:
                return self._next_write(now)
        if not self._enrolled and now >= self._next_enrol:
            return Command(Kind.ENROL, now, data=self.hub.text(self._nonce, 0))
        if now >= self._next_look:
            return Command(Kind.LOOK, now)
        return self._stand_by(now) if self._state is _State.STANDBY else None

    def _stand_by(self, now: float) -> Command | None:
        seen = self._seen
        if seen is None:
            return None
        if seen.leader is None:
            self._seen = None  # each run needs a look of its own
            text = self.hub.text(self._nonce, seen.epoch + 1)
            return Command(Kind.RUN, now, seen.epoch, data=text)
        if seen.version > self.version:
            return Command(Kind.READ, now)
        return None

    def _next_write(self, now: float) -> Command:
        first = self._writes[0]
        if first.unsure:  # was it this one that ZooKeeper has?
            return Command(Kind.READ, now)
        return Command(Kind.WRITE, now, self.epoch, self.version, first.data)

    # --- ends of commands

    def ended(self, command: Command, outcome: Outcome, now: float) -> None:
        """Take the end of a command; a late one, of a command that counts as ended, is passed over."""
        self.tick(now)  # whose time is over does not lead again by an answer that comes then
        if command is self._command:
            self._finish(command, outcome, now)

    def _finish(self, command: Command, outcome: Outcome, now: float) -> None:
        self._command = None
        if command.kind is Kind.ENROL:
            self._enrolled = outcome.end is End.DONE
            if outcome.end is End.REFUSED and not self._refused:
                _log.warning(
                    "another hub of the cluster has the broker id %d, or had it a moment ago; this hub tries on. If it"
                    " goes on, set tubemq_broker to a number of its own", self.hub.id,
                )  # fmt: skip
            self._refused = outcome.end is End.REFUSED or (self._refused and not self._enrolled)
            self._next_enrol = now + self._times.look_s
        elif command.kind is Kind.LOOK:
            self._looked(command, outcome, now)
        elif command.kind is Kind.READ:
            self._read(command, outcome, now)
        elif command.kind is Kind.RUN:
            self._ran(command, outcome, now)
        elif command.kind is Kind.TOUCH:
            self._touched(command, outcome, now)
        elif command.kind is Kind.WRITE:
            self._wrote(command, outcome, now)
        elif self._state is _State.LEAVES and outcome.end is not End.UNKNOWN:
            self._state = _State.STANDBY
            self._void(now)

    def _looked(self, command: Command, outcome: Outcome, now: float) -> None:
        self._next_look = now + self._times.look_s
        seen = outcome.seen
        if outcome.end is not End.DONE or seen is None:
            self._seen = None
            return
        self._seen = seen
        found = {one[0].id: one[0] for one in map(Hub.read, seen.hubs.values()) if one is not None}
        self.hubs = found
        if self._state is not _State.STANDBY:
            return
        leader = Hub.read(seen.leader) if seen.leader is not None else None
        self.leader = leader[0] if leader is not None else None
        if leader is not None and leader[1] == self._nonce:  # of a run that had no answer
            self.epoch, self._state = seen.epoch, _State.LEAVES
        if seen.version == self.version:
            self._as_of = max(self._as_of, command.began)

    def _read(self, command: Command, outcome: Outcome, now: float) -> None:
        if outcome.end is not End.DONE:
            self._next_look = now
            self._seen = None
            return
        if outcome.version >= self.version:
            self._as_of = max(self._as_of, command.began)
        if self._state is _State.LEADS and self._writes:
            self._resolve(outcome)
            return
        if outcome.version >= self.version:
            self.document, self.version = outcome.data, outcome.version
        if self._state is _State.WON:
            self._state, self.leader = _State.LEADS, self.hub
            self._next_touch = now
            _log.info("this hub leads the cluster; its epoch is %d", self.epoch)

    def _resolve(self, outcome: Outcome) -> None:
        """Find out whether the first write counts: nobody else writes in this epoch."""
        first = self._writes[0]
        if outcome.version == self.version:
            first.unsure = False  # it has had no effect; if it has one later, this version refuses the next try
        elif outcome.version == self.version + 1 and outcome.data == first.data:
            self._count(first)
        else:
            self._step_down("somebody else has written the cluster's document")

    def _ran(self, command: Command, outcome: Outcome, now: float) -> None:
        self._next_look = now
        if outcome.end is not End.DONE or self._ending:
            return
        self.epoch, self._state = command.epoch + 1, _State.WON
        self._lease = command.began + _LEASE * self._session_s

    def _touched(self, command: Command, outcome: Outcome, now: float) -> None:
        self._next_touch = now + self._session_s / _TOUCHES
        if self._state is not _State.LEADS:
            return
        if outcome.end is End.REFUSED:
            self._step_down("ZooKeeper knows another leader")
        elif outcome.end is End.DONE:
            self._lease = max(self._lease, command.began + _LEASE * self._session_s)

    def _wrote(self, command: Command, outcome: Outcome, now: float) -> None:
        if self._state is not _State.LEADS or not self._writes:
            return
        if outcome.end is End.DONE:
            self._count(self._writes[0])
        else:
            self._writes[0].unsure = True  # refused: an earlier try may have come late, or this hub is no leader
            if outcome.end is End.REFUSED:
                self._next_touch = now

    def _count(self, ticket: Ticket) -> None:
        self._writes.popleft()
        self.document, self.version = ticket.data, self.version + 1
        ticket.counted = True

    # --- inside

    def _void(self, now: float) -> None:
        """Forget what is under way and what was seen: neither is known to be true any more."""
        if self._command is not None:
            self._finish(self._command, Outcome(End.UNKNOWN), now)
        self._seen = None
        self._next_look = now

    def _step_down(self, why: str) -> None:
        if self._state is _State.LEADS:
            _log.warning("this hub leads the cluster no more: %s", why)
        self._state, self._lease, self.leader = _State.LEAVES, -_NEVER, None
        for ticket in self._writes:
            ticket.counted = False
        self._writes.clear()
