"""Large bodies travel in buffers that were used before: new memory costs the kernel a fault for each page of it."""

import subprocess
import sys

import pytest

from dataproxy.hub import Hub

SENDER = """
import resource, sys
from dataproxy import Producer

target, sizes = sys.argv[1], [int(size) for size in sys.argv[2].split(",")]
bodies = [bytes(size) for size in sizes] * max(1, 10_000_000 // sum(sizes))
with Producer(target, group_id="g", buffer_bytes="16MiB") as producer:
    stream = producer.stream("s")

    def send(rounds):
        for _ in range(rounds):
            stream.send_batch(bodies)
        producer.flush(60)

    send(5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    send(10)
    pages = 10 * sum(map(len, bodies)) / resource.getpagesize()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / pages)
"""
MIXED = [1_000 + 7_919 * i % 99_000 for i in range(200)]


@pytest.mark.parametrize(
    "sizes",
    [[20_000], [102_400], [130_000], [340_000], [410_000], MIXED],
    ids=["20 KB", "100 KB", "130 KB", "340 KB", "410 KB", "mixed"],
)
def test_few_pages_are_new(sizes: list[int]) -> None:
    with Hub(retention_bytes="16MiB") as hub:
        words = (sys.executable, "-c", SENDER, hub.target, ",".join(map(str, sizes)))
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.4, "of the pages that were sent so many were new ones"
