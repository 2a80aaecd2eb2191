"""The producer of a soak: ``python -m tests.campaigns.soak.loader TARGET SECONDS IDLE`` prints samples and facts."""

from __future__ import annotations

import sys
import time

from dataproxy import Producer
from tests.campaigns.soak.samples import sample_self

_WARM = 3.0
_EVERY = 1.0
_BODY = b"x" * 100


def run(target: str, seconds: float, idle: float) -> None:
    """Find the ceiling, send at half of it, sample; then do nothing and sample the processor time."""
    with Producer(target, group_id="g", buffer_bytes="8MiB") as producer:
        stream = producer.stream("s")
        began = time.monotonic()
        while time.monotonic() - began < _WARM:
            for _ in range(200):
                stream.send_nowait(_BODY)
        producer.flush()
        ceiling = producer.report().delivered / (time.monotonic() - began)
        pause = 200 / (ceiling / 2)
        began = due = time.monotonic()
        next_sample = began
        while (now := time.monotonic()) - began < seconds:
            for _ in range(200):
                stream.send_nowait(_BODY)
            if now >= next_sample:
                print("sample", *sample_self(now - began), flush=True)
                next_sample += _EVERY
            due = max(due + pause, now - 0.05)
            time.sleep(max(0.0, due - time.monotonic()))
        producer.flush()
        cpu, wall = time.process_time(), time.monotonic()
        time.sleep(idle)
        print("idle_cpu_seconds", time.process_time() - cpu)
        print("idle_seconds", time.monotonic() - wall)
        report = producer.report()
        print("ceiling", ceiling)
        print("accepted", report.accepted)
        print("delivered", report.delivered, flush=True)


if __name__ == "__main__":
    run(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
