"""Send NumPy records without a Python object for each: one call for a hundred thousand messages.

python examples/send_batch_numpy.py [tcp://host:46801]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from local_hub import target_or_hub

import dataproxy

ROWS = 100_000
READING = np.dtype([("sensor", "<u4"), ("time_us", "<i8"), ("celsius", "<f4")])


def readings(count: int) -> np.ndarray:
    """Return made-up sensor readings as one structured array."""
    random = np.random.default_rng(seed=1)
    rows = np.empty(count, READING)
    rows["sensor"] = random.integers(0, 500, count)
    rows["time_us"] = 1_700_000_000_000_000 + np.arange(count) * 1000
    rows["celsius"] = random.normal(21, 4, count)
    return rows


def main() -> int:
    """Send structured records, fixed-width text and a matrix of bytes."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with target_or_hub(given) as target, dataproxy.Producer(target, group_id="plant") as producer:
        started = time.perf_counter()
        binary = producer.send_batch("readings", readings(ROWS))
        text = producer.send_batch("labels", np.array(["north", "south", "east", "west"] * 10, dtype="S5"))
        pixels = producer.send_batch("frames", np.full((100, 640), 7, dtype=np.uint8))
        done = [batch.result(timeout=30) for batch in (binary, text, pixels)]
        seconds = time.perf_counter() - started
        delivered = sum(result.delivered for result in done)
        print(f"{delivered:,} messages acknowledged in {seconds:.3f} s")
    return 0 if all(result.ok for result in done) else 1


if __name__ == "__main__":
    sys.exit(main())
