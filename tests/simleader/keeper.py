"""A model of ZooKeeper, after its documentation: sessions, nodes with versions, nodes that go with their sessions.

Requests of a connection are worked off in order.  One that is under way when its connection ends may still have its
effect, until the session has another connection.  A session's end may come up to half a tick earlier than its client
counts (a server that dies has not told the others of the last heartbeat), and is looked at once in a tick.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dataproxy.hub.leader.commands import Command, End, Kind, Outcome, Seen

__all__ = ["SESSION_S", "TICK_S", "Keeper"]

SESSION_S: Final = 6.0
TICK_S: Final = 1.0


@dataclass
class _Session:
    heard: float
    connection: int = 0


@dataclass
class Keeper:
    """The servers, as one: what they have acknowledged is never lost."""

    source: random.Random
    leader: tuple[int, bytes] | None = None  #: (session, text)
    epoch: int = 0
    document: bytes = b"[]"
    version: int = 0
    hubs: dict[int, tuple[int, bytes]] = field(default_factory=dict)  #: by id: (session, text)
    sessions: dict[int, _Session] = field(default_factory=dict)
    changed: Callable[[], None] = lambda: None  #: the leader's node came or went, or the document is another one
    _numbers: int = 0

    def connect(self, session: int, now: float) -> tuple[int, int] | None:
        """Return (session, connection); session 0 asks for a new one.  None: the session is over."""
        if session and session not in self.sessions:
            return None
        if not session:
            self._numbers += 1
            session = self._numbers
            self.sessions[session] = _Session(now)
        found = self.sessions[session]
        found.heard, found.connection = now, found.connection + 1
        return session, found.connection

    def heard(self, session: int, connection: int, now: float) -> bool:
        """Take a sign of life; False: the connection is over."""
        found = self.sessions.get(session)
        if found is None or found.connection != connection:
            return False
        found.heard = now
        return True

    def scan(self, now: float) -> None:
        """Once in a tick: end the sessions that were silent for too long."""
        for number, one in list(self.sessions.items()):
            if now >= one.heard + SESSION_S - self.source.uniform(0, TICK_S / 2):
                self._close(number)

    def restarted(self, now: float) -> None:
        """Begin the time of all sessions anew, as servers do that were away."""
        for one in self.sessions.values():
            one.heard = now

    def _close(self, number: int) -> None:
        del self.sessions[number]
        self.hubs = {id_: one for id_, one in self.hubs.items() if one[0] != number}
        if self.leader is not None and self.leader[0] == number:
            self.leader = None
            self.changed()

    def work(self, session: int, hub: int, command: Command) -> Outcome:
        """Carry out a command, at one moment."""
        kind = command.kind
        if kind is Kind.LOOK:
            text = self.leader[1] if self.leader is not None else None
            seen = Seen(text, self.epoch, self.version, {id_: one[1] for id_, one in self.hubs.items()})
            return Outcome(End.DONE, seen)
        if kind is Kind.READ:
            return Outcome(End.DONE, data=self.document, version=self.version)
        if kind is Kind.ENROL:
            mine = self.hubs.setdefault(hub, (session, command.data))
            return Outcome(End.DONE if mine == (session, command.data) else End.REFUSED)
        if kind is Kind.RUN:
            if self.leader is not None or self.epoch != command.epoch:
                return Outcome(End.REFUSED)
            self.epoch += 1
            self.leader = (session, command.data)
        elif self.epoch != command.epoch:
            return Outcome(End.REFUSED)
        elif kind is Kind.WRITE:
            if self.version != command.version:
                return Outcome(End.REFUSED)
            self.document, self.version = command.data, self.version + 1
        elif self.leader is None:
            return Outcome(End.REFUSED)
        elif kind is Kind.RESIGN:
            self.leader = None
        if kind is not Kind.TOUCH:
            self.changed()
        return Outcome(End.DONE)
