"""A group of consumers among whom a master divides partitions: members, what they hold, and the events for them.

An event takes partitions from a member, or gives some to it.  A member gets its events one by one; nothing is given
in a group while something is still to be taken there.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dataproxy.hub.tubemq.groups.balance import Division, Share, as_named, blocks, keep_and_even
from dataproxy.hub.tubemq.groups.wishes import Wishes
from dataproxy.wire.tubemq.texts import Partition

__all__ = ["CONNECT", "DISCONNECT", "ONLY_CONNECT", "ONLY_DISCONNECT", "Event", "Group", "Member"]

CONNECT, DISCONNECT, ONLY_CONNECT, ONLY_DISCONNECT = 1, 2, 10, 20
_TAKES: Final = (DISCONNECT, ONLY_DISCONNECT)
_NAMED_ROUNDS: Final = 2  # divisions of a bound group that heed who named a partition


class Event(NamedTuple):
    """Partitions that a member shall take or give back."""

    number: int
    kind: int
    partitions: tuple[Partition, ...]

    @property
    def takes(self) -> bool:
        """Tell whether it takes partitions away."""
        return self.kind in _TAKES


@dataclass(slots=True)
class Member:
    """One consumer, as its group knows it."""

    client: str
    host: str  #: by its own word
    peer: str  #: the address it registered from
    charged: int  #: bytes, to that address
    held: frozenset[Partition] = frozenset()
    named: Mapping[str, int] = field(default_factory=dict)  #: offsets, in a bound group
    events: deque[Event] = field(default_factory=deque)  #: the first may be under way
    out: bool = False  #: the first was sent
    cycles: int = 0  #: of the balance that found it with events


class Group:
    """One group.  One thread; it knows no time: who calls it counts periods."""

    def __init__(self, name: str, wishes: Wishes, source: random.Random) -> None:
        self.name, self.wishes = name, wishes
        self.members: dict[str, Member] = {}  #: in the order in which they registered
        self.allocated = False  #: somebody has got partitions
        self.charged = 0  #: bytes, to the address of the first member
        self.peer = ""
        self._random = source
        # Counted, so that a call of one member costs nothing for each of the others.
        self._holders: Counter[Partition] = Counter()
        self._open = 0  # members with events
        self._takes = 0  # events that take
        self._named_rounds = 0
        self._number = 0
        self._moves: dict[Partition, str] = {}

    # --- members

    def join(self, member: Member) -> None:
        """Take a member, in the place of one with its id if there is one."""
        self.leave(member.client)  # it is the last one now, which counts in bound groups
        self.members[member.client] = member
        self._holders.update(member.held)
        if member.held:
            self.allocated = True  # by the master before this one, or before the group was forgotten

    def leave(self, client: str) -> Member | None:
        """Remove a member: what it holds is free.  None if there is none with this id."""
        member = self.members.pop(client, None)
        if member is not None:
            self._hold(member, frozenset())
            self._clear(member)
        return member

    def report(self, member: Member, held: frozenset[Partition]) -> bool:
        """Take what a member holds by its own word, whatever was known before; return whether it is news."""
        if member.held == held:
            return False
        self._hold(member, held)
        return True

    def _hold(self, member: Member, held: frozenset[Partition]) -> None:
        self._holders.subtract(member.held)
        self._holders.update(held)
        for partition in member.held - held:
            if not self._holders[partition]:
                del self._holders[partition]
        member.held = held

    def finished(self, member: Member) -> None:
        """Take the result of the event that a member was told; how it ended is seen by what the member holds."""
        if member.out:
            self._pop(member)
            member.cycles = 0
        self.allocated = True

    def _pop(self, member: Member) -> None:
        """End a member's first event."""
        self._takes -= member.events.popleft().takes
        self._open -= not member.events
        member.out = False

    def _clear(self, member: Member) -> None:
        """Drop a member's events."""
        while member.events:
            self._pop(member)
        member.cycles = 0

    # --- events

    def event_for(self, member: Member, is_there: Callable[[Partition], bool]) -> Event | None:
        """Return the event that a member is told now, once; None if there is none, or it has to wait.

        What another member holds by now, or is not there any more, is not given; an event that would give nothing is
        dropped (``settled`` tells).
        """
        while member.events and not member.out:
            event = member.events[0]
            if event.takes:
                member.out = True
                return event
            if self._takes:
                return None
            free = tuple(one for one in event.partitions if is_there(one) and not self._is_elsewhere(one, member))
            if not free:
                self._pop(member)
                continue
            member.events[0] = event._replace(partitions=free)
            member.out = True
            return member.events[0]
        return None

    def _is_elsewhere(self, partition: Partition, member: Member) -> bool:
        return self._holders[partition] > (partition in member.held)

    @property
    def settled(self) -> bool:
        """Tell whether no member has an event."""
        return self._open == 0

    def count_cycle(self, most: int) -> bool:
        """Count a period of the balance for members with events; return whether events were dropped.

        A member that lost its event does not get it again.  When one has been silent for more than ``most`` periods,
        the events of all members are dropped, because they belong together.
        """
        waiting = [one for one in self.members.values() if one.events]
        for one in waiting:
            one.cycles += 1
        if all(one.cycles <= most for one in waiting):
            return False
        for one in waiting:
            self._clear(one)
        return True

    # --- balance

    def move(self, partition: Partition, client: str) -> None:
        """Give a partition to a member with the next balance, whoever holds it."""
        self._moves[partition] = client

    def is_ready(self, brokers: int, brokers_a_member: int) -> bool:
        """Tell whether partitions can be divided: no event is open, and there are members enough."""
        n = len(self.members)
        if n == 0 or not self.settled or brokers > brokers_a_member * n:
            return False
        return self.wishes.bound is None or n >= self.wishes.bound.members

    def balance(self, partitions: Sequence[Partition]) -> bool:
        """Divide the partitions, and make the events that lead there; return whether there are any."""
        division = self._divide(partitions)
        for client, wanted in division.items():
            member = self.members[client]
            taken, given = member.held - wanted, wanted - member.held
            if taken:
                self._add(member, DISCONNECT if given else ONLY_DISCONNECT, taken)
            if given:
                self._add(member, CONNECT if taken else ONLY_CONNECT, given)
        return not self.settled

    def _add(self, member: Member, kind: int, partitions: Iterable[Partition]) -> None:
        self._number += 1
        event = Event(self._number, kind, tuple(sorted(partitions)))
        self._open += not member.events
        self._takes += event.takes
        member.events.append(event)

    def _divide(self, partitions: Sequence[Partition]) -> Division:
        shares = [Share(one.client, one.held, one.named) for one in self.members.values()]
        bound = self.wishes.bound
        if bound is not None and not self.allocated and self._named_rounds < _NAMED_ROUNDS:
            self._named_rounds += 1
            return as_named(shares, partitions, larger_wins=bound.larger_wins, source=self._random)
        moves, self._moves = self._moves, {}
        if not moves and not any(one.held for one in shares):
            return blocks(shares, partitions)
        return keep_and_even(shares, partitions, moves=moves, source=self._random)
