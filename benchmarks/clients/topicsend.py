"""One run of a producer for a topic of TubeMQ or RocketMQ, in a process of its own: to the end of the flush.

``python -m benchmarks.clients.topicsend TARGET TOPIC MESSAGES [--size 100] [--warm 1]``
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.clients.section import Section, report

__all__: list[str] = []


def _producer(target: str) -> tuple[Any, Any]:
    """Return a producer, and its call that sends without waiting for a result."""
    if target.startswith("rocketmq:"):
        from dataproxy.rocketmq import Producer as RocketProducer

        producer = RocketProducer(target, "bench_producers", buffer_bytes=8 << 20)
        return producer, producer.send
    from dataproxy import Producer

    made = Producer(target)
    return made, made.send_nowait


def main() -> None:
    """Send, and print one JSON object; the clocks begin behind ``--warm`` messages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("topic")
    parser.add_argument("messages", type=int)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--warm", type=int, default=1)
    given = parser.parse_args()
    body = bytes(ord("a") + i % 26 for i in range(given.size))
    producer, send = _producer(given.target)
    with producer:
        for _ in range(given.warm):
            send(given.topic, body)
        producer.flush(timeout=300)  # the topic is known then, and its brokers are connected
        section = Section()
        for _ in range(given.messages):
            send(given.topic, body)
        counts = producer.flush(timeout=300)
        result = section.end(given.messages, given.size)
    assert counts.delivered == given.messages + given.warm, counts
    report(result)


if __name__ == "__main__":
    main()
