"""Half of the ceiling for minutes: ``python -m tests.campaigns.soak --minutes 30``.

A hub process and a producer process; the slope of the producer's memory, its descriptors and threads, and afterwards
its processor time with nothing to do.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.campaigns.chaos.processes import ROOT, HubProcess
from tests.campaigns.counters import FOLDER, keep
from tests.campaigns.soak.samples import Sample, slope_mib_per_hour

_MOST_SLOPE = 4.0
_LEAST_MINUTES = 5.0  # a slope over less time says nothing
_MOST_IDLE = 0.01


def _run(folder: Path, minutes: float, idle: float) -> tuple[list[Sample], dict[str, float]]:
    hub = HubProcess(folder, "hub", durable=False)
    hub.start()
    loader = subprocess.Popen(
        [sys.executable, "-m", "tests.campaigns.soak.loader", f"tcp://127.0.0.1:{hub.port}", str(minutes * 60),
         str(idle)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert loader.stdout is not None
        samples: list[Sample] = []
        facts: dict[str, float] = {}
        for line in loader.stdout:
            kind, *words = line.split()
            if kind == "sample":
                samples.append(Sample(*map(float, words)))
            else:
                facts[kind] = float(words[0])
        if loader.wait(120):
            raise RuntimeError(f"the loader ended with {loader.returncode}")
        return samples, facts
    finally:
        if loader.poll() is None:
            loader.kill()
            loader.wait()
        if loader.stdout is not None:
            loader.stdout.close()
        hub.close()


def main() -> int:
    """Run and print the figures; 1 when one is over its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--idle", type=float, default=10.0, metavar="SECONDS")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dataproxy-soak-"))
    began = time.monotonic()
    try:
        samples, seen = _run(folder, chosen.minutes, chosen.idle)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    steady = samples[len(samples) // 5 :]  # a fifth to warm up
    slope = slope_mib_per_hour(steady)
    problems = []
    if slope >= _MOST_SLOPE and chosen.minutes >= _LEAST_MINUTES:
        problems.append(f"memory grows by {slope:.2f} MiB an hour, allowed are {_MOST_SLOPE:g}")
    for name in ("descriptors", "threads"):
        if len({getattr(sample, name) for sample in steady}) > 1:
            problems.append(f"{name} are not constant: {sorted({getattr(sample, name) for sample in steady})}")
    idle = seen["idle_cpu_seconds"] / seen["idle_seconds"]
    if idle >= _MOST_IDLE:
        problems.append(f"an idle producer uses {idle:.2%} of a processor")
    if seen["delivered"] != seen["accepted"]:
        problems.append(f"{seen['accepted'] - seen['delivered']:.0f} messages were not delivered")
    facts: dict[str, object] = {
        "minutes": chosen.minutes, "messages": int(seen["accepted"]), "ceiling_per_second": round(seen["ceiling"]),
        "rss_slope_mib_per_hour": round(slope, 3), "rss_mib": round(steady[-1].rss_kib / 1024, 1),
        "descriptors": steady[-1].descriptors, "threads": steady[-1].threads, "idle_cpu": round(idle, 5),
        "seconds": round(time.monotonic() - began, 1), "violations": len(problems),
    }  # fmt: skip
    keep("soak", facts)
    table = "".join(f"{s.seconds:.1f} {s.rss_kib:.0f} {s.descriptors:.0f} {s.threads:.0f}\n" for s in samples)
    (FOLDER / "soak-samples.txt").write_text("seconds rss_kib descriptors threads\n" + table)
    for key, value in facts.items():
        print(f"{key:>24}  {value}")
    for problem in problems:
        print("VIOLATION", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
