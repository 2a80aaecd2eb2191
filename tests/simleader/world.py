"""Three hubs and ZooKeeper on virtual time: what happens is a seed's, and laws are looked at after every step."""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from dataproxy.hub.leader.commands import Command, Outcome
from dataproxy.hub.leader.seat import Hub, NotLeaderError, Seat, SeatTimes, Ticket
from tests.simleader.keeper import SESSION_S, TICK_S, Keeper

__all__ = ["LawError", "World", "play"]

_FAULTY_S: Final = 60.0
_CALM_S: Final = SESSION_S + 3.0
_HUBS: Final = 3
_FRESH_S: Final = 3.0
_PING_S: Final = SESSION_S / 3
_KINDS: Final = ("cut", "cut", "away", "away", "freeze", "freeze", "freeze", "kill", "servers", "slow", "stop", "lossy")


@lru_cache(maxsize=64)
def _marks(document: bytes) -> frozenset[int]:
    return frozenset(json.loads(document))


class LawError(AssertionError):
    """A promise was broken."""


@dataclass(eq=False)
class _Node:
    """A hub: a process with a seat, a session, and a clock of its own."""

    id: int
    rate: float
    offset: float
    seat: Seat
    alive: bool = True
    session: int = 0
    connection: int = 0  #: 0: none
    wanted: int = 0  #: counts connections that were begun
    frozen_until: float = 0.0
    away_until: float = 0.0
    waiting: list[Callable[[], None]] = field(default_factory=list)  #: what has come while it was frozen
    tickets: list[tuple[int, Ticket]] = field(default_factory=list)
    led: bool = False
    wake: int = 0  #: counts its plans to wake up; only the last one holds


class World:
    """One run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._servers_away_until = self._slow_until = self._lossy_until = 0.0
        self._marks = itertools.count(1)
        self.keeper = Keeper(self._random, changed=self._changed)
        self._nodes = [self._born(i) for i in range(1, _HUBS + 1)]
        self._epoch = 0  # of the last leader
        self._counted: dict[int, float] = {}  # marks that counted, and when
        self._looked = (0, 0)
        self.log: list[tuple[float, str]] = []
        self.takeovers: list[float] = []
        self._leaderless_since: float | None = 0.0
        for node in self._nodes:
            self._connect(node, 0.0)
        self._at(TICK_S, self._scan)
        self._at(1.0, self._write)
        at = 3.0
        while at < _FAULTY_S:
            self._at(at, self._fault)
            at += self._random.expovariate(1 / 4.0)

    # --- time

    def _at(self, at: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (at, next(self._order), what))

    def run(self) -> World:
        """Play to the end: faults, then calm in which a leader has to come and stay."""
        end = _FAULTY_S + 30.0
        self._at(_FAULTY_S, self._calm)
        for at in (_FAULTY_S + _CALM_S, end - 1):
            self._at(at, self._needs_leader)
        while self._heap and self._heap[0][0] <= end:
            self.now, _, what = heapq.heappop(self._heap)
            what()
            self._look()
        return self

    def clock(self, node: _Node) -> float:
        """Return a hub's own time."""
        return node.offset + self.now * node.rate

    # --- hubs

    def _born(self, number: int) -> _Node:
        seat = Seat(Hub(number, f"h{number}", 1), f"n{next(self._marks)}", SeatTimes(call_s=1.5))
        return _Node(number, 1 + self._random.uniform(-1e-3, 1e-3), self._random.uniform(0, 1e6), seat)

    def _step(self, node: _Node) -> None:
        """Let a hub's thread do what is due."""
        if not node.alive:
            return
        if self.now < node.frozen_until:
            return
        while (command := node.seat.next_command(self.clock(node))) is not None:
            self._send(node, command)
        due = node.seat.next_at
        if due != float("inf"):
            wait = max((due - self.clock(node)) / node.rate, 0.001)
            node.wake += 1
            wake = node.wake
            self._at(self.now + wait, lambda: self._step(node) if node.wake == wake else None)

    def _tell(self, node: _Node, what: Callable[[], None]) -> None:
        """Give a hub something, which waits while it is frozen."""
        if self.now < node.frozen_until:
            node.waiting.append(what)
            return
        if node.alive:
            what()
            self._step(node)

    def _delay(self) -> float:
        slow = self.now < self._slow_until
        return self._random.uniform(0.0005, 2.5 if slow and self._random.random() < 0.3 else 0.02)

    def _send(self, node: _Node, command: Command) -> None:
        connection, session, seat = node.connection, node.session, node.seat
        if not connection:
            return
        lossy = self.now < self._lossy_until and self._random.random() < 0.3

        def work() -> None:
            if not self._is_heard(node, session, connection):
                return  # the connection is over, and with it what was under way on it
            outcome = self.keeper.work(session, node.id, command)
            back = self._at_hub(node, seat, connection, command, outcome)
            if not lossy:
                self._at(self.now + self._delay(), back)
            else:
                self._at(self.now + 0.001, lambda: self._cut(node) if node.seat is seat else None)

        self._at(self.now + self._delay(), work)

    def _at_hub(
        self, node: _Node, seat: Seat, connection: int, command: Command, outcome: Outcome
    ) -> Callable[[], None]:
        def back() -> None:
            if node.seat is seat and node.connection == connection:
                self._tell(node, lambda: seat.ended(command, outcome, self.clock(node)))

        return back

    # --- connections

    def _connect(self, node: _Node, wait: float) -> None:
        seat = node.seat
        node.wanted += 1
        wanted = node.wanted

        def connect() -> None:
            if node.seat is not seat or node.wanted != wanted or not node.alive:
                return
            if self.now < max(node.frozen_until, node.away_until, self._servers_away_until):
                self._connect(node, 0.3)
                return
            found = self.keeper.connect(node.session, self.now)
            if found is None:
                node.session = 0
                self._tell(node, lambda: seat.lost(self.clock(node)))
                self._connect(node, 0.01)
                return
            node.session, node.connection = found
            self._tell(node, lambda: seat.connected(SESSION_S, self.clock(node)))
            self._ping(node, seat, node.connection)

        self._at(self.now + wait + self._delay(), connect)

    def _ping(self, node: _Node, seat: Seat, connection: int) -> None:
        """Send signs of life, as `kazoo` does."""
        if node.seat is not seat or node.connection != connection or not node.alive:
            return
        if self.now >= node.frozen_until:
            session = node.session
            self._at(self.now + self._delay(), lambda: self._is_heard(node, session, connection) and None)
        self._at(self.now + _PING_S * 0.9, lambda: self._ping(node, seat, connection))

    def _is_heard(self, node: _Node, session: int, connection: int) -> bool:
        """Take something from a hub; a connection that the servers do not know ends."""
        if self.now < self._servers_away_until:
            return False
        heard = self.keeper.heard(session, connection, self.now)
        if not heard and (node.session, node.connection) == (session, connection):
            self._at(self.now + self._delay(), lambda: self._cut(node) if node.connection == connection else None)
        return heard

    def _cut(self, node: _Node) -> None:
        """End a connection: the hub knows it; what it had sent may still arrive."""
        if node.connection and node.alive:
            node.connection = 0
            seat = node.seat
            self._tell(node, lambda: seat.suspended(self.clock(node)))
            self._connect(node, self._random.uniform(0.01, 0.5))

    def _changed(self) -> None:
        for node in self._nodes:
            seat, connection = node.seat, node.connection
            if connection:
                self._at(self.now + self._delay(), self._notice(node, seat, connection))

    def _notice(self, node: _Node, seat: Seat, connection: int) -> Callable[[], None]:
        def notice() -> None:
            if node.seat is seat and node.connection == connection:
                self._tell(node, lambda: seat.noticed(self.clock(node)))

        return notice

    def _scan(self) -> None:
        if self.now >= self._servers_away_until:
            self.keeper.scan(self.now)
        self._at(self.now + TICK_S, self._scan)

    # --- writes

    def _write(self) -> None:
        """Let whoever believes to lead write a mark."""
        self._at(self.now + self._random.uniform(0.2, 1.5), self._write)
        for node in self._nodes:
            if node.alive and self.now >= node.frozen_until:
                mark = next(self._marks)
                try:
                    seat = node.seat
                    seat.tick(self.clock(node))
                    ticket = seat.write(
                        json.dumps([*json.loads(seat.proposed or b"[]"), mark]).encode(), self.clock(node)
                    )
                except NotLeaderError:
                    continue
                node.tickets.append((mark, ticket))
                self._step(node)

    # --- faults

    def _fault(self) -> None:
        kind, node = self._random.choice(_KINDS), self._random.choice(self._nodes)
        if self._random.random() < 0.6:  # mostly who leads
            node = next((one for one in self._nodes if one.led), node)
        long = self._random.choice((0.5, 2.0, 5.0, 8.0, 15.0)) * self._random.uniform(0.5, 1.2)
        self.log.append((self.now, f"{kind} {node.id} {long:.1f}"))
        if kind == "cut":
            self._cut(node)
        elif kind == "away":
            node.away_until = self.now + long
            self._cut(node)
        elif kind == "freeze":
            self._freeze(node, long)
        elif kind == "kill":
            self._kill(node, long)
        elif kind == "servers":
            self._servers_away_until = self.now + long
            for one in self._nodes:
                self._cut(one)
            self._at(min(self.now + long, _FAULTY_S), lambda: self.keeper.restarted(self.now))
        elif kind == "slow":
            self._slow_until = self.now + long
        elif kind == "lossy":
            self._lossy_until = self.now + long
        elif node.alive and self.now >= node.frozen_until:
            node.seat.end(self.clock(node))
            self._step(node)
            self._kill(node, self._random.choice((0.0, 3.0)), after=0.5)

    def _freeze(self, node: _Node, long: float) -> None:
        node.frozen_until = max(node.frozen_until, self.now + long)

        def thaw() -> None:
            if self.now < node.frozen_until:
                return
            waiting, node.waiting = node.waiting, []
            for what in waiting:
                self._tell(node, what)
            self._step(node)

        self._at(node.frozen_until, thaw)

    def _kill(self, node: _Node, long: float, after: float = 0.0) -> None:
        def kill() -> None:
            node.alive, node.connection, node.waiting = False, 0, []
            self._at(self.now + long, rise)

        def rise() -> None:
            if not node.alive:
                self._rise(node)

        self._at(self.now + after, kill)

    def _rise(self, node: _Node) -> None:
        new = self._born(node.id)
        node.seat, node.rate, node.offset = new.seat, new.rate, new.offset
        node.alive, node.session, node.frozen_until, node.led = True, 0, 0.0, False
        node.tickets = []
        self._connect(node, 0.0)

    def _calm(self) -> None:
        self._servers_away_until = min(self._servers_away_until, self.now)
        self._slow_until = self._lossy_until = self.now
        self.keeper.restarted(self.now)
        for node in self._nodes:
            node.away_until = self.now
            if not node.alive:
                self._rise(node)
            if self.now < node.frozen_until:
                node.frozen_until = self.now
                self._freeze(node, 0.0)

    # --- laws

    def _look(self) -> None:
        leading = [one for one in self._nodes if one.alive and one.seat.leads(self.clock(one))]
        if len(leading) > 1:
            raise LawError(f"two leaders at {self.now:.3f}: {[one.id for one in leading]}")
        for node in self._nodes:
            self._look_at(node, node in leading)
        if leading and self._leaderless_since is not None:
            self.takeovers.append(self.now - self._leaderless_since)
            self._leaderless_since = None
        elif not leading and self._leaderless_since is None:
            self._leaderless_since = self.now
        if self._looked != (self.keeper.version, len(self._counted)) and (
            lost := self._counted.keys() - _marks(self.keeper.document)
        ):
            raise LawError(f"lost at {self.now:.3f}: {sorted(lost)}")
        self._looked = (self.keeper.version, len(self._counted))

    def _look_at(self, node: _Node, leads: bool) -> None:
        if leads and not node.led:
            if node.seat.epoch <= self._epoch:
                raise LawError(f"epoch {node.seat.epoch} after {self._epoch}")
            self._epoch = node.seat.epoch
        node.led = leads
        for mark, ticket in node.tickets:
            if ticket.counted:
                self._counted.setdefault(mark, self.now)
        node.tickets = [one for one in node.tickets if one[1].counted is None]
        behind = 0 <= node.seat.version < self.keeper.version
        if node.alive and behind and node.seat.is_fresh(self.clock(node)):
            before = self.now - _FRESH_S - 0.01
            missing = self._counted.keys() - _marks(node.seat.document)
            if late := {mark for mark in missing if self._counted[mark] < before}:
                raise LawError(f"the view of hub {node.id} is too old at {self.now:.3f}: {sorted(late)}")

    def _needs_leader(self) -> None:
        if not any(one.alive and one.seat.leads(self.clock(one)) for one in self._nodes):
            raise LawError(f"nobody leads at {self.now:.3f}")

    @property
    def counted(self) -> int:
        """Return how many writes have counted."""
        return len(self._counted)


def play(seed: int) -> World:
    """Play a seed's run.  Raises LawError, which names it."""
    world = World(seed)
    try:
        return world.run()
    except LawError as error:
        raise LawError(f"seed {seed}: {error}") from None
