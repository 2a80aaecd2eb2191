"""Consumers before a broker in plain C that serves ready packs, beside a reader in C that throws them away.

``python -m benchmarks.tubemq.floor [--rounds 5] [--seconds 2] [--only 100]``; a whole run writes
benchmarks/results/tubemq/floor.json

Each line runs once in a round, in turn, in a process of its own: the client on the first core, the servers on the
second.  A pack is as large as TubeMQ's broker makes it.  Goals: columns of 100 B bodies at 5 M messages/s and 0.15 CPU
seconds for a million; columns of 1 KB at half of the bytes that the floor reads; resident memory within
``prefetch_bytes`` and 32 MiB.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.floors import BUILT, ROOT, build
from benchmarks.servers.pinned import CLIENT
from benchmarks.tubemq.canned import TOPIC, answers, files, floor
from benchmarks.turns import SIZES, Fields, Runs, in_turn, measure_sizes, median
from dataproxy.wire.tubemq import messages
from tests.support.reference.tubemq import called, cut

RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "floor.json"
OURS = ("arrow", "bodies")


def _requests() -> dict[str, bytes]:
    kinds: Any = messages
    who = {"clientId": "floor", "groupName": "floor", "topicName": TOPIC, "partitionId": 0}
    get = kinds.GetMessageRequestC2B(
        lastPackConsumed=False, escFlowCtrl=False, manualCommitOffset=False, **who
    ).SerializeToString()
    commit = kinds.CommitOffsetRequestC2B(lastPackConsumed=True, **who).SerializeToString()
    return {"get": cut(0, called(2, 3, 17, 10_000, get)), "commit": cut(0, called(2, 3, 18, 10_000, commit))}


def _run(*command: str) -> Fields:
    words = ("taskset", "-c", str(CLIENT), *command)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    found: Fields = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _measure(size: int, given: argparse.Namespace) -> Runs:
    served, count = answers(size)
    limits = ("--seconds", str(given.seconds), "--warmup", "0.3")
    groups = iter(range(1 << 30))
    with tempfile.TemporaryDirectory() as home, floor(Path(home), size) as (server, port):
        reader = (str(BUILT / "tubepull"), "--port", str(port), "--messages", str(count), *limits)
        requests = files(Path(home), _requests(), "request")

        def ours(way: str) -> Fields:
            client = (sys.executable, "-m", "benchmarks.clients.tubemq", server.target, TOPIC, f"g{next(groups)}", way)
            one = _run(*client, "--size", str(size), *limits)
            return {**one, "bytes": one["records"] / count * len(served["get"])}

        ways = {"floor": functools.partial(_run, *reader, *requests)}
        ways |= {f"ours, {way}": functools.partial(ours, way) for way in OURS}
        return in_turn(ways, given.rounds, f"{SIZES[size]}, ")


def _report(size: int, runs: Runs) -> None:
    print(f"\n{SIZES[size]}: median (lowest - highest)")
    base = median(runs["floor"], lambda one: one["bytes"] / one["seconds"] / 1e9)[0]
    for way, found in runs.items():
        rate = median(found, lambda one: one["records"] / one["seconds"] / 1e6)
        cpu = median(found, lambda one: (one["cpu_user"] + one["cpu_sys"]) / one["records"] * 1e6)
        size_rate = median(found, lambda one: one["bytes"] / one["seconds"] / 1e9)[0]
        parts = [f"{way:13} {rate[0]:6.2f} M/s ({rate[1]:.2f} - {rate[2]:.2f})"]
        parts.append(f"{cpu[0]:6.3f} CPU-s/M ({cpu[1]:.3f} - {cpu[2]:.3f})")
        parts.append(f"{size_rate:5.2f} GB/s, {size_rate / base:.2f} of the floor")
        if "limit_kb" in found[0]:
            resident = max(one["peak_rss_kb"] for one in found) / 1024
            parts.append(f"RSS {resident:.0f} MiB, limit {found[0]['limit_kb'] / 1024:.0f} + 32")
        print("   ".join(parts))


def main() -> None:
    """Measure, print a table and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    build()
    measure_sizes(parser, RESULTS, _measure, _report)


if __name__ == "__main__":
    main()
