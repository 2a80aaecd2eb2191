"""Client program for the peer ``aiokafka``: ``send()`` without waiting, futures awaited by the block.

``python -m benchmarks.clients.aiokafka --port N``
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer

from benchmarks import bodies
from benchmarks.clients.section import Section, report

__all__ = ["main"]

TOPIC = "s_bench"
BLOCK = 5_000


async def send_for(producer: AIOKafkaProducer, block: Sequence[bytes], seconds: float) -> int:
    """Send blocks for ``seconds``, each one acknowledged before the next; return the number of messages."""
    sent = 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        futures = [await producer.send(TOPIC, body) for body in block]
        await asyncio.gather(*futures)
        sent += len(block)
    return sent


async def run(asked: argparse.Namespace) -> dict[str, float]:
    """Warm up and measure."""
    block = bodies.plain(asked.body, BLOCK)
    producer = AIOKafkaProducer(
        bootstrap_servers=f"127.0.0.1:{asked.port}",
        acks=1,
        linger_ms=5,
        max_batch_size=1_000_000,
        enable_idempotence=False,
    )
    await producer.start()
    try:
        await send_for(producer, block, asked.warmup)
        section = Section()
        sent = await send_for(producer, block, asked.seconds)
        return section.end(sent, asked.body)
    finally:
        await producer.stop()


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--body", type=int, default=100)
    report(asyncio.run(run(parser.parse_args(argv))))


if __name__ == "__main__":
    main()
