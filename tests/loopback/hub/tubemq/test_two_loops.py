"""Two server loops at one partition: what one does while the other has read a pack and has not noted it yet.

The loops are played one step at a time, over the registrations and the store of a hub that is idle meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy import Producer
from dataproxy.hub import Hub
from tests.native.probe_packs import Loop
from tests.support.waiting import SECONDS

KEY = (b"g", b"demo", 0)
INDEX = 28


class Bench:
    """Two loops, and a group's registration that they share."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        service = hub._tubemq
        assert service is not None
        self.table = service.registrations
        self.loops = [Loop(self.table), Loop(self.table)]
        assert self.table.take(*KEY, b"c", b"", self.now)[0] == 200
        assert self.table.begin(*KEY, 0, -1, 0, 0) == 0

    @property
    def now(self) -> int:
        return self.hub._core.clock_us()

    def fill(self, n: int) -> None:
        """Store messages."""
        with Producer(self.hub.tubemq_target) as producer:
            for i in range(n):
                producer.send_nowait("demo", b"%d" % i)
            assert producer.flush(SECONDS).delivered == n

    def get(self, loop: int, then: Callable[[], object] | None = None, **more: Any) -> tuple[int, int, int]:
        """Return the code of an answer, its first message, and how many it has."""
        status, code, first, n, size = self.loops[loop].get(b"c", *KEY, now_us=self.now, then=then, **more)
        assert (n > 0) == (size > 0), "what is not given is not in the answer"
        return code if status != "ok" else 200, first, n

    def commit(self, consumed: bool = True) -> int:
        """Confirm what was read last, or not; return the position."""
        code, at = self.table.commit(*KEY, b"c", consumed, self.now)
        assert code == 200
        return at // INDEX

    def standing(self) -> tuple[int, int]:
        """Return how many messages are confirmed, and how many are read behind them."""
        ((*_, confirmed, pending),) = self.table.found(b"g")
        return confirmed // INDEX, pending // INDEX


@pytest.fixture
def bench(start_hub: Callable[..., Hub]) -> Bench:
    one = Bench(start_hub(tubemq_port=0, partitions=1))
    one.fill(5)
    return one


def test_alone_a_loop_gives_what_it_reads(bench: Bench) -> None:
    assert bench.get(0) == (200, 0, 5)
    assert bench.standing() == (0, 5)
    assert bench.commit() == 5


def test_the_other_one_reads_and_confirms(bench: Bench) -> None:
    def meanwhile() -> None:
        assert bench.get(1) == (200, 0, 5)
        assert bench.commit() == 5
        bench.fill(3)

    assert bench.get(0, meanwhile) == (404, 0, 0)
    assert bench.commit() == 5, "nothing waits for a confirm"
    assert bench.get(0) == (200, 5, 3)


def test_the_other_one_reads_fewer_messages(bench: Bench) -> None:
    """Who has the answer of the other one, and confirms it, must not confirm what came since."""

    def meanwhile() -> None:
        bench.fill(2)
        assert bench.get(1) == (200, 0, 7)

    assert bench.get(0, meanwhile) == (404, 0, 0)
    assert (bench.standing(), bench.commit()) == ((0, 7), 7)


def test_both_read_on_without_confirms(bench: Bench) -> None:
    """The pack that both have read is passed over once."""
    assert bench.get(0, lambda: bench.get(1, manual=True), manual=True) == (404, 0, 0)
    assert bench.standing() == (0, 5)
    bench.fill(1)
    assert bench.get(0, manual=True) == (200, 5, 1)


def test_what_was_read_before_is_confirmed_meanwhile(bench: Bench) -> None:
    assert bench.get(0) == (200, 0, 5)
    bench.fill(2)
    assert bench.get(1, lambda: bench.commit(), manual=True) == (404, 5, 0)
    assert bench.standing() == (5, 0)
    assert bench.get(1, manual=True) == (200, 5, 2)


def test_an_administrator_resets_the_group_meanwhile(bench: Bench) -> None:
    assert bench.get(0, lambda: bench.table.reset(*KEY, 3 * INDEX)) == (404, 0, 0)
    assert bench.commit() == 3
    assert bench.get(0) == (200, 3, 2)


def test_the_partition_gets_another_owner_meanwhile(bench: Bench) -> None:
    def meanwhile() -> None:
        assert bench.table.leave(*KEY, b"c", False, bench.now) == 200
        assert bench.table.take(*KEY, b"d", b"", bench.now)[0] == 200

    assert bench.get(0, meanwhile) == (404, 0, 0)
    assert bench.standing() == (0, 0)
    assert bench.get(0)[0] == 412


def test_a_pack_that_is_not_given_is_not_counted(bench: Bench) -> None:
    bench.table.set_rules(None, ((0, 1440, 21, 12, 500),))  # a byte for five seconds
    before = bench.table.counts()
    assert bench.get(0, lambda: bench.table.reset(*KEY, 0)) == (404, 0, 0)
    assert bench.table.counts() == before
    assert bench.get(0) == (200, 0, 5), "the first one is free of limits, and this is it"
    assert bench.get(0) == (200, 0, 1)
    assert bench.get(0)[0] == 452


@pytest.mark.parametrize("seed", range(30))
def test_no_order_of_steps_confirms_what_was_not_given(bench: Bench, seed: int) -> None:
    source = random.Random(seed)
    given: set[int] = set()

    def step(depth: int = 0) -> None:
        what = source.random()
        if what < 0.6:
            inner = (lambda: step(depth + 1)) if depth < 2 and source.random() < 0.6 else None
            code, first, n = bench.get(source.randrange(2), inner, manual=source.random() < 0.3)
            assert code in (200, 404)
            given.update(range(first, first + n))
        elif what < 0.9:
            confirmed = bench.commit(source.random() < 0.7)
            assert set(range(confirmed)) <= given
        else:
            bench.fill(1)

    for _ in range(40):
        step()
    confirmed, pending = bench.standing()
    assert set(range(confirmed + pending)) <= given
