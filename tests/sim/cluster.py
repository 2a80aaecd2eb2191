"""A producer, its hubs and their Manager on one virtual clock: ``Cluster(plan).run()``."""

from __future__ import annotations

import gc
import heapq
import random
from collections.abc import Callable
from typing import Any

from dataproxy.producer.shares import shares
from tests.campaigns.histories.history import Close, History
from tests.campaigns.histories.laws import judge
from tests.native.probe_net import set_time
from tests.sim.actions import Actions
from tests.sim.app import App
from tests.sim.hubs import Hub
from tests.sim.network import CLIENT, Network
from tests.sim.plan import MS, Action, Plan

__all__ = ["Broken", "Cluster"]

_BEGIN_US = 1_000_000
_BEGIN_MS = 1_700_000_000_000
_CALM_US = 1_000_000
_AVOID_US = 10_000_000  # how long a node is left alone that said it cannot take data
_POLL_US = 20_000
_LAST_TRIES = 5
_LONG_IDLE = 60.0
_MOST_EVENTS = 400_000


class Broken(AssertionError):
    """A law does not hold; the message names the seed."""


class Cluster(Actions):
    """Run one plan to its end and judge what happened."""

    def __init__(self, plan: Plan, *, trace: bool = False) -> None:
        self.plan = plan
        self.trace = trace
        self.rng = random.Random(plan.seed ^ 0x5EED)
        self.now = _BEGIN_US
        self.wall_skew = 0
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.ticket = 0
        set_time(self.now, self._wall())
        self.network = Network(plan.seed, self.later, self.poke, self.say, lambda: self.now)
        reports = plan.options.get("protocol") == "http"
        self.hubs = [Hub(i, plan.node_options, self.rng, reports=reports) for i in range(plan.nodes)]
        self.ports = {hub.port: hub for hub in self.hubs}
        target = "tcp://" + ",".join(f"127.0.0.1:{self.hubs[i].port}" for i in plan.first_list)
        self.app = App("p", target, plan.options, plan.seed, _BEGIN_MS - _BEGIN_US // MS, plan.guilty)
        self.joined = 0
        self.commits = 0
        self.settled: set[int] = set()
        self.known_list: tuple[int, ...] = plan.first_list
        self.manager_list: tuple[int, ...] = plan.first_list
        self.manager_down_until = 0
        self.napping_until = 0
        self.longest_nap = 0
        self.executor_timers = [-1] * self.app.client.executors
        self.executor_awake = [False] * self.app.client.executors
        self.stats: dict[str, int] = {}
        self.last = -1  # number of the message that was sent when all was well

    # --- the script

    def run(self) -> dict[str, int]:
        """Play the plan, let calm return, close, and judge; return counts."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            return self._run()
        finally:
            self.network.net.leave()
            for hub in self.hubs:
                hub.close()
            if enabled:
                gc.enable()

    def _run(self) -> dict[str, int]:
        plan = self.plan
        begin = self.now
        for action in plan.actions:
            self.later(begin + action.at, self._act, action)
        end = begin + (plan.actions[-1].at if plan.actions else 0) + 1
        self.later(begin + _POLL_US, self._poll_manager)
        for i in range(self.app.client.executors):
            self._wake_executor(i)
        if plan.close_after is not None:
            end = begin + int((end - begin) * plan.close_after)
        self._play(end)
        if plan.close_after is None:
            self._calm()
        self._close()
        return self._judge()

    def _calm(self) -> None:
        """End every fault; what is pending gets its result, and the next message is delivered."""
        self.app.guilty = 0.0
        self._end_faults()
        self._play(self.now + int(self.app.limit * 1e6) + 5000, until=lambda: not self.app.waiting)
        self._check(not self.app.waiting, f"L1 {len(self.app.waiting)} sends have no result after calm returned")
        refused = any(action.kind == "refuse" for action in self.plan.actions)
        self._play(self.now + _CALM_US + (_AVOID_US if refused else 0))
        app, results = self.app, ()
        app.tell()
        for _ in range(_LAST_TRIES):  # a short delivery timeout may be over before slow hubs have answered
            sequence = app.sequence
            app.send(self.now / 1e6, "send", (1, 0, "s0", "", None, None, False))
            self._pump()
            self._play(self.now + int(app.limit * 1e6) + 20_000, until=lambda: not app.waiting)
            results = app.told[sequence].results
            if results and results[0].outcome == ("sent" if app.options.get("ack") == "none" else "delivered"):
                self.last = sequence
                return
        self._check(False, f"L2 all is well, and yet the last message: {results}")

    def _end_faults(self) -> None:
        self.say("calm")
        self.network.calm()
        self.manager_down_until = 0
        for hub in self.hubs:
            hub.calm()
            if hub.down:
                self._restart(hub)
            self._wake_hub(hub)
        for c in self.network.live():
            if c.deaf or (not self.network.net.up(c.index)):
                self.network.reset(c, self.now, False)

    def _close(self) -> None:
        """Close as Producer.close does, with the simulator in place of its waits."""
        app = self.app
        timeout = self.rng.choice((0.0, 0.01, 0.2, 3.0))
        called = self.now / 1e6
        self.say("close", timeout)
        app.producer._begin_close()
        app.closed = True
        app.producer._wait_settled(0.0)
        self._pump()
        self._play(self.now + int(timeout * 1e6), until=lambda: app.look(self.now / 1e6).pending == 0)
        app.producer._abandon_open()
        app.producer._stop_executors()
        for i in range(app.client.executors):
            while app.client.round(i):
                pass
        self._joins()
        self.network.pump(self.now)
        app.stopped = True
        app.collect(self.now / 1e6)
        written = self.network.client_bytes
        app.closes.append(Close(app.name, called, self.now / 1e6, timeout))
        self._end_faults()
        self._play(self.now + 2 * _CALM_US)  # what is under way arrives, frozen hubs store it
        app.collect(self.now / 1e6)
        app.closes[-1] = app.closes[-1]._replace(written_after=self.network.client_bytes - written)

    def _judge(self) -> dict[str, int]:
        app = self.app
        last = app.look(self.now / 1e6, final=True)
        facts = app.client.facts()
        self._check(not any(facts.values()), f"S6 the core still holds something after close: {facts}")
        self._check(last.pending == 0, f"S1 {last.pending} messages are pending after close")
        wrong = app.memory() or app.left()
        self._check(not wrong, f"S6 {wrong}")
        back = app.undelivered()
        self._check(not back, f"S1 {back}")
        late = self.longest_nap / 1e6 + 0.01
        history = History(
            told=list(app.told.values()), accounting=app.accounting, closes=app.closes, grace=late, close_grace=late,
            stored=[], most_duplicates=None, with_ids=self.plan.options.get("protocol") != "http",
        )  # fmt: skip
        for hub in self.hubs:
            for one in hub.stored():
                if one is None:
                    history.foreign += 1
                else:
                    history.stored.append(one)
        found = judge(history)
        app.leave()
        self._once(history)
        self._check(not found, "; ".join(f"{v.law} {v.text}" for v in found))
        if self.plan.node_options["read_idle"] >= _LONG_IDLE:  # a shorter one may close while the message is written
            there = self.last < 0 or any(one.sequence == self.last for one in history.stored)
            self._check(there, f"L2 all was well when message {self.last} was written, and it is at no hub")
        counts = app.producer._counts()
        copies = len({(s.producer, s.sequence) for s in history.stored})
        return {
            "delivered": last.delivered, "sent": last.sent, "failed": last.failed,
            "expired": last.expired, "dropped": last.dropped,
            "stored": len(history.stored), "twice": len(history.stored) - copies, "faults": self.plan.faults,
            "refused": app.refused, "untold": sum(counts["untold"].values()), "retries": counts["retries"],
            "events": self.ticket, "connections": len(self.network.connections),
        }  # fmt: skip

    def _once(self, history: History) -> None:
        """Check that a hub with a window of ids has no id twice."""
        if not self.plan.node_options["dedupe_ids"]:
            return
        seen: set[tuple[str, str, str]] = set()
        for one in history.stored:
            name = (one.log, one.stream, one.id)
            self._check(
                not one.id or name not in seen, f"S3 {one.log} has the id {one.id} twice in spite of its window"
            )
            seen.add(name)

    # --- time

    def later(self, at: int, function: Callable[..., None], *args: Any) -> None:
        """Call ``function`` at a time."""
        self.ticket += 1
        heapq.heappush(self.events, (at, self.ticket, function, args))

    def _wall(self) -> int:
        return _BEGIN_MS + (self.now - _BEGIN_US) // MS + self.wall_skew

    def _play(self, end: int, until: Callable[[], bool] | None = None) -> None:
        """Let events happen up to a time, or until something is so."""
        while self.events and self.events[0][0] <= end:
            if until is not None and until():
                return
            at, _, function, args = heapq.heappop(self.events)
            if at > self.now:
                self.now = at
                set_time(self.now, self._wall())
            function(*args)
            self._check(self.ticket < _MOST_EVENTS, "L4 the run does not come to rest")
        self.now = max(self.now, end) if until is None else self.now
        set_time(self.now, self._wall())

    # --- who wakes when

    def poke(self, side: int, node: int) -> None:
        """Wake whoever got something."""
        if side == CLIENT:
            self._pump()
        else:
            self._wake_hub(self.hubs[node])

    def _late(self) -> int:
        return self.rng.choice((0, 20, 300, 2000)) if self.rng.random() < self.plan.lazy else 0

    def _pump(self) -> None:
        """Wake the executors that have something to do."""
        for i in range(len(self.executor_awake)):
            if not self.executor_awake[i] and self.app.client.ready(i):
                self._wake_executor(i)

    def _wake_executor(self, i: int) -> None:
        if not self.executor_awake[i]:
            self.executor_awake[i] = True
            self.later(max(self.now + self._late(), self.napping_until), self._executor, i)

    def _executor(self, i: int) -> None:
        self.executor_awake[i] = False
        client = self.app.client
        if self.app.stopped:
            return
        client.round(i)
        self._joins()
        self.network.pump(self.now)
        self._check_progress()
        self._check_memory()
        self._pump()  # it may have left something for another executor
        if client.settled:
            self._note_settled()
        due = client.due(i)
        if client.ready(i):
            self._wake_executor(i)
        elif due >= 0 and not self.now < self.executor_timers[i] <= due:
            self.executor_timers[i] = max(due, self.now + 1)
            self.later(self.executor_timers[i], self._executor_due, i)

    def _executor_due(self, i: int) -> None:
        self.executor_timers[i] = -1
        self._wake_executor(i)

    def _note_settled(self) -> None:
        slack = 10_000 + self.longest_nap
        for serial, seq, outcome, code, count, deadline, attempts, unanswered in self.app.client.settled:
            self.say("settled", serial, seq, outcome, code, count, attempts, unanswered)
            self._check(serial not in self.settled, f"S2 pack {serial} was settled twice")
            self._check(count > 0, f"S2 pack {serial} has no message")
            self._check(self.now <= deadline + slack, f"L1 pack {serial} was settled {self.now - deadline} us late")
            self._check(unanswered >= 0, f"S3 pack {serial} has {unanswered} attempts without an answer")
            self.settled.add(serial)
        self.app.client.settled.clear()
        if self.app.rng.random() < self.app.patience:
            self.app.tell()
        self.app.collect(self.now / 1e6)
        self.app.look(self.now / 1e6)

    def _check_progress(self) -> None:
        """Nothing is kept on a connection that stands still, and nothing is sent again that one still carries."""
        timeout = int(self.app.producer.config.ack_timeout * 1e6)
        for c in self.network.stuck(timeout + timeout // 8 + 10_000 + self.longest_nap):
            self._check(False, f"L5 connection {c.index} is kept though nothing has moved since {c.moved} us")
        self._check(not self.network.hasty, "L6 a frame was sent again while its connection still carried it")

    def _check_memory(self) -> None:
        wrong = self.app.memory()
        self._check(not wrong, f"S6 {wrong}")

    def _joins(self) -> None:
        net = self.network.net
        while self.joined < len(net):
            index = self.joined
            self.joined += 1
            hub = self.ports[net.port(index)]
            c = self.network.join(index, hub.index, self.now)
            if hub.port_state != "silent" and not hub.gone:
                self.later(self.now + c.rng.choice((50, 200, 3000)), self._on_connect, index, hub)

    def _on_connect(self, index: int, hub: Hub) -> None:
        net = self.network.net
        if net.closed(index, 0) or hub.gone:
            return
        if hub.down or hub.port_state == "refuse":
            self.say("refused", hub.index)
            net.failed(index)
        else:
            c = self.network.connections[index]
            net.connected(index, c.window, c.buffer)
            hub.pending.append(index)
            self._wake_hub(hub)
        self._pump()

    def _wake_hub(self, hub: Hub) -> None:
        if not hub.down and not hub.committing:
            hub.committing = True
            self.later(max(self.now + self._late(), hub.frozen_until), self._hub, hub)

    def _hub(self, hub: Hub) -> None:
        if hub.down:
            return
        hub.committing = False
        if self.now < hub.frozen_until:
            self._wake_hub(hub)
            return
        hub.accept(self.network.net, self.now)
        due = hub.node.round(self.now, self._wall())
        self.network.pump(self.now)
        self._check(not self.network.disorder, f"S8 answers out of order: {self.network.disorder[:1]}")
        if hub.node.queued():
            self.later(self.now + hub.commit_wait + self.rng.choice((10, 100, 1500)), self._commit, hub)
        if hub.node.ready():
            self._wake_hub(hub)
        elif due >= 0 and not self.now < hub.timer <= due:
            hub.timer = max(due, self.now + 1)
            self.later(hub.timer, self._hub_due, hub)

    def _hub_due(self, hub: Hub) -> None:
        hub.timer = -1
        self._wake_hub(hub)

    def _commit(self, hub: Hub) -> None:
        if hub.down or not hub.node.queued():
            return
        if self.now < hub.frozen_until:
            self.later(hub.frozen_until, self._commit, hub)
            return
        self.commits += 1
        hub.commit()
        hub.mark(self.commits)
        self._wake_hub(hub)
        if hub.node.queued():
            self.later(self.now + self.rng.choice((10, 100)), self._commit, hub)

    # --- actions

    def _act(self, action: Action) -> None:
        self.say(action.kind, *action.args)
        if action.kind in ("send", "batch", "nowait"):
            if not self.app.stopped:
                self.app.send(self.now / 1e6, action.kind, action.args)
                self.app.collect(self.now / 1e6)
                self.app.look(self.now / 1e6)
                self._check_memory()
                self._pump()
        elif not self.app.stopped:
            getattr(self, f"_do_{action.kind}")(*action.args)

    def _poll_manager(self) -> None:
        """Ask for the proxies, as the discovery thread does; without an answer the known ones stay."""
        if self.app.stopped:
            return
        if self.now >= self.napping_until:
            self._check_progress()
        if self.now >= self.manager_down_until and self.manager_list != self.known_list:
            self.known_list = self.manager_list
            self.say("list", self.known_list)
            ports = [self.hubs[i].port for i in self.known_list]
            proxies = [(f"127.0.0.1:{port}", "127.0.0.1", port, 2, "", "127.0.0.1", 0) for port in ports]
            self.app.producer._set_clusters([(0, proxies, shares(self.app.producer.config, len(ports)))], None)
            self._pump()
        if self.now < _BEGIN_US + 600 * _CALM_US:
            self.later(self.now + _POLL_US * (1 if self.now < _BEGIN_US + 3_000_000 else 100), self._poll_manager)

    # --- talk

    def _check(self, holds: bool, text: str) -> None:
        if not holds:
            raise Broken(
                f"seed {self.plan.seed} at {self.now} us: {text}  (python -m tests.sim --seed {self.plan.seed})"
            )

    def say(self, *what: Any) -> None:
        """Print one step, if steps are wanted."""
        if self.trace:
            print(f"{self.now:>10}", *what)
