"""What ``send`` returns, in every way in which asyncio documents that coroutines and futures are used."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

import dataproxy
from tests.loopback.producer.test_asynchronous import answer_all, producer
from tests.support.scripted import Scripted, silent

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
MAKERS = pytest.mark.parametrize(
    "make", [lambda p, i: p.send("s", b"%d" % i), lambda p, i: p.send_soon("s", b"%d" % i)], ids=["send", "delivery"]
)

Run = Callable[[Coroutine[Any, Any, Any]], Any]
Make = Callable[[dataproxy.AsyncProducer, int], Awaitable[dataproxy.Delivered]]


async def use(p: dataproxy.AsyncProducer, server: Scripted, sent: int) -> None:
    """Let everything be answered, and see that every message has one result."""
    answer_all(server)
    report = await p.close()
    assert report.balanced
    assert (report.accepted, report.delivered) == (sent, sent)


@LOOPS
@MAKERS
@pytest.mark.parametrize("keep_errors", [False, True])
def test_gather_ends_when_its_time_is_over(run: Run, make: Make, keep_errors: bool) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(make(p, i) for i in range(5)), return_exceptions=keep_errors), 0.01)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.gather(*(make(p, i) for i in range(5)), return_exceptions=keep_errors)
        await use(p, server, 10)

    with Scripted(silent) as server:
        run(main(server))


@pytest.mark.parametrize("keep_errors", [False, True])
def test_an_interrupt_ends_a_gather(keep_errors: bool) -> None:
    producers: list[dataproxy.AsyncProducer] = []

    async def main(server: Scripted) -> None:
        p = await producer(server.target, close_timeout=0).open()
        producers.append(p)
        sends = asyncio.gather(*(p.send("s", b"%d" % i) for i in range(5)), return_exceptions=keep_errors)
        asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signal.SIGINT)
        await asyncio.wait_for(sends, 3600)

    with Scripted(silent) as server:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main(server))
        answer_all(server)
        assert asyncio.run(producers[0].close()).accepted == 5


@LOOPS
@MAKERS
def test_what_is_cancelled_before_it_ran_stays_cancelled(run: Run, make: Make) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        for wrap in (asyncio.ensure_future, asyncio.gather, asyncio.shield):
            future = wrap(make(p, 0))
            assert not future.done()
            assert future.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await future
            assert future.done()
        await use(p, server, 3)

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_cancelled_waiters_and_those_who_share_them(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        early = p.send("s", b"x")
        assert early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early

        async def wait(what: Any) -> Any:
            return await what

        shared = p.send("s", b"y")
        both = [asyncio.create_task(wait(shared)) for _ in range(2)]
        await asyncio.sleep(0)
        assert asyncio.isfuture(shared)
        assert shared.get_loop() is asyncio.get_running_loop()
        both[0].cancel()  # as with a future, for all who await it
        assert [type(x) for x in await asyncio.gather(*both, return_exceptions=True)] == [asyncio.CancelledError] * 2
        given_up, kept = asyncio.create_task(wait(p.send("s", b"a"))), p.send("s", b"b")
        third, coroutine = asyncio.create_task(wait(kept)), wait(kept)
        assert coroutine.send(None) is kept  # a frame that is thrown away takes nobody's wait with it
        kept._asyncio_future_blocking = False
        coroutine.close()
        await asyncio.sleep(0)
        given_up.cancel()
        await use(p, server, 4)
        assert (await third).attempts == 1
        assert kept.result() == await third

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
@MAKERS
def test_wait_and_as_completed(run: Run, make: Make) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        futures = [asyncio.ensure_future(make(p, i)) for i in range(4)]
        done, pending = await asyncio.wait(futures, timeout=0.01)
        assert (len(done), len(pending)) == (0, 4)
        with pytest.raises(TimeoutError):
            await next(iter(asyncio.as_completed([make(p, 4), make(p, 5)], timeout=0.01)))
        answer_all(server)
        done, pending = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        assert done
        done, pending = await asyncio.wait(futures)
        assert (len(done), len(pending)) == (4, 0)
        assert {future.result().attempts for future in done} == {1}
        assert [(await future).attempts for future in asyncio.as_completed([make(p, 6), make(p, 7)])] == [1, 1]
        await use(p, server, 8)

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_a_group_whose_task_fails_cancels_the_sends(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()

        sends: list[asyncio.Task[dataproxy.Delivered]] = []

        async def group_that_fails() -> None:
            async with asyncio.TaskGroup() as group:
                sends.extend(group.create_task(p.send("s", b"%d" % i)) for i in range(3))
                raise ZeroDivisionError

        with pytest.raises(BaseExceptionGroup) as failed:
            await group_that_fails()
        assert [type(error) for error in failed.value.exceptions] == [ZeroDivisionError]
        assert all(send.cancelled() for send in sends)
        await use(p, server, 3)

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_a_shielded_send_goes_on(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        inner = asyncio.ensure_future(p.send("s", b"x"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(inner), 0.01)
        assert not inner.done()
        answer_all(server)
        assert (await inner).attempts == 1
        await use(p, server, 1)

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_an_error_that_nobody_asks_for_is_told_as_asyncio_tells_it(run: Run) -> None:
    told: list[dict[str, Any]] = []

    async def main(target: str) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        p = await producer(target).open()
        seen, unseen, never = (p.send("s", body) for body in (b"1", b"2", b"3"))
        woken = asyncio.Event()
        seen.add_done_callback(lambda future: future.exception())
        unseen.add_done_callback(lambda future: woken.set())
        assert (await p.close(0)).failed == 3
        await woken.wait()
        assert isinstance(seen.exception(), dataproxy.DeliveryFailed)
        assert seen.exception() is seen.exception()
        del seen, unseen, never
        assert [context["message"] for context in told] == ["Waiter exception was never retrieved"]
        assert isinstance(told[0]["exception"], dataproxy.DeliveryFailed)

    with Scripted(silent) as server:
        run(main(server.target))


@LOOPS
def test_tasks_that_begin_at_once(run: Run) -> None:
    factory = getattr(asyncio, "eager_task_factory", None)

    async def main(server: Scripted) -> None:
        asyncio.get_running_loop().set_task_factory(factory)  # None before Python 3.12: the usual one
        p = await producer(server.target).open()
        tasks = [asyncio.create_task(p.send("s", b"%d" % i)) for i in range(4)]
        tasks[0].cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(p.send("s", b"a"), p.send("s", b"b")), 0.01)
        answer_all(server)
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(got.pop(0), asyncio.CancelledError)
        assert [one.attempts for one in got] == [1] * 3
        assert (await asyncio.create_task(p.send("s", b"c"))).attempts == 1
        await use(p, server, 7)

    with Scripted(silent) as server:
        run(main(server))


@LOOPS
def test_a_close_that_is_cancelled_goes_on_and_leaves_nothing(run: Run) -> None:
    async def main(server: Scripted) -> None:
        p = await producer(server.target).open()
        task = asyncio.create_task(p.send("s", b"x"))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(p.close(), 0.01)
        closing = asyncio.create_task(p.close())
        await asyncio.sleep(0)
        closing.cancel()
        answer_all(server)
        assert (await task).attempts == 1
        await asyncio.to_thread(p._worker.wait_end)
        assert p._notifiers == {}
        assert p.report().delivered == 1

    with Scripted(silent) as server:
        run(main(server))
