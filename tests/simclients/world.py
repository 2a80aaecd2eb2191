"""Clients of RocketMQ and a hub's registry on virtual time: what happens is a seed's, laws are looked at every step.

Connections are cut, with or without a sign to the hub; processes freeze, are killed, start anew, leave their groups,
say a last thing late; two have one id; commits and locks go another way than heartbeats; offsets are reset while all
that goes on; the hub is started anew.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any, Final

from dataproxy.hub.clients import Clients
from dataproxy.hub.rocketmq.clients.actions import Ask, Close, Peer, RefusedError, Reply, Send, Subscribed
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.groups.configs import GroupConfigs
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import ResetOffset, StatusOf, Unregister
from dataproxy.wire.rocketmq.queues import LockRequest, Queue, read_offsets, write_own_offsets
from tests.simclients.client import (
    BELIEF_S,
    COMMIT_S,
    HEARTBEAT_S,
    RESET_S,
    TURN_S,
    Consumer,
    Line,
    Process,
    Progress,
    share,
)
from tests.simclients.laws import LawError, Laws
from tests.support.rocketclients import BROKER, Kept, KeptEpochs, StoredQueues, queues

__all__ = ["World", "play"]

_FAULTY_S: Final = 240.0
_END_S: Final = 400.0
_QUEUES: Final = 4
_DELAYS: Final = (0.001, 0.001, 0.02, 0.3)  # s, of which a packet takes a half to three halves
_ANSWER_S: Final = 1.0  # that a client waits for an answer about locks
_AGAIN_S: Final = 2.0  # until it wants a queue that it gave up: what it says of it by two connections may cross
_ASKS_S: Final = 5.0  # until it asks again where to begin
_KINDS: Final = (
    "cut", "cut", "vanish", "freeze", "kill", "kill", "leave", "leave", "start", "start", "reset", "reset", "reset",
    "twin", "status", "filter", "wish", "hub",
)  # fmt: skip


class World:
    """One run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self.queues = queues("t", *range(_QUEUES))
        self.groups = ("g", "h")
        self._store = StoredQueues({"t": _QUEUES, "u": 1})
        self._kept = Kept()
        self._epochs, self._keeps_resets = KeptEpochs(), seed % 2 == 0  # every second hub is durable
        self._lines: dict[int, tuple[Process, Line]] = {}
        self._resets: dict[tuple[str, int], tuple[int, int]] = {}  # by group and queue: (number, offset)
        self.aligned: set[tuple[str, tuple[str, int], int]] = set()  #: who was where a reset went, by queue and reset
        self.processes: list[Process] = []
        self.log: list[tuple[float, str]] = []
        self.steps = self.commits = self.late = self.grants = self.notices = 0
        self._tick_at = float("inf")
        self._begin_hub(quiet=0.0)
        for _ in range(self._random.randrange(3, 6)):
            self._start()
        at = 5.0
        while at < _FAULTY_S:
            self._at(at, self._fault)
            at += self._random.expovariate(1 / 6.0)

    def _begin_hub(self, quiet: float) -> None:
        self.clients = Clients()
        configs = GroupConfigs(self._kept)
        self.registry = Registry(
            self.clients, BROKER, self._store, configs, self.now, limits=Limits(quiet=quiet, belief=32.0),
            epochs=self._epochs if self._keeps_resets else None,
        )  # fmt: skip
        self.laws = Laws(self)
        self._tick_at = float("inf")
        self._plan_tick()

    # --- time

    def _at(self, at: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (at, next(self._order), what))

    def run(self) -> World:
        """Play to the end: faults, then calm in which all that was left has to end."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= _END_S:
            self.now, _, what = pop(heap)
            what()
            self.steps += 1
        return self

    def _plan_tick(self) -> None:
        at = max(self.registry.next_tick, self.now)
        if at < self._tick_at:
            self._tick_at = at
            registry = self.registry

            def tick() -> None:
                if registry is self.registry and self._tick_at == at:
                    self._tick_at = float("inf")
                    self._hub(registry.tick, self.now)

            self._at(at, tick)

    # --- the hub

    def _hub(self, what: Callable[..., Any], *given: Any) -> Any:
        """Let the hub do something, and carry out what it wants."""
        try:
            found = what(*given)
        except RefusedError:
            found = None
        for one in self.registry.drain():
            if isinstance(one, Send):
                self.laws.sent(one)
                self.notices += one.code == Code.NOTIFY_CONSUMER_IDS_CHANGED
                self._deliver(one.connection, one)
            elif isinstance(one, Ask):
                self._deliver(one.connection, one)
            elif isinstance(one, Reply):
                self.laws.replied(one.call)
            elif isinstance(one, Close):
                self._close_there(one.connection)
            elif isinstance(one, Subscribed):
                self.laws.table[one.connection, one.group] = dict(one.subscriptions)
        self._plan_tick()
        self.laws.look()
        return found

    def _close_there(self, connection: int) -> None:
        """Let the hub close a connection: it hears of the end, and so does the client a moment later."""
        process, line = self._lines[connection]
        if line.there:
            line.there = False
            self._at(self.now, lambda: self._ended(connection))
            self._at(self.now + self._delay(), lambda: self._cut_here(process, line))

    def _ended(self, connection: int) -> None:
        registry = self.registry
        self._hub(registry.closed, connection, self.now)
        self.laws.table = {key: one for key, one in self.laws.table.items() if key[0] != connection}

    def _deliver(self, connection: int, action: Send | Ask) -> None:
        process, line = self._lines[connection]
        line.out_at = max(line.out_at, self.now + self._delay())
        self._at(line.out_at, lambda: self._receive(process, line, action))

    # --- connections

    def _delay(self) -> float:
        source = self._random
        return source.choice(_DELAYS) * (0.5 + source.random())

    def _connect(self, process: Process, *, side: bool = False) -> Line:
        number = next(self._numbers)
        line = Line(number, Peer(number, f"10.0.0.1:{number}", process.language, 409), in_at=self.now, out_at=self.now)
        self._lines[number] = (process, line)
        if side:
            process.side = line
        else:
            process.line = line
        return line

    def _line(self, process: Process, *, side: bool = False) -> Line:
        """Return the connection that a request goes by; it is made if there is none."""
        line = process.side if side and process.has_side_line else process.line
        return line if line is not None else self._connect(process, side=side and process.has_side_line)

    def _say(
        self,
        process: Process,
        line: Line,
        call: Callable[[Registry], Any],
        answered: Callable[[Any], None] | None = None,
    ) -> None:
        """Send a request, behind those before it; its answer comes back on the same connection."""
        line.in_at = max(line.in_at, self.now + self._delay())
        registry = self.registry

        def arrive() -> None:
            if not line.there or registry is not self.registry:
                return
            found = self._hub(call, registry)
            if answered is not None:
                line.out_at = max(line.out_at, self.now + self._delay())
                self._at(line.out_at, lambda: self._answered(process, line, found, answered))

        self._at(line.in_at, arrive)

    def _answered(self, process: Process, line: Line, found: Any, answered: Callable[[Any], None]) -> None:
        if not self._is_awake(process, lambda: self._answered(process, line, found, answered)):
            return
        if line.here:
            answered(found)

    def _is_awake(self, process: Process, again: Callable[[], None]) -> bool:
        """Tell whether a process runs; one that is frozen does later what comes now."""
        if process.alive and self.now < process.frozen_until:
            self._at(process.frozen_until, again)
            return False
        return process.alive

    def _cut_here(self, process: Process, line: Line) -> None:
        """Let a client see that a connection has ended; its next request makes another one."""
        if not line.here:
            return
        line.here = False
        if process.line is line:
            process.line, process.cut_at = None, max(self.now, process.frozen_until)
        elif process.side is line:
            process.side = None

    def _cut(self, process: Process, line: Line, *, sign: bool = True) -> None:
        """End a connection; the hub hears of it behind what was under way, or never."""
        self._cut_here(process, line)
        line.in_at = max(line.in_at, self.now + self._delay())

        def arrive() -> None:
            if line.there:
                line.there = False
                self._ended(line.number)

        if sign:
            self._at(line.in_at, arrive)
        else:
            line.in_at = float("inf")

    # --- processes

    def _start(self, twin: Process | None = None) -> Process:
        number = next(self._numbers)
        process = Process(
            twin.id if twin is not None else f"p{number}@{number}",
            self._random.choice(("JAVA", "JAVA", "CPP")),
            self._random.random() < 0.2,
            produces=("p",) if self._random.random() < 0.5 else (),
        )
        if twin is not None:
            twin.is_twin = process.is_twin = True
            process.has_side_line = twin.has_side_line = False
            process.cut_at = twin.cut_at = self.now  # whose a request is that comes before a heartbeat, nobody can tell
        for group in self._random.choice((("g",), ("g",), ("h",), ("g", "h"))):
            self._consume(process, group)
        self.processes.append(process)
        self._beat(process)
        self._turn(process)
        self._at(self.now + self._random.uniform(0, COMMIT_S), lambda: self._commit(process))
        return process

    def _consume(self, process: Process, group: str) -> None:
        topics = {"t": self._random.choice(("*", "*", "A"))}
        if self._random.random() < 0.3:
            topics["u"] = "*"
        process.consumers[group] = Consumer(group, topics, next(self._numbers), self._random.random() < 0.15)

    def _beat(self, process: Process) -> None:
        """Send a heartbeat now, and every 30 s."""
        if not self._is_awake(process, lambda: self._beat(process)):
            return
        self._say_alive(process, process.body(), tuple(process.consumers))
        self._at(self.now + HEARTBEAT_S, lambda: self._beat(process))

    def _say_alive(self, process: Process, body: bytes, groups: tuple[str, ...], *, ghost: bool = False) -> None:
        line = self._line(process)

        def call(registry: Registry) -> Any:
            for group in groups:
                if not ghost or not self.laws.has_left(group, line.number):
                    self.laws.heard[group, line.number] = self.now
                if not ghost:
                    self.laws.comes_back(group, line.number)
            return registry.heartbeat(line.peer, body, self.now)

        self._say(process, line, call, lambda _: None)

    def _turn(self, process: Process) -> None:
        """Rebalance now, and every 20 s."""
        if not self._is_awake(process, lambda: self._turn(process)):
            return
        process.turn += 1
        turn = process.turn
        self._rebalance(process)
        self._at(self.now + TURN_S, lambda: self._turn(process) if process.turn == turn else None)

    def _rebalance(self, process: Process) -> None:
        for consumer in process.consumers.values():
            self._rebalance_group(process, consumer)

    def _rebalance_group(self, process: Process, consumer: Consumer) -> None:
        group, line = consumer.group, self._line(process, side=True)

        def listed(ids: Any) -> None:
            if ids is None or process.consumers.get(group) is not consumer:
                return
            mine = consumer.mine = share(self.queues, ids, process.id)
            lost = [one for one in consumer.reads if one not in mine]
            for one in lost:
                self._give_up(process, consumer, one)
            if lost or mine - consumer.reads.keys():
                consumer.version = next(self._numbers)
                self._say_alive(process, process.body(), tuple(process.consumers))
            if mine:
                self._lock(process, consumer, tuple(sorted(mine)))

        self._say(process, line, lambda registry: registry.member_ids(group), listed)

    def _lock(self, process: Process, consumer: Consumer, wanted: tuple[Queue, ...]) -> None:
        group, asked_at = consumer.group, self.now
        wanted = tuple(one for one in wanted if asked_at > consumer.gave_up.get(one, -1e9) + _AGAIN_S)

        def locked(found: Any) -> None:
            if process.consumers.get(group) is not consumer or found is None or self.now > asked_at + _ANSWER_S:
                return
            for one in wanted:
                if consumer.gave_up.get(one, -1e9) > asked_at:
                    continue  # the answer is one of before
                if one in found and one in consumer.mine:
                    self.grants += 1
                    consumer.believes[one] = self.now + BELIEF_S
                    self.laws.believed(process, group, one)
                    if one not in consumer.reads:
                        self._begin(process, consumer, one)
                else:
                    consumer.believes.pop(one, None)

        request = LockRequest(process.id, group, wanted)
        line = self._line(process, side=True)
        self._say(process, line, lambda registry: registry.lock(line.number, request, self.now), locked)

    def _give_up(self, process: Process, consumer: Consumer, queue: Queue) -> None:
        progress = consumer.reads.pop(queue)
        consumer.mine.discard(queue)
        consumer.gave_up[queue] = self.now
        self._send_commit(process, consumer.group, queue.queue_id, progress)
        consumer.believes.pop(queue, None)
        request = LockRequest(process.id, consumer.group, (queue,))
        line = self._line(process)
        self._say(process, line, lambda registry: registry.unlock(line.number, request, self.now))

    def _begin(self, process: Process, consumer: Consumer, queue: Queue) -> None:
        """Ask where to begin in a queue, and read it from there."""
        group, number, line = consumer.group, queue.queue_id, self._line(process, side=True)
        asked_at = self.now
        if asked_at < consumer.beginning.get(queue, -1e9) + _ASKS_S:
            return
        consumer.beginning[queue] = asked_at

        def call(registry: Registry) -> Any:
            registry.offset_asked(line.number, group, "t", number)
            return self._store.committed(group, "t", number) or 0, self._resets.get((group, number), (0, 0))[0]

        def begin(found: Any) -> None:
            if process.consumers.get(group) is not consumer or consumer.beginning.pop(queue, 0.0) != asked_at:
                return
            if queue in consumer.mine and queue not in consumer.reads and found is not None:
                consumer.reads[queue] = Progress(*found)

        self._say(process, line, call, begin)

    def _commit(self, process: Process) -> None:
        """Commit all that was read, now and every 5 s."""
        if not self._is_awake(process, lambda: self._commit(process)):
            return
        for consumer in process.consumers.values():
            for queue, progress in consumer.reads.items():
                if self.now >= progress.resumes:
                    progress.offset += self._random.randrange(0, 40)
                self._send_commit(process, consumer.group, queue.queue_id, progress)
        self._at(self.now + COMMIT_S, lambda: self._commit(process))

    def _send_commit(self, process: Process, group: str, queue: int, progress: Progress) -> None:
        offset, based = progress.offset, progress.based
        line = self._line(process, side=True)

        def call(registry: Registry) -> None:
            current, target = self._resets.get((group, queue), (0, 0))
            if registry.admits_commit(line.number, group, "t", queue, offset, self.now):
                self.laws.committed(process, (group, queue), based, offset, target, current)
                self._store.offsets[group, "t", queue] = offset
                self.commits += 1
            else:
                self.late += 1

        self._say(process, line, call)

    # --- what the hub says to a process

    def _receive(self, process: Process, line: Line, action: Send | Ask) -> None:
        if not self._is_awake(process, lambda: self._receive(process, line, action)) or not line.here:
            return
        if isinstance(action, Ask):
            body, number = write_own_offsets({}), action.number
            if self._random.random() < 0.8:
                self._say(process, line, lambda registry: registry.answered(line.number, number, 0, "", body))
        elif action.code == Code.NOTIFY_CONSUMER_IDS_CHANGED:
            self._turn(process)
        elif action.code == Code.RESET_CONSUMER_CLIENT_OFFSET:
            self._told_of_reset(process, action)

    def _told_of_reset(self, process: Process, action: Send) -> None:
        header = action.header
        assert isinstance(header, ResetOffset)
        consumer = process.consumers.get(header.group)
        if consumer is None or consumer.is_pull:
            return
        offsets = read_offsets(action.body)
        for queue in offsets.keys() & consumer.reads.keys():
            consumer.reads[queue].resumes = self.now + RESET_S
        number, hub = header.timestamp, self.registry  # the simulated administrator numbers resets by their times
        self._at(self.now + RESET_S, lambda: self._obey(process, consumer, offsets, number, hub))

    def _obey(
        self, process: Process, consumer: Consumer, offsets: dict[Queue, int], number: int, hub: Registry
    ) -> None:
        """Commit what a reset has said, and take the queues anew; as Java's thread for it: those that it has by now."""
        if not self._is_awake(process, lambda: self._obey(process, consumer, offsets, number, hub)):
            return
        if not self._keeps_resets and hub is not self.registry:
            return  # the hub cannot know what another one has told
        for queue in [one for one in consumer.reads if one in offsets]:
            progress = consumer.reads[queue]
            progress.offset, progress.based = offsets[queue], number
            self._give_up(process, consumer, queue)

    # --- faults

    def _fault(self) -> None:
        living = [one for one in self.processes if one.alive]
        kind = self._random.choice(_KINDS)
        process = self._random.choice(living) if living else self._start()
        self.log.append((self.now, f"{kind} {process.id}"))
        long = self._random.choice((0.5, 3.0, 12.0, 40.0, 130.0))
        if kind in ("cut", "vanish"):
            line = process.side if process.side is not None and self._random.random() < 0.3 else process.line
            if line is not None:
                self._cut(process, line, sign=kind == "cut")
        elif kind == "freeze":
            process.frozen_until = max(process.frozen_until, self.now + long)  # what has come meanwhile keeps its order
            if self.now < process.cut_at + HEARTBEAT_S:  # it has not said yet on which connection it is
                process.cut_at = process.frozen_until
        elif kind == "kill":
            self._kill(process, sign=self._random.random() < 0.7)
            if self._random.random() < 0.7:
                self._at(self.now + long / 4, lambda: self._start() and None)
        elif kind == "leave" and process.consumers:
            self._leave(process, self._random.choice(sorted(process.consumers)))
        elif kind == "start" and len(living) < 7:
            self._start()
        elif kind == "twin" and not process.is_twin and len(living) < 7:
            self._start(process)
        elif kind == "reset":
            self._reset(self._random.choice(self.groups))
        elif kind == "status":
            call = next(self._numbers)

            def ask() -> None:
                self.laws.asked[call] = self.now
                try:
                    self.registry.ask_status(call, StatusOf("t", "g"), self.now)
                except RefusedError:
                    self.laws.replied(call)

            self._hub(ask)
        elif kind == "filter":
            line = self._line(process)
            self._say(
                process, line, lambda registry: registry.register_filter_server(line.peer, "10.0.0.2:1", self.now)
            )
        elif kind == "wish" and process.consumers:
            consumer = process.consumers[self._random.choice(sorted(process.consumers))]
            consumer.topics = {"t": self._random.choice(("*", "A", "B"))}
            consumer.version = next(self._numbers)
            self._say_alive(process, process.body(), tuple(process.consumers))
        elif kind == "hub" and self._random.random() < 0.3:
            self._restart_hub()

    def _kill(self, process: Process, *, sign: bool) -> None:
        process.alive = False
        for line in (process.line, process.side):
            if line is not None:
                self._cut(process, line, sign=sign)

    def _leave(self, process: Process, group: str) -> None:
        """Stop a consumer in order; a heartbeat of before may come behind its end, and another may be started."""
        if self.now < process.frozen_until:
            return
        old, everything = process.body(), tuple(process.consumers)
        consumer = process.consumers[group]
        for queue in list(consumer.reads):
            self._give_up(process, consumer, queue)
        del process.consumers[group]
        line = self._line(process)

        def call(registry: Registry) -> None:
            if registry.members.at(group, line.number) is not None:
                self.laws.leaves(group, line.number)
            registry.unregister(line.number, Unregister(process.id, "", group), self.now)

        if process.language != "CPP":  # a client of C++ just says no more of the group
            self._say(process, line, call)
        if self._random.random() < 0.5 and line is process.line:
            self._at(self.now + self._random.uniform(0, 3.0), lambda: self._say_late(process, line, old, everything))
        if self._random.random() < 0.4:
            self._at(self.now + self._random.uniform(4.0, 6.0), lambda: self._consume_again(process, group))

    def _say_late(self, process: Process, line: Line, body: bytes, groups: tuple[str, ...]) -> None:
        if process.line is line and process.alive and self.now >= process.frozen_until:
            self._say_alive(process, body, groups, ghost=True)

    def _consume_again(self, process: Process, group: str) -> None:
        if process.alive and group not in process.consumers and self.now >= process.frozen_until:
            self._consume(process, group)
            self._say_alive(process, process.body(), tuple(process.consumers))
            self._turn(process)

    def _reset(self, group: str) -> None:
        number, target = next(self._numbers), self._random.randrange(0, 500)
        for queue in range(_QUEUES):
            self._store.times["t", queue] = target
        header = ResetOffset("t", group, number, self._random.random() < 0.8)
        before = {queue: self._store.committed(group, "t", queue) for queue in range(_QUEUES)}
        found = self._hub(self.registry.reset, header, self.now)
        for queue, offset in (found or {}).items():
            if before[queue.queue_id] != offset:
                self._resets[group, queue.queue_id] = number, offset

    def _restart_hub(self) -> None:
        """End the hub and start another one, which knows nothing of locks, nor of resets if it was in memory."""
        self._begin_hub(quiet=32.0)
        if not self._keeps_resets:
            self._resets.clear()
            self.aligned.clear()
        for process in self.processes:
            for line in (process.line, process.side):
                if line is not None:
                    line.there = False
                    self._cut_here(process, line)


def play(seed: int) -> World:
    """Play a seed's run.  Raises LawError, which names it."""
    world = World(seed)
    try:
        return world.run()
    except LawError as error:
        raise LawError(f"seed {seed}: {error}") from None
