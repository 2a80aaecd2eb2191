"""One run of a group on virtual time: faults drawn from a seed, then calm, then the laws."""

from __future__ import annotations

import heapq
import itertools
import random
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
    MemberOptions,
    Release,
    Reply,
)
from dataproxy.consumer.group.holdings import State
from dataproxy.consumer.group.member import Life, Member
from dataproxy.wire.tubemq.texts import Broker, Partition
from tests.simgroup.servers import BrokerModel, MasterModel

__all__ = ["LawError", "Run", "play"]

FAULTS_S, SETTLED_S, LEFT_S = 120.0, 240.0, 60.0
GROUP = "g"
HORIZON_S = 1000.0


class LawError(AssertionError):
    """A law does not hold; the text says which, and in which run."""


@dataclass
class Node:
    """A process with a member; what its reader reads is ``reading``."""

    member: Member
    client: str
    alive: bool = True
    polls_at: float = float("inf")
    seeks: set[int] = field(default_factory=set)  #: whose ends are waited for


class Run:
    """Masters, brokers and nodes, and the queue of what happens next."""

    def __init__(self, seed: int, *, faulty: bool = True) -> None:
        self.random = random.Random(seed)
        self.seed, self.faulty = seed, faulty
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
        self.master = MasterModel(self.partitions, GROUP, self.random)
        self.master.lead(0.0)
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
            self.master.tick(self.now)
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

    def join(self) -> None:
        """Start a process with a member."""
        client = f"{GROUP}_{len(self.nodes)}"
        options = MemberOptions(tuple(self.masters), client, GROUP, {"t": ()}, heartbeat_s=10.0)
        node = Node(Member(options, random.Random(self.random.random())), client)
        self.nodes.append(node)
        self.reading[client] = {}
        node.member.start(self.now)
        self._poll(node)

    def crash(self, node: Node) -> None:
        """End a process without a word."""
        node.alive = False
        self.reading[node.client].clear()

    def close(self, node: Node) -> None:
        """End a member in order."""
        node.member.close(self.now)
        self._poll(node)

    def leave(self) -> None:
        """Close a member, if others stay."""
        alive = [one for one in self.nodes if one.alive and one.member.life is Life.MEMBER]
        if len(alive) > 1:
            self.close(self.random.choice(alive))

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
        if not self.faulty:
            others = [one for one in self.nodes if one is not node and partition.key in self.reading[one.client]]
            self.law(not others, f"{partition.key} is given to {node.client} while {others} read it")
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
        return self.master.call(ask.name, request, self.now)

    def _answer(self, node: Node, number: int, answer: Any) -> None:
        if node.alive:
            node.member.answered(number, answer, self.now)
            self._poll(node)

    def _fail(self, node: Node, number: int, fault: Fault) -> None:
        if node.alive:
            node.member.failed(number, fault, self.now)
            self._poll(node)

    # --- faults and laws

    def hurt(self) -> None:
        """Draw one fault."""
        alive = [one for one in self.nodes if one.alive and one.member.life in (Life.JOINING, Life.MEMBER)]
        kind = self.random.choice(("join", "crash", "close", "leader", "masters", "broker", "loss", "calm", "seek"))
        if kind == "join" and len(alive) < 6:
            self.join()
        elif kind == "crash" and len(alive) > 1:
            self.crash(self.random.choice(alive))
        elif kind == "close" and len(alive) > 1:
            self.close(self.random.choice(alive))
        elif kind == "leader":
            self.leader = self.random.randrange(len(self.masters))
            self.master.lead(self.now)
        elif kind == "masters":
            self.leader = None
            self.at(self.now + self.random.uniform(1, 60), self._lead)
        elif kind == "broker":
            self.random.choice(list(self.brokers.values())).restart()
        elif kind == "seek":
            for _ in range(self.random.randint(1, 4)):
                self.at(self.now + self.random.uniform(0, 3), self.seek)
        elif kind == "loss":
            self.loss = self.random.choice((0.05, 0.3, 0.7))
        else:
            self.loss = 0.0

    def _lead(self) -> None:
        if self.leader is None:
            self.leader = self.random.randrange(len(self.masters))
            self.master.lead(self.now)

    def law(self, holds: bool, text: str) -> None:
        """Raise LawError if a law does not hold."""
        if not holds:
            raise LawError(f"seed {self.seed}, at {self.now:.3f} s: {text}")

    def check_settled(self) -> None:
        """All partitions are held, each by one living member, which its broker knows, and evenly."""
        counts = []
        for node in self.nodes:
            if node.alive:
                self.law(not node.seeks, f"{node.client} has not answered the seeks {node.seeks}")
                held = [one.partition for one in node.member.holdings.within(State.HELD)]
                counts.append(len(held))
                self.law(
                    {one.key for one in held} == set(self.reading[node.client]), f"{node.client} reads what it holds"
                )
                for one in held:
                    owner = self.brokers[Address(one.broker.host, one.broker.port)].owner(one, self.now)
                    self.law(owner == node.client, f"{one.key} is held by {node.client}, registered for {owner}")
        self.law(sum(counts) == len(self.partitions), f"{sum(counts)} of {len(self.partitions)} partitions are held")
        self.law(max(counts) - min(counts) <= 1, f"partitions by member: {counts}")

    def check_left(self) -> None:
        """Members that were closed are gone, and no broker has a registration."""
        self.law(not any(one.alive for one in self.nodes), "a member that was closed is not gone")
        self.law(not self.master.members, f"the master still knows {self.master.members}")
        left = [client for broker in self.brokers.values() for client in broker.owned()]
        self.law(not left, f"registrations are left: {left}")


def play(seed: int, *, faulty: bool = True) -> Run:
    """Play one run and check the laws.  Raises LawError."""
    run = Run(seed, faulty=faulty)
    if faulty:
        end = 0.0
        for _ in range(run.random.randint(1, 8)):
            end += run.random.uniform(0.1, FAULTS_S / 8)
            run.at(end, run.hurt)
        run.until(FAULTS_S)
        run.loss = 0.0
        run._lead()
    else:
        for when in sorted(run.random.uniform(0, 100) for _ in range(3)):
            run.at(when, run.random.choice((run.join, run.leave)))
            run.at(when + run.random.uniform(0, 10), run.seek)
    run.until(run.now + SETTLED_S)
    run.check_settled()
    for node in run.nodes:
        if node.alive:
            run.close(node)
    run.until(run.now + LEFT_S)
    run.check_left()
    return run
