"""Client program for the price of one call: CPU time of the calling thread, the empty loop taken off.

``python -m benchmarks.clients.call --mode send_nowait --port N``

The executor shares the core but not the thread, so its work is not in the figure. Blocks are small against the
buffer limit and flushed between, outside of the measured time, so that no call waits for room.
"""

import argparse
import operator
import time
from collections.abc import Callable, Sequence

from benchmarks import bodies
from benchmarks.clients.section import Section, report
from benchmarks.floors import load
from dataproxy import Producer

__all__ = ["main"]

STREAM = "s_bench"
CALLS = 200_000
ROUNDS = 15


def nothing(block: Sequence[bytes]) -> None:
    """Loop over the bodies."""
    for _body in block:
        pass


def builtin(block: Sequence[bytes]) -> None:
    """Call a C function with two arguments for each body: the cost of a call that does nothing."""
    call = operator.is_
    for body in block:
        call(STREAM, body)


def loops(producer: Producer) -> dict[str, Callable[[Sequence[bytes]], None]]:
    """Return the loops that can be measured, by mode."""
    by_name, bound, with_delivery = producer.send_nowait, producer.stream(STREAM).send_nowait, producer.send

    def send_nowait(block: Sequence[bytes]) -> None:
        for body in block:
            by_name(STREAM, body)

    def stream_nowait(block: Sequence[bytes]) -> None:
        for body in block:
            bound(body)

    def send_delivery(block: Sequence[bytes]) -> None:
        for body in block:
            with_delivery(STREAM, body)

    return {"send_nowait": send_nowait, "stream_nowait": stream_nowait, "send_delivery": send_delivery}


def floors() -> dict[str, Callable[[Sequence[bytes]], None]]:
    """Return the loops over the Cython floor, by mode."""
    calls = load("calls")
    nothing_done, copied = calls.empty, calls.copying

    def empty(block: Sequence[bytes]) -> None:
        for body in block:
            nothing_done(body)

    def copying(block: Sequence[bytes]) -> None:
        for body in block:
            copied(body)

    return {"empty": empty, "copying": copying}


def thread_ns(loop: Callable[[Sequence[bytes]], None], block: Sequence[bytes]) -> float:
    """Return the CPU nanoseconds of this thread per body, from one pass over the block."""
    began = time.thread_time_ns()
    loop(block)
    return (time.thread_time_ns() - began) / len(block)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it: the median over the passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--port", type=int, default=0, help="0: no producer, the Cython floor")
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args(argv)
    block = bodies.plain(asked.body) * (CALLS // bodies.BLOCK)
    calls: list[float] = []
    empty: list[float] = []
    other: list[float] = []

    def measure(loop: Callable[[Sequence[bytes]], None], after: Callable[[float], object]) -> dict[str, float]:
        loop(block)
        after(60)
        section = Section()
        for _ in range(asked.rounds):
            empty.append(thread_ns(nothing, block))
            other.append(thread_ns(builtin, block))
            calls.append(thread_ns(loop, block))
            after(60)
        return section.end(asked.rounds * len(block), asked.body)

    if asked.port:
        with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench") as producer:
            fields = measure(loops(producer)[asked.mode], producer.flush)
    else:
        fields = measure(floors()[asked.mode], lambda _seconds: None)
    middle = asked.rounds // 2
    overhead = sorted(empty)[middle]
    report(
        fields
        | {
            "ns_per_call": sorted(calls)[middle] - overhead,
            "builtin_ns_per_call": sorted(other)[middle] - overhead,
            "loop_ns": overhead,
        }
    )


if __name__ == "__main__":
    main()
