"""The hub's broker, on disk and in memory, TubeMQ's own, and one in plain C, in turn: what a message costs the server.

``python -m benchmarks.tubemq.brokers [--rounds 3] [--messages 200000] [--only 100]``; a whole run writes
benchmarks/results/tubemq/brokers.json

All servers run from the beginning to the end, on the second core; each line is one run of a client on the first core,
against one of them.  Messages are got (and confirmed) and sent by our clients and by TubeMQ's Java client; the broker
in C is the floor: it serves one ready pack for ever, and throws away what is sent, so that it costs little more than
the system's calls.  CPU seconds of a server are those of its
process while the client runs; the hub's has its master too, TubeMQ's broker has not.  The hub on disk has written a
message, and a confirmed position, to the disk before it answers; TubeMQ's broker writes both later, to the page cache.
Goals: the hub costs at most a tenth of TubeMQ's broker, gives half of the floor's rate, and is never slower than
TubeMQ's broker for a Java client.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.floors import ROOT, build
from benchmarks.servers.pinned import SERVERS, Server, client, measured, started
from benchmarks.tubemq.broker import Clients, java_section, our_section
from benchmarks.tubemq.canned import PARTITIONS, SENDS, TOPIC, floor
from benchmarks.tubemq.hub import run
from benchmarks.turns import SIZES, Fields, Runs, in_turn, measure_sizes, median

RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "brokers.json"
HUBS = ("disk", "memory")


@contextmanager
def _tubemq(home: Path, size: int, count: int) -> Iterator[tuple[Clients, Server]]:
    """Run TubeMQ's own servers on the second core, with a topic full of messages."""
    servers = Clients(home, f"{TOPIC}:{PARTITIONS} {SENDS}:{PARTITIONS}")
    print("starting TubeMQ's master and broker ...", flush=True)
    servers.run("start", "tubemq")
    try:
        pid = servers.pid("tubemq-broker")
        subprocess.run(["taskset", "-acp", str(SERVERS), str(pid)], check=True, stdout=subprocess.DEVNULL)
        servers.ours("topicsend", TOPIC, str(count), "--size", str(size))
        yield servers, Server(f"tubemq://{servers.address}", pid)
    finally:
        servers.run("stop", "tubemq-master", "tubemq-broker")


def _sent_by_ours(server: Server, size: int, count: int) -> Fields:
    return our_section(client("topicsend", server, SENDS, count, "--size", size))


def _java(kit: Clients, server: Server, command: str, *words: str) -> Fields:
    """Run TubeMQ's client against any of the servers; it is not pinned, as its compiler needs the other core too."""
    kit.address = server.target.removeprefix("tubemq://")
    return java_section(kit.java(command, *words))


def _got_by_ours(server: Server, count: int) -> Fields:
    return run(server.target, server.pid, f"g{time.time_ns()}", count)


def _got_by_java(kit: Clients, server: Server, count: int) -> Fields:
    return _java(kit, server, "push", TOPIC, f"g{time.time_ns()}", str(count))


def _ways(kit: Clients, servers: dict[str, Server], size: int, count: int) -> dict[str, Callable[[], Fields]]:
    """Return one line for each pair of a client and a server."""
    found: dict[str, Callable[[], Fields]] = {}
    sends = (SENDS, str(count // 4), f"size={size}", "async=true", "retries=100")
    for place, server in servers.items():
        clients = {
            "send, ours": functools.partial(_sent_by_ours, server, size, count),
            "get, java": functools.partial(_got_by_java, kit, server, count),
            "send, java": functools.partial(_java, kit, server, "produce", *sends),
        }
        found[f"get, ours, {place}"] = functools.partial(_got_by_ours, server, count)
        found |= {f"{name}, {place}": functools.partial(measured, server, one) for name, one in clients.items()}
    return found


def _measure(size: int, given: argparse.Namespace) -> Runs:
    count = given.messages
    ours = (sys.executable, "-m", "benchmarks.tubemq.hub", "serve", str(size), str(count))
    with ExitStack() as stack:
        homes = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
        kit, tubemq = stack.enter_context(_tubemq(homes[0], size, count))
        servers = {"floor": stack.enter_context(floor(homes[2], size))[0]}
        for place, store in zip(HUBS, (str(homes[1]), ""), strict=True):
            pid, target = stack.enter_context(started(*ours, store))
            servers[place] = Server(target, pid)
        servers["tubemq"] = tubemq
        return in_turn(_ways(kit, servers, size, count), given.rounds, f"{SIZES[size]}, ")


def _report(size: int, runs: Runs) -> None:
    def rate(one: Fields) -> float:
        return one["records"] / one["seconds"] / 1e6

    def cost(one: Fields) -> float:
        return one["server_cpu"] / one["records"] * 1e6

    print(f"\n{SIZES[size]}: median (lowest - highest)")
    for way, found in runs.items():
        rates, costs = median(found, rate), median(found, cost)
        print(
            f"{way:20} {rates[0]:7.3f} M/s ({rates[1]:.3f} - {rates[2]:.3f})"
            f"   server {costs[0]:7.3f} CPU-s/M ({costs[1]:.3f} - {costs[2]:.3f})"
        )
    for what, place in itertools.product(("get, ours", "send, ours", "get, java", "send, java"), ("floor", *HUBS)):
        here, tubemq, least = (runs[f"{what}, {other}"] for other in (place, "tubemq", "floor"))
        share = median(here, cost)[0] / median(tubemq, cost)[0]
        of_tubemq, of_floor = (median(here, rate)[0] / median(other, rate)[0] for other in (tubemq, least))
        print(
            f"{f'{what}, {place}':20} costs {share:.3f} of TubeMQ's broker, at {of_tubemq:.2f} of its rate and"
            f" {of_floor:.2f} of the floor's"
        )


def main() -> None:
    """Measure, print tables and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=200_000)
    build()
    measure_sizes(parser, RESULTS, _measure, _report)


if __name__ == "__main__":
    main()
