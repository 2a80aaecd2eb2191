"""Results that wait for slow callbacks: bounded, and in the accounting whatever happens to them."""

import asyncio
import logging
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import dataproxy
from tests.loopback.producer.test_memory_bounds import MIB, SPREAD, bound, heap
from tests.support.scripted import Scripted, good

SIZE = 64 * 1024
MOST = SIZE // 8 + 4 * MIB
MANY = 12_000  # packs of one message: their results take about three times what may wait


class Gate:
    """A callback that stands still until the gate opens, and counts."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.told: Counter[str] = Counter()

    def __call__(self, result: dataproxy.DeliveryResult) -> None:
        self.open.wait(60)
        self.told["delivered" if result.error is None else "lost"] += 1


def producer(target: str, **options: Any) -> dataproxy.Producer:
    """Return a producer of packs with one message each."""
    return dataproxy.Producer(target, group_id="g", **{"buffer_bytes": SIZE, "batch_messages": 1, **options})


def send_until_held(p: dataproxy.Producer, most: int = MANY) -> int:
    """Send until nothing is under way and yet no room comes; return how many were accepted."""
    for sent in range(most):
        while True:
            try:
                p.send_nowait("s", b"x")
            except dataproxy.BufferFullError:
                if p.stats().pending == 0:
                    return sent
            else:
                break
    raise AssertionError(f"{most} messages and nobody was held back")


def insist(p: dataproxy.Producer) -> None:
    """Send a message, however long it takes until there is room."""
    while True:
        with suppress(dataproxy.BufferFullError):
            p.send_nowait("s", b"y")
            return


def test_a_slow_callback_holds_senders_back() -> None:
    gate = Gate()
    with Scripted(good) as server:
        before = heap()
        p = producer(server.target, on_delivery=gate, max_block=0.2)
        accepted = send_until_held(p)
        stats = p.stats()
        assert 1000 < accepted < MANY
        assert MOST // 2 < stats.results_bytes <= MOST
        assert heap() - before <= bound(SIZE) + MOST + SPREAD
        assert sum(stats.untold.values()) == 0
        with pytest.raises(dataproxy.BufferFullError, match="results wait for callbacks") as caught:
            p.send_nowait("s", b"x")
        assert MOST // 2 < caught.value.details["results_bytes"] <= MOST
        gate.open.set()
        for _ in range(3000):
            insist(p)  # room comes as results are told
        report = p.close(60)
        assert report.delivered == accepted + 3000
    assert gate.told == {"delivered": accepted + 3000}
    assert p.stats().results_bytes == 0


@pytest.mark.parametrize("mode", ["raise", "drop_newest", "drop_oldest"])
def test_the_oldest_results_are_counted_where_nobody_waits(mode, caplog) -> None:
    gate = Gate()
    alone: list[int] = []
    with Scripted(good) as server, caplog.at_level(logging.WARNING, "dataproxy.callback"):
        before = heap()
        p = producer(server.target, on_delivery=gate, on_full=mode, buffer_bytes=MIB)
        accepted = 0
        for i in range(MANY):
            if i % 500 == 0:
                p.send("s", b"x", on_delivery=lambda r: alone.append(r.delivered.position))
            else:
                p.send_nowait("s", b"x")
            accepted += 1
            if i % 200 == 199:
                p.flush(30)  # no room is ever wanting
        most = MIB // 8 + 4 * MIB
        stats = p.stats()
        assert stats.results_bytes <= most
        assert heap() - before <= bound(MIB) + most + SPREAD
        assert 0 < stats.untold["delivered"] < accepted
        assert stats.delivered == accepted
        gate.open.set()
        assert p.close(60).delivered == accepted
    stats = p.stats()
    assert gate.told["delivered"] + stats.untold["delivered"] == accepted
    assert sum(stats.untold.values()) == stats.untold["delivered"]
    assert len(alone) == MANY // 500  # what was asked for of single messages is told in any case
    assert stats.results_bytes == 0
    said = [r.getMessage() for r in caplog.records if "slower than results" in r.getMessage()]
    assert 1 <= len(said) <= 3


def test_futures_are_told_in_any_case() -> None:
    gate, done = Gate(), []
    with Scripted(good) as server:
        p = producer(server.target, on_delivery=gate, on_full="raise", buffer_bytes=MIB)
        p.send("s", b"first").result(30)
        for i in range(MANY):
            p.send("s", b"x").add_done_callback(done.append) if i % 3 == 0 else p.send_nowait("s", b"x")
            if i % 200 == 199:
                p.flush(30)
        gate.open.set()
        p.close(60)
        assert len(done) == MANY // 3
        assert gate.told["delivered"] + p.stats().untold["delivered"] == MANY + 1
        assert p.stats().results_bytes == 0


def test_refusals_that_wait_are_bounded_too() -> None:
    """Dropped messages of very many streams, each with an id of its own, while the callback stands still."""
    gate = Gate()
    with Scripted(lambda peer, frame: None) as server:
        p = producer(server.target, on_delivery=gate, on_full="drop_newest", buffer_bytes=1024, batch_messages=65535)
        streams = [p.stream(f"s{i}") for i in range(3000)]
        count = 0
        for _ in range(20):
            for stream in streams:
                stream.send_nowait(b"x" * 800, message_id=f"{count:0128d}")
                count += 1
        stats = p.stats()
        assert stats.results_bytes <= 1024 // 8 + 4 * MIB
        assert stats.untold["dropped"] > 0
        assert stats.balanced
        assert stats.accepted == count
        gate.open.set()
        p.close(0)
        assert gate.told["lost"] + sum(p.stats().untold.values()) == count


def test_a_callback_that_sends_is_not_held_back() -> None:
    """Each result sends again, with far more waiting than the bound: nobody but its own thread could tell them."""
    told: list[int] = []
    begun = threading.Event()

    def again(result: dataproxy.DeliveryResult) -> None:
        begun.wait(60)
        told.append(1)
        if len(told) <= 6000:
            p.send_nowait("s", b"again")

    with Scripted(good) as server:
        p = producer(server.target, on_delivery=again, max_block=3)
        accepted = send_until_held(p)
        begun.set()
        while len(told) < 6000:
            p._wait_settled(0.01)
        assert p.close(60).delivered == len(told) == accepted + 6000


def test_the_thread_of_the_callbacks_loop_is_not_held_back() -> None:
    told: list[dataproxy.DeliveryResult] = []
    all_told = asyncio.Event()

    def tell(result: dataproxy.DeliveryResult) -> None:
        told.append(result)
        if len(told) == MANY:
            all_told.set()

    async def main(target: str) -> int:
        p = producer(target, on_delivery=tell, callback_on=asyncio.get_running_loop(), max_block=30)
        for _ in range(MANY):
            p.send_nowait("s", b"x")  # the loop gets no turn meanwhile
        report = await asyncio.to_thread(p.close, 60)
        await asyncio.wait_for(all_told.wait(), 60)
        return report.delivered

    with Scripted(good) as server:
        assert asyncio.run(main(server.target)) == MANY


def test_a_worker_of_the_callbacks_executor_is_not_held_back() -> None:
    told: list[dataproxy.DeliveryResult] = []
    with Scripted(good) as server, ThreadPoolExecutor(1) as pool:
        p = producer(server.target, on_delivery=told.append, callback_on=pool, max_block=30)

        def job() -> None:
            for _ in range(MANY):
                p.send_nowait("s", b"x")

        pool.submit(job).result(60)
        assert p.close(60).delivered == MANY
        pool.shutdown()
        assert len(told) == MANY


def test_a_stuck_loop_gets_no_more_than_some_thousand_results() -> None:
    told: list[dataproxy.DeliveryResult] = []
    loop = asyncio.new_event_loop()  # nobody runs it
    with Scripted(good) as server:
        p = producer(server.target, on_delivery=told.append, callback_on=loop, max_block=0.2)
        accepted = send_until_held(p, 3 * MANY)
        assert 4096 <= p._callbacks._ahead.results < 4096 + 100
        assert p.close(30).delivered == accepted
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    assert len(told) == accepted


def test_a_closed_loop_lets_go() -> None:
    loop = asyncio.new_event_loop()
    with Scripted(good) as server:
        p = producer(server.target, on_delivery=lambda result: None, callback_on=loop, max_block=0.2)
        accepted = send_until_held(p, 3 * MANY)
        loop.close()
        insist(p)  # the dispatcher looks by itself
        assert p.close(60).delivered == accepted + 1
        stats = p.stats()
        assert (stats.results_bytes, stats.callback_errors) == (0, stats.delivered)


class Lazy:
    """An executor that keeps what it is given."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Any, *args: Any) -> Future[Any]:
        """Keep it."""
        self.futures.append(Future())
        return self.futures[-1]


def test_cancelled_futures_let_go() -> None:
    lazy = Lazy()
    with Scripted(good) as server:
        p = producer(server.target, on_delivery=lambda result: None, callback_on=lazy, max_block=0.2)
        accepted = send_until_held(p, 3 * MANY)
        assert 4096 <= p._callbacks._ahead.results < 4096 + 100
        cancelled = 0
        while p.stats().callback_errors < accepted:
            for future in lazy.futures[cancelled:]:
                future.cancel()
                cancelled += 1
            p._wait_settled(0.01)
        assert p.stats().callback_errors == accepted
        assert p._callbacks._ahead.results == 0
        insist(p)
        p.close(30)
