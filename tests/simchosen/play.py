"""Runs of a group whose members choose, on virtual time: faults drawn from a seed, then calm, then the laws.

Members change their choices while masters change, brokers restart and calls are lost; one that crashes comes back with
its number, which the master refuses until it misses the old one's heartbeats.
"""

from __future__ import annotations

import random
from typing import Any

from dataproxy.consumer.group.asking import EARLIEST, LATEST, Address, Ask, MemberOptions
from dataproxy.consumer.group.chooser import Chooser
from dataproxy.consumer.group.holdings import State
from dataproxy.consumer.group.membership import Life
from dataproxy.wire.tubemq import messages
from tests.simchosen.run import FAULTS_S, GROUP, LEFT_S, SETTLED_S, Node, Run
from tests.simgroup.servers import ChoiceModel

__all__ = ["ChosenRun", "play_chosen"]


class ChosenRun(Run):
    """Masters, brokers and members that choose; each partition is chosen by at most one of them in the end."""

    def __init__(self, seed: int) -> None:
        self.count = 0
        self.wishes: dict[str, set[str]] = {}  # what each client chose last
        self.places: dict[str, int] = {}  # which member each client is
        super().__init__(seed)
        texts = [f"t#{','.join(f'{one.broker.id}:1:{self._parts}:1' for one in self.brokers.values())}"]
        self.choice = ChoiceModel([one.broker for one in self.brokers.values()], texts, self.count)

    @property
    def _parts(self) -> int:
        return 1 + max(one.id for one in self.partitions)

    def join(self) -> None:
        """Start a process with the next number."""
        self._begin(self.count)
        self.count += 1

    def _begin(self, place: int) -> None:
        client = f"{GROUP}_{len(self.nodes)}"
        options = MemberOptions(
            tuple(self.masters), client, GROUP, {"t": ()}, heartbeat_s=10.0, members=6, node=place, register_rounds=2
        )
        node = Node(Chooser(options, random.Random(self.random.random())), client)
        self.nodes.append(node)
        self.reading[client] = {}
        self.wishes[client] = set()
        self.places[client] = place
        node.member.start(self.now)
        self._poll(node)

    def choose(self, node: Node, keys: set[str]) -> None:
        """Let a member choose, as often as it takes until it knows what there is."""
        member = node.member
        if not node.alive or not isinstance(member, Chooser):
            return
        if member._known is None:
            self.at(self.now + 5, lambda: self.choose(node, keys))
            return
        self.sought += 1
        node.seeks.add(self.sought)
        self.wishes[node.client] = keys
        places = (None, None, None, EARLIEST, LATEST, 28)
        member.assign({key: self.random.choice(places) for key in sorted(keys)}, self.sought, self.now)
        self._poll(node)

    def _lead_call(self, ask: Ask, request: Any) -> Any:
        if ask.name == "CloseRequestC2M":
            self.choice.leave(request.clientId)
            return messages.CloseResponseM2C(success=True, errCode=200, errMsg="OK!")
        return self.choice.call(ask.name, request, self.now)

    def hurt(self) -> None:
        """Draw one fault, or a new choice."""
        kind = self.random.choice(("choose", "choose", "crash", "leader", "masters", "broker", "loss", "calm", "seek"))
        alive = [one for one in self.nodes if one.alive]
        if kind == "choose":
            keys = [one.key for one in self.partitions]
            node = self.random.choice(alive)
            self.choose(node, set(self.random.sample(keys, self.random.randint(0, len(keys)))))
        elif kind == "crash":
            node = self.random.choice(alive)
            self.crash(node)
            self._begin(self.places[node.client])
        elif kind == "leader":
            self.leader = self.random.randrange(len(self.masters))
            self.choice.forget()
        elif kind == "masters":
            self.leader = None
            self.at(self.now + self.random.uniform(1, 60), self._lead)
        elif kind == "broker":
            self.random.choice(list(self.brokers.values())).restart()
        elif kind == "seek":
            self.seek()
        else:
            self.loss = self.random.choice((0.05, 0.3, 0.7)) if kind == "loss" else 0.0

    def _lead(self) -> None:
        if self.leader is None:
            self.leader = self.random.randrange(len(self.masters))
            self.choice.forget()

    def divide(self) -> None:
        """Let the living members choose all partitions, each one of them once."""
        alive = [one for one in self.nodes if one.alive]
        shares: list[set[str]] = [set() for _ in alive]
        for partition in self.partitions:
            self.random.choice(shares).add(partition.key)
        for node, share in zip(alive, shares, strict=True):
            self.choose(node, share)

    def check_settled(self) -> None:
        """Each member holds what it chose, its broker knows that, and the master has been told."""
        for node in self.nodes:
            if not node.alive:
                continue
            self.law(node.member.life is Life.MEMBER, f"{node.client} is {node.member.life.value}")
            self.law(node.client in self.choice.members, f"the master does not know {node.client}")
            self.law(not node.seeks, f"{node.client} has not answered {node.seeks}")
            held = {one.partition.key: one.partition for one in node.member.holdings.within(*State)}
            states = {one.state for one in node.member.holdings.within(*State)}
            wanted = self.wishes[node.client]
            self.law(set(held) == wanted, f"{node.client} has {sorted(held)}, and chose {sorted(wanted)}")
            self.law(states <= {State.HELD}, f"{node.client} has partitions that are {states}")
            self.law(set(self.reading[node.client]) == wanted, f"{node.client} reads {self.reading[node.client]}")
            for one in held.values():
                owner = self.brokers[Address(one.broker.host, one.broker.port)].owner(one, self.now)
                self.law(owner == node.client, f"{one.key} is held by {node.client}, registered for {owner}")
            told = {
                f"{part.partition(':')[0]}:t:{part.partition(':')[2]}"
                for text in self.choice.held(node.client)
                for part in text.partition("#")[2].split(",")
                if part
            }
            self.law(told == wanted, f"{node.client} has told the master {sorted(told)}, and holds {sorted(wanted)}")

    def check_left(self) -> None:
        """Members that were closed are gone, and no broker has a registration."""
        self.law(not any(one.alive for one in self.nodes), "a member that was closed is not gone")
        self.law(not self.choice.members, f"the master still knows {self.choice.members}")
        left = [client for broker in self.brokers.values() for client in broker.owned()]
        self.law(not left, f"registrations are left: {left}")


def play_chosen(seed: int) -> ChosenRun:
    """Play one run and check the laws.  Raises LawError."""
    run = ChosenRun(seed)
    end = 0.0
    for _ in range(run.random.randint(1, 12)):
        end += run.random.uniform(0.1, FAULTS_S / 12)
        run.at(end, run.hurt)
    run.until(FAULTS_S)
    run.loss = 0.0
    run._lead()
    run.until(run.now + 60)  # numbers of members that crashed are free again
    run.divide()
    run.until(run.now + 60)
    run.random.choice(list(run.brokers.values())).restart()  # what is lost is taken again, without a new choice
    run.until(run.now + SETTLED_S)
    run.check_settled()
    for node in run.nodes:
        if node.alive:
            run.close(node)
    run.until(run.now + LEFT_S)
    run.check_left()
    return run
