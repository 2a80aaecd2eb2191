"""The laws of a simulated run; docs/reliability.md has them.

Each text names the law first: *owner*, *back*, *lost*, *state*, *order*, *pause*, *seen*, *again*, *passed*, *tally*,
*assigned*, *rules*, *gone*, *calm*, *error*, *sought*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dataproxy.consumer.group.holdings import State

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dataproxy.consumer.group.asking import Reply
    from tests.simgroup.app import Out
    from tests.simgroup.hosts import AnyBroker, BrokerHost
    from tests.simgroup.node import Node
    from tests.simgroup.world import World

__all__ = ["LawError", "Laws"]

_READ = (State.HELD, State.RELEASING)


class LawError(AssertionError):
    """A law does not hold; the text says which, in which run, and when."""


class Laws:
    """What must hold, and what has to be known to tell."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.wanted: dict[bytes, tuple[str, str, int]] = {}  #: messages -> (broker, topic, partition)
        self.seen: set[bytes] = set()
        self._asked: set[bytes] = set()  # whose confirm an application asked for
        self._confirmed: set[bytes] = set()  # of which an application was told so
        self._owners: dict[str, str] = {}  # by the word of brokers
        self._sought: set[str] = set()  # partitions whose messages may come again: somebody wished it
        self._wishes: list[tuple[Node, str, Future[Reply]]] = []
        self._ended: set[tuple[str, str]] = set()  # (client, partition): a broker gave it to another one unasked
        self.counts = {"confirmed": 0, "rolled_back": 0, "expired": 0, "again": 0, "assigned": 0}

    def broken(self, law: str, text: str) -> NoReturn:
        """Raise LawError."""
        raise LawError(f"seed {self._world.plan.seed} at {self._world.now}us: {law} {text}")

    # --- what brokers do

    def granted(self, key: str, client: str) -> None:
        """Take a registration: who had the partition before has given it back, or was silent for too long."""
        before = self._owners.get(key)
        if before is not None and before != client:
            self._ended.add((before, key))
        self._owners[key] = client
        self._ended.discard((client, key))
        for node in self._world.nodes:
            if node.alive and node.client != client and (node.client, key) not in self._ended:
                self._reads_nothing(node, key, f"is given to {client}")

    def left(self, key: str, client: str) -> None:
        """Take the end of a registration: its owner does not read any more."""
        if self._owners.get(key) == client:
            del self._owners[key]
        for node in self._world.nodes:
            if node.alive and node.client == client:
                self._reads_nothing(node, key, "was given back")

    def _reads_nothing(self, node: Node, key: str, why: str) -> None:
        if key in node.reads:
            self.broken("owner", f"{key} {why}, and {node.client} reads it")
        if any(one.key == key and one.pack.outcome == "held" for one in node.app.out):
            self.broken("owner", f"{key} {why}, and {node.client} can still confirm a pack of it")

    def moved(self, host: AnyBroker, topic: str, partition: int, before: int, after: int) -> None:
        """Take a group's new offset: applications have asked to confirm all that it passes over."""
        for body in host.between(topic, partition, before, after):
            if body in self.wanted and body not in self._asked:
                self.broken("passed", f"over {body!r}: nobody has confirmed it")

    def forgotten(self, host: BrokerHost, topic: str, partition: int, saved: int, before: int) -> None:
        """Take the crash of a broker that had not stored its newest offset."""
        self._confirmed.difference_update(host.between(topic, partition, saved, before))

    def lost(self, host: AnyBroker, topic: str, partition: int, kept: int, before: int) -> None:
        """Take the restart of a broker that has kept less than it knew: no application was told so of the rest."""
        told = [body for body in host.between(topic, partition, kept, before) if body in self._confirmed]
        if told and f"{host.text.id}:{topic}:{partition}" not in self._sought:
            self.broken("lost", f"are the confirms of {told}: the broker goes on at {kept}, and was at {before}")

    def rewound(self, key: str) -> None:
        """Take the reset of a group's offset."""
        self._sought.add(key)

    # --- what consumers do

    def assigned(self, node: Node, key: str) -> None:
        """Take the news of a partition."""
        self.counts["assigned"] += 1
        if key in node.reads:
            self.broken("order", f"{key} is assigned to {node.client} twice without a revocation")

    def taken(self, node: Node, out: Out, hold: int) -> None:
        """Take a pack that an application got."""
        if node.reads.get(out.key) != hold:
            self.broken("order", f"{node.client} gets a pack of {out.key}, which was revoked")
        if hold in node.app.paused:
            self.broken("pause", f"{node.client} gets a pack of {out.key}, which is paused")
        if any(one.key == out.key and one.pack.outcome == "held" for one in node.app.out):
            self.broken("state", f"{node.client} gets a second pack of {out.key}")
        again = [body for body in out.bodies if body in self._confirmed]
        if again and out.key not in self._sought:
            self.broken("again", f"{again} comes to {node.client}: it was confirmed")
        self.counts["again"] += sum(body in self.seen for body in out.bodies)
        self.seen.update(out.bodies)
        self._world.note(f"{node.client} takes {_texts(out.bodies)} of {out.key}")

    def sought(self, node: Node, key: str, reply: Future[Reply]) -> None:
        """Take the wish to read a partition from another place."""
        self._sought.add(key)
        self._wishes.append((node, key, reply))

    def wishes_are_answered(self) -> None:
        """Check that every wish has an answer, unless its process was killed; then nobody waits."""
        for node, key, reply in self._wishes:
            if not reply.done() and (node.alive or node.leaves):
                self.broken("sought", f"{node.client} has no answer about {key}")

    def asked(self, node: Node, out: Out) -> None:
        """Take an application's wish to confirm a pack."""
        if out.pack.outcome == "held":
            self._asked.update(out.bodies)
        self._world.note(f"{node.client} confirms {_texts(out.bodies)}")

    def ended(self, node: Node, out: Out, outcome: str) -> None:
        """Take a pack's outcome."""
        self.counts[outcome] += 1
        if outcome == "confirmed":
            self._confirmed.update(out.bodies)
        self._world.note(f"{_texts(out.bodies)} is {outcome} for {node.client}, code {out.pack.code}")

    def balances(self, node: Node) -> None:
        """Check that each partition of a reader is in one state, and that its counts balance."""
        reader = node.reader
        if not reader.balances:
            self.broken("state", f"of {node.client}: {reader.states()}")
        (fetched, *ended), (messages, *parts), _ = reader.tally()
        states = reader.states()
        open_packs = states.get("ready", 0) + states.get("confirming", 0)
        if fetched != sum(ended) + open_packs or messages < sum(parts):
            self.broken("tally", f"of {node.client}: {reader.tally()} with {states}")

    def agree(self, node: Node) -> None:
        """Check that member, reader and application mean the same partitions, after the driver heard everything."""
        states = {one.partition.key: one.state for one in node.member.holdings.within(*_READ)}
        read = {node.partitions[number].key for number in node.reader.holds()}
        told = states.keys() | {one.partition.key for one in node.member.holdings.within(*State) if one.kept}
        if read - states.keys() or node.reads.keys() - told:
            self.broken("state", f"{node.client} reads {read}, tells {list(node.reads)} and holds {list(states)}")
        held = {key for key, state in states.items() if state is State.HELD}
        if held - read or held - node.reads.keys():
            self.broken("state", f"{node.client} holds {held}, reads {read} and tells {list(node.reads)}")

    def gone(self, node: Node) -> None:
        """Check what a consumer leaves behind."""
        node.reader.end()
        (fetched, *ended), (messages, *parts), _ = node.reader.tally()
        if fetched != sum(ended) or messages != sum(parts):
            self.broken("tally", f"of {node.client}, which is gone: {node.reader.tally()}")


def _texts(bodies: tuple[bytes, ...]) -> str:
    return " ".join(body.decode() for body in bodies)
