"""Real faults: ``python -m tests.campaigns.chaos --seed S --faults N`` over real processes, sockets and kills.

Three durable hubs behind a Manager, several producers with threads, and at each hub, unless it speaks TLS, a consumer
group of two members, and a producer and a group of RocketMQ; N seeded faults; then calm, and the judges of producers
and of groups.  With ``--tls`` hubs and producers speak TLS and ask each other for certificates, which are renewed all
the time, and at times by broken files.  ``--protocol``, ``--message-type``, ``--joined-lines`` and ``--ack`` choose how
messages travel.  With ``--failover N`` one of three hubs is killed N times at half load, and the way back of the rate
is measured.  With ``--refresh MINUTES`` the Manager's list changes every second, in phases, and the times of results
are compared with those of quiet phases.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from dataproxy.testing import FaultProxy
from tests.campaigns.chaos.failover import failover
from tests.campaigns.chaos.faults import Faults
from tests.campaigns.chaos.manager import Manager
from tests.campaigns.chaos.processes import HubProcess, SenderProcess
from tests.campaigns.chaos.refresh import MOST_TIMES_QUIET, refresh
from tests.campaigns.chaos.renewed import Renewed
from tests.campaigns.chaos.rockets import Rockets, drain_rockets
from tests.campaigns.chaos.stores import read_stores
from tests.campaigns.chaos.toldlog import read_told
from tests.campaigns.counters import keep
from tests.campaigns.histories.history import History
from tests.campaigns.histories.laws import judge
from tests.campaigns.readers.members import Group, drain, offsets_of
from tests.campaigns.readers.reading import Reading

_OPTIONS = (
    "discovery_interval=1", "manager_timeout=0.5", "ack_timeout=1", "delivery_timeout=60", "retry_backoff=0.02",
    "retry_backoff_max=0.5", "reconnect_backoff=0.02", "reconnect_backoff_max=0.5", "heartbeat_interval=0.3",
    "retry_budget=100000", "linger=0.002", "ordering=key",
)  # fmt: skip
_VARIANTS = (("connections=3",), ("connections=2", "executors=2"), ("connections=4", "compression=snappy"))
_BACK_SECONDS = 2.0  # after a kill until the rate is back, p99


class Dialect(NamedTuple):
    """How messages travel, by the options of a producer."""

    protocol: str = "tcp"
    message_type: int = 7
    joined_lines: bool = False
    ack: str = "source"

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of a sender.  Without answers there is no order by key."""
        chosen = [f"protocol={self.protocol}", f"ack={self.ack}"]
        if self.protocol == "tcp":
            chosen += [f"message_type={self.message_type}", f"joined_lines={str(self.joined_lines).lower()}"]
        return (*chosen, *(["ordering=none"] if self.ack == "none" else []))

    @property
    def words(self) -> list[str]:
        """Return what differs from the usual dialect."""
        return [str(one) for one, usual in zip(self, Dialect(), strict=True) if one != usual]

    def suits(self, option: str) -> bool:
        """Tell whether the options of a variant can be added."""
        return not option.startswith("compression") or not (self.protocol == "http" or self.joined_lines)


_DRAIN_SECONDS = 120.0  # until groups have confirmed everything; a hub that was killed divides nothing for 15 s
_STALL_SECONDS = 1.0  # of a frozen sender: nobody can give a result meanwhile


def chaos(
    folder: Path, seed: int, faults: int, senders: int = 3, *, tls: bool = False, dialect: Dialect | None = None
) -> tuple[dict[str, object], list[str]]:
    """Run hubs, senders and faults; return the facts and the violations."""
    own = Renewed(folder) if tls else None
    dialect = dialect or Dialect()
    http = dialect.protocol == "http"
    options = (*_OPTIONS, *dialect.options, *(own.options if own else ()))
    variants = [tuple(option for option in variant if dialect.suits(option)) for variant in _VARIANTS]
    identity = own and own.hub
    hubs = [
        HubProcess(folder, f"hub{i}", identity=identity, reports=http, queue=not tls, rockets=not tls) for i in range(3)
    ]
    ports = [hub.http_port if http else hub.port for hub in hubs]
    proxies = [FaultProxy(f"127.0.0.1:{port}") for port in ports[:2]]  # the third is met without one
    manager = Manager([proxy.port for proxy in proxies] + ports[2:])
    crew: list[SenderProcess] = []
    reading, groups, rockets = Reading(), list[Group](), list[Rockets]()
    history = History(grace=_STALL_SECONDS, close_grace=5.0, resent_frames=0, with_ids=not http)
    began = time.monotonic()
    try:
        for hub in hubs:
            hub.start()
        for i in range(senders):
            crew.append(SenderProcess(folder, f"p{i}", manager.url, *options, *variants[i % len(variants)]))
        for sender in crew:
            sender.ready()
        groups += [] if tls else [_group(reading, hub, seed + i) for i, hub in enumerate(hubs)]
        rockets += [] if tls else [_rockets(hub, seed + i, pushed=i > 0) for i, hub in enumerate(hubs)]
        wild = Faults(seed, hubs, crew, manager, proxies, numbered=not http, groups=[*groups, *rockets])
        for _ in range(faults):
            wild.one()
            if own is not None:
                own.renew()
        time.sleep(1.0)
        for sender in crew:
            sender.finish()
        if groups:
            drain(reading, [hub.folder for hub in hubs], _DRAIN_SECONDS, ["g"])
        drain_rockets(rockets, _DRAIN_SECONDS)
    finally:
        for group in (*groups, *rockets):
            group.close()
        for sender in crew:
            sender.kill()
        for proxy in proxies:
            proxy.close()
        for hub in hubs:
            hub.close()
        manager.close()
    for sender in crew:
        history.resent_frames = (history.resent_frames or 0) + read_told(sender.log, history)
    read_stores([hub.folder for hub in hubs], history)
    found = _violations(history, hubs, reading if groups else None, rockets)
    facts: dict[str, object] = {
        "seed": seed, "tls": tls, **dialect._asdict(), "faults": sum(wild.done.values()), "kinds": dict(wild.done),
        "broken_files": own.broken if own else 0, "seconds": round(time.monotonic() - began, 1),
        **_counts(history, reading), **_rocket_counts(rockets), "violations": len(found),
    }  # fmt: skip
    return facts, found


def _violations(history: History, hubs: list[HubProcess], reading: Reading | None, rockets: list[Rockets]) -> list[str]:
    """Return what the judges of producers, of TubeMQ's groups and of RocketMQ's clients have found."""
    found = [f"{violation.law} {violation.text}" for violation in judge(history)]
    if reading is not None:
        found += _judge_groups(reading, hubs, history)
    return found + [text for one in rockets for text in one.problems]


def _counts(history: History, reading: Reading) -> dict[str, object]:
    outcomes = [told.results[0].outcome for told in history.told if told.results]
    return {
        "messages": len(history.told),
        **{outcome: outcomes.count(outcome) for outcome in ("delivered", "sent", "failed", "expired")},
        "stored": len(history.stored), "extra_frames": history.extra_frames, "resent_frames": history.resent_frames,
        "seen": len(reading.seen), "seen_again": reading.again, "packs": dict(reading.outcomes),
    }  # fmt: skip


def _rocket_counts(rockets: list[Rockets]) -> dict[str, object]:
    return {
        "rockets": dict(sum((one.outcomes for one in rockets), Counter())),
        "rockets_done": sum(len(one.done) for one in rockets), "rockets_again": sum(one.again for one in rockets),
    }  # fmt: skip


def _rockets(hub: HubProcess, seed: int, *, pushed: bool) -> Rockets:
    return Rockets(hub.folder.name, hub.rocketmq_port, 2, seed, pushed=pushed)


def _judge_groups(reading: Reading, hubs: list[HubProcess], history: History) -> list[str]:
    reading.compare(offsets_of(hub.folder for hub in hubs))
    return reading.judge({(one.producer, one.sequence) for one in history.stored})


def _group(reading: Reading, hub: HubProcess, seed: int) -> Group:
    return Group(reading, hub.folder.name, f"tubemq://127.0.0.1:{hub.tubemq_port}", ["g"], 2, seed)


def main() -> int:
    """Run what is asked for; 1 when a law did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--senders", type=int, default=3)
    parser.add_argument("--tls", action="store_true", help="encrypted connections, certificates that are renewed")
    parser.add_argument("--protocol", choices=("tcp", "v1", "http"), default="tcp")
    parser.add_argument("--message-type", type=int, choices=(7, 6, 5, 3, 2), default=7)
    parser.add_argument("--joined-lines", action="store_true")
    parser.add_argument("--ack", choices=("source", "sink", "none"), default="source")
    parser.add_argument("--failover", type=int, default=0, metavar="KILLS")
    parser.add_argument("--refresh", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--keep", action="store_true", help="leave the stores and logs for a look")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dataproxy-chaos-"))
    try:
        if chosen.failover:
            facts, found = failover(folder, chosen.failover)
            name = "failover"
            back = facts["recovery_p99"]
            if not isinstance(back, float) or back > _BACK_SECONDS:
                found.append(f"the rate is back after {back} s (p99), more than {_BACK_SECONDS:g} s")
        elif chosen.refresh:
            facts, found = refresh(folder, 60 * chosen.refresh)
            name = "refresh"
            times = facts["times_quiet"]
            if not isinstance(times, float) or times > MOST_TIMES_QUIET:
                found.append(f"p99 is {times} times that of quiet phases, more than {MOST_TIMES_QUIET:g}")
        else:
            dialect = Dialect(chosen.protocol, chosen.message_type, chosen.joined_lines, chosen.ack)
            facts, found = chaos(folder, chosen.seed, chosen.faults, chosen.senders, tls=chosen.tls, dialect=dialect)
            name = "-".join(("chaos", *(["tls"] if chosen.tls else []), *dialect.words))
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    keep(name, facts)
    for key, value in facts.items():
        print(f"{key:>16}  {value}")
    for text in found:
        print("VIOLATION", text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
