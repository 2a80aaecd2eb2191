"""AsyncProducer over sockets, on asyncio's loop and on uvloop's: awaits, batches, back-pressure, closing."""

import asyncio
import contextvars
import gc
import threading
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

import dataproxy
from dataproxy._core.producer.aio.notifier import open_notifiers
from dataproxy.errors import LocalProtocolError
from dataproxy.producer.producer import Producer
from tests.support.scripted import Peer, Scripted, ack, refusal, silent

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def producer(target: str, **options: object) -> dataproxy.AsyncProducer:
    """Return a producer of the group ``g`` that lingers little."""
    return dataproxy.AsyncProducer(target, group_id="g", **{"linger": 0.001, **options})


def moody(peer: Peer, frame: bytes) -> None:
    """Refuse for good what says so, else accept."""
    peer.send(refusal(frame, 110, b"bad type") if b"bad" in frame else ack(frame))


def answer_all(server: Scripted) -> None:
    """Accept every frame that came, and all that come."""
    server.react = lambda peer, frame: peer.send(ack(frame))
    for number, frame in list(server.frames):
        server.peers[number].send(ack(frame))


def open_files() -> int:
    """Return how many descriptors the process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="module", autouse=True)
def loops_are_warm():
    """Let uvloop make what it makes once in a process."""
    uvloop.run(asyncio.sleep(0))


def fill(send: Callable[[], object]) -> None:
    """Send until the buffer is full."""
    while True:
        send()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Compare threads, descriptors and notifiers before and after each test."""
    gc.collect()
    before = set(threading.enumerate()), open_files()
    yield
    gc.collect()
    assert open_notifiers() == 0
    threads, files = before  # of which some, of an earlier test, may be gone by now
    assert set(threading.enumerate()) <= threads
    assert open_files() <= files


@LOOPS
def test_one_await_is_one_ack(run: Run) -> None:
    async def main(target: str) -> None:
        async with producer(target) as p:
            got = await p.send("s", b"x")
            assert got.attempts == 1
            assert type(got) is dataproxy.Delivered
            assert got.id
            handle = p.stream("s", attrs={"app": "web"})
            assert await handle.send(b"y") > ()
            p.send_nowait("s", b"z")
            assert (await p.flush()).delivered == 3
            assert p.stats().balanced
        assert p.report().delivered == 3

    with Scripted() as server:
        run(main(server.target))


@LOOPS
def test_an_error_is_raised_in_the_await(run: Run) -> None:
    async def main(target: str) -> None:
        p = await producer(target).open()
        with pytest.raises(dataproxy.DeliveryFailed) as failed:
            await p.send("s", b"bad")
        assert failed.value.code == 110
        delivery = p.send_soon("s", b"bad")
        for _ in range(2):
            with pytest.raises(dataproxy.DeliveryFailed):
                await delivery
        with pytest.raises(dataproxy.InvalidMessageError):
            await p.send("s", b"")
        got = await asyncio.gather(p.send("s", b"ok"), p.send("t", b"bad"), return_exceptions=True)
        assert [type(x).__name__ for x in got] == ["Delivered", "DeliveryFailed"]
        assert (await p.close()).errors == {110: 3}

    with Scripted(moody) as server:
        run(main(server.target))


@LOOPS
def test_a_delivery_is_awaited_as_often_and_as_wrapped_as_one_likes(run: Run) -> None:
    async def main(server: Scripted) -> None:
        async with producer(server.target) as p:
            delivery = p.send_soon("s", b"x")
            assert not delivery.done()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(delivery, 0.001)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(delivery), 0.001)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await delivery

            async def wait() -> dataproxy.Delivered:
                return await delivery

            tasks = [asyncio.create_task(wait()) for _ in range(10)]
            await asyncio.sleep(0)
            tasks[3].cancel()
            answer_all(server)
            got = await asyncio.gather(delivery, delivery, asyncio.shield(delivery), *tasks, return_exceptions=True)
            assert isinstance(got.pop(6), asyncio.CancelledError)
            assert set(got) == {await delivery} == {delivery.result(0)}

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_a_send_is_a_coroutine_and_a_future_to_asyncio(run: Run) -> None:
    async def main(target: str) -> None:
        async with producer(target) as p:
            task = asyncio.create_task(p.send("s", b"1"))
            async with asyncio.TaskGroup() as group:
                other = group.create_task(p.send("s", b"2"))
            assert (await task).attempts == other.result().attempts == 1
            assert (await asyncio.wait_for(p.send("s", b"3"), 20)).attempts == 1
            assert (await asyncio.shield(p.send("s", b"4"))).attempts == 1
            assert len(await asyncio.gather(*(p.send("s", b"%d" % i) for i in range(100)))) == 100
            for future in asyncio.as_completed([p.send("s", b"5"), p.send("s", b"6")]):
                assert (await future).attempts == 1
            waiter = p.send("s", b"7")
            assert asyncio.iscoroutine(waiter)
            assert await waiter == await waiter == waiter.result()
            assert waiter.done()
            assert waiter.exception() is None
            assert not waiter.cancel()
            assert asyncio.isfuture(waiter)

    with Scripted() as server:
        run(main(server.target))


@LOOPS
def test_a_task_keeps_its_context(run: Run) -> None:
    name: contextvars.ContextVar[int] = contextvars.ContextVar("name", default=-1)

    async def one(p: dataproxy.AsyncProducer, i: int) -> bool:
        name.set(i)
        for _ in range(5):
            await p.send("s", b"x")
            if name.get() != i:
                return False
        return True

    async def main(target: str) -> None:
        async with producer(target) as p:
            assert all(await asyncio.gather(*(one(p, i) for i in range(200))))
            assert name.get() == -1

    with Scripted() as server:
        run(main(server.target))


@LOOPS
def test_cancelling_loses_nothing(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        tasks = [asyncio.create_task(p.send("s", b"%d" % i)) for i in range(1000)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        answer_all(server)
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(x, asyncio.CancelledError) for x in got] == [True, False] * 500
        report = await p.close()
        assert report.balanced
        assert report.accepted == report.delivered == 1000

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_who_waits_for_room_does_not_stop_the_loop(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target, buffer_bytes=4096, batch_bytes=1024, max_block=20).open()
        tasks = [asyncio.create_task(p.send("s", b"%100d" % i)) for i in range(100)]
        while len(server.frames) < 3 or p._queueing < 50:  # noqa: ASYNC110 - the loop turns while they wait
            await asyncio.sleep(0)
        with pytest.raises(dataproxy.BufferFullError, match="never waits") as full:
            fill(lambda: p.send_soon("s", b"x" * 100))
        assert full.value.details["accepted"] == 0
        tasks[60].cancel()
        answer_all(server)
        await p.room(1000)
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(x, dataproxy.Delivered) for x in got) == 99
        report = await p.close()
        assert report.ok
        assert report.balanced

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_room_that_never_comes(run: Run) -> None:
    async def main(target: str) -> None:
        p = await producer(target, buffer_bytes=2048, batch_bytes=1024, max_block=0.02, close_timeout=0).open()
        waiters = [asyncio.create_task(p.send("s", b"x" * 500)) for _ in range(8)]
        with pytest.raises(dataproxy.BufferFullError, match=r"max_block=0\.02 s"):
            await waiters[7]
        with pytest.raises(dataproxy.BufferFullError, match="max_block"):
            await p.send_batch("s", [b"x" * 500] * 8)
        with pytest.raises(dataproxy.BufferFullError, match="max_block"):
            await p.room(1024)
        report = await p.close()
        got = await asyncio.gather(*waiters, return_exceptions=True)
        assert report.accepted == report.failed == sum(isinstance(x, dataproxy.DeliveryFailed) for x in got)
        assert report.balanced

    with Scripted(silent) as server:
        run(main(server.target))


@LOOPS
def test_a_full_buffer_raises_where_it_was_asked_to(run: Run) -> None:
    async def main(target: str) -> None:
        p = await producer(target, buffer_bytes=2048, batch_bytes=1024, on_full="raise", close_timeout=0).open()
        with pytest.raises(dataproxy.BufferFullError, match="on_full='raise'"):
            await asyncio.gather(*(p.send("s", b"x" * 500) for _ in range(8)))
        with pytest.raises(dataproxy.BufferFullError):
            await p.send_batch("s", [b"x" * 500] * 8)
        assert (await p.close()).balanced

    with Scripted(silent) as server:
        run(main(server.target))


@LOOPS
def test_batches(run: Run) -> None:
    async def main(target: str) -> None:
        async with producer(target, buffer_bytes=65536) as p:
            assert await p.send_batch("s", [b"a", b"b", b"c"]) == dataproxy.BatchDelivered(3, 3, 0, ())
            large = await p.send_batch("s", [b"x" * 100] * 30_000)
            assert (large.accepted, large.ok) == (30_000, True)
            some = await asyncio.gather(*(p.stream("s").send_batch([b"y" * 50] * 5_000) for _ in range(5)))
            assert sum(one.delivered for one in some) == 25_000
            with pytest.raises(dataproxy.InvalidMessageError):
                await p.send_batch("s", [b"a", b""])

    with Scripted() as server:
        run(main(server.target))


async def broken_block(p: dataproxy.AsyncProducer) -> None:
    """Leave a block by an exception."""
    async with p.batch("s") as batch:
        batch.add(b"x")
        raise ZeroDivisionError


@LOOPS
def test_a_block_gathers_and_waits_at_its_end(run: Run) -> None:
    async def main(target: str) -> None:
        async with producer(target, buffer_bytes=16384, batch_bytes=2048) as p:
            async with p.batch("s") as batch:
                for i in range(2_000):
                    await batch.add(b"%50d" % i)
            assert batch.result == dataproxy.BatchDelivered(2_000, 2_000, 0, ())
            async with p.stream("s").batch() as batch:
                for i in range(300):
                    batch.add(b"%50d" % i)  # never awaited: kept until there is room
            assert len(batch) == 300
            with pytest.raises(LocalProtocolError, match="outside"):
                batch.add(b"x")
            async with p.batch("s") as batch:
                with pytest.raises(dataproxy.BufferFullError, match="await add"):
                    fill(lambda: batch.add(b"x" * 100))
            with pytest.raises(ZeroDivisionError):
                await broken_block(p)
            report = await p.flush()
            assert report.ok

    with Scripted() as server:
        run(main(server.target))


async def moody_block(p: dataproxy.AsyncProducer) -> None:
    """Send a block of three pairs, the second of which is refused."""
    async with p.batch("s") as batch:
        for body in (b"good", b"good", b"bad", b"bad", b"good", b"good"):
            await batch.add(body)


@LOOPS
def test_a_block_reports_what_failed(run: Run) -> None:
    async def main(target: str) -> None:
        p = await producer(target, batch_messages=2, linger=10).open()
        with pytest.raises(dataproxy.UndeliveredError, match="2 of 6 messages of the batch") as lost:
            await moody_block(p)
        (failure,) = lost.value.report.failures
        assert failure[:2] == (2, 2)
        assert failure.error is lost.value.__cause__
        with pytest.raises(dataproxy.UndeliveredError):
            async with p:
                pass

    with Scripted(moody) as server:
        run(main(server.target))


@LOOPS
def test_flush_has_a_limit_and_goes_on(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        delivery = p.send_soon("s", b"x")
        with pytest.raises(dataproxy.FlushTimeout) as late:
            await p.flush(0.01)
        assert late.value.report.pending == 1
        flushing = asyncio.create_task(p.flush())
        await asyncio.sleep(0)
        answer_all(server)
        assert (await flushing).delivered == 1
        assert delivery.done()
        assert await p.close() == await p.close()

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_closing_ends_every_wait(run: Run) -> None:
    async def main(target: str) -> None:
        p = await producer(target).open()
        tasks = [asyncio.create_task(p.send("s", b"%d" % i)) for i in range(2_000)]
        await asyncio.sleep(0)
        report = await p.close(0.01)
        assert report.failed == 2_000
        assert all(task.done() for task in tasks) or await asyncio.wait(tasks)
        assert {type(task.exception()) for task in tasks} == {dataproxy.DeliveryFailed}
        for call in (p.send, p.send_soon, p.send_nowait):
            with pytest.raises(dataproxy.ClosedError):
                call("s", b"late")
        with pytest.raises(dataproxy.ClosedError):
            await p.open()
        assert await p.flush() == report
        assert p.closed

    with Scripted(silent) as server:
        run(main(server.target))


@LOOPS
def test_the_first_await_opens_it(run: Run) -> None:
    async def main(target: str) -> None:
        p = producer(target)
        assert "not open yet" in repr(p)
        assert p.report().accepted == 0
        for early in (lambda: p.send_soon("s", b"x"), lambda: p.send_nowait("s", b"x"), lambda: p.stream("s"), p.stats):
            with pytest.raises(dataproxy.DataProxyError, match="not open yet"):
                early()
        first, second = await asyncio.gather(p.send("s", b"1"), p.send("s", b"2"))
        assert first != second
        assert (await p.close()).ok
        unused = producer(target)
        assert (await unused.close()).accepted == 0

    with Scripted() as server:
        run(main(server.target))


@LOOPS
def test_opening_that_fails_can_be_tried_again(run: Run) -> None:
    async def main() -> None:
        p = producer("tcp://no-such-host.invalid:1")
        for _ in range(2):
            with pytest.raises(dataproxy.DiscoveryError):
                await p.open()
        with pytest.raises(dataproxy.DiscoveryError):
            await p.send("s", b"x")
        await p.close()
        with pytest.raises(dataproxy.ConfigError):
            dataproxy.AsyncProducer("tcp://h:1", group_id="g", lingr=1)
        with pytest.raises(dataproxy.ConfigError):
            dataproxy.AsyncProducer("tcp://h:1", group_id="g", on_delivery=3)

    run(main())


def test_outside_of_a_loop() -> None:
    with Scripted() as server:
        p = asyncio.run(producer(server.target).open())
        with pytest.raises(dataproxy.DataProxyError, match="no running event loop"):
            p.send("s", b"x")
        delivery = p.send_soon("s", b"from a plain thread")
        with pytest.raises(dataproxy.DataProxyError, match="no running event loop"):
            delivery.__await__()
        assert delivery.result(20).attempts == 1

        async def again() -> None:
            assert await delivery == await delivery
            await p.send("s", b"y")
            await p.close()

        asyncio.run(again())
        assert p.report().delivered == 2


def test_a_plain_producers_delivery_can_be_awaited() -> None:
    async def main(p: Producer) -> None:
        assert [(await p.send("s", body)).attempts for body in (b"x", b"y")] == [1, 1]
        assert (await p.send_batch("s", [b"a", b"b"])).ok

    with Scripted() as server, Producer(server.target, group_id="g", linger=0.001) as p:
        asyncio.run(main(p))


@LOOPS
def test_a_loop_that_ends_too_early(run: Run) -> None:
    async def main(p: dataproxy.AsyncProducer) -> list[asyncio.Task[dataproxy.Delivered]]:
        await p.open()
        tasks = [asyncio.create_task(p.send("s", b"%d" % i)) for i in range(100)]
        await asyncio.sleep(0)
        return tasks

    async def finish(p: dataproxy.AsyncProducer) -> dataproxy.Report:
        await p.send("s", b"from another loop")
        return await p.close()

    with warnings.catch_warnings(), Scripted(silent) as server:
        warnings.simplefilter("error")
        p = producer(server.target)
        tasks = run(main(p))
        assert all(task.cancelled() for task in tasks)
        answer_all(server)
        assert run(finish(p)).delivered == 101


@LOOPS
def test_several_loops_in_several_threads(run: Run) -> None:
    async def send(p: dataproxy.AsyncProducer, n: int, results: list[int]) -> None:
        got = await asyncio.gather(*(p.send("s", b"%d" % i) for i in range(n)))
        results.append(len(got))

    with Scripted() as server:
        p = producer(server.target)
        asyncio.run(p.open())
        results: list[int] = []
        threads = [threading.Thread(target=lambda: run(send(p, 500, results))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [500] * 4
        assert run(p.close()).delivered == 2_000


@LOOPS
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
def test_what_is_dropped_says_so(run: Run, policy: str) -> None:
    async def main(server: Scripted) -> None:
        options = {"buffer_bytes": 2048, "batch_bytes": 512, "linger": 10, "close_timeout": 0}
        p = await producer(server.target, on_full=policy, **options).open()
        tasks = [asyncio.create_task(p.send("s", b"%200d" % i)) for i in range(50)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await p.close()
        got = await asyncio.gather(*tasks, return_exceptions=True)
        report = p.report()
        assert report.accepted == 50
        assert report.dropped == sum(type(x) is dataproxy.DeliveryDropped for x in got) > 0
        assert report.failed == sum(type(x) is dataproxy.DeliveryFailed for x in got)

    with Scripted(silent) as server:
        run(main(server))
