"""Which open packs are sealed for their age: on virtual time, round by round, with a socket that is full or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dataproxy import Producer
from dataproxy.producer import lifecycle
from tests.native.probe_net import Net, set_time
from tests.native.probe_sim import Client
from tests.sim.app import simulated

BEGIN_US = 1_000_000
READY = 128  # packs that may wait to be written before age alone seals no more
ROOMY = 1 << 30


class Rounds:
    """A producer with one connection whose executor works only when it is told to."""

    def __init__(self, window: int | None, **options: object) -> None:
        self.now_us = BEGIN_US
        set_time(self.now_us, 1_700_000_000_000)
        self.net = Net()
        with simulated():
            self.producer = Producer("tcp://127.0.0.1:46801", group_id="g", **options)  # type: ignore[arg-type]
        lifecycle.unregister(self.producer)
        self.client = Client(self.producer, seed=1, first_seq=1, wall_offset_ms=1_699_999_999_000)
        self.pass_ms(0)
        if window is not None:
            self.net.connected(0, ROOMY, ROOMY)
            self.let_write(window - ROOMY)
            self.pass_ms(0)

    def let_write(self, more: int) -> None:
        """Let the socket take so many bytes more."""
        self.net.under_way(0, 1, -more)

    def pass_ms(self, ms: float) -> None:
        """Let so much time pass; the executor works whenever it is woken or something is due."""
        until = self.now_us + int(ms * 1000)
        while True:
            for _ in range(100):
                if not self.client.ready(0):
                    break
                self.client.round(0)
                if not self.client.facts()["inbox"]:
                    break
            due = self.client.due(0)
            if due < 0 or due > until:
                break
            self.now_us = max(self.now_us, due)
            set_time(self.now_us, 1_700_000_000_000)
            self.client.round(0)
        self.now_us = until
        set_time(self.now_us, 1_700_000_000_000)

    def unwritten(self) -> int:
        """Return how many packs were sealed and not written."""
        facts = self.client.facts()
        return int(facts["waiting"] + facts["queued_packs"] + facts["inbox"])

    def sealed(self) -> int:
        """Return how many packs were sealed."""
        return self.unwritten() + int(self.client.facts()["flying_packs"])

    def open_messages(self) -> int:
        """Return how many messages are in open packs."""
        return int(self.producer._counts()["open"])

    def send(self, streams: int) -> None:
        """Send one message to each of so many streams."""
        for i in range(streams):
            self.producer.send_nowait(f"s{i}", b"m")


@contextmanager
def by_hand(window: int | None = None, **options: object) -> Iterator[Rounds]:
    """Give a producer whose connection takes ``window`` bytes; None: no connection is made."""
    rounds = Rounds(window, **options)
    try:
        yield rounds
    finally:
        rounds.producer._begin_close()
        rounds.producer._abandon_open()
        rounds.producer._stop_executors()
        while rounds.client.round(0):
            pass
        rounds.net.leave()
        rounds.producer._end_completions()
        rounds.client.leave()


def test_a_producer_without_load_seals_after_linger() -> None:
    with by_hand(ROOMY, linger=0.005) as rounds:
        rounds.send(3)
        rounds.pass_ms(4.9)
        assert rounds.sealed() == 0
        rounds.pass_ms(0.2)
        assert (rounds.sealed(), rounds.unwritten(), rounds.open_messages()) == (3, 0, 0)


def test_age_seals_no_more_packs_than_one_write_takes() -> None:
    with by_hand() as rounds:
        rounds.send(200)
        rounds.pass_ms(100)
        assert rounds.unwritten() == READY
        rounds.send(200)
        assert rounds.open_messages() == 200 - READY + 200


def test_open_packs_grow_while_frames_wait_for_the_socket() -> None:
    with by_hand(0) as rounds:
        for _ in range(4):
            rounds.send(200)
            rounds.pass_ms(6)
        assert rounds.unwritten() == READY
        assert rounds.open_messages() == 4 * 200 - READY
        rounds.let_write(ROOMY)
        rounds.pass_ms(20)
        # the first packs, and one for each stream with all its messages that were not in those
        assert (rounds.sealed(), rounds.open_messages()) == (READY + 200, 0)


def test_the_oldest_pack_leaves_first() -> None:
    with by_hand() as rounds:
        rounds.send(READY)
        rounds.pass_ms(10)
        rounds.producer.send_nowait("old", b"m")
        rounds.pass_ms(1)
        rounds.producer.send_nowait("young", b"m")
        rounds.pass_ms(251)
        assert (rounds.unwritten(), rounds.open_messages()) == (READY, 2)
        rounds.pass_ms(4)
        assert (rounds.unwritten(), rounds.open_messages()) == (READY + 1, 1)


def test_no_pack_waits_for_room_longer_than_a_quarter_of_a_second() -> None:
    with by_hand(0, linger=0.005) as rounds:
        rounds.send(200)
        rounds.pass_ms(254)
        assert rounds.unwritten() == READY
        rounds.pass_ms(3)
        assert (rounds.unwritten(), rounds.open_messages()) == (200, 0)


def test_no_pack_waits_for_room_longer_than_its_delivery_allows() -> None:
    with by_hand(0, linger=0.1, delivery_timeout=0.18) as rounds:
        rounds.send(200)
        rounds.pass_ms(108)
        assert rounds.unwritten() == READY
        rounds.pass_ms(4)
        assert (rounds.unwritten(), rounds.open_messages()) == (200, 0)


@pytest.mark.parametrize("how", ["result", "flush", "full"])
def test_other_reasons_seal_without_room(how: str) -> None:
    with by_hand(0, batch_messages=2) as rounds:
        rounds.send(READY)
        rounds.pass_ms(10)
        delivery = rounds.producer.send("more", b"m")
        if how == "result":
            with pytest.raises(TimeoutError):
                delivery.result(0.001)
        elif how == "flush":
            rounds.producer._wait_settled(0.0)
        else:
            rounds.producer.send_nowait("more", b"m")
        rounds.pass_ms(0)
        assert (rounds.unwritten(), rounds.open_messages()) == (READY + 1, 0)
