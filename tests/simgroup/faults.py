"""What an action of a plan does to a run, and how everything becomes well again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataproxy.consumer.group.asking import EARLIEST
from tests.simgroup.plan import Action, S

if TYPE_CHECKING:
    from tests.simgroup.hosts import AnyBroker, Host
    from tests.simgroup.node import Node
    from tests.simgroup.world import World

__all__ = ["Faults"]

_STARTS_US: Final = S  # how long a broker starts
_MOST_NODES: Final = 5
_RULES: Final = (
    '[{"type":3,"rule":[{"normFreqInMs":150,"filterFreqInMs":200,"minDataFilterFreqInMs":400}]}]',
    '[{"type":1,"rule":[{"zeroCnt":2,"freqInMs":900}]}]',
    '[{"type":0,"rule":[{"start":"00:00","end":"24:00","dltInM":21,"limitInM":0,"freqInMs":300}]}]',
    " ",
)


class Faults:
    """Actions on a world; what lasts ends by itself, or with ``end``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._turns: dict[str, int] = {}  # of what lasts: only the newest one's end counts

    def act(self, action: Action) -> None:
        """Do what a plan says."""
        self._world.note(f"-- {action.kind} {action.args}")
        getattr(self, f"do_{action.kind}")(*action.args)

    def _lasting(self, what: str, lasts: int, end: Callable[[], None]) -> None:
        world = self._world
        turn = self._turns[what] = self._turns.get(what, 0) + 1

        def ends() -> None:
            if self._turns[what] == turn:
                world.note(f"-- end of {what}")
                end()

        world.at(world.now + lasts, ends)

    def _node(self, which: float, *, least: int = 1) -> Node | None:
        there = [one for one in self._world.nodes if one.alive and not one.leaves]
        return there[int(which * len(there))] if len(there) >= least else None

    def _which(self, which: float) -> AnyBroker:
        brokers = self._world.brokers
        return brokers[int(which * len(brokers))]

    def _host(self, which: float) -> Host:
        hosts = list(self._world.hosts.values())
        return hosts[int(which * len(hosts))]

    # --- messages and members

    def do_nothing(self, *_: Any) -> None:
        pass

    def do_put(self, which: float, n: int) -> None:
        partitions = self._world.partitions
        for i in range(n):
            self._world.put(partitions[(int(which * 1000) + i * (n % 3)) % len(partitions)])

    def do_join(self, *_: Any) -> None:
        if sum(one.alive for one in self._world.nodes) < _MOST_NODES:
            self._world.join()

    def do_close(self, which: float, *_: Any) -> None:
        node = self._node(which, least=2)
        if node is not None:
            node.close()

    def do_crash(self, which: float, *_: Any) -> None:
        node = self._node(which, least=2)
        if node is not None:
            node.crash()

    def do_stop(self, which: float, lasts: int) -> None:
        node = self._node(which)
        if node is not None:
            node.stop(self._world.now + lasts)

    def do_pause(self, which: float, other: float, lasts: int) -> None:
        node = self._node(which)
        if node is not None and node.reads:
            number = sorted(node.reads.values())[int(other * len(node.reads))]
            if any(node.partitions[number].key == one.key and one.pack.outcome == "held" for one in node.app.out):
                return  # what is out stays so; only what comes later is not given
            node.app.pause(number)
            self._world.at(self._world.now + lasts, partial(node.app.resume, number))

    def do_seek(self, which: float, other: float, times: int) -> None:
        """Let members go back: nothing is skipped, so that every message is still seen."""
        for i in range(times):
            node = self._node((which + i / 3) % 1)
            partitions = self._world.partitions
            if node is not None:
                held = sorted(node.reads) or [one.key for one in partitions]
                node.seek(held[int(other * len(held))], EARLIEST)

    # --- masters

    def do_leader(self, which: float, *_: Any) -> None:
        world = self._world
        if world.masters.leader is not None:
            world.masters.lead(int(which * world.plan.masters), world.now)

    def do_headless(self, lasts: int, how: str) -> None:
        masters = self._world.masters
        masters.leader = None
        for host in masters.hosts:
            host.up = how == "standby"
            host.silent = how == "silent"
            self._break_lines(host)
        self._lasting("masters", lasts, partial(self._lead, self._world.random.random()))

    def _lead(self, which: float) -> None:
        world = self._world
        for host in world.masters.hosts:
            host.up = True
        world.masters.lead(int(which * world.plan.masters), world.now)

    def do_unready(self, lasts: int) -> None:
        self._world.masters.unready_until = self._world.now + lasts

    def do_refuse(self, lasts: int, code: int, forgets: bool) -> None:
        """Let masters refuse all members; they may have forgotten those that they had."""
        world = self._world
        world.masters.refused_until, world.masters.refusal = world.now + lasts, code
        if forgets and world.masters.leader is not None:
            world.masters.lead(world.masters.leader, world.now)

    def do_rules(self, which: float) -> None:
        masters = self._world.masters
        masters.rules = (_RULES[int(which * len(_RULES))], masters.rules[1] + 1)

    # --- brokers

    def do_broker(self, which: float, lasts: int, crash: bool) -> None:
        """End a broker's process; after a crash it forgets what it had not stored, and may vanish without a sign."""
        host = self._which(which)
        if host.up:
            host.up, host.silent = False, crash and lasts > S
            host.restart(self._world.now, crash=crash)
            self._break_lines(host)
            world = self._world
            gone = int(world.plan.times.broker_limit * S)
            if lasts > gone:
                world.at(world.now + gone, lambda: None if host.up else world.masters.model.offline.add(host.text.id))
            self._lasting(f"broker {host.label}", lasts, partial(self._back, host))

    def _back(self, host: AnyBroker) -> None:
        host.up = True
        host.starting_until = self._world.now + _STARTS_US
        self._world.masters.model.offline.discard(host.text.id)

    def do_frozen(self, which: float, lasts: int) -> None:
        """Let a server answer nothing for a time; it works off then what has come."""
        self._host(which).frozen_until = self._world.now + lasts

    def do_starting(self, which: float, lasts: int) -> None:
        """Let a broker give no packs and take no registrations."""
        self._which(which).starting_until = self._world.now + lasts

    def do_forbidden(self, which: float, lasts: int, code: int) -> None:
        """Let a broker refuse with a code."""
        host = self._which(which)
        host.refused_until, host.refusal = self._world.now + lasts, code

    def do_slow_disk(self, which: float, lasts: int) -> None:
        """Let the commits of a broker's store take long."""
        host = self._which(which)
        host.slow_disk_s = self._world.plan.times.call
        self._lasting(f"slow disk of {host.label}", lasts, partial(setattr, host, "slow_disk_s", 0.0))

    def do_bad_disk(self, which: float, lasts: int) -> None:
        """Let a broker's store keep nothing."""
        host = self._which(which)
        host.bad_disk = True
        self._lasting(f"bad disk of {host.label}", lasts, partial(setattr, host, "bad_disk", False))

    def do_rewind(self, which: float, *_: Any) -> None:
        """Let the group begin a partition anew: nothing is skipped, so that every message is still seen."""
        partitions = self._world.partitions
        self._world.rewind(partitions[int(which * len(partitions))])

    # --- the network, answers, threads and clocks

    def _break_lines(self, host: Host) -> None:
        for node in self._world.nodes:
            line = node.lines.get(host.label)
            if line is not None and not host.up:
                if host.silent:
                    line.vanish()
                else:
                    line.reset()

    def do_reset(self, which: float, other: float) -> None:
        """Break the connection of a node to a server."""
        node, host = self._node(which), self._host(other)
        if node is not None and host.label in node.lines:
            node.lines[host.label].reset()

    def do_cut(self, which: float, other: float, lasts: int) -> None:
        """Let no packet through between a node and a server."""
        node, host = self._node(which), self._host(other)
        if node is not None and host.label in node.lines:
            node.lines[host.label].cut_until = self._world.now + lasts

    def do_noise(self, share: float, lasts: int) -> None:
        """Break connections at random."""
        self._world.loss = share
        self._lasting("noise", lasts, partial(setattr, self._world, "loss", 0.0))

    def do_odd(self, how: str, lasts: int) -> None:
        """Let answers be odd."""
        self._world.odd = how
        self._lasting("odd", lasts, partial(setattr, self._world, "odd", ""))

    def do_lazy(self, seconds: float, lasts: int) -> None:
        """Let the threads of drivers run late."""
        self._world.lazy = seconds
        self._lasting("lazy", lasts, partial(setattr, self._world, "lazy", 0.0))

    def do_clock(self, ms: int, lasts: int) -> None:
        """Set the wall clocks of all nodes, and set them right again."""
        for node in self._world.nodes:
            node.set_clock(ms)
        self._lasting("clock", lasts, self._right_clocks)

    def _right_clocks(self) -> None:
        for node in self._world.nodes:
            node.set_clock(0)

    def end(self) -> None:
        """Let everything be well."""
        world = self._world
        self._turns = dict.fromkeys(self._turns, -1)
        world.loss, world.odd, world.lazy = 0.0, "", 0.0
        world.masters.unready_until = world.masters.refused_until = 0
        if world.masters.leader is None:
            self._lead(world.random.random())
        for host in world.hosts.values():
            host.frozen_until = 0
        for broker in world.brokers:
            broker.refused_until = 0
            broker.slow_disk_s, broker.bad_disk = 0.0, False
            broker.starting_until = min(broker.starting_until, world.now)
            if not broker.up:
                self._back(broker)
        self._right_clocks()
        for node in world.nodes:
            for line in list(node.lines.values()):
                line.heal()
            if node.alive:
                node.go_on()
                node.app.calm()
