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
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.floors import BUILT, ROOT, build
from dataproxy.wire.tubemq import messages
from tests.support.reference.tubemq import answered, called, checksum_of, cut

RESULTS = ROOT / "benchmarks" / "results" / "tubemq" / "floor.json"
SIZES = {100: "100 B", 1000: "1 KB"}
WAYS = ("floor", "ours, arrow", "ours, bodies")
TOPIC, PARTITIONS, PACK_BYTES, RECORD_HEAD = "bench", 3, 524_288, 52
CLIENT, SERVERS = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))


def _answers(size: int) -> tuple[dict[str, bytes], int]:
    """Return the frames that the broker serves, by option, and how many messages its pack has."""
    kinds: Any = messages
    count = PACK_BYTES // (RECORD_HEAD + size)
    body = bytes(ord("a") + i % 26 for i in range(size))
    found = [
        kinds.TransferedMessage(messageId=i, checkSum=checksum_of(body), payLoadData=body, flag=0) for i in range(count)
    ]
    pack = kinds.GetMessageResponseB2C(
        success=True, errCode=200, errMsg="OK!", messages=found, currOffset=0, minLimitTime=0, escFlowCtrl=False,
        currDataDlt=0, requireSlow=False, maxOffset=1 << 40,
    )  # fmt: skip
    fine = {"success": True, "errCode": 200, "errMsg": "OK!"}
    served = {
        "register": (15, kinds.RegisterResponseB2C(currOffset=0, maxOffset=1 << 40, **fine)),
        "heartbeat": (16, kinds.HeartBeatResponseB2C(requireAuth=False, hasPartFailure=False, **fine)),
        "get": (17, pack),
        "commit": (18, kinds.CommitOffsetResponseB2C(currOffset=0, **fine)),
    }
    return {name: cut(0, answered(method, one.SerializeToString())) for name, (method, one) in served.items()}, count


def _requests() -> dict[str, bytes]:
    kinds: Any = messages
    who = {"clientId": "floor", "groupName": "floor", "topicName": TOPIC, "partitionId": 0}
    get = kinds.GetMessageRequestC2B(
        lastPackConsumed=False, escFlowCtrl=False, manualCommitOffset=False, **who
    ).SerializeToString()
    commit = kinds.CommitOffsetRequestC2B(lastPackConsumed=True, **who).SerializeToString()
    return {"get": cut(0, called(2, 3, 17, 10_000, get)), "commit": cut(0, called(2, 3, 18, 10_000, commit))}


def _files(folder: Path, frames: dict[str, bytes], kind: str) -> list[str]:
    words = []
    for name, frame in frames.items():
        path = folder / f"{kind}-{name}"
        path.write_bytes(frame)
        words += [f"--{name}", str(path)]
    return words


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def _started(*command: str) -> Iterator[str]:
    """Run a server on its core; give the first line that it prints."""
    words = ("taskset", "-c", str(SERVERS), *command)
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            line = one.stdout.readline().strip()
            if not line:
                raise SystemExit(f"{command[0]} has not started")
            yield line
        finally:
            one.kill()


def _run(*command: str) -> dict[str, float]:
    words = ("taskset", "-c", str(CLIENT), *command)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _measure(size: int, rounds: int, seconds: float) -> dict[str, list[dict[str, float]]]:
    served, count = _answers(size)
    wire_bytes = len(served["get"])
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    port = _free_port()
    with tempfile.TemporaryDirectory() as home:
        broker = (str(BUILT / "tubebroker"), "--port", str(port), *_files(Path(home), served, "answer"))
        master = (sys.executable, "-m", "benchmarks.servers.tubemaster", str(port), TOPIC, str(PARTITIONS))
        limits = ("--seconds", str(seconds), "--warmup", "0.3")
        floor = (str(BUILT / "tubepull"), "--port", str(port), "--messages", str(count), *limits)
        requests = _files(Path(home), _requests(), "request")
        with _started(*broker), _started(*master) as master_port:
            for i in range(rounds):
                for way in (*WAYS[i % len(WAYS) :], *WAYS[: i % len(WAYS)]):
                    if way == "floor":
                        one = _run(*floor, *requests)
                    else:
                        target = f"tubemq://127.0.0.1:{master_port}"
                        client = (sys.executable, "-m", "benchmarks.clients.tubemq", target, TOPIC, f"g{i}")
                        one = _run(*client, way.split(", ")[1], "--size", str(size), *limits)
                        one["bytes"] = one["records"] / count * wire_bytes
                    runs[way].append(one)
                    print(f"{SIZES[size]}, round {i + 1}: {way}: {one}", flush=True)
    return runs


def _median(runs: list[dict[str, float]], figure: Any) -> tuple[float, float, float]:
    values = sorted(map(figure, runs))
    return statistics.median(values), values[0], values[-1]


def _report(size: int, runs: dict[str, list[dict[str, float]]]) -> None:
    print(f"\n{SIZES[size]}: median (lowest - highest)")
    floor = _median(runs["floor"], lambda one: one["bytes"] / one["seconds"] / 1e9)[0]
    for way, found in runs.items():
        rate = _median(found, lambda one: one["records"] / one["seconds"] / 1e6)
        cpu = _median(found, lambda one: (one["cpu_user"] + one["cpu_sys"]) / one["records"] * 1e6)
        size_rate = _median(found, lambda one: one["bytes"] / one["seconds"] / 1e9)[0]
        parts = [f"{way:13} {rate[0]:6.2f} M/s ({rate[1]:.2f} - {rate[2]:.2f})"]
        parts.append(f"{cpu[0]:6.3f} CPU-s/M ({cpu[1]:.3f} - {cpu[2]:.3f})")
        parts.append(f"{size_rate:5.2f} GB/s, {size_rate / floor:.2f} of the floor")
        if "limit_kb" in found[0]:
            resident = max(one["peak_rss_kb"] for one in found) / 1024
            parts.append(f"RSS {resident:.0f} MiB, limit {found[0]['limit_kb'] / 1024:.0f} + 32")
        print("   ".join(parts))


def main() -> None:
    """Measure, print a table and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", type=int, choices=list(SIZES), help="one size of bodies; nothing is written")
    given = parser.parse_args()
    build()
    found = {}
    for size in [given.only] if given.only else SIZES:
        found[size] = _measure(size, given.rounds, given.seconds)
    for size, runs in found.items():
        _report(size, runs)
    if not given.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps({SIZES[size]: runs for size, runs in found.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
