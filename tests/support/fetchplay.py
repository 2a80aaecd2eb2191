"""A consumer's compiled reader and an application against a model of a broker, by seed and on virtual time."""

from __future__ import annotations

import random
from typing import Any

from tests.native.probe_fetch import hold_of
from tests.native.probe_tubemq import answer, frame
from tests.support.fetching import GET, Bench, Request, committed, got, refused

__all__ = ["LAWS", "Broken", "Play", "Store"]

#: The mistakes that a model can make, and the law that each of them breaks.
LAWS = {
    "late": "passed over",  # what a lost connection had written is worked off behind the next connection's requests
    "reads-on": "passed over",  # a request without a confirm keeps what is pending
    "forgets": "again",  # a confirm is answered and not done
    "deaf": "stands still",  # a connection that is gone is not told
}
_TIMEOUT = 3
_SERVERS = ("a", "b")


class Broken(AssertionError):
    """A law does not hold."""


class Store:
    """One partition at a broker (docs of TubeMQ's broker: a pending pack, and a group's offset)."""

    def __init__(self, mistake: str) -> None:
        self.messages: list[bytes] = []
        self.confirmed = self.pending = 0
        self.owned = True
        self._mistake = mistake

    def register(self) -> None:
        """Give it to a reader, which begins at the group's offset."""
        self.owned, self.pending = True, 0

    def get(self, most: int) -> bytes:
        """Answer a request for a pack."""
        if not self.owned:
            return refused(411)
        if self._mistake != "reads-on":
            self.pending = 0
        start = self.confirmed + self.pending
        found = self.messages[start : start + most]
        if not found:
            return refused(404)
        self.pending += len(found)
        return got(found, currOffset=28 * start, maxOffset=28 * len(self.messages))

    def commit(self) -> bytes:
        """Take a confirm."""
        if not self.owned:
            return committed(401)
        if self._mistake != "forgets":
            self.confirmed += self.pending
        self.pending = 0
        return committed(200, 28 * self.confirmed, 28 * len(self.messages))


class Play:
    """One run; ``step`` does something, ``finish`` lets everything come to its end."""

    def __init__(self, seed: int, mistake: str = "") -> None:
        self.dice = random.Random(seed)
        self.mistake = mistake
        self.bench = Bench(
            0, prefetch=self.dice.choice([1, 600_000, 1_200_000, 8 << 20]), confirm=self.dice.choice([0.5, 3.0]),
            call=self.dice.choice([0.5, 2.0]), nothing=0.1,
        )  # fmt: skip
        self.reader = self.bench.reader
        self.stores = {p: Store(mistake) for p in range(1, self.dice.randint(1, 4) + 1)}
        self.number = 0
        self.held: dict[int, int] = {}  #: hold -> partition
        self.leaving: set[int] = set()
        self.paused: set[int] = set()
        self.queues: dict[str, list[Request]] = {s: [] for s in _SERVERS}  #: written, not worked off
        self.late: dict[str, list[Request]] = {s: [] for s in _SERVERS}  #: of connections that are gone
        self.answers: dict[str, list[tuple[int, bytes]]] = {s: [] for s in _SERVERS}
        self.out: list[Any] = []  #: packs that the application has
        self.outcomes: list[tuple[Any, list[str]]] = []  #: every pack that it had, and the outcome that was seen
        self.seen: set[bytes] = set()
        self.asked: set[bytes] = set()  #: messages whose confirm the application asked for
        self.settled: set[bytes] = set()  #: messages that it was told to be confirmed
        self.made = 0
        self.bad = True  # faults happen
        for partition in self.stores:
            self.append(partition)
            self.hold(partition)

    # --- what the world does

    def append(self, partition: int) -> None:
        """Write messages to a partition."""
        for _ in range(self.dice.randint(1, 5)):
            self.made += 1
            self.stores[partition].messages.append(b"%d:%d" % (partition, self.made))

    def hold(self, partition: int) -> None:
        """Give a partition to the reader."""
        self.number += 1
        self.stores[partition].register()
        self.held[self.number] = partition
        self.reader.hold(self.number, _SERVERS[partition % 2], partition=partition)

    def lose(self, server: str, fault: int = 2) -> None:
        """End a connection: the broker has worked off some of what was written, and some answers came."""
        queue = self.queues[server]
        for request in queue[: self.dice.randint(0, len(queue))]:
            self.work(request)
            queue.remove(request)
        if self.mistake == "late":
            self.late[server] += queue
        self.queues[server] = []
        self.answers[server] = []
        if self.mistake != "deaf" or self.reader.connection(server)[0] != "open":
            self.reader.lost(server, fault)

    def work(self, request: Request) -> bytes:
        """Return a broker's answer."""
        store = self.stores[request.partition]
        if request.method != GET:
            return store.commit()
        if self.bad and self.dice.random() < 0.05:
            return refused(self.dice.choice([301, 403, 452, 500, 503]))
        return store.get(self.dice.randint(1, 4))

    def serve(self, server: str) -> None:
        """Work off a request; its answer comes later."""
        if not self.queues[server]:
            return
        if self.late[server] and self.dice.random() < 0.5:
            self.work(self.late[server].pop(0))
        request = self.queues[server].pop(0)
        data = frame(request.serial, answer(request.method, self.work(request)))
        last = self.answers[server][-1][0] if self.answers[server] else 0
        delay = self.dice.choice([0, 100, 2000, 300_000]) if self.bad else 100
        waiting = self.answers[server]
        waiting.append((max(last, self.reader.now + delay), data))
        if self.bad and len(waiting) > 1 and self.dice.random() < 0.1:  # one answer overtakes another
            (first, older), (second, newer) = waiting[-2:]
            waiting[-2:] = [(first, newer), (second, older)]

    def deliver(self, server: str) -> bool:
        """Let answers that are due arrive, cut anywhere."""
        due = [data for when, data in self.answers[server] if when <= self.reader.now]
        self.answers[server] = self.answers[server][len(due) :]
        data = b"".join(due)
        while data and self.reader.connection(server)[0] == "open":
            n = self.dice.randint(1, len(data))
            self.reader.receive(server, data[:n])
            data = data[n:]
        return bool(due)

    def connections(self) -> bool:
        """Connect, write and look at limits, as a loop does after the turns were given."""
        busy = False
        for server in self.reader.servers():
            due = self.reader.connection(server)[3]
            if due is not None and due <= 0 and self.mistake != "deaf":
                self.lose(server, _TIMEOUT)
            state = self.reader.connection(server)[0]
            if state == "wanted":
                busy = True
                if self.bad and self.dice.random() < 0.1:
                    self.reader.connecting(server, 1.0)
                    self.reader.lost(server)
                else:
                    self.bench.connect(server)
            new = self.bench.written(server)
            self.queues[server] += new
            busy = busy or bool(new)
        return busy

    # --- what the application and the member do

    def take(self) -> None:
        """Take a pack."""
        pack = self.reader.take()
        if pack is None:
            return
        bodies = set(pack.bodies())
        if bodies & self.settled:
            raise Broken(f"again: {sorted(bodies & self.settled)} were confirmed")
        if self.held.get(hold_of(pack)) in self.paused:
            raise Broken("paused: a pack of a partition that gives out nothing")
        self.seen |= bodies
        self.out.append(pack)
        self.outcomes.append((pack, ["held"]))

    def confirm(self) -> None:
        """Confirm a pack."""
        if self.out:
            pack = self.out.pop(self.dice.randrange(len(self.out)))
            if pack.outcome == "held":
                self.asked |= set(pack.bodies())
            self.reader.confirm(pack)

    def roll_back(self) -> None:
        """Give a pack back."""
        if self.out:
            self.reader.rollback(self.out.pop(self.dice.randrange(len(self.out))))

    def forget(self) -> None:
        """Do nothing with a pack for ever."""
        if self.out:
            self.out.pop(0)

    def pause(self) -> None:
        """Pause a partition, or let it go on."""
        number = self.dice.choice([0, *self.held])
        partition = self.held.get(number, 0)
        if partition in self.paused:
            self.paused.discard(partition)
            self.reader.resume(number)
        elif number and self.bad and not any(self.held.get(hold_of(one)) == partition for one in self.out):
            self.paused.add(partition)
            self.reader.pause(number)

    def give_up(self) -> None:
        """Give a partition back, as a master asks for."""
        number = self.dice.choice([0, *self.held])
        if number and number not in self.leaving:
            self.leaving.add(number)
            self.reader.release(number, self.dice.choice([0.0, 0.2, 5.0]))

    def taken_away(self) -> None:
        """A broker or a master says that a partition is another's; it comes back at once."""
        number = self.dice.choice([0, *self.held])
        if not number:
            return
        if self.dice.random() < 0.5:
            self.stores[self.held[number]].owned = False  # the broker will say so
        else:
            self.reader.drop(number, 412)
            self.end_hold(number)

    def end_hold(self, number: int) -> None:
        """A partition is not held any more: hold it again."""
        partition = self.held.pop(number)
        self.leaving.discard(number)
        self.paused.discard(partition)
        self.hold(partition)

    def events(self) -> bool:
        """Take the reader's events; False if there are none."""
        found = self.reader.events()
        for kind, number, *_ in found:
            if kind in ("released", "lost") and number in self.held:  # not dropped meanwhile
                self.end_hold(number)
        return bool(found)

    # --- the laws

    def check(self) -> None:
        """Check what always holds."""
        reader = self.reader
        if not reader.balances:
            raise Broken("balance: states and packs")
        (fetched, *ended), (messages, *parts), _ = reader.tally()
        states = reader.states()
        if fetched != sum(ended) + states.get("ready", 0) + states.get("confirming", 0) or messages < sum(parts):
            raise Broken(f"tally: {reader.tally()} with {states}")
        if reader.ready > states.get("ready", 0):
            raise Broken("ready: more packs than partitions that have one")
        open_holds = []
        for pack, last in self.outcomes:
            if last[0] != "held" and pack.outcome != last[0]:
                raise Broken(f"outcome: {last[0]} became {pack.outcome}")
            last[0] = pack.outcome
            if last[0] == "held":
                open_holds.append(hold_of(pack))
            elif last[0] == "confirmed":
                self.settled |= set(pack.bodies())
        if len(set(open_holds)) != len(open_holds):
            raise Broken("two packs of a partition are out")
        for store in self.stores.values():
            missed = set(store.messages[: store.confirmed]) - self.asked
            if missed:
                raise Broken(f"passed over: {sorted(missed)} were confirmed by nobody")

    # --- the run

    def round(self) -> bool:
        """Do a round of a loop; False if it had nothing to do."""
        busy = False
        for server in self.reader.servers():
            busy = self.deliver(server) or busy
        self.events()
        self.reader.advance()
        return self.connections() or busy

    def step(self) -> None:
        """Let something happen, then a round of the loop."""
        actions = [self.take, self.confirm, self.roll_back, self.forget, self.pause, self.give_up, self.taken_away,
                   lambda: self.append(self.dice.choice(list(self.stores))),
                   lambda: self.lose(self.dice.choice(self.reader.servers())),
                   lambda: self.serve(self.dice.choice(_SERVERS)), lambda: None]  # fmt: skip
        (action,) = self.dice.choices(actions, [20, 15, 3, 2, 2, 1, 1, 3, 3, 40, 10])
        action()
        self.round()
        self.check()
        if self.dice.random() < 0.3:
            self.reader.now += self.dice.choice([1, 100, 5000, 50_000, 400_000])
        self.check()

    def _next(self) -> int | None:
        """Return the us until something is due."""
        connections = [self.reader.connection(server)[3] for server in self.reader.servers()]
        times = [when - self.reader.now for answers in self.answers.values() for when, _ in answers]
        found = [one for one in (self.reader.due(), *connections, *times) if one is not None]
        return max(min(found), 0) if found else None

    def finish(self) -> None:
        """Without faults all messages are confirmed, and the loop sleeps only as long as the reader says."""
        self.bad = False
        self.round()
        for number, partition in list(self.held.items()):
            if partition in self.paused:
                self.reader.resume(number)
        self.paused.clear()
        self.round()
        everything = {one for store in self.stores.values() for one in store.messages}
        for _ in range(5000):
            if all(store.confirmed == len(store.messages) for store in self.stores.values()):
                break
            busy = False
            self.take()
            while self.out:
                self.confirm()
                busy = True
            for server in _SERVERS:
                busy = busy or bool(self.queues[server])
                self.serve(server)
            busy = self.round() if busy else False
            busy = self.events() or busy
            self.check()
            wait = self._next()
            if not busy and not self.reader.ready:
                if wait is None or wait > 60_000_000:
                    raise Broken(f"stands still: {self.reader.states()}")
                self.reader.now += wait
                self.round()
        else:
            raise Broken(f"stands still: {self.reader.states()}")
        if everything - self.seen:
            raise Broken(f"never seen: {sorted(everything - self.seen)}")
        self.reader.end()
        self.check()
