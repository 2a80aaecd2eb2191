"""What order by key costs: messages a second without keys, with 1,000 keys, and of one bucket alone.

``python -m benchmarks.keys [--rounds 5] [--seconds 1] [--buckets 16]`` prints the rates and their ratio.  All
ways of sending run in turn, round by round, against the C sink; a rate counts acknowledged messages from the first
call to the return of ``flush()``, and the figure is the median of the rounds.  Every way has the key of each message
at hand, so that the loops differ in nothing else.  The CPU time of a message, all threads and the kernel, is printed
too: a busy machine disturbs it less.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import bodies
from benchmarks.clients.section import Section, repeat
from benchmarks.contest import Conditions, serve
from benchmarks.floors import build
from dataproxy import Producer

__all__ = ["main"]

KEYS = 1000
STREAM = "s_bench"
Step = Callable[[], object]


def with_keys(block: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the bodies, each with one of the keys."""
    return [(body, b"user-%d" % (i % KEYS)) for i, body in enumerate(block)]


def unordered(producer: Producer, block: Sequence[bytes]) -> Step:
    """Send without keys."""
    send = producer.stream(STREAM).send_nowait
    pairs = with_keys(block)

    def step() -> None:
        for body, _key in pairs:
            send(body)

    return step


def keyed(producer: Producer, block: Sequence[bytes]) -> Step:
    """Send with 1,000 keys in turn."""
    send = producer.stream(STREAM).send_nowait
    pairs = with_keys(block)

    def step() -> None:
        for body, key in pairs:
            send(body, key=key)

    return step


def one_key(producer: Producer, block: Sequence[bytes]) -> Step:
    """Send with one key: one frame at a time."""
    send = producer.stream(STREAM).send_nowait
    pairs = with_keys(block)

    def step() -> None:
        for body, _key in pairs:
            send(body, key=b"user-1")

    return step


def one_key_batch(producer: Producer, block: Sequence[bytes]) -> Step:
    """Send a block as one batch with one key."""
    whole = list(block)
    return lambda: producer.send_batch(STREAM, whole, key=b"user-1")


def batch(producer: Producer, block: Sequence[bytes]) -> Step:
    """Send a block as one batch without a key."""
    whole = list(block)
    return lambda: producer.send_batch(STREAM, whole)


WAYS: dict[str, Callable[[Producer, Sequence[bytes]], Step]] = {
    "send_nowait, no keys": unordered,
    "send_nowait, 1,000 keys": keyed,
    "send_nowait, one key": one_key,
    "send_batch, no keys": batch,
    "send_batch, one key": one_key_batch,
}


def rate(way: str, port: int, block: Sequence[bytes], seconds: float, buckets: int) -> tuple[float, float]:
    """Return acknowledged messages a second of one way of sending, and CPU seconds of one message."""
    with Producer(f"tcp://127.0.0.1:{port}", group_id="b_bench", ordering="key", key_buckets=buckets) as producer:
        step = WAYS[way](producer, block)
        repeat(step, 0.2)
        producer.flush(60)
        section = Section()
        messages = repeat(step, seconds) * len(block)
        report = producer.flush(60)
        fields = section.end(messages, len(block[0]))
    assert report.ok, report
    return messages / fields["seconds"], (fields["cpu_user"] + fields["cpu_sys"]) / messages


def middle(found: list[tuple[float, float]], part: int) -> float:
    """Return the median over the rounds; ``part`` is 0 for the rate (messages/s), 1 for CPU seconds of a message."""
    return statistics.median(point[part] for point in found)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rounds and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--body", type=int, default=100)
    asked = parser.parse_args(argv)
    build()
    block = bodies.plain(asked.body)
    points: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    cores = sorted(os.sched_getaffinity(0))
    here, there = frozenset(cores[:-1] or cores), frozenset(cores[-1:])
    os.sched_setaffinity(0, here)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve("sink", Conditions(asked.seconds, 0.2, here, there, Path(folder))) as (port, _),
    ):
        for n in range(asked.rounds):
            for way in list(WAYS) if n % 2 == 0 else reversed(list(WAYS)):
                points[way].append(rate(way, port, block, asked.seconds, asked.buckets))
    for way, found in points.items():
        rates = [messages for messages, _ in found]
        print(f"{way:<26}{middle(found, 0) / 1e6:8.2f} M/s, {min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f};"
              f"{middle(found, 1) * 1e9:5.0f} ns of CPU a message")  # fmt: skip
    free, ordered = points["send_nowait, no keys"], points["send_nowait, 1,000 keys"]
    print(f"1,000 keys of no keys: {middle(ordered, 0) / middle(free, 0):.2f} of the rate,"
          f" {middle(free, 1) / middle(ordered, 1):.2f} by CPU")  # fmt: skip


if __name__ == "__main__":
    main()
