"""Single messages of a TubeMQ topic, from before their send to their delivery in the same process.

``python -m benchmarks.clients.tubelatency TARGET TOPIC GROUP MESSAGES [--warmup 50]``
"""

import argparse
import time

from benchmarks.clients.section import report
from dataproxy import Consumer, Producer

__all__: list[str] = []


def main() -> None:
    """Send and receive one message after the other, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "topic", "group"):
        parser.add_argument(name)
    parser.add_argument("messages", type=int)
    parser.add_argument("--warmup", type=int, default=50)
    given = parser.parse_args()
    times = []
    with (
        Producer(given.target) as producer,
        Consumer(
            given.target, group=given.group, topics=[given.topic], start="latest", heartbeat_interval=3
        ) as consumer,
    ):
        for i in range(-given.warmup, given.messages):
            body = f"m{i}-{time.perf_counter_ns()}".encode()
            begin = time.perf_counter_ns()
            delivery = producer.send(given.topic, body)
            came: list[bytes] = []
            while body not in came:
                pack = consumer.poll(60)
                assert pack is not None, consumer.stats()
                came = pack.bodies()
                end = time.perf_counter_ns()
                consumer.confirm(pack, wait=False)
            delivery.result(timeout=10)
            if i >= 0:
                times.append(end - begin)
    times.sort()
    report({"p50_us": times[len(times) // 2] / 1e3, "p99_us": times[len(times) * 99 // 100] / 1e3})


if __name__ == "__main__":
    main()
