"""Consumers of TubeMQ's own broker, side by side: ours, and both of their Java client.

``python -m benchmarks.tubemq [--messages 400000] [--size 100] [--rounds 3]``

The same topic of the same broker, read from its beginning by new groups, in turn; the first line of each round changes.
Rates and CPU seconds are from the first message to the last, without start and end of the processes.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "tests" / "interop" / "peers" / "interop.sh"
JARS = Path(os.environ.get("INTEROP_HOME", ROOT / ".interop"))
PORTS = ("TUBE_MASTER_PORT", "TUBE_MASTER_WEB", "TUBE_MASTER_BDB", "TUBE_MASTER_PROM", "TUBE_BROKER_PORT",
         "TUBE_BROKER_WEB", "TUBE_BROKER_PROM")  # fmt: skip
TOPIC = "bench"
WAYS = ("ours, bodies", "ours, arrow", "java, pull", "java, push")


def _free_ports(n: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


class Servers:
    """A master and a broker of TubeMQ, started by the kit of the interoperability tests."""

    def __init__(self, home: Path) -> None:
        jars = JARS.resolve() / "lib"
        jars.mkdir(parents=True, exist_ok=True)
        (home / "lib").symlink_to(jars)
        self.env = {**os.environ, "INTEROP_HOME": str(home), "INTEROP_START_LIMIT": "180", "TUBE_TOPICS": f"{TOPIC}:3"}
        self.env |= {name: str(port) for name, port in zip(PORTS, _free_ports(len(PORTS)), strict=True)}
        self.master = f"127.0.0.1:{self.env['TUBE_MASTER_PORT']}"

    def run(self, *words: str) -> str:
        """Run a command of the kit and return what it printed."""
        command = [str(KIT), *words]
        return subprocess.run(command, env=self.env, stdout=subprocess.PIPE, text=True, check=True, timeout=900).stdout


def _last(output: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(output.strip().splitlines()[-1])
    return found


def _read(servers: Servers, way: str, messages: int) -> dict[str, float]:
    group = f"bench_{time.time_ns()}"
    whose, how = way.split(", ")
    if whose == "java":
        options = ("quiet=true", "seconds=300")
        return _last(
            servers.run("drive", "tubemq", "TubeDriver", how, servers.master, TOPIC, group, str(messages), *options)
        )
    command = [sys.executable, "-m", "benchmarks.clients.tubemq", f"tubemq://{servers.master}", TOPIC, group]
    done = subprocess.run(
        [*command, str(messages), how], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=400
    )
    return _last(done.stdout)


def main() -> None:
    """Measure, and print a table of medians with their ranges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--size", type=int, default=100, help="bytes of a body")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        servers = Servers(Path(home))
        print("starting TubeMQ's master and broker ...", flush=True)
        servers.run("start", "tubemq")
        try:
            options = (f"size={given.size}", "quiet=true", "seconds=800", "retries=100")
            servers.run(
                "drive", "tubemq", "TubeDriver", "produce", servers.master, TOPIC, str(given.messages), *options
            )
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for i in range(given.rounds):
                for way in (*WAYS[i % len(WAYS) :], *WAYS[: i % len(WAYS)]):
                    runs[way].append(_read(servers, way, given.messages))
                    print(f"round {i + 1}: {way}: {runs[way][-1]}", flush=True)
        finally:
            servers.run("stop", "tubemq-master", "tubemq-broker")
    print(f"\n{given.messages:,} messages of {given.size} bytes, {given.rounds} rounds: median (lowest - highest)")
    for way, found in runs.items():
        rates = sorted(one["messages"] / one["seconds"] / 1e6 for one in found)
        cpus = sorted(one["cpu"] / one["messages"] * 1e6 for one in found)
        print(
            f"{way:14} {statistics.median(rates):7.3f} M/s ({rates[0]:.3f} - {rates[-1]:.3f})"
            f"   {statistics.median(cpus):7.3f} CPU-s/M ({cpus[0]:.3f} - {cpus[-1]:.3f})"
        )


if __name__ == "__main__":
    main()
