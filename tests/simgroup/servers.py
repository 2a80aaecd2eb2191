"""A master of TubeMQ, and registrations at a broker, as models written from the protocol's description.

Time is an argument.

A master divides partitions as the real one does: contiguous blocks first, then what nobody holds at random, then
surplus from those above the bound to those below; it takes before it gives, sends an event once, believes reports.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Partition, Subscription

__all__ = ["Bound", "ChoiceModel", "Locks", "MasterModel"]

MEMBER_LIMIT_S, LOCK_LIMIT_S, BALANCE_S = 30.0, 35.0, 5.0
CYCLES_OF_AN_EVENT = 10
BOUND_ROUNDS = 2  # assignments of a bound group that heed who named a partition


@dataclass(frozen=True)
class Bound:
    """A group that begins at offsets which its members name, once all of them are there."""

    members: int
    larger_wins: bool


@dataclass
class _Record:
    """What a master knows of a member."""

    client: str
    alive_until: float
    held: set[Partition] = field(default_factory=set)
    named: dict[str, int] = field(default_factory=dict)  # offsets by the keys of partitions, in a bound group
    events: list[Any] = field(default_factory=list)  # the first may be under way
    out: bool = False  # the first was sent
    skipped: int = 0


class MasterModel:
    """The leader of the masters: runtime state of one group, lost when another one leads."""

    def __init__(
        self, partitions: list[Partition], group: str, source: random.Random, *, bound: Bound | None = None,
        member_limit_s: float = MEMBER_LIMIT_S, balance_s: float = BALANCE_S, event_cycles: int = CYCLES_OF_AN_EVENT,
    ) -> None:  # fmt: skip
        self._partitions, self._group, self._random, self._bound = partitions, group, source, bound
        self._member_limit_s, self._balance_s, self._event_cycles = member_limit_s, balance_s, event_cycles
        self.offline: set[int] = set()  #: brokers (ids) whose partitions nobody gets
        self._members: dict[str, _Record] = {}
        self._allocated = False
        self._bound_rounds = 0
        self._number = 0
        self._next_balance = 0.0

    @property
    def members(self) -> list[str]:
        """Return who is registered."""
        return list(self._members)

    def lead(self, now: float) -> None:
        """Begin to lead: nothing is known, and the first balance waits."""
        self._members.clear()
        self._allocated = False
        self._bound_rounds = 0
        self._next_balance = now + self._balance_s

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        self._expire(now)
        known = self._members.get(request.clientId)
        if name == "RegisterRequestC2M":
            return self._register(request, now)
        if name == "CloseRequestC2M":
            self._members.pop(request.clientId, None)
            return messages.CloseResponseM2C(success=True, errCode=200, errMsg="OK!")
        if known is None:
            text = f"Not found groupName {self._group} in holder!"
            return messages.HeartResponseM2C(success=False, errCode=411, errMsg=text)
        known.alive_until = now + self._member_limit_s
        if request.HasField("event") and request.event.rebalanceId > 0:
            if known.events:
                known.events.pop(0)
                known.out = False
            self._allocated = True
        if request.reportSubscribeInfo:
            known.held = {Subscription.read(text).partition for text in request.subscribeInfo}
        answer = messages.HeartResponseM2C(success=True, errCode=200, errMsg="OK!", notAllocated=not self._allocated)
        event = self._event_for(known)
        if event is not None:
            answer.event.CopyFrom(event)
        return answer

    def _register(self, request: Any, now: float) -> Any:
        held = {Subscription.read(text).partition for text in request.subscribeInfo}
        record = _Record(request.clientId, now + self._member_limit_s, held)
        if self._bound is not None and request.requiredPartition:
            pairs = (text.split("=") for text in request.requiredPartition.split(","))
            record.named = {key.strip(): int(offset) for key, offset in pairs}
        if held or (request.HasField("notAllocated") and not request.notAllocated):
            self._allocated = True  # at another master, or before the group was forgotten
        self._members[request.clientId] = record
        return messages.RegisterResponseM2C(success=True, errCode=200, errMsg="OK!", notAllocated=not self._allocated)

    def _event_for(self, member: _Record) -> Any:
        if not member.events or member.out:
            return None
        takes = any(one.events and one.events[0].opType in (2, 20) for one in self._members.values())
        if takes and member.events[0].opType not in (2, 20):
            return None
        member.out = True
        return member.events[0]

    def _expire(self, now: float) -> None:
        for client in [one.client for one in self._members.values() if one.alive_until < now]:
            del self._members[client]
        if now >= self._next_balance:
            self._next_balance = now + self._balance_s
            self._balance()

    def tick(self, now: float) -> None:
        """Let time pass."""
        self._expire(now)

    def _balance(self) -> None:
        members = sorted(self._members.values(), key=lambda one: one.client)
        if not members or (self._bound is not None and len(members) < self._bound.members):
            return
        if any(one.events for one in members):
            for one in members:
                one.skipped += 1
                if one.skipped > self._event_cycles:
                    one.events.clear()
                    one.out, one.skipped = False, 0
            return
        target = self._target(members)
        self._number += 1
        for one in members:
            wanted, one.skipped = target[one.client], 0
            taken, given = one.held - wanted, wanted - one.held
            both = bool(taken and given)
            if taken:
                one.events.append(self._event(2 if both else 20, one.client, taken))
            if given:
                one.events.append(self._event(1 if both else 10, one.client, given))

    def _target(self, members: list[_Record]) -> dict[str, set[Partition]]:
        there = (one for one in self._partitions if one.broker.id not in self.offline)
        everything = sorted(there, key=lambda one: (one.topic, one.broker.id, one.id))
        if self._bound is not None and not self._allocated and self._bound_rounds < BOUND_ROUNDS:
            self._bound_rounds += 1
            return self._as_named(members, everything)
        if not any(one.held for one in members):
            return self._blocks(members, everything)
        base, extra = divmod(len(everything), len(members))
        seen: set[Partition] = set()
        target: dict[str, set[Partition]] = {}
        for one in members:
            target[one.client] = {held for held in one.held if held in set(everything)} - seen
            seen |= target[one.client]
        free = [one for one in everything if one not in seen]
        for partition in free:
            target[self._random.choice(members).client].add(partition)
        if not free:
            self._even(target, base, extra)
        return target

    @staticmethod
    def _blocks(members: list[_Record], everything: list[Partition]) -> dict[str, set[Partition]]:
        """Divide each topic by itself into contiguous blocks, in the order of the members' ids."""
        target: dict[str, set[Partition]] = {one.client: set() for one in members}
        for _, partitions in groupby(everything, key=lambda one: one.topic):
            left = list(partitions)
            base, extra = divmod(len(left), len(members))
            blocks = iter(left)
            for i, one in enumerate(members):
                target[one.client] |= {next(blocks) for _ in range(base + (i < extra))}
        return target

    def _as_named(self, members: list[_Record], everything: list[Partition]) -> dict[str, set[Partition]]:
        """Give each partition to who named it; of several, the offsets decide; what nobody named goes anywhere."""
        assert self._bound is not None
        target: dict[str, set[Partition]] = {one.client: set() for one in members}
        in_order = list(self._members.values())  # as they registered: the later one wins a tie for the larger offset
        for partition in everything:
            naming = [one for one in in_order if partition.key in one.named]
            if not naming:
                target[self._random.choice(members).client].add(partition)
                continue
            winner = naming[0]
            for one in naming[1:]:
                before, after = winner.named[partition.key], one.named[partition.key]
                if after >= before if self._bound.larger_wins else after < before:
                    winner = one
            target[winner.client].add(partition)
        return target

    @staticmethod
    def _even(target: dict[str, set[Partition]], base: int, extra: int) -> None:
        most = base + (extra > 0)
        surplus = []

        def taken(held: set[Partition]) -> Partition:
            one = max(held)  # a set's own order changes from process to process, and a seed has to play the same run
            held.remove(one)
            return one

        for held in target.values():
            while len(held) > most:
                surplus.append(taken(held))
        for held in target.values():
            while len(held) < base and (surplus or max(target.values(), key=len)):
                if not surplus:
                    surplus.append(taken(max(target.values(), key=len)))
                held.add(surplus.pop())
        for held in target.values():
            if surplus and len(held) < most:
                held.add(surplus.pop())

    def _event(self, kind: int, client: str, partitions: set[Partition]) -> Any:
        self._number += 1
        texts = [str(Subscription(client, self._group, one)) for one in sorted(partitions)]
        return messages.EventProto(rebalanceId=self._number, opType=kind, status=0, subscribeInfo=texts)


@dataclass
class _Chooser:
    """What a master knows of a member that chooses its partitions itself."""

    node: int
    alive_until: float
    held: tuple[str, ...] = ()  # texts of its report


class ChoiceModel:
    """The master of a group whose members choose: it counts them, and says what brokers and topics there are.

    ``topics``: texts with all that there is of each; ``version`` is that of both lists, and changes with them.
    """

    def __init__(
        self, brokers: list[Broker], topics: list[str], members: int, *, member_limit_s: float = MEMBER_LIMIT_S
    ) -> None:
        self.brokers, self.topics, self.count = brokers, topics, members
        self.version = 1
        self._member_limit_s = member_limit_s
        self._members: dict[str, _Chooser] = {}

    @property
    def members(self) -> list[str]:
        """Return who is registered."""
        return list(self._members)

    def held(self, client: str) -> tuple[str, ...]:
        """Return what a member has reported."""
        return self._members[client].held

    def forget(self) -> None:
        """Forget all members, as a master does that begins to lead."""
        self._members.clear()

    def tick(self, now: float) -> None:
        """Let time pass."""
        for client in [one for one, member in self._members.items() if member.alive_until < now]:
            del self._members[client]

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        self.tick(now)
        kind = {
            "RegisterRequestC2MV2": messages.RegisterResponseM2CV2, "HeartRequestC2MV2": messages.HeartResponseM2CV2,
            "GetPartMetaRequestC2M": messages.GetPartMetaResponseM2C,
        }[name]  # fmt: skip
        if name == "RegisterRequestC2MV2":
            for client, member in self._members.items():
                if member.node == request.nodeId and client != request.clientId:
                    return kind(errCode=430, errMsg=f"Found duplicated nodeId {request.nodeId} of {client}")
            self._members[request.clientId] = _Chooser(request.nodeId, 0.0)
        known = self._members.get(request.clientId)
        if known is None:
            return kind(errCode=411, errMsg=f"Not found consumer {request.clientId}")
        answer = kind(errCode=200, errMsg="OK!")
        seen = request
        if name != "GetPartMetaRequestC2M":  # which does not show that a member lives
            known.alive_until = now + self._member_limit_s
            seen = request.subRepInfo
            if seen.reportSubInfo:
                known.held = tuple(seen.partSubInfo)
        answer.brokerConfigId = self.version
        if seen.brokerConfigId != self.version:
            answer.brokerConfigList.extend(map(str, self.brokers))
        if name != "RegisterRequestC2MV2":
            answer.topicMetaInfoId = self.version
            if seen.topicMetaInfoId != self.version:
                answer.topicMetaInfoList.extend(self.topics)
        return answer

    def leave(self, client: str) -> None:
        """End a member."""
        self._members.pop(client, None)


class Locks:
    """Which client has registered what, and until when; a key is whatever a broker tells registrations apart by."""

    def __init__(self, limit_s: float = LOCK_LIMIT_S) -> None:
        self._limit_s = limit_s
        self._held: dict[Hashable, tuple[str, float]] = {}

    def owner(self, key: Hashable, now: float) -> str | None:
        """Return who has it."""
        client, until = self._held.get(key, ("", 0.0))
        return client if client and until >= now else None

    def owners(self) -> list[str]:
        """Return the client of each registration, also of those whose time is over."""
        return [client for client, _ in self._held.values()]

    def use(self, key: Hashable, client: str, now: float) -> int:
        """Return 200 and begin the time anew if a client has it, 411 if nobody has it, 412 if another one has."""
        owner = self.owner(key, now)
        if owner is None:
            return 411
        if owner != client:
            return 412
        self._held[key] = (client, now + self._limit_s)
        return 200

    def take(self, key: Hashable, client: str, now: float) -> bool:
        """Register a client; False if another one has it.

        An owner whose time is over is removed by such a call, which fails all the same: the next one gets it.
        """
        owner, until = self._held.get(key, (client, now))
        if owner != client:
            if until < now:
                del self._held[key]
            return False
        self._held[key] = (client, now + self._limit_s)
        return True

    def leave(self, key: Hashable, client: str, now: float) -> int:
        """Return 200 and end a client's registration, or what ``use`` says of one that has none."""
        code = self.use(key, client, now)
        if code == 200:
            del self._held[key]
        return code

    def clear(self) -> None:
        """Forget all registrations."""
        self._held.clear()
