"""What can happen to a simulated cluster, by the names that plans use."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.app import App
from tests.sim.hubs import BROKEN, DISK_FULL, Hub
from tests.sim.network import AckFault, Connection, Network

__all__ = ["Actions"]

UNKNOWN_GROUP = 115


class Actions:
    """Every ``_do_KIND``; the cluster that inherits them has the rest."""

    app: App
    hubs: list[Hub]
    network: Network
    now: int
    wall_skew: int
    later: Callable[..., None]
    _pump: Callable[[], None]
    _wake_hub: Callable[[Hub], None]
    manager_list: tuple[int, ...]
    manager_down_until: int
    napping_until: int
    longest_nap: int

    def _do_flush(self) -> None:
        self.app.producer._wait_settled(0.0)
        self._pump()

    def _do_reset(self, node: int, which: float, forget: bool) -> None:
        found = self.network.of(node)
        if found:
            self.network.reset(found[int(which * len(found))], self.now, forget)

    def _do_close_session(self, node: int) -> None:
        for c in self.network.of(node)[:1]:
            self.network.net.end(c.index, 0)
            self.network.net.break_off(c.index, 1, 104)
            self._pump()
            self._wake_hub(self.hubs[node])

    def _do_crash(self, node: int, span: int) -> None:
        hub = self.hubs[node]
        if not hub.down:
            hub.crash()
            for c in self.network.of(node):
                self.network.reset(c, self.now, False)
            self.later(self.now + span, self._restart, hub)

    def _do_vanish(self, node: int, span: int) -> None:
        """Cut the power of a host: no FIN, no RST; when it is back, it knows none of its connections."""
        hub = self.hubs[node]
        if hub.down:
            return
        found = self.network.of(node)
        for c in found:
            c.deaf = True
        hub.crash()
        hub.gone = True
        self.later(self.now + span, self._come_back, hub, found)

    def _come_back(self, hub: Hub, found: list[Connection]) -> None:
        if hub.gone:
            hub.gone = False
            self._restart(hub)
        for c in found:
            self.network.reset(c, self.now, False)

    def _do_slow(self, node: int, rate: int, span: int) -> None:
        self.network.slow[node] = (self.now + span, rate)

    def _restart(self, hub: Hub) -> None:
        hub.down = False
        hub.timer = -1
        self._wake_hub(hub)

    def _do_freeze(self, node: int, span: int) -> None:
        self.hubs[node].frozen_until = self.now + span

    def _do_hold(self, node: int, span: int, way: int) -> None:
        self.network.held[node] = (self.now + span, way)

    def _do_deaf(self, node: int, which: float) -> None:
        found = self.network.of(node)
        if found:
            found[int(which * len(found))].deaf = True

    def _do_refuse(self, node: int, code: int, span: int) -> None:
        self.hubs[node].core.set_service(code)
        self.later(self.now + span, self.hubs[node].core.set_service, 0)

    def _do_strange(self, node: int, span: int) -> None:
        """Have a proxy know no group for a while."""
        self._do_refuse(node, UNKNOWN_GROUP, span)

    def _do_disk(self, node: int, commits: int, full: bool) -> None:
        self.hubs[node].faulty_commits += [DISK_FULL if full else BROKEN] * commits

    def _do_slow_commits(self, node: int, wait: int, span: int) -> None:
        self.hubs[node].commit_wait = wait
        self.later(self.now + span, setattr, self.hubs[node], "commit_wait", 0)

    def _do_load(self, node: int, load: int | None) -> None:
        self.hubs[node].core.set_load(load)

    def _do_port(self, node: int, kind: str, span: int) -> None:
        self.hubs[node].port_state = kind
        self.later(self.now + span, setattr, self.hubs[node], "port_state", "good")

    def _do_acks(self, node: int, kind: str, chance: float, span: int) -> None:
        self.network.acks[node] = AckFault(kind, chance, self.now + span)

    def _do_narrow(self, node: int, window: int, span: int) -> None:
        self.network.narrow[node] = (self.now + span, window)
        for c in self.network.of(node):
            self.network.narrow_to(c, window)

    def _do_list(self, nodes: tuple[int, ...]) -> None:
        self.manager_list = nodes

    def _do_manager(self, kind: str, span: int) -> None:
        self.manager_down_until = self.now + span

    def _do_frames(self, limit: int) -> None:
        """Have the Manager name another largest frame."""
        self.app.limit_frames(limit)

    def _do_clock(self, step_ms: int) -> None:
        self.wall_skew += step_ms

    def _do_nap(self, span: int) -> None:
        """Stop the producer's threads for a while, as SIGSTOP or a busy machine does."""
        self.napping_until = self.now + span
        self.longest_nap = max(self.longest_nap, span)
