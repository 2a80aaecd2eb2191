"""Two thousand streams in turn: every row arrives, and the sender's memory stays within its buffer."""

import subprocess
import sys

from dataproxy.hub import Hub

STREAMS = 2000
ROUNDS = 40
SENDER = """
import sys
from pathlib import Path
import pyarrow as pa
from dataproxy import Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch

def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])

target, streams, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bodies = pa.array([b"x" * 100] * streams)
with Producer(target, group_id="g", buffer_bytes="4MiB") as producer:
    for names in (["alone"] * streams, [f"s{n}" for n in range(streams)]):
        batch = pa.record_batch({"value": bodies, "stream_id": names})
        for _ in range(rounds):
            send_record_batch(producer, batch, value=0, stream_id=1, group="g")
            assert producer.stats().buffered_bytes <= 4 << 20
        producer.flush(60)
        print(peak())
"""


def test_memory_is_bounded_and_nothing_is_missing():
    with Hub() as hub:
        command = [sys.executable, "-c", SENDER, hub.target, str(STREAMS), str(ROUNDS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        one, many = map(int, done.stdout.split())
        assert many - one < 32 << 10, "KiB more than with one stream"
        counts = {stream: count.records for (_, stream), count in hub.counts().items()}
    assert counts == {"alone": STREAMS * ROUNDS, **{f"s{n}": ROUNDS for n in range(STREAMS)}}
