"""Ours and the Java client at TubeMQ's own master and broker, in turn: consuming, producing, one message's way.

``python -m benchmarks.tubemq.broker [--only consume|produce|latency] [--messages 200000] [--rounds 3]``; a whole run
writes benchmarks/results/tubemq/broker.json

Master, broker and clients share the machine's cores.  All lines of a subject run in turn, the first one of each round
changes.  Consumers read the same messages from the beginning, each run as a new group; rates and CPU seconds are from
the first message to the last, without start and end of the processes, CPU seconds of the client's process alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.turns import SIZES, Fields, Runs, in_turn, keep
from tests.support.tubekit import Servers

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "broker.json"


class Clients(Servers):
    """TubeMQ's servers, with its Java client and ours."""

    def __init__(self, home: Path, topics: str) -> None:
        super().__init__(home, topics)
        self.address = f"127.0.0.1:{self.master}"

    def java(self, command: str, *words: str) -> list[Fields]:
        """Run the Java client and return the objects that it printed.

        It ends with 3 when brokers refused some of what it sent without waiting, which it does not send again; its
        summary counts what they took.
        """
        words = (command, self.address, *words, "quiet=true", "seconds=600")
        printed = self.run("drive", "tubemq", "TubeDriver", *words, seconds=900, codes=(0, 3))
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]

    def ours(self, module: str, *words: str) -> Fields:
        """Run one of our clients and return the object that it printed."""
        command = [sys.executable, "-m", f"benchmarks.clients.{module}", f"tubemq://{self.address}", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
        found: Fields = json.loads(done.stdout.strip().splitlines()[-1])
        return found


def java_section(lines: list[Fields]) -> Fields:
    """Return the section of a run from what the Java client printed."""
    summary = lines[-1]
    return {"records": summary["messages"], "seconds": summary["seconds"], "cpu": summary["cpu"]}


def our_section(found: Fields) -> Fields:
    """Return the section of a run from what our client printed."""
    return {"records": found["records"], "seconds": found["seconds"], "cpu": found["cpu_user"] + found["cpu_sys"]}


def consume(servers: Clients, size: int, messages: int, rounds: int) -> Runs:
    """Fill a topic by our producer, and read it by all consumers."""
    topic, count = f"bench{size}", str(messages)
    servers.ours("topicsend", topic, count, "--size", str(size))

    def group() -> str:
        return f"bench_{time.time_ns()}"

    def ours(way: str) -> Callable[[], Fields]:
        words = ("--messages", count, "--size", str(size))
        return lambda: our_section(servers.ours("tubemq", topic, group(), way, *words))

    def java(way: str) -> Callable[[], Fields]:
        return lambda: java_section(servers.java(way, topic, group(), count))

    ways = {
        "ours, bodies": ours("bodies"),
        "ours, arrow": ours("arrow"),
        "java, pull": java("pull"),
        "java, push": java("push"),
    }
    return in_turn(ways, rounds)


def produce(servers: Clients, size: int, messages: int, rounds: int) -> Runs:
    """Send messages to a topic; Java's synchronous line sends a tenth of them."""
    topic, words = "sends", (f"size={size}", "retries=100")
    ways = {
        "ours": lambda: our_section(servers.ours("topicsend", topic, str(messages), "--size", str(size))),
        "java, async": lambda: java_section(servers.java("produce", topic, str(messages), "async=true", *words)),
        "java, one by one": lambda: java_section(servers.java("produce", topic, str(messages // 10), *words)),
    }
    return in_turn(ways, rounds)


def latency(servers: Clients, count: int, rounds: int) -> Runs:
    """Time single messages from before their send to their delivery in the same process."""

    def java(*words: str) -> Callable[[], Fields]:
        def measured() -> Fields:
            found = servers.java("latency", "single", f"single_{time.time_ns()}", str(count), *words)
            line = next(one for one in found if "p50_us" in one)
            return {"p50_us": line["p50_us"], "p99_us": line["p99_us"]}

        return measured

    ways = {
        "ours": lambda: servers.ours("tubelatency", "single", f"single_{time.time_ns()}", str(count)),
        "java, push": java(),
        "java, push, asks after 10 ms": java("empty-wait=10"),
    }
    return in_turn(ways, rounds)


def _rates(title: str, runs: Runs) -> None:
    print(f"\n{title}: median (lowest - highest)")
    for way, found in runs.items():
        rates = sorted(one["records"] / one["seconds"] / 1e6 for one in found)
        cpus = sorted(one["cpu"] / one["records"] * 1e6 for one in found)
        print(
            f"{way:17} {statistics.median(rates):7.3f} M/s ({rates[0]:.3f} - {rates[-1]:.3f})"
            f"   {statistics.median(cpus):7.3f} CPU-s/M ({cpus[0]:.3f} - {cpus[-1]:.3f})"
        )


def _times(title: str, runs: Runs) -> None:
    print(f"\n{title}: median of rounds (lowest - highest), ms")
    for way, found in runs.items():
        shown = []
        for name in ("p50_us", "p99_us"):
            values = sorted(one[name] / 1e3 for one in found)
            shown.append(f"{name[:3]} {statistics.median(values):8.2f} ({values[0]:.2f} - {values[-1]:.2f})")
        print(f"{way:30} {'   '.join(shown)}")


def main() -> None:
    """Measure, print tables and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("consume", "produce", "latency"), help="one subject; nothing is written")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    found: dict[str, Runs] = {}
    with tempfile.TemporaryDirectory() as home:
        servers = Clients(Path(home), "bench100:3 bench1000:3 sends:3 single:1")
        print("starting TubeMQ's master and broker ...", flush=True)
        servers.run("start", "tubemq")
        try:
            for size, name in SIZES.items():
                if given.only in (None, "consume"):
                    found[f"consume {name}"] = consume(servers, size, given.messages, given.rounds)
                if given.only in (None, "produce"):
                    found[f"produce {name}"] = produce(servers, size, given.messages // 4, given.rounds)
            if given.only in (None, "latency"):
                found["one message"] = latency(servers, 300, given.rounds)
        finally:
            servers.run("stop", "tubemq-master", "tubemq-broker")
    for title, runs in found.items():
        (_times if title == "one message" else _rates)(title, runs)
    if not given.only:
        keep(RESULTS, found)


if __name__ == "__main__":
    main()
