"""Client program for ``dataproxy.Producer``: one way of sending, as fast as it goes, until the time is over.

``python -m benchmarks.clients.ours --mode send_nowait --port N``
"""

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import bodies
from benchmarks.clients.section import Section, repeat, report
from dataproxy import DeliveryResult, Producer

__all__ = ["MODES", "add_settings", "main", "settings_of"]

STREAM = "s_bench"
Step = Callable[[], object]


def send_nowait(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that calls ``Producer.send_nowait`` for each body."""
    send = producer.send_nowait

    def step() -> None:
        for body in block:
            send(STREAM, body)

    return step


def stream_nowait(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that calls the bound stream's ``send_nowait`` for each body."""
    send = producer.stream(STREAM).send_nowait

    def step() -> None:
        for body in block:
            send(body)

    return step


def send_delivery(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that calls ``Producer.send`` for each body and drops its Delivery."""
    send = producer.send

    def step() -> None:
        for body in block:
            send(STREAM, body)

    return step


def send_await(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that calls ``Producer.send`` for a block of bodies, then ``result()`` of each Delivery."""
    send = producer.send

    def step() -> None:
        for delivery in [send(STREAM, body) for body in block]:
            delivery.result()

    return step


def send_batch(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that sends the block as one list of bytes."""
    whole = list(block)
    return lambda: producer.send_batch(STREAM, whole)


def send_numpy(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that sends the block as one NumPy array of fixed-width records."""
    import numpy as np

    records = np.array(block, dtype=f"S{len(block[0])}")
    return lambda: producer.send_batch(STREAM, records)


def send_arrow(producer: Producer, block: Sequence[bytes]) -> Step:
    """Return a step that sends the block as one Arrow table with a binary column."""
    import pyarrow as pa

    table = pa.table({"body": pa.array(block, pa.binary())})
    return lambda: producer.send_arrow(STREAM, table, column="body")


MODES: dict[str, Callable[[Producer, Sequence[bytes]], Step]] = {
    "send_nowait": send_nowait,
    "stream_nowait": stream_nowait,
    "send_delivery": send_delivery,
    "send_await": send_await,
    "send_batch": send_batch,
    "send_numpy": send_numpy,
    "send_arrow": send_arrow,
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the argument that sets options of the producer."""
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="an option of the producer")


def settings_of(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the producer that the command line sets."""
    return dict(text.split("=", 1) for text in asked.set)


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(MODES), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--block", type=int, default=bodies.BLOCK)
    parser.add_argument("--text", action="store_true", help="bodies that compress like logs")
    add_settings(parser)
    parser.add_argument("--told", action="store_true", help="have on_delivery called for each message")
    parser.add_argument("--threads", type=int, default=1, help="so many threads send, each its own blocks")
    return parser.parse_args(argv)


class Told:
    """Count the results that ``on_delivery`` hands over."""

    def __init__(self) -> None:
        self.delivered = 0

    def one(self, result: DeliveryResult) -> None:
        """Count one result."""
        if result.error is None:
            self.delivered += 1

    def wait(self, number: int) -> None:
        """Wait until ``number`` results were counted: ``flush()`` returns before the last callbacks have run."""
        until = time.monotonic() + 60
        while self.delivered < number and time.monotonic() < until:
            time.sleep(0.0005)


def repeat_in_threads(steps: Sequence[Step], seconds: float) -> int:
    """Call each step in a thread of its own until the time is over; return the number of all calls."""
    if len(steps) == 1:
        return repeat(steps[0], seconds)
    with ThreadPoolExecutor(len(steps)) as pool:
        return sum(pool.map(lambda step: repeat(step, seconds), steps))


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it; AssertionError when the accounting does not balance."""
    asked = options(argv)
    block = bodies.text(asked.body, asked.block) if asked.text else bodies.plain(asked.body, asked.block)
    settings = settings_of(asked)
    told = Told()
    if asked.told:
        settings["on_delivery"] = told.one
    with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench", **settings) as producer:
        steps = [MODES[asked.mode](producer, block) for _ in range(asked.threads)]
        blocks = repeat_in_threads(steps, asked.warmup)
        producer.flush(60)
        section = Section()
        measured = repeat_in_threads(steps, asked.seconds)
        accounting = producer.flush(60)
        told.wait(accounting.delivered if asked.told else 0)
        fields = section.end(measured * len(block), asked.body)
    blocks += measured
    assert accounting.ok, accounting
    assert accounting.accepted == accounting.delivered == blocks * len(block), accounting
    assert told.delivered == (accounting.delivered if asked.told else 0), (told.delivered, accounting)
    report(
        fields
        | {
            "total_records": blocks * len(block),
            "total_crc_sum": blocks * bodies.crc_sum(block),
            "retries": accounting.retries,
            "duplicates_possible": accounting.duplicates_possible,
        }
    )


if __name__ == "__main__":
    main()
