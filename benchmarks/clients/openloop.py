"""Client program for latency under load: messages are due at a fixed rate, whether or not earlier ones have an answer.

``python -m benchmarks.clients.openloop --port N --load 0.5``

The ceiling is measured first, in the same process: what a loop of Python's gets.  ``--load`` is a share of it.  The
calls are made by a loop in C (`benchmarks/floor/due.pyx`), so that the core is not busy with the generator, and the
collector of cycles is off meanwhile: all it would walk is the list of deliveries kept here.  Message ``k`` is due at
``k / rate`` seconds, and every latency counts from then, so that a sender that falls behind counts as late.  Of every
so many messages one is sent with a Delivery.  Its answer gives the time from the pack's first message to the ack as
the core parsed it; which message that was, and when it was handed over, is known by its position.  With ``--streams``
messages go to so many streams in random order, the same in every run.
"""

import argparse
import gc
import random
import time
from collections.abc import Sequence

from benchmarks import bodies
from benchmarks.clients.ours import add_settings, settings_of
from benchmarks.clients.section import Section, repeat, report
from benchmarks.floors import load
from dataproxy import Delivery, Producer, Stream

__all__ = ["OpenLoop", "Turns", "main", "percentiles"]

STREAM = "s_bench"
BETWEEN = 50e-6  # about so many seconds between two chunks: the generator's pause while nothing is due
SAMPLES = 10_000  # a second, at most
TURNS = 20_000  # messages until the random order of streams repeats
LATE = (("50", 0.5), ("99", 0.99), ("999", 0.999))


def percentiles(seconds: list[float], prefix: str = "") -> dict[str, float]:
    """Return percentiles in microseconds, named for the report."""
    seconds.sort()
    return {f"{prefix}p{name}_us": seconds[int(len(seconds) * at)] * 1e6 for name, at in LATE}


class Turns:
    """Say which stream each message goes to: a random order that repeats."""

    def __init__(self, streams: int) -> None:
        """Draw the order of so many streams."""
        chance = random.Random(5)
        self.order = [chance.randrange(streams) for _ in range(TURNS)] if streams > 1 else [0]
        self._places: list[list[int]] = [[] for _ in range(streams)]
        self._ranks = []
        for place, stream in enumerate(self.order):
            self._ranks.append(len(self._places[stream]))
            self._places[stream].append(place)

    def stream(self, number: int) -> int:
        """Return the stream of a message."""
        return self.order[number % len(self.order)]

    def earlier(self, number: int, by: int) -> int:
        """Return which message was the one ``by`` places before a message of the same stream."""
        cycle, place = divmod(number, len(self.order))
        places = self._places[self.order[place]]
        back, rank = divmod(cycle * len(places) + self._ranks[place] - by, len(places))
        return back * len(self.order) + places[rank]


class OpenLoop:
    """Send at a fixed rate and keep what the latencies are computed from."""

    def __init__(self, streams: Sequence[Stream], turns: Turns, block: Sequence[bytes], rate: float) -> None:
        """Prepare chunks of messages; the clock is read once for each chunk, not for each message."""
        self.rate = rate
        self.chunk = max(1, min(64, int(rate * BETWEEN)))
        self.stride = max(1, int(rate / SAMPLES / self.chunk))
        self._streams = streams
        self._turns = turns
        self._block = list(block)
        self._handed: Sequence[float] = ()
        self._watched: list[tuple[int, Delivery]] = []
        self._called: list[tuple[Delivery, float]] = []
        self._began = 0.0

    def run(self, seconds: float) -> int:
        """Send for ``seconds``; return the number of messages."""
        streams, turns, watched, note = self._streams, self._turns, self._watched, self._note

        def watch(number: int, body: bytes) -> None:
            delivery = streams[turns.stream(number)].send(body)
            delivery.add_done_callback(note)
            watched.append((number, delivery))

        sends = [streams[turn].send_nowait for turn in turns.order]
        self._began, self._handed = load("due").send_due(
            sends, watch, self._block, self.rate, self.chunk, self.stride, seconds
        )
        return len(self._handed) * self.chunk

    def _note(self, delivery: Delivery) -> None:
        self._called.append((delivery, time.perf_counter()))

    def latencies(self) -> tuple[list[float], list[float]]:
        """Return the seconds from due time to ack, and from due time to callback.  Call it after a flush."""
        acked = []
        planned: dict[int, float] = {}
        for number, delivery in self._watched:
            result = delivery.result(10)
            due = self._began + number / self.rate
            first = self._turns.earlier(number, result.position)
            acked.append(self._handed[first // self.chunk] + result.latency - due)
            planned[id(delivery)] = due
        called = [at - planned[id(delivery)] for delivery, at in self._called]
        assert len(called) == len(acked), (len(called), len(acked))
        return acked, called


def ceiling(
    producer: Producer, streams: Sequence[Stream], turns: Turns, block: Sequence[bytes], seconds: float
) -> float:
    """Return the messages a second that are acknowledged when the sender does not wait for results."""
    send = streams[0].send_nowait
    sends = [streams[turn].send_nowait for turn in turns.order]
    pairs = [(call, block[number % len(block)]) for number, call in enumerate(sends)]

    def to_one() -> None:
        for body in block:
            send(body)

    def to_many() -> None:
        for call, body in pairs:
            call(body)

    step, messages = (to_many, len(pairs)) if len(streams) > 1 else (to_one, len(block))
    repeat(step, seconds / 3)
    producer.flush(60)
    began = time.perf_counter()
    sent = repeat(step, seconds) * messages
    producer.flush(60)
    return sent / (time.perf_counter() - began)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--load", type=float, default=0.5, help="share of the ceiling")
    parser.add_argument("--rate", type=float, default=0.0, help="messages a second, in place of a share")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--warmup", type=float, default=0.3)
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--linger", default="1ms")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--defaults", action="store_true", help="no options but those of --set")
    add_settings(parser)
    asked = parser.parse_args(argv)
    block = bodies.plain(asked.body)
    options = ({} if asked.defaults else {"linger": asked.linger}) | settings_of(asked)
    with Producer(f"tcp://127.0.0.1:{asked.port}", group_id="b_bench", **options) as producer:
        names = [f"{STREAM}_{number}" for number in range(asked.streams)] if asked.streams > 1 else [STREAM]
        streams, turns = [producer.stream(name) for name in names], Turns(asked.streams)
        rate = asked.rate or ceiling(producer, streams, turns, block, asked.warmup) * asked.load
        OpenLoop(streams, turns, block, rate).run(0.05)
        producer.flush(60)
        loop = OpenLoop(streams, turns, block, rate)
        gc.collect()
        gc.disable()
        section = Section()
        sent = loop.run(asked.seconds)
        accounting = producer.flush(60)
        fields = section.end(sent, asked.body)
    assert accounting.ok, accounting
    acked, called = loop.latencies()
    late = percentiles(called, "callback_")
    report(fields | {"total_records": accounting.accepted, "planned_rate": rate} | percentiles(acked) | late)


if __name__ == "__main__":
    main()
