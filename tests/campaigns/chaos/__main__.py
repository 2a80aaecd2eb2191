"""Real faults: ``python -m tests.campaigns.chaos --seed S --faults N`` over real processes, sockets and kills.

Three durable hubs behind a Manager, several producers with threads; N seeded faults; then calm, and the judge.  With
``--failover N`` one of three hubs is killed N times at half load, and the way back of the rate is measured.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dataproxy.testing import FaultProxy
from tests.campaigns.chaos.failover import failover
from tests.campaigns.chaos.faults import Faults
from tests.campaigns.chaos.manager import Manager
from tests.campaigns.chaos.processes import HubProcess, SenderProcess
from tests.campaigns.chaos.stores import read_stores
from tests.campaigns.chaos.toldlog import read_told
from tests.campaigns.counters import keep
from tests.campaigns.histories.history import History
from tests.campaigns.histories.laws import judge

_OPTIONS = (
    "discovery_interval=1", "manager_timeout=0.5", "ack_timeout=1", "delivery_timeout=60", "retry_backoff=0.02",
    "retry_backoff_max=0.5", "reconnect_backoff=0.02", "reconnect_backoff_max=0.5", "heartbeat_interval=0.3",
    "retry_budget=100000", "linger=0.002", "ordering=key",
)  # fmt: skip
_VARIANTS = (("connections=3",), ("connections=2", "executors=2"), ("connections=4", "compression=snappy"))
_STALL_SECONDS = 1.0  # of a frozen sender: nobody can give a result meanwhile


def chaos(folder: Path, seed: int, faults: int, senders: int = 3) -> tuple[dict[str, object], list[str]]:
    """Run hubs, senders and faults; return the facts and the violations."""
    hubs = [HubProcess(folder, f"hub{i}") for i in range(3)]
    proxies = [FaultProxy(f"127.0.0.1:{hub.port}") for hub in hubs[:2]]  # the third is met without one
    manager = Manager([proxy.port for proxy in proxies] + [hub.port for hub in hubs[2:]])
    crew: list[SenderProcess] = []
    history = History(grace=_STALL_SECONDS, close_grace=5.0, resent_frames=0)
    began = time.monotonic()
    try:
        for hub in hubs:
            hub.start()
        for i in range(senders):
            crew.append(SenderProcess(folder, f"p{i}", manager.url, *_OPTIONS, *_VARIANTS[i % len(_VARIANTS)]))
        for sender in crew:
            sender.ready()
        wild = Faults(seed, hubs, crew, manager, proxies)
        for _ in range(faults):
            wild.one()
        time.sleep(1.0)
        for sender in crew:
            sender.finish()
    finally:
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
    found = judge(history)
    outcomes = [told.results[0].outcome for told in history.told if told.results]
    facts: dict[str, object] = {
        "seed": seed, "faults": sum(wild.done.values()), "kinds": dict(wild.done),
        "seconds": round(time.monotonic() - began, 1), "messages": len(history.told),
        "delivered": outcomes.count("delivered"), "failed": outcomes.count("failed"),
        "expired": outcomes.count("expired"), "stored": len(history.stored), "extra_frames": history.extra_frames,
        "resent_frames": history.resent_frames, "violations": len(found),
    }  # fmt: skip
    return facts, [f"{violation.law} {violation.text}" for violation in found]


def main() -> int:
    """Run what is asked for; 1 when a law did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--senders", type=int, default=3)
    parser.add_argument("--failover", type=int, default=0, metavar="KILLS")
    parser.add_argument("--keep", action="store_true", help="leave the stores and logs for a look")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dataproxy-chaos-"))
    try:
        if chosen.failover:
            facts, found = failover(folder, chosen.failover)
            name = "failover"
        else:
            facts, found = chaos(folder, chosen.seed, chosen.faults, chosen.senders)
            name = "chaos"
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
