"""One run of a group on virtual time: consumers as they are, masters and brokers as models, and what goes wrong."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from dataproxy.consumer.group.holdings import State
from dataproxy.wire.tubemq.texts import Broker, Partition
from tests.simgroup.faults import Faults
from tests.simgroup.hosts import AnyBroker, BrokerHost, Host, Masters
from tests.simgroup.hubbroker import HubBrokerHost
from tests.simgroup.laws import LawError, Laws
from tests.simgroup.node import Node
from tests.simgroup.plan import Plan, S, make_plan

__all__ = ["LawError", "World", "play"]

_STEP_US: Final = S // 4  # between two looks at whether a run has come to rest
_MOST_EVENTS: Final = 200_000
_DRAINED_US: Final = 120 * S


class World:
    """Everything in one run; ``run`` plays it.  Times are in us.  ``hub``: master and brokers are the hub's own."""

    def __init__(self, plan: Plan, *, trace: bool = False, late: bool = False, hub: bool = False) -> None:
        self.plan, self.traced, self.late = plan, trace, late
        self.random = random.Random(plan.seed ^ 0x5EED)
        self.now = 1000 * S
        self._begin = self.now
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.trace: list[str] = []
        self.calm = plan.quiet
        #: What is wrong with the network, with answers and with drivers, until a time.
        self.loss, self.odd, self.lazy = 0.0, "", 0.0
        self._bodies = itertools.count(1)
        self.laws = Laws(self)
        brokers = [Broker(i + 1, "10.0.1.1", 8123 + i) for i in range(plan.brokers)]
        self.partitions = [
            Partition(one, topic, i) for one in brokers for topic, n in plan.topics.items() for i in range(n)
        ]
        self.brokers: list[AnyBroker] = [
            HubBrokerHost(one, self) if hub else BrokerHost(one, plan, self.laws) for one in brokers
        ]
        self.masters = Masters(plan, self.partitions, random.Random(plan.seed ^ 0x3A57), hub=hub)
        self.masters.model.lead(self.now / S)
        self.hosts: dict[str, Host] = {one.label: one for one in (*self.masters.hosts, *self.brokers)}
        self.nodes: list[Node] = []
        self.faults = Faults(self)

    # --- time

    def at(self, when: int, act: Callable[[], None]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), act))

    def note(self, text: str) -> None:
        """Keep a line of what happens."""
        if self.traced:
            self.trace.append(f"{(self.now - self._begin) / S:10.6f}  {text}")

    def latency(self) -> int:
        """Return how long a packet takes."""
        return self.random.randrange(100, 2000)

    def laziness(self) -> int:
        """Return how long a driver's thread takes to hear of an event."""
        if not self.lazy or self.random.random() < 0.5:
            return 0
        return self.random.randrange(int(self.lazy * S))

    def until(self, end: int) -> None:
        """Let time pass."""
        queue = self._queue
        while queue and queue[0][0] <= end:
            self.now, _, act = heapq.heappop(queue)
            if next(self._order) > _MOST_EVENTS:
                self.laws.broken("calm", "more happens than should")
            act()
        self.now = end

    # --- what happens

    def join(self) -> None:
        """Start a process with a consumer."""
        number = len(self.nodes)
        node = Node(self, f"g_{number}", self.plan.styles[number % len(self.plan.styles)])
        if self.calm and not self.plan.quiet:
            node.app.calm()
        self.nodes.append(node)
        self.note(f"{node.client} joins")
        node.work()

    def put(self, partition: Partition) -> None:
        """Send a message."""
        body = b"m%d" % next(self._bodies)
        items = self.plan.filters.get(partition.topic, ())
        item = self.random.choice(("", "a", "b", "c")) if items else ""
        if not items or item in items:
            self.laws.wanted[body] = (f"{partition.broker.host}:{partition.broker.port}", partition.topic, partition.id)
        self._broker(partition).put(partition.topic, partition.id, body, item)

    def rewind(self, partition: Partition) -> None:
        """Let the group begin a partition anew."""
        broker = self._broker(partition)
        assert isinstance(broker, HubBrokerHost)
        broker.rewind(partition)

    def _broker(self, partition: Partition) -> AnyBroker:
        return next(one for one in self.brokers if one.text.id == partition.broker.id)

    # --- a run

    def run(self) -> Counter[str]:
        """Play the plan, then let everything come to rest and end; return what was counted.  Raises LawError."""
        log = logging.getLogger("dataproxy.consumer")
        log.disabled, before = True, log.disabled
        try:
            settled = self._play()
        finally:
            log.disabled = before
            for host in self.brokers:
                host.end()
        return Counter(self.laws.counts) + Counter(
            runs=1, faults=self.plan.faults, messages=len(self.laws.wanted), settled_ms=settled // 1000
        )

    def _play(self) -> int:
        self._balance()
        for _ in range(self.plan.members):
            self.join()
        if self.plan.quiet:
            self._settle(self._after_a_join(), even=False)
            self._settle(2 * self._after_a_join(), even=True)
        start = self.now
        for action in self.plan.actions:
            self.at(start + action.at, lambda action=action: self.faults.act(action))  # type: ignore[misc]
        self.until(start + self.plan.span)
        if not self.plan.quiet:
            self.faults.end()
            self.note("calm")
        self.calm = True
        if not self._alive():
            self.join()
        settled = self._settle(self._quiet_bound() if self.plan.quiet else self.bound(), even=False)
        if self.plan.quiet:
            alone = {action.kind for action in self.plan.actions}
            self._settle((1 if "join" in alone else 2) * self._after_a_join(), even=True)
        else:
            self._settle(self.bound(), even=True)
        self._drain()
        self._obey()
        self._close()
        return settled

    def _balance(self) -> None:
        """Let the master look at its members, as it does in its period."""
        self.masters.model.tick(self.now / S)
        self.at(self.now + int(self.masters.period * S), self._balance)

    def _alive(self) -> list[Node]:
        return [one for one in self.nodes if one.alive and not one.leaves]

    def _after_a_join(self) -> float:
        """A period of the master's balance, two heartbeats and a second."""
        return (
            self.plan.times.balance
            + 2 * self.plan.times.heartbeat
            + 1.0
            + self.plan.names * 2
            + self.plan.times.release
        )

    def _quiet_bound(self) -> float:
        """As after a join; after a kill the limits of the servers come first."""
        times = self.plan.times
        killed = any(action.kind == "crash" for action in self.plan.actions)
        more = max(times.member_limit, times.lock_limit) + times.balance + times.heartbeat if killed else 0.0
        return self._after_a_join() + more

    def bound(self) -> float:
        """Return within which time, in s, all partitions are assigned again once nothing is wrong any more."""
        times = self.plan.times
        registered = times.slow + times.call + times.heartbeat
        forgotten = max(times.member_limit, times.lock_limit) + times.heartbeat
        return registered + forgotten + 2 * self._after_a_join()

    def _settle(self, bound: float, *, even: bool) -> int:
        begin = self.now
        while why := self._unsettled(even=even):
            if self.now > begin + int(bound * S):
                self.laws.broken("assigned", f"after {bound:.1f} s: {why}")
            self.until(self.now + _STEP_US)
        return self.now - begin

    def _unsettled(self, *, even: bool) -> str:
        """Return what lacks: each partition is read by one living member, which its broker knows."""
        readers: dict[str, str] = {}
        counts = []
        for node in self._alive():
            held = node.member.holdings.within(State.HELD)
            counts.append(len(held))
            readers.update({one.partition.key: node.client for one in held})
        if even and counts and max(counts) - min(counts) > 1:
            return f"partitions by member: {counts}"
        for host in self.brokers:
            for partition in self.partitions:
                if partition.broker.id == host.text.id:
                    owner = host.owner(partition, self.now)
                    if owner is None or readers.get(partition.key) != owner:
                        return f"{partition.key} is registered for {owner} and read by {readers.get(partition.key)}"
        return ""

    def _drain(self) -> None:
        for node in self.nodes:
            if node.alive:
                node.app.calm()
        for partition in self.partitions:
            self.put(partition)
        end = self.now + _DRAINED_US
        while self.now < end and self._left_over():
            self.until(self.now + _STEP_US)
        left = self._left_over()
        if left:
            self.laws.broken("seen", f"or confirmed are not, after {_DRAINED_US // S} s: {left}")

    def _obey(self) -> None:
        """Wait until all members follow the rules that the master has; a heartbeat brings them."""
        end = self.now + int((2 * self.plan.times.heartbeat + 1) * S)
        wanted = self.masters.rules[0].strip()
        while others := [
            one.client for one in self._alive() if one.is_member and one.member.rules.get("group", "").strip() != wanted
        ]:
            if self.now > end:
                self.laws.broken("rules", f"of {wanted!r} are not followed by {others}")
            self.until(self.now + _STEP_US)

    def _left_over(self) -> str:
        """Return what nobody has seen, or no broker knows to be confirmed."""
        missing = self.laws.wanted.keys() - self.laws.seen
        if missing:
            return f"{len(missing)} messages, {sorted(missing)[:5]}"
        for host in self.brokers:
            for topic, partitions in self.plan.topics.items():
                for number in range(partitions):
                    upto, end = host.confirmed(topic, number), host.end_of(topic, number)
                    if upto < end:
                        return f"{host.text.id}:{topic}:{number} is confirmed up to {upto} of {end}"
        return ""

    def _known(self, *, told: bool) -> list[str]:
        """Return the clients that have left and that the master knows; ``told``: those whose word a master has."""
        left = [one for one in self.nodes if one.leaves and (one.member.troubled is None) == told]
        return [one.client for one in left if one.client in self.masters.model.members]

    def _close(self) -> None:
        times = self.plan.times
        for node in self.nodes:
            if node.alive and not node.leaves:
                node.close()
        self.until(self.now + int((times.release + 2 * times.call + 1) * S))
        for node in self.nodes:
            if node.alive:
                self.laws.broken("gone", f"{node.client} was closed, and is {node.member.life.value}")
        self.laws.wishes_are_answered()
        known = self._known(told=True)
        if not known and self._known(told=False):  # no master answered when these left: they are missed
            self.until(self.now + int((times.member_limit + 1) * S))
            known = self._known(told=False)
        if known:
            self.laws.broken("gone", f"the master still knows {known}")
        for host in self.brokers:
            for partition in self.partitions:
                if partition.broker.id == host.text.id and host.owner(partition, self.now):
                    self.laws.broken(
                        "gone", f"{partition.key} is still registered for {host.owner(partition, self.now)}"
                    )


def play(seed: int, **more: Any) -> Counter[str]:
    """Play the run of a seed.  Raises LawError."""
    return World(make_plan(seed, hub=bool(more.get("hub"))), **more).run()
