"""Partitions that a member holds: each is in exactly one state, and changes it here alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dataproxy.consumer.group.asking import Address
from dataproxy.wire.tubemq.texts import Partition

__all__ = ["Holding", "Holdings", "Seek", "State"]


class State(Enum):
    """What is going on with a partition."""

    WANTED = "wanted"  #: its registration waits for its turn, or for the next try
    REGISTERING = "registering"  #: the broker was asked
    HELD = "held"  #: its packs are read
    RELEASING = "releasing"  #: its last pack is waited for
    LEAVING = "leaving"  #: its end can be told to the broker
    UNREGISTERING = "unregistering"  #: the broker was told


_ALLOWED = {
    State.WANTED: {State.REGISTERING, State.LEAVING},
    State.REGISTERING: {State.HELD, State.WANTED, State.LEAVING},
    State.HELD: {State.RELEASING},
    State.RELEASING: {State.LEAVING, State.WANTED},
    State.LEAVING: {State.UNREGISTERING},
    State.UNREGISTERING: set(),
}


@dataclass
class Seek:
    """A wish to read a partition from another place."""

    number: int  #: of the application's question; 0: nobody waits for its end
    offset: int  #: or EARLIEST, or LATEST
    checked: bool = False  #: it is not behind the end, or need not be compared with it


@dataclass
class Holding:
    """One partition, from the order to take it until its broker knows that it was given back."""

    partition: Partition
    state: State = State.WANTED
    due: float = 0.0  #: of WANTED: when it is tried (again)
    rounds: int = 0
    signed: bool = False  #: its newest registration had credentials
    unwanted: bool = False  #: given back as soon as its registration has an end
    bound_start: bool = False  #: it begins where a bound group says
    consumed: bool = False  #: its last pack was, and the broker does not know it yet
    since: float = 0.0
    why: str = ""  #: its newest registration failed
    kept: bool = False  #: it is this member's, and only read from another place: it is registered once more
    seek: Seek | None = None
    asked: Seek | None = None  #: the wish that the registration under way has

    @property
    def address(self) -> Address:
        """Return its broker's address."""
        return Address(self.partition.broker.host, self.partition.broker.port)


class Holdings:
    """All partitions of a member by their keys."""

    def __init__(self) -> None:
        self._all: dict[str, Holding] = {}

    def __len__(self) -> int:
        return len(self._all)

    def get(self, key: str) -> Holding | None:
        """Return a partition by its key."""
        return self._all.get(key)

    def want(self, partition: Partition, now: float) -> Holding:
        """Begin with a partition that is not there."""
        if partition.key in self._all:
            raise ValueError(f"{partition.key} is there already")
        holding = self._all[partition.key] = Holding(partition, due=now, since=now)
        return holding

    def enter(self, holding: Holding, state: State, now: float) -> None:
        """Change a partition's state.  Raises ValueError for a change that is not allowed."""
        if state not in _ALLOWED[holding.state] or self._all.get(holding.partition.key) is not holding:
            raise ValueError(f"{holding.partition.key} cannot become {state.value}: it is {holding.state.value}")
        holding.state = state
        holding.since = now

    def remove(self, holding: Holding) -> None:
        """Forget a partition, whatever its state."""
        del self._all[holding.partition.key]

    def within(self, *states: State) -> list[Holding]:
        """Return the partitions in these states, in the order they came."""
        return [one for one in self._all.values() if one.state in states]

    @property
    def reported(self) -> list[Partition]:
        """Return what a master is told that this member holds: whatever its broker may have it registered for."""
        told = (State.HELD, State.RELEASING, State.LEAVING, State.UNREGISTERING)
        return [one.partition for one in self._all.values() if one.state in told or one.kept]
