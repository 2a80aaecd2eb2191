"""Client program for the peer ``confluent-kafka``: ``produce()`` or ``produce_batch()`` until the time is over.

``python -m benchmarks.clients.kafka --mode produce --port N``
"""

import argparse
import os
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, Producer

from benchmarks import bodies
from benchmarks.clients.section import Section, repeat, report

__all__ = ["main"]

TOPIC = "s_bench"
QUEUE_MESSAGES = 1_000_000


def produce(producer: Producer, block: Sequence[bytes]) -> Callable[[], None]:
    """Return a step that calls ``produce()`` for each body; when the queue is full it polls and tries again."""
    send = producer.produce

    def step() -> None:
        for body in block:
            try:
                send(TOPIC, body)
            except BufferError:
                while not accepted(send, body):
                    producer.poll(0.05)
        producer.poll(0)

    return step


def accepted(send: Callable[[str, bytes], None], body: bytes) -> bool:
    """Return whether the queue had room for one more."""
    try:
        send(TOPIC, body)
    except BufferError:
        return False
    return True


def produce_batch(producer: Producer, block: Sequence[bytes]) -> Callable[[], None]:
    """Return a step that hands over the block as one list of dictionaries; refused messages are tried again."""
    messages = [{"value": body} for body in block]

    def step() -> None:
        rest = messages
        while producer.produce_batch(TOPIC, rest) < len(rest):
            rest = [message for message in rest if message.pop("_error", None) is not None]
            producer.poll(0.01)
        producer.poll(0)

    return step


MODES = {"produce": produce, "produce_batch": produce_batch}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it; AssertionError when a message failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(MODES), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--linger-ms", type=float, default=5)
    parser.add_argument("--max-bytes", type=int, default=1_000_000, help="message.max.bytes; this is its default")
    parser.add_argument("--block", type=int, default=bodies.BLOCK)
    asked = parser.parse_args(argv)
    block = bodies.text(asked.body, bodies.BLOCK // 5) if asked.text else bodies.plain(asked.body, asked.block)
    failures: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{asked.port}",
            "acks": 1,
            "linger.ms": asked.linger_ms,
            "compression.type": asked.compression,
            "queue.buffering.max.messages": QUEUE_MESSAGES,
            "message.max.bytes": asked.max_bytes,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: failures.append(error),
            "log_level": int(os.environ.get("BENCH_KAFKA_LOG", "3")),
        }
    )
    step = MODES[asked.mode](producer, block)
    repeat(step, asked.warmup)
    waiting = producer.flush(60)
    section = Section()
    measured = repeat(step, asked.seconds)
    waiting += producer.flush(60)
    fields = section.end(measured * len(block), asked.body)
    assert waiting == 0, waiting
    assert not failures, failures[:3]
    report(fields)


if __name__ == "__main__":
    main()
