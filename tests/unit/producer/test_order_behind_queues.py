"""What keeps the order of a key behind a proxy with several memory queues: a model of that proxy.

The proxy answers a frame when it lies in one of its memory queues.  Each queue has one sink, which hands its frames to
the message queue, one after the other.  Sinks work at different speeds and stop now and then.  The client is as
careful as ``ordering="key"`` is: the next frame of a key leaves when the one before is answered.  Decision 25 has what
follows from it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

TRIP_US = 500  # from a frame's sending to its ack
SINK_US = 300  # a sink's time for one frame
STOP_US = 40_000  # now and then one stops for up to so long
FRAMES = 20_000
KEYS = 5


@dataclass
class Sink:
    """One memory queue and its sink."""

    rng: random.Random
    free_us: int = 0  # when it has handed over all that it was given

    def take(self, now_us: int) -> int:
        """Queue a frame; return when it reaches the message queue."""
        start = max(now_us, self.free_us)
        if self.rng.random() < 0.002:
            start += self.rng.randrange(STOP_US)
        self.free_us = start + self.rng.randrange(SINK_US // 2, SINK_US * 3 // 2)
        return self.free_us


@dataclass
class Proxy:
    """A proxy whose ``choose`` says which queue gets a frame: by its key, its connection, or neither."""

    queues: int
    choose: Callable[[random.Random, str, int], int]
    answers_late: bool = False  # the answer comes from the sink, not from the queue
    seed: int = 1
    stored: list[tuple[int, str, int]] = field(default_factory=list)  # (when, key, number)

    def run(self, keys: int, *, pause_us: int = 0, own_connection: bool = False, frames: int = FRAMES) -> None:
        """Send frames of ``keys`` keys in turn, each behind the answer to the one before of its key."""
        rng = random.Random(self.seed)
        sinks = [Sink(rng) for _ in range(self.queues)]
        ready = {f"key{n}": 0 for n in range(keys)}
        for number in range(frames):
            key = min(ready, key=lambda name: ready[name])
            now = ready[key] + TRIP_US // 2
            connection = int(key[3:]) if own_connection else rng.randrange(8)
            at = sinks[self.choose(rng, key, connection) % self.queues].take(now)
            self.stored.append((at, key, number))
            ready[key] = (at if self.answers_late else now) + TRIP_US // 2 + pause_us

    def late(self) -> int:
        """Return how many frames reach the message queue behind a younger one of their key."""
        newest: dict[str, int] = {}
        count = 0
        for _, key, number in sorted(self.stored):
            count += number < newest.get(key, -1)
            newest[key] = max(number, newest.get(key, -1))
        return count


def anyhow(rng: random.Random, key: str, connection: int) -> int:
    return rng.randrange(1 << 16)


def by_key(rng: random.Random, key: str, connection: int) -> int:
    return sum(key.encode())


def of(proxy: Proxy, **how: int) -> int:
    proxy.run(KEYS, **how)
    return proxy.late()


def test_an_ack_from_the_memory_queue_keeps_no_order_behind_two_queues() -> None:
    """Though each frame of a key waited for the answer to the one before."""
    assert of(Proxy(2, anyhow)) > FRAMES // 100


def test_behind_one_queue_with_one_sink_the_order_is_kept() -> None:
    assert of(Proxy(1, anyhow)) == 0


def test_a_connection_for_each_key_changes_nothing() -> None:
    """The queue is chosen for each frame, not for each connection."""
    assert of(Proxy(2, anyhow), own_connection=True) > FRAMES // 100


def test_queues_turn_by_turn_are_no_better() -> None:
    turn = iter(range(FRAMES))
    assert of(Proxy(2, lambda rng, key, connection: next(turn))) > FRAMES // 100


@pytest.mark.parametrize(("pause_us", "kept"), [(1_000, False), (10_000, False), (2 * STOP_US, True)])
def test_a_pause_behind_the_ack_helps_only_if_it_is_longer_than_any_stop(pause_us: int, kept: bool) -> None:
    """So it is no promise: nobody knows how long a sink may stop, and each key then sends a frame a pause."""
    assert (of(Proxy(2, anyhow), pause_us=pause_us) == 0) == kept


def test_an_answer_from_the_sink_keeps_the_order_behind_any_queues() -> None:
    """What ``proxySend`` asks for and no DataProxy of today answers."""
    assert of(Proxy(2, anyhow, answers_late=True)) == 0


def test_a_queue_that_the_key_chooses_keeps_the_order() -> None:
    """What ``partitionKey`` asks for; a DataProxy heeds it beside ``syncSend`` alone, which it never answers."""
    assert of(Proxy(2, by_key)) == 0


def test_fewer_frames_for_the_same_messages_are_fewer_inversions() -> None:
    """Inside of a frame the order holds, so larger frames help in proportion, and never altogether."""
    few, many = (of(Proxy(2, anyhow), frames=frames) for frames in (FRAMES // 10, FRAMES))
    assert 0 < few < many // 4


def test_a_reader_that_sorts_by_the_frames_numbers_has_the_order() -> None:
    """The one thing that a producer and a reader can do without the server: ids ascend within a key."""
    proxy = Proxy(2, anyhow)
    assert of(proxy) > 0
    for key in {key for _, key, _ in proxy.stored}:
        read = [number for _, its, number in sorted(proxy.stored) if its == key]
        sent = sorted(read)
        assert read != sent
        place = {number: at for at, number in enumerate(read)}
        assert max(place[number] - at for at, number in enumerate(sent)) < 200  # a reader holds back so many frames
