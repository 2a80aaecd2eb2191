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
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.floors import BUILT, ROOT, build
from benchmarks.tubemq.floor import CLIENT, PARTITIONS, SERVERS, SIZES, TOPIC, _answers, _files, _free_port, _median

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


def _cpu_of(pid: int) -> float:
    """Return the processor seconds of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _started(*command: str) -> Iterator[tuple[int, str]]:
    """Run a server on its core; give its process and the first line that it prints."""
    words = ("taskset", "-c", str(SERVERS), *command)
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            line = one.stdout.readline().strip()
            if not line:
                raise SystemExit(f"{command[0]} has not started")
            yield one.pid, line
        finally:
            one.kill()


def _run(target: str, server: int, group: str, count: int) -> dict[str, float]:
    words = ("taskset", "-c", str(CLIENT), sys.executable, "-m", "benchmarks.tubemq.hub", "read", target, group)
    with subprocess.Popen((*words, str(count)), cwd=ROOT, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        one.stdout.readline()
        before = _cpu_of(server)
        line = one.stdout.readline()
        cpu = _cpu_of(server) - before
    found: dict[str, float] = json.loads(line)
    return {**found, "server_cpu": cpu}


def _measure(size: int, rounds: int, count: int) -> dict[str, list[dict[str, float]]]:
    served, _ = _answers(size)
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    port = _free_port()
    ours = (sys.executable, "-m", "benchmarks.tubemq.hub", "serve", str(size), str(count))
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as store:
        broker = (str(BUILT / "tubebroker"), "--port", str(port), *_files(Path(home), served, "answer"))
        master = (sys.executable, "-m", "benchmarks.servers.tubemaster", str(port), TOPIC, str(PARTITIONS))
        with (
            _started(*broker) as floor, _started(*master) as (_, port_of_master),
            _started(*ours, "") as memory, _started(*ours, store) as disk,
        ):  # fmt: skip
            targets = dict(zip(WAYS, ((floor[0], f"tubemq://127.0.0.1:{port_of_master}"), memory, disk), strict=True))
            for i in range(rounds):
                for way in (*WAYS[i % len(WAYS) :], *WAYS[: i % len(WAYS)]):
                    runs[way].append(_run(targets[way][1], targets[way][0], f"g{i}", count))
                    print(f"{SIZES[size]}, round {i + 1}: {way}: {runs[way][-1]}", flush=True)
    return runs


def _report(size: int, runs: dict[str, list[dict[str, float]]]) -> None:
    def rate(one: dict[str, float]) -> float:
        return one["records"] / one["seconds"] / 1e6

    def cost(name: str) -> Any:
        return lambda one: one[name] / one["records"] * 1e6

    print(f"\n{SIZES[size]}: median (lowest - highest)")
    floor = _median(runs["floor"], rate)[0]
    for way, found in runs.items():
        middle, low, high = _median(found, rate)
        server, client = _median(found, cost("server_cpu")), _median(found, cost("client_cpu"))
        print(
            f"{way:12} {middle:6.2f} M/s ({low:.2f} - {high:.2f}), {middle / floor:.2f} of the floor   server"
            f" {server[0]:.3f} CPU-s/M ({server[1]:.3f} - {server[2]:.3f})   client {client[0]:.3f} CPU-s/M"
        )


def main() -> None:
    """Measure, print a table and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--only", type=int, choices=list(SIZES), help="one size of bodies; nothing is written")
    given = parser.parse_args()
    build()
    found = {}
    for size in [given.only] if given.only else SIZES:
        found[size] = _measure(size, given.rounds, given.messages if size < 1000 else given.messages // 4)
    for size, runs in found.items():
        _report(size, runs)
    if not given.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps({SIZES[size]: runs for size, runs in found.items()}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    elif sys.argv[1:2] == ["read"]:
        read(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
