"""The hub as RocketMQ, RocketMQ's own broker, and one in plain C: what a million messages cost server and client.

``python -m benchmarks.rocketmq.brokers [--rounds 3] [--messages 100000] [--warm 20000] [--only WAY]``; a whole run
writes benchmarks/results/rocketmq/brokers.json

All servers run from the beginning to the end, on the second core; each line is one run of a client on the first core,
against one of them.  Bodies have 1 KB, four queues, and up to 512 sends are without an answer.  Clients are Java's and
ours; rates and their CPU are of the messages behind the first ``--warm``, so that Java's compiler is done.  For the
same reason one round more is run, the first, which does not count: in it RocketMQ's broker costs three times as much.
CPU of a server is that of its process while the client runs, for all messages; the hub is name server, too.  RocketMQ
answers before a message is on disk, and so does the hub in memory; the hub with a folder answers after it is there.
The hub in memory is two: one that is read, and one that is sent to, which is full before the rounds that count.  So it
takes the memory of old messages for new ones, as a hub does that has run for some time; what fresh memory costs
besides is the system's.  The broker in plain C throws away what is sent, and can do nothing else: the floor of a send.

Goals: the hub costs at most a tenth of RocketMQ's broker for a send and a fifth for a pull, and no client is slower at
it; our client costs at most a tenth of Java's.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.floors import BUILT, ROOT, build
from benchmarks.servers.pinned import CLIENT, SERVERS, Server, client, measured, pinned, started
from benchmarks.tubemq.broker import java_section, our_section
from benchmarks.turns import Fields, Runs, in_turn, keep, median
from dataproxy.rocketmq import Producer
from tests.support.tubekit import RocketServers

RESULTS = ROOT / "benchmarks" / "results" / "rocketmq" / "brokers.json"
PLACES = ("hub, memory", "hub, disk", "rocketmq")
_FLOOR = "plain C"  # for sends alone
#: Options of each hub; the round that does not count fills the one with little room.
_HUBS = {"hub, memory": (), "hub, memory, full": ("--room", str(64 << 20)), "hub, disk": ("--store", "{store}")}
#: Lines: the share of RocketMQ's server CPU that the hub may take.
GOALS = {"send, java": 0.1, "send, ours": 0.1, "push, java": 0.2, "push, ours": 0.2, "pull, ours": 0.2}
_CLIENT_GOAL = 0.1
_TOPIC, _SENDS, _QUEUES, _SIZE = "bench", "sends", 4, 1000
Ways = dict[str, Callable[[], Fields]]


class _Amount(NamedTuple):
    """Messages of a run: those before the clocks begin, and those that count."""

    warm: int
    n: int


@contextmanager
def _rocketmq(home: Path) -> Iterator[tuple[RocketServers, Server]]:
    """Run RocketMQ's own servers on the second core, with all of Java's compilers and a heap that does not bind."""
    kit = RocketServers(home)
    kit.env |= {"INTEROP_JIT_LEVEL": "4", "MQ_BROKER_HEAP": "1g"}
    with pinned(SERVERS):
        kit.run("start", "rocketmq")
    try:
        pid = kit.pid("rocketmq-broker")
        yield kit, Server(f"rocketmq://{kit.names}", pid)
    finally:
        kit.run("stop", "rocketmq")


def _ours(module: str, server: Server, *words: object) -> Fields:
    return our_section(client(module, server, *words))


def _java(kit: RocketServers, server: Server, amount: _Amount, command: str, topic: str, *more: str) -> Fields:
    words = (topic, f"g{time.time_ns()}", amount.warm + amount.n, f"warm={amount.warm}", "quiet=true", "seconds=300")
    with pinned(CLIENT):
        names = server.target.removeprefix("rocketmq://")
        found = java_section(kit.drive(command, *words, *more, names=names, codes=(0, 3)))
    return {**found, "records": found["records"] - amount.warm}


def _ways(kit: RocketServers, servers: dict[str, Server], amount: _Amount, only: str | None) -> Ways:
    """Return one line for each pair of a client and a server."""
    warm, size, found = ("--warm", amount.warm), ("--size", _SIZE), Ways()

    def got_by_ours(server: Server, way: str) -> Fields:
        return _ours("rocketget", server, _TOPIC, f"g{time.time_ns()}", way, amount.n, *warm)

    for place in (*PLACES, _FLOOR):
        server, sink = servers[place], servers.get(f"{place}, full", servers[place])
        clients: Ways = {
            "send, java": functools.partial(_java, kit, sink, amount, "produce", _SENDS, "async=true", f"size={_SIZE}"),
            "send, ours": functools.partial(_ours, "topicsend", sink, _SENDS, amount.n, *warm, *size),
            "push, java": functools.partial(_java, kit, server, amount, "push", _TOPIC),
            "push, ours": functools.partial(got_by_ours, server, "push"),
            "pull, ours": functools.partial(got_by_ours, server, "pull"),
        }
        for name, one in clients.items():
            if only in (None, name) and (name.startswith("send") or place != _FLOOR):
                served = sink if name.startswith("send") else server
                found[f"{name}, {place}"] = functools.partial(measured, served, one)
    return found


def _fill(server: Server, amount: _Amount) -> None:
    """Make the topics, and fill the one that is read."""
    with Producer(server.target, "bench_producers") as producer:
        for topic in (_TOPIC, _SENDS):
            producer.queues(topic)  # brokers are known by their topics
            producer.create_topic(topic, _QUEUES)
    _ours("topicsend", server, _TOPIC, amount.n, "--warm", amount.warm, "--size", _SIZE)


def _measure(given: argparse.Namespace) -> Runs:
    amount = _Amount(given.warm, given.messages)
    with ExitStack() as stack:
        home, store = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        print("starting RocketMQ's name server and broker ...", flush=True)
        kit, rocketmq = stack.enter_context(_rocketmq(home))
        servers = {"rocketmq": rocketmq}
        for place, words in _HUBS.items():
            words = [word.format(store=store) for word in words]
            pid, target = stack.enter_context(started(sys.executable, "-m", "benchmarks.servers.rockethub", *words))
            servers[place] = Server(target, pid)
        for server in servers.values():
            _fill(server, amount)
        pid, target = stack.enter_context(started(str(BUILT / "rocketsink"), "--port", "0"))
        servers[_FLOOR] = Server(target, pid)
        runs = in_turn(_ways(kit, servers, amount, given.only), given.rounds + 1)
    for found in runs.values():
        del found[0]  # the servers' compiler was at work
        for one in found:
            one["served"] = one["records"] + amount.warm
    return runs


def _rate(one: Fields) -> float:
    return one["records"] / one["seconds"] / 1e3


def _server(one: Fields) -> float:
    return one["server_cpu"] / one["served"] * 1e6


def _client(one: Fields) -> float:
    return one["cpu"] / one["records"] * 1e6


def _shown(runs: list[Fields], figure: Callable[[Fields], float]) -> str:
    middle, low, high = median(runs, figure)
    return f"{middle:6.1f} ({low:.1f} - {high:.1f})"


def _report(runs: Runs) -> None:
    print("\nmedian (lowest - highest)")
    print(f"{'':24} {'k messages/s':22} {'server, CPU-s/M':22} client, CPU-s/M")
    for way, found in runs.items():
        print(f"{way:24} {_shown(found, _rate):22} {_shown(found, _server):22} {_shown(found, _client)}")
    ways = {way.rpartition(", rocketmq")[0]: found for way, found in runs.items() if way.endswith(", rocketmq")}
    for way, theirs in ways.items():
        for place in (*PLACES[:2], _FLOOR):
            if f"{way}, {place}" not in runs:
                continue
            ours = runs[f"{way}, {place}"]
            cost, speed = (median(ours, one)[0] / median(theirs, one)[0] for one in (_server, _rate))
            of = f"of RocketMQ's broker (goal {GOALS[way]})"
            print(f"{way}: {place} costs {cost:.3f} {of}, at {speed:.2f} of its rate")
    clients = (("send, ours", "send, java"), ("push, ours", "push, java"), ("pull, ours", "push, java"))
    for way, java in clients:
        for place in PLACES if {way, java} <= set(ways) else ():
            cost = median(runs[f"{way}, {place}"], _client)[0] / median(runs[f"{java}, {place}"], _client)[0]
            print(f"{way}, {place}: the client costs {cost:.3f} of Java's for {java[:4]} (goal {_CLIENT_GOAL})")


def main() -> None:
    """Measure, print tables and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--warm", type=int, default=20_000)
    parser.add_argument("--only", choices=list(GOALS), help="one client at all servers; nothing is written")
    given = parser.parse_args()
    build()
    runs = _measure(given)
    _report(runs)
    if not given.only:
        keep(RESULTS, runs)


if __name__ == "__main__":
    main()
