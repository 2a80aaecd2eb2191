"""Our consumer at a hub that listens as TubeMQ, beside the broker in plain C that serves one ready pack for ever.

``python -m benchmarks.tubemq.hub [--rounds 3] [--messages 1000000] [--only 100]``; a whole run writes
benchmarks/results/tubemq/hub.json

Each line runs once in a round, in turn: the client on the first core, the server on the second.  A client reads and
confirms so many messages; its clock begins with the first pack, because a group's first division takes seconds.  The
hub has each message as an entry of its own, as TubeMQ's producers send them, in memory and on disk (warm pages).  Goal:
half of the messages per second of the C broker.  On a busy machine compare CPU seconds of the server for a million.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.floors import ROOT, build
from benchmarks.servers.pinned import CLIENT, Server, cpu_of, started
from benchmarks.tubemq.canned import PARTITIONS, TOPIC, floor
from benchmarks.turns import SIZES, Fields, Runs, in_turn, measure_sizes, median

RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "hub.json"
WAYS = ("floor", "hub, memory", "hub, disk")
_SECONDS = 60.0


def serve(size: int, count: int, store: str) -> None:
    """Fill a hub, tell its target, and serve until standard input ends."""
    from dataproxy import Producer
    from dataproxy.hub import Hub

    with Hub(store or None, tubemq_port=0, partitions=PARTITIONS, max_store_bytes=8 << 30) as hub:
        body = bytes(ord("a") + i % 26 for i in range(size))
        with Producer(hub.tubemq_target) as producer:
            for _ in range(count):
                producer.send_nowait(TOPIC, body)
            assert producer.flush(_SECONDS * 10).delivered == count
        print(hub.tubemq_target, flush=True)
        sys.stdin.read()


def read(target: str, group: str, count: int) -> None:
    """Read and confirm messages; print what it took."""
    from dataproxy import Consumer

    with Consumer(target, group=group, topics=[TOPIC]) as consumer:
        pack = consumer.poll(timeout=_SECONDS)
        begun, cpu = time.perf_counter(), time.process_time()
        print("begun", flush=True)
        found = 0
        while pack is not None:
            found += len(pack)
            consumer.confirm(pack, wait=False)
            if found >= count:
                break
            pack = consumer.poll(timeout=_SECONDS)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(json.dumps({"records": found, "seconds": seconds, "client_cpu": cpu}), flush=True)


def run(target: str, server: int, group: str, count: int) -> Fields:
    """Read a topic to its end in a process of its own; return what it took of both processes."""
    words = ("taskset", "-c", str(CLIENT), sys.executable, "-m", "benchmarks.tubemq.hub", "read", target, group)
    with subprocess.Popen((*words, str(count)), cwd=ROOT, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        one.stdout.readline()
        before = cpu_of(server)
        line = one.stdout.readline()
        cpu = cpu_of(server) - before
    found: Fields = json.loads(line)
    return {**found, "server_cpu": cpu}


def _measure(size: int, given: argparse.Namespace) -> Runs:
    count = given.messages if size < 1000 else given.messages // 4
    ours = (sys.executable, "-m", "benchmarks.tubemq.hub", "serve", str(size), str(count))
    groups = iter(range(1 << 30))
    with ExitStack() as stack:
        home, store = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        canned, _ = stack.enter_context(floor(Path(home), size))
        hubs = [stack.enter_context(started(*ours, folder)) for folder in ("", store)]
        servers = dict(zip(WAYS, (canned, *(Server(target, pid) for pid, target in hubs)), strict=True))

        def read_from(server: Server) -> Fields:
            return run(server.target, server.pid, f"g{next(groups)}", count)

        ways = {way: functools.partial(read_from, server) for way, server in servers.items()}
        return in_turn(ways, given.rounds, f"{SIZES[size]}, ")


def _report(size: int, runs: Runs) -> None:
    def rate(one: Fields) -> float:
        return one["records"] / one["seconds"] / 1e6

    def cost(name: str) -> Any:
        return lambda one: one[name] / one["records"] * 1e6

    print(f"\n{SIZES[size]}: median (lowest - highest)")
    base = median(runs["floor"], rate)[0]
    for way, found in runs.items():
        middle, low, high = median(found, rate)
        server, client = median(found, cost("server_cpu")), median(found, cost("client_cpu"))
        print(
            f"{way:12} {middle:6.2f} M/s ({low:.2f} - {high:.2f}), {middle / base:.2f} of the floor   server"
            f" {server[0]:.3f} CPU-s/M ({server[1]:.3f} - {server[2]:.3f})   client {client[0]:.3f} CPU-s/M"
        )


def main() -> None:
    """Measure, print a table and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=1_000_000)
    build()
    measure_sizes(parser, RESULTS, _measure, _report)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1:2] == ["read"]:
        read(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
