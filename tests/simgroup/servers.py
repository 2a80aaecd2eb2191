"""Masters and brokers of TubeMQ as models, written from the protocol's description; time is an argument.

A master divides partitions as the real one does: contiguous blocks first, then what nobody holds at random, then
surplus from those above the bound to those below; it takes before it gives, sends an event once, believes reports.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Failure, Partition, Subscription

__all__ = ["BrokerModel", "MasterModel", "StandbyError"]

MEMBER_LIMIT_S, LOCK_LIMIT_S, BALANCE_S = 30.0, 35.0, 5.0
CYCLES_OF_AN_EVENT = 10


class StandbyError(Exception):
    """This master is not the leader."""


@dataclass
class _Record:
    """What a master knows of a member."""

    client: str
    alive_until: float
    held: set[Partition] = field(default_factory=set)
    events: list[Any] = field(default_factory=list)  # the first may be under way
    out: bool = False  # the first was sent
    skipped: int = 0


class MasterModel:
    """The leader of the masters: runtime state of one group, lost when another one leads."""

    def __init__(self, partitions: list[Partition], group: str, source: random.Random) -> None:
        self._partitions, self._group, self._random = partitions, group, source
        self._members: dict[str, _Record] = {}
        self._allocated = False
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
        self._next_balance = now + BALANCE_S

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        self._expire(now)
        known = self._members.get(request.clientId)
        if name == "RegisterRequestC2M":
            held = {Subscription.read(text).partition for text in request.subscribeInfo}
            self._members[request.clientId] = _Record(request.clientId, now + MEMBER_LIMIT_S, held)
            return messages.RegisterResponseM2C(
                success=True, errCode=200, errMsg="OK!", notAllocated=not self._allocated
            )
        if name == "CloseRequestC2M":
            self._members.pop(request.clientId, None)
            return messages.CloseResponseM2C(success=True, errCode=200, errMsg="OK!")
        if known is None:
            return messages.HeartResponseM2C(success=False, errCode=411, errMsg="Not found groupName in holder!")
        known.alive_until = now + MEMBER_LIMIT_S
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
            self._next_balance = now + BALANCE_S
            self._balance()

    def tick(self, now: float) -> None:
        """Let time pass."""
        self._expire(now)

    def _balance(self) -> None:
        members = sorted(self._members.values(), key=lambda one: one.client)
        if not members:
            return
        if any(one.events for one in members):
            for one in members:
                one.skipped += 1
                if one.skipped > CYCLES_OF_AN_EVENT:
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
        everything = sorted(self._partitions, key=lambda one: (one.broker.id, one.topic, one.id))
        base, extra = divmod(len(everything), len(members))
        if not any(one.held for one in members):
            blocks = iter(everything)
            return {one.client: {next(blocks) for _ in range(base + (i < extra))} for i, one in enumerate(members)}
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
    def _even(target: dict[str, set[Partition]], base: int, extra: int) -> None:
        most = base + (extra > 0)
        surplus = []
        for held in target.values():
            while len(held) > most:
                surplus.append(held.pop())
        for held in target.values():
            while len(held) < base and (surplus or max(target.values(), key=len)):
                if not surplus:
                    surplus.append(max(target.values(), key=len).pop())
                held.add(surplus.pop())
        for held in target.values():
            if surplus and len(held) < most:
                held.add(surplus.pop())

    def _event(self, kind: int, client: str, partitions: set[Partition]) -> Any:
        self._number += 1
        texts = [str(Subscription(client, self._group, one)) for one in sorted(partitions)]
        return messages.EventProto(rebalanceId=self._number, opType=kind, status=0, subscribeInfo=texts)


class BrokerModel:
    """One broker: who has registered which partition."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._locks: dict[tuple[str, int], tuple[str, float]] = {}

    def restart(self) -> None:
        """Forget all registrations."""
        self._locks.clear()

    def owner(self, partition: Partition, now: float) -> str | None:
        """Return who has a partition."""
        client, until = self._locks.get((partition.topic, partition.id), ("", 0.0))
        return client if client and until >= now else None

    def owned(self) -> Iterator[str]:
        """Yield the owner of each registration."""
        return iter([client for client, _ in self._locks.values()])

    def get(self, client: str, partition: Partition, now: float) -> int:
        """Answer a request for a pack."""
        owner = self.owner(partition, now)
        if owner is None:
            return 411
        if owner != client:
            return 412
        self._locks[partition.topic, partition.id] = (client, now + LOCK_LIMIT_S)
        return 200

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        if name == "HeartBeatRequestC2B":
            failed = []
            for text in request.partitionInfo:
                partition = Partition.read(text)
                code = self.get(request.clientId, partition, now)
                if code != 200:
                    failed.append(str(Failure(code, partition)))
            return messages.HeartBeatResponseB2C(
                success=True, errCode=200, errMsg="OK!", hasPartFailure=bool(failed), failureInfo=failed
            )
        key = (request.topicName, request.partitionId)
        client, until = self._locks.get(key, (request.clientId, now))
        if request.opType == 32:
            code = 200 if self._locks.get(key, ("",))[0] == request.clientId else 411
            if code == 200:
                del self._locks[key]
            return messages.RegisterResponseB2C(success=code == 200, errCode=code, errMsg="", currOffset=-1)
        if client != request.clientId:
            if until < now:
                del self._locks[key]  # and this call answers as if it were there: the next one gets it
            return messages.RegisterResponseB2C(
                success=False, errCode=410, errMsg="[Duplicated Register]", currOffset=-1
            )
        self._locks[key] = (client, now + LOCK_LIMIT_S)
        return messages.RegisterResponseB2C(success=True, errCode=200, errMsg="OK!", currOffset=0, maxOffset=0)
