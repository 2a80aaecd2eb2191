"""A run of members without readers on virtual time: what every member needs around it; `play` has the rest."""

from __future__ import annotations

import heapq
import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dataproxy.consumer.group.asking import (
    EARLIEST,
    LATEST,
    Address,
    Ask,
    Drop,
    Fault,
    Hold,
    Release,
    Reply,
)
from dataproxy.consumer.group.holdings import State
from dataproxy.consumer.group.membership import Life, Membership
from dataproxy.wire.tubemq.texts import Broker, Partition
from tests.simchosen.broker import BrokerModel

__all__ = ["FAULTS_S", "GROUP", "LEFT_S", "SETTLED_S", "LawError", "Node", "Run"]

FAULTS_S, SETTLED_S, LEFT_S = 120.0, 240.0, 60.0
GROUP = "g"


class LawError(AssertionError):
    """A law does not hold; the text says which, and in which run."""


@dataclass
class Node:
    """A process with a member; what its reader reads is ``reading``."""

    member: Membership
    client: str
    alive: bool = True
    polls_at: float = float("inf")
    seeks: set[int] = field(default_factory=set)  #: whose ends are waited for


class Run(ABC):
    """Masters, brokers and nodes, and the queue of what happens next."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.loss = 0.0
        self.masters = [Address("10.0.0.1", 8715 + i) for i in range(self.random.randint(1, 3))]
        self.leader: int | None = 0
        n_brokers, n_parts = self.random.randint(1, 3), self.random.randint(1, 6)
        brokers = [Broker(i + 1, "10.0.1.1", 8123 + i) for i in range(n_brokers)]
        self.partitions = [Partition(broker, "t", i) for broker in brokers for i in range(n_parts)]
        self.brokers = {Address(one.host, one.port): BrokerModel(one) for one in brokers}
        self.nodes: list[Node] = []
        self.reading: dict[str, dict[str, Partition]] = {}
        self.holds = self.calls = self.sought = 0
        for _ in range(self.random.randint(1, 4)):
            self.join()

    # --- time

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), act))

    def until(self, end: float) -> None:
        """Let time pass."""
        while True:
            when, node = self._next_poll()
            if self._queue and self._queue[0][0] <= when:
                when, node = self._queue[0][0], None
            if when > end:
                break
            self.now = max(when, self.now)
            if node is not None:
                self._poll(node)
            else:
                heapq.heappop(self._queue)[2]()
        self.now = end

    def _next_poll(self) -> tuple[float, Node | None]:
        alive = [one for one in self.nodes if one.alive]
        if not alive:
            return float("inf"), None
        node = min(alive, key=lambda one: one.member.due())
        return node.member.due(), node

    # --- nodes

    @abstractmethod
    def join(self) -> None:
        """Start a process with a member."""

    def crash(self, node: Node) -> None:
        """End a process without a word."""
        node.alive = False
        self.reading[node.client].clear()

    def close(self, node: Node) -> None:
        """End a member in order."""
        node.member.close(self.now)
        self._poll(node)

    def seek(self) -> None:
        """Let a member read a partition that it holds, or has held, from another place."""
        alive = [one for one in self.nodes if one.alive]
        if not alive:
            return
        node, self.sought = self.random.choice(alive), self.sought + 1
        key = self.random.choice(self.partitions).key
        held = [one.partition.key for one in node.member.holdings.within(State.HELD)]
        if held and self.random.random() < 0.8:
            key = self.random.choice(held)
        node.seeks.add(self.sought)
        node.member.seek(key, self.random.choice((EARLIEST, LATEST, 28)), self.sought, self.now)
        self._poll(node)

    def _poll(self, node: Node) -> None:
        if not node.alive:
            return
        for one in node.member.poll(self.now, int(self.now * 1000)):
            if isinstance(one, Ask):
                self._send(node, one)
            elif isinstance(one, Hold):
                self._hold(node, one.partition)
            elif isinstance(one, Release):
                wait = self.random.uniform(0, 5) if self.random.random() < 0.5 else 0.0
                end = min(self.now + wait, one.until)
                self.at(end, lambda key=one.partition.key: self._released(node, key))  # type: ignore[misc]
            elif isinstance(one, Drop):
                self.reading[node.client].pop(one.partition.key, None)
            elif isinstance(one, Reply):
                self.law(one.number in node.seeks, f"{node.client} answers the seek {one.number} twice")
                node.seeks.discard(one.number)
        if node.member.life is Life.GONE:
            node.alive = False

    def _hold(self, node: Node, partition: Partition) -> None:
        self.holds += 1
        self.reading[node.client][partition.key] = partition
        self.at(self.now + 1, lambda: self._read(node, partition))

    def _released(self, node: Node, key: str) -> None:
        self.reading[node.client].pop(key, None)
        if node.alive:
            node.member.released(key, self.random.random() < 0.5, self.now)
            self._poll(node)

    def _read(self, node: Node, partition: Partition) -> None:
        if not node.alive or partition.key not in self.reading[node.client]:
            return
        code = self.brokers[Address(partition.broker.host, partition.broker.port)].get(node.client, partition, self.now)
        if code == 200:
            self.at(self.now + 1, lambda: self._read(node, partition))
            return
        self.reading[node.client].pop(partition.key, None)
        node.member.lost(partition.key, code, self.now)
        self._poll(node)

    # --- network

    def _send(self, node: Node, ask: Ask) -> None:
        self.calls += 1
        most = 2 * (self.now + 60) * len(self.nodes) + 200 * len(self.partitions)
        self.law(self.calls <= most, f"{self.calls} calls are more than a group makes")
        lost_before, lost_after = (self.random.random() < self.loss for _ in range(2))
        delay = self.random.uniform(0.0001, 0.002) if self.random.random() < 0.9 else self.random.uniform(0.1, 8)
        if lost_before:
            self.at(self.now + ask.timeout_s, lambda: self._fail(node, ask.number, Fault("no answer in time")))
        else:
            self.at(self.now + delay / 2, lambda: self._arrive(node, ask, delay / 2, lost_after))

    def _arrive(self, node: Node, ask: Ask, delay: float, lost: bool) -> None:
        request = type(ask.message).FromString(ask.message.SerializeToString())  # what is required is there
        try:
            answer = self._serve(ask, request)
        except ConnectionError as error:
            self.at(self.now + delay, lambda error=error: self._fail(node, ask.number, Fault(str(error))))  # type: ignore[misc]
            return
        if isinstance(answer, Fault):
            self.at(self.now + delay, lambda: self._fail(node, ask.number, answer))
        elif lost:
            self.at(self.now + ask.timeout_s, lambda: self._fail(node, ask.number, Fault("no answer in time")))
        else:
            self.at(self.now + delay, lambda: self._answer(node, ask.number, answer))

    def _serve(self, ask: Ask, request: Any) -> Any:
        broker = self.brokers.get(ask.address)
        if broker is not None:
            return broker.call(ask.name, request, self.now)
        if self.leader is None:
            raise ConnectionError("refused")
        if self.masters.index(ask.address) != self.leader:
            return Fault("is not master now", "StandbyException")
        return self._lead_call(ask, request)

    @abstractmethod
    def _lead_call(self, ask: Ask, request: Any) -> Any:
        """Return the answer of the leader of the masters."""

    def _answer(self, node: Node, number: int, answer: Any) -> None:
        if node.alive:
            node.member.answered(number, answer, self.now)
            self._poll(node)

    def _fail(self, node: Node, number: int, fault: Fault) -> None:
        if node.alive:
            node.member.failed(number, fault, self.now)
            self._poll(node)

    # --- faults and laws

    def law(self, holds: bool, text: str) -> None:
        """Raise LawError if a law does not hold."""
        if not holds:
            raise LawError(f"seed {self.seed}, at {self.now:.3f} s: {text}")
