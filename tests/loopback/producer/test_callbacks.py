"""Callbacks of single calls, where they run, and what they must not do."""

import asyncio
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import dataproxy
from dataproxy.producer.results.dispatcher import Dispatcher, EventLog
from tests.loopback.producer.test_delivery import moody, producer
from tests.support.scripted import Peer, Scripted, ack, refusal, silent

SECONDS = 30


class Seen:
    """Collect results with the thread they came on; ``wait(n)`` waits for so many."""

    def __init__(self) -> None:
        self.results: list[dataproxy.DeliveryResult] = []
        self.threads: Counter[str] = Counter()
        self.changed = threading.Condition()

    def __call__(self, result: dataproxy.DeliveryResult) -> None:
        with self.changed:
            self.results.append(result)
            self.threads[threading.current_thread().name.rstrip("0123456789")] += 1
            self.changed.notify_all()

    def wait(self, n: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.results) >= n, SECONDS)

    def ids(self) -> set[str]:
        return {r.delivered.id if r.delivered else r.error.details["id"] for r in self.results}


def test_a_callback_of_one_call_comes_after_the_producers_own() -> None:
    order: list[tuple[str, dataproxy.DeliveryResult]] = []
    with Scripted() as server:
        with producer(server.target, on_delivery=lambda r: order.append(("all", r))) as p:
            delivery = p.send("s", b"x", on_delivery=lambda r: order.append(("one", r)))
            delivery.result(SECONDS)
        assert [name for name, _ in order] == ["all", "one"]
        assert order[1][1] == order[0][1]
        assert order[1][1].delivered.id == delivery.id
        assert order[1][1].stream_id == "s"


def test_every_callback_is_called_once_however_early_the_result_is() -> None:
    seen = Seen()
    with Scripted() as server, producer(server.target, linger=0) as p:

        def work() -> None:
            for _ in range(300):
                p.send("s", b"x", on_delivery=seen)

        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(SECONDS)
        assert p.flush(SECONDS).delivered == 900
        seen.wait(900)
    assert len(seen.results) == len(seen.ids()) == 900
    assert set(seen.threads) == {"dataproxy-dispatch"}


def test_a_batch_calls_back_for_each_message() -> None:
    seen = Seen()
    with Scripted(moody) as server:
        p = producer(server.target, batch_messages=7)
        stream = p.stream("t")
        p.send_batch("s", [b"fine"] * 50, on_delivery=seen)
        stream.send_batch([b"bad!"] * 20, on_delivery=seen)
        p.close()
        assert Counter((r.stream_id, r.error is None) for r in seen.results) == {("s", True): 50, ("t", False): 20}
        assert len(seen.ids()) == 70


def test_what_a_failed_batch_had_accepted_calls_back_too() -> None:
    seen = Seen()
    with Scripted(silent) as server:
        p = producer(server.target, buffer_bytes=2048, batch_bytes=1024, max_block=0.01)
        with pytest.raises(dataproxy.BufferFullError) as caught:
            p.send_batch("s", [b"x" * 100] * 100, on_delivery=seen)
        p.close(0)
        assert 0 < caught.value.details["accepted"] == len(seen.results) < 100
        assert {r.error.code for r in seen.results} == {"CLOSED"}


def test_callbacks_run_on_an_executor() -> None:
    seen = Seen()
    with Scripted() as server, ThreadPoolExecutor(2, thread_name_prefix="pool_") as pool:
        with producer(server.target, callback_on=pool, on_delivery=seen) as p:
            for _ in range(500):
                p.send("s", b"x", on_delivery=seen)
        seen.wait(1000)
    assert seen.threads == {"pool__": 1000}


def test_callbacks_run_on_an_event_loop() -> None:
    seen = Seen()

    async def main(target: str) -> None:
        loop = asyncio.get_running_loop()
        p = await asyncio.to_thread(producer, target, callback_on=loop)
        ended: asyncio.Future[dataproxy.Delivery] = loop.create_future()
        batch = p.send_batch("s", [b"x"] * 500, on_delivery=seen)
        await asyncio.to_thread(batch.result)
        p.send("s", b"y", on_delivery=ended.set_result)
        await ended
        await asyncio.to_thread(p.close)

    with Scripted() as server:
        asyncio.run(main(server.target))
    assert seen.threads == {"MainThread": 500}


def test_callbacks_for_a_loop_that_is_gone_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    with Scripted() as server, producer(server.target, callback_on=loop) as p:
        loop.close()
        for _ in range(3):
            p.send("s", b"x", on_delivery=print).result(SECONDS)
        p.close()
        assert p.stats().callback_errors == 3
    assert "were not called" in caplog.text


def test_ctrl_c_in_a_callback_on_a_loop_reaches_the_loop_and_the_rest_still_comes() -> None:
    seen = Seen()

    def first(result: dataproxy.DeliveryResult) -> None:
        seen(result)
        if len(seen.results) == 1:
            raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    with Scripted() as server, producer(server.target, callback_on=loop) as p:
        p.send_batch("s", [b"x"] * 5, on_delivery=first).result(SECONDS)
        p.close()
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    loop.close()
    assert len(seen.results) == 5


def test_waiting_inside_a_callback_is_refused() -> None:
    errors: list[Exception] = []
    ended = threading.Event()
    held: list[tuple[Peer, bytes]] = []

    def react(peer: Peer, frame: bytes) -> None:
        if b"first" in frame:
            peer.send(ack(frame))
        else:
            held.append((peer, frame))

    with Scripted(react) as server, producer(server.target) as p:

        def waits(result: dataproxy.DeliveryResult) -> None:
            other = p.send("s", b"other")
            for wait in (p.flush, other.result, other.exception, p.send_batch("s", [b"z"]).result):
                try:
                    wait(SECONDS)
                except dataproxy.DataProxyError as error:
                    errors.append(error)
            assert not other.done()
            with pytest.raises(dataproxy.DeliveryPending):
                other.result(0)
            ended.set()

        p.send("s", b"first", on_delivery=waits)
        assert ended.wait(SECONDS)
        assert [error.code for error in errors] == ["IN_CALLBACK"] * 4
        server.wait(lambda: held)
        server.react = lambda peer, frame: peer.send(ack(frame))
        for peer, frame in held:
            peer.send(ack(frame))


def test_closing_inside_a_callback_while_another_thread_closes() -> None:
    inside, reports = threading.Event(), []
    with Scripted() as server:
        p = producer(server.target)

        def closes(result: dataproxy.DeliveryResult) -> None:
            inside.wait(SECONDS)
            reports.append(p.close())

        p.send("s", b"x", on_delivery=closes).result(SECONDS)
        inside.set()
        assert p.close().ok
        assert reports[0].delivered == 1


def test_one_percent_refused_is_known_exactly() -> None:
    total, seen = 20_000, Seen()

    def react(peer: Peer, frame: bytes) -> None:
        peer.send(refusal(frame, 110) if len(server.frames) % 100 == 0 else ack(frame))

    with Scripted(react) as server:
        p = producer(server.target, batch_messages=10, linger=60, undelivered_bytes="64MiB")
        deliveries = [p.send("s", b"%d" % i, on_delivery=seen) for i in range(total)]
        report = p.flush(60)
        failed = [d for d in deliveries if d.exception() is not None]
        assert report.failed == len(failed) == 10 * (len(server.frames) // 100)
        assert report.delivered == total - report.failed
        assert report.errors == {110: report.failed}
        final = p.close()
        assert final.failed == report.failed
        assert len(seen.results) == len(seen.ids()) == total
        lost = list(p.undelivered())
        assert {m.id for m in lost} == {d.id for d in failed}
        assert report.not_kept == 0


@pytest.mark.parametrize("place", [None, "executor"])
def test_callbacks_that_were_called_are_let_go(place: str | None) -> None:
    class Owner:
        def done(self, result: dataproxy.DeliveryResult) -> None:
            pass

    with ExitStack() as stack:
        server = stack.enter_context(Scripted())
        pool = stack.enter_context(ThreadPoolExecutor(1)) if place else None
        p = stack.enter_context(producer(server.target, callback_on=pool))
        alive: list[weakref.ref[Owner]] = []
        for _ in range(50):
            owner = Owner()
            p.send("s", b"x", on_delivery=owner.done)
            alive.append(weakref.ref(owner))
        del owner
        p.flush(SECONDS)
        until = time.monotonic() + SECONDS
        while any(one() is not None for one in alive) and time.monotonic() < until:
            time.sleep(0.01)
        assert not [one() for one in alive if one() is not None]


@pytest.mark.parametrize("where", ["events", "results"])
def test_a_fault_of_the_dispatchers_own_is_logged_and_ends_no_later_callback(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [RuntimeError("a fault")]
    hit = threading.Event()
    real = Dispatcher._run if where == "results" else EventLog.write

    def faulty(*arguments: object) -> None:
        if faults:
            hit.set()
            raise faults.pop()
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Dispatcher if where == "results" else EventLog, real.__name__, faulty)
    seen = Seen()
    with Scripted() as server, producer(server.target, on_delivery=seen) as p:
        p.send("s", b"x").result(SECONDS)
        assert hit.wait(SECONDS)
        p.send("s", b"y").result(SECONDS)
        seen.wait(1 if where == "results" else 2)
    assert len(seen.results) == (1 if where == "results" else 2)
    assert "RuntimeError: a fault" in caplog.text
