"""What happens to a cluster of simulated proxies, and how producers choose: scenarios and policies as data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dataproxy.codes import RETRY_CLASS, RetryClass
from dataproxy.config import load_producer_config
from dataproxy.producer.discovery.proxies import proxy_order
from dataproxy.producer.shares import Share, shares
from dataproxy.types import ResolvedEndpoint
from tests.native.probe_cluster import ClusterSim

__all__ = ["POLICIES", "SCENARIOS", "SPREADS", "Cluster", "Fault", "play", "smaller"]

SECOND: Final = 1_000_000
_DRAINED: Final = 2
#: How a producer chooses: name in the table -> name in the probe.
POLICIES: Final = {"random": "random", "round robin": "turn", "C++ 2022": "ancestor", "ours": "ours"}


@dataclass(frozen=True)
class Fault:
    """Something that happens to a proxy at a time in microseconds."""

    at: int
    kind: str
    proxy: int = 0
    value: int = 0


@dataclass(frozen=True)
class Cluster:
    """A cluster, its producers and what happens to them."""

    proxies: int = 100
    producers: int = 20
    seconds: int = 120
    rate: float = 50.0  # packs of one producer in a second
    service: int = 4000  # mean time of a pack at a worker, in microseconds
    workers: int = 4
    active: int = 0
    standby: int = 2
    loads: bool = False  # proxies tell their loads; those of today answer that it is unknown
    seed: int = 1
    faults: Callable[[Cluster, random.Random], list[Fault]] = field(default=lambda cluster, rng: [])


def _some(cluster: Cluster, rng: random.Random, share: float) -> list[int]:
    return rng.sample(range(cluster.proxies), max(1, round(cluster.proxies * share)))


def _slow(cluster: Cluster, rng: random.Random) -> list[Fault]:
    """Let a tenth of the proxies take twenty times as long, all the time."""
    return [Fault(0, "slow", i, 2000) for i in _some(cluster, rng, 0.1)]


def _dying(cluster: Cluster, rng: random.Random) -> list[Fault]:
    """Let one proxy in twenty die at some time, for good or for some seconds."""
    out = []
    for i in _some(cluster, rng, 0.05):
        at = rng.randrange(cluster.seconds * SECOND)
        out.append(Fault(at, "down", i))
        if rng.random() < 0.5:
            out.append(Fault(at + rng.randrange(1, 20) * SECOND, "up", i))
    return out


def _holes(cluster: Cluster, rng: random.Random) -> list[Fault]:
    """Let one proxy in fifty vanish without a word."""
    return [Fault(rng.randrange(cluster.seconds * SECOND // 2), "hole", i) for i in _some(cluster, rng, 0.02)]


def _mixed(cluster: Cluster, rng: random.Random) -> list[Fault]:
    steps = [Fault(rng.randrange(cluster.seconds * SECOND), "clock", 0, step) for step in (-3_600_000, 86_400_000)]
    return _slow(cluster, rng) + _dying(cluster, rng) + _holes(cluster, rng) + steps


def _rolling(cluster: Cluster, drained: bool) -> list[Fault]:
    """Restart every proxy, one after the other: three seconds down; ``drained``: after three seconds of refusals."""
    out = []
    step = cluster.seconds * SECOND // (cluster.proxies + 2)
    for i in range(cluster.proxies):
        at = (i + 1) * step
        if drained:
            out.append(Fault(at, "drain", i, _DRAINED))
        out.append(Fault(at + 3 * SECOND, "down", i))
        out.append(Fault(at + 6 * SECOND, "up", i))
    return out


SCENARIOS: Final[dict[str, Cluster]] = {
    "calm": Cluster(),
    "10 % slow": Cluster(faults=_slow),
    "5 % dying": Cluster(faults=_dying),
    "2 % black holes": Cluster(faults=_holes),
    "all of it, clock steps": Cluster(faults=_mixed),
    "rolling restart, drained": Cluster(faults=lambda cluster, rng: _rolling(cluster, True)),
    "rolling restart, abrupt": Cluster(faults=lambda cluster, rng: _rolling(cluster, False)),
}

_MANY: Final = Cluster(producers=200, seconds=600, rate=5.0, service=40_000, workers=1)
#: Many producers, whose own traffic is small; the first one has the defaults and today's proxies.
SPREADS: Final[dict[str, Cluster]] = {
    "defaults (64 of 100 in use), loads unknown": _MANY,
    "8 of 100 in use, loads unknown": replace(_MANY, active=8),
    "defaults, loads told": replace(_MANY, loads=True),
    "8 of 100 in use, loads told": replace(_MANY, active=8, loads=True),
}


def _orders(cluster: Cluster) -> list[list[int]]:
    """Return the order of the proxies in each producer, by the code of the product."""
    proxies = [ResolvedEndpoint(f"p{i}", 46801, 2, "127.0.0.1", f"p{i}:46801") for i in range(cluster.proxies)]
    rng = random.Random(f"orders {cluster.seed}")
    out = []
    for _ in range(cluster.producers):
        order = proxy_order(proxies, rng.getrandbits(64))
        out.append([int(proxy.host[1:]) for proxy in order])
    return out


def _share(cluster: Cluster, policy: str) -> Share:
    config = load_producer_config(
        "tcp://p0:46801", group_id="g", active_proxies=cluster.active, standby_proxies=cluster.standby
    )
    share = shares(config, cluster.proxies)[0]
    if policy == "ours":
        return share
    # The first C++ SDK keeps up to four backups; the others know no standbys.
    return share._replace(standbys=min(4, cluster.proxies - share.connections) if policy == "ancestor" else 0)


def play(cluster: Cluster, policy: str) -> dict[str, Any]:
    """Run a cluster with one policy; return result times, counts, and the spread of load over the proxies."""
    share = tuple(_share(cluster, policy))
    sim = ClusterSim(
        producers=cluster.producers,
        proxies=cluster.proxies,
        policy=policy,
        every=round(SECOND / cluster.rate),
        seed=cluster.seed,
        orders=_orders(cluster),
        shapes=[share] * cluster.producers,
        classes={code: int(kind) for code, kind in RETRY_CLASS.items() if code < 256},
        unknown_class=int(RetryClass.FEW),
        service=cluster.service,
        workers=cluster.workers,
        loads=cluster.loads,
    )
    for fault in cluster.faults(cluster, random.Random(f"faults {cluster.seed}")):
        sim.fault(fault.at, fault.kind, fault.proxy, fault.value)
    sim.run(cluster.seconds * SECOND)
    frames = sim.frames()
    mean = sum(frames) / len(frames)
    return {**sim.results(), "spread": max(frames) / mean, "connections": sim.users(), "active": share[0]}


def smaller(cluster: Cluster, **changes: Any) -> Cluster:
    """Return the cluster with some values changed."""
    return replace(cluster, **changes)
