"""AsyncConsumer: the same in an asyncio loop, with awaits that are cancelled, and loops that end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dataproxy.consumer.asynchronous import AsyncConsumer
from dataproxy.errors import (
    ClosedError,
    ConfigError,
    ConfirmError,
    DataProxyError,
    GroupRefusedError,
    LocalProtocolError,
)
from tests.support.consumers import COMMIT, balanced, quick_members
from tests.support.tubeserver import TubeServer

LIMIT_S = 30.0


def run(work: Any) -> Any:
    """Run a coroutine in a loop of its own; one that hangs fails."""

    async def limited() -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await work

    return asyncio.run(limited())


def opened(tube: TubeServer, topics: Any = "one", **options: Any) -> AsyncConsumer:
    """Return a consumer with short times."""
    options = {"group": "g", "not_found_wait": 0.02, "release_wait": 0.0, **options}
    with quick_members():
        return AsyncConsumer(tube.target, topics=topics, **options)


@pytest.fixture
def filled(tube: TubeServer) -> TubeServer:
    tube.settings.pack_bytes = 1
    for i in range(6):
        tube.put("three", b"%d" % i, partition=i % 3)
        tube.put("one", b"%d" % i)
    return tube


async def until(condition: Callable[[], object]) -> None:
    """Wait until something becomes true; the test has its limit."""
    while not condition():  # noqa: ASYNC110 - another thread makes it true
        await asyncio.sleep(0.005)


def test_packs_are_polled_and_confirmed(filled: TubeServer) -> None:
    async def work() -> None:
        async with opened(filled) as consumer:
            await consumer.wait_ready()
            pack = await consumer.poll()
            await consumer.confirm(pack)
            assert (pack.outcome, filled.confirmed("g", "one", 0)) == ("confirmed", 28)
            again = await consumer.poll()
            consumer.rollback(again)
            pack = await consumer.poll()
            assert pack.bodies() == again.bodies() == [b"1"]
            await consumer.confirm(pack, wait=False)
            await until(lambda: pack.outcome == "confirmed")
            assert (await consumer.poll()).bodies() == [b"2"]
            assert consumer.assignment() == ["1:one:0"]
            assert await consumer.poll(0) is None
            assert await consumer.poll(0.02) is None
        assert "closed" in repr(consumer)
        assert balanced(consumer.stats().packs)
        with pytest.raises(ClosedError):
            await consumer.poll(0)
        with pytest.raises(ClosedError):
            await consumer.wait_ready()

    run(work())
    assert filled.members("g") == []


def test_iteration_and_records(filled: TubeServer) -> None:
    async def work() -> tuple[list[bytes], list[bytes]]:
        async with opened(filled) as consumer:
            first = []
            async for pack in consumer:
                first += pack.bodies()
                await pack.confirm()
                if len(first) == 2:
                    break
            rest = []
            async for record in consumer.records():
                rest.append(record.body)
                if len(rest) == 4:
                    await consumer.close()
            return first, rest

    assert run(work()) == ([b"0", b"1"], [b"2", b"3", b"4", b"5"])


def test_auto_confirm_by_task(filled: TubeServer) -> None:
    async def take(consumer: AsyncConsumer, n: int) -> list[Any]:
        return [await consumer.poll() for _ in range(n)]

    async def work() -> None:
        async with opened(filled, "three", auto_confirm=True) as consumer:
            two = await asyncio.create_task(take(consumer, 2))
            await until(lambda: two[0].outcome == "confirmed")
            for _ in range(3):  # a later task may get the number of one that ended
                last = await asyncio.create_task(take(consumer, 1))
                assert (two[1].outcome, last[0].outcome) == ("held", "held")
                consumer.rollback(last[0])

    run(work())


def test_cancelled_awaits_lose_nothing(filled: TubeServer) -> None:
    async def work() -> list[bytes]:
        bodies = []
        async with opened(filled, "three") as consumer:
            while len(bodies) < 6:
                task = asyncio.create_task(consumer.poll())
                for _ in range(len(bodies) % 3):
                    await asyncio.sleep(0)
                if not task.done():
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    pack = await task
                    bodies += pack.bodies()
                    await consumer.confirm(pack)
                pack = await consumer.poll(0.01)
                if pack is not None:
                    bodies += pack.bodies()
                    await consumer.confirm(pack)
            assert consumer.stats().packs.held == 0
        return bodies

    assert sorted(run(work())) == [b"%d" % i for i in range(6)]


def test_a_cancelled_confirm_is_sent_all_the_same(filled: TubeServer) -> None:
    async def work() -> None:
        go = threading.Event()
        filled.on(COMMIT, ("hold", go))
        async with opened(filled) as consumer:
            pack = await consumer.poll()
            task = asyncio.create_task(consumer.confirm(pack))
            await until(lambda: filled.held)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert pack.outcome == "held"
            go.set()
            await until(lambda: pack.outcome == "confirmed")
            with pytest.raises(LocalProtocolError):
                await consumer.confirm(pack)

    run(work())


def test_two_tasks_share_the_packs(filled: TubeServer) -> None:
    seen: dict[str, list[bytes]] = {"a": [], "b": []}

    async def reader(consumer: AsyncConsumer, name: str) -> None:
        async for pack in consumer:
            seen[name] += pack.bodies()
            await consumer.confirm(pack)
            if sum(map(len, seen.values())) >= 6:
                await consumer.close()

    async def work() -> None:
        consumer = opened(filled, "three")
        await asyncio.gather(reader(consumer, "a"), reader(consumer, "b"))

    run(work())
    assert sorted(seen["a"] + seen["b"]) == [b"%d" % i for i in range(6)]


def test_errors_of_confirms(filled: TubeServer) -> None:
    async def work() -> None:
        async with opened(filled, confirm_timeout=1) as consumer:
            filled.on(COMMIT, ("code", 500, "no"))
            pack = await consumer.poll()
            with pytest.raises(ConfirmError) as caught:
                await consumer.confirm(pack)
            assert caught.value.code == "CONFIRM_REFUSED"
            late = await consumer.poll()
            await until(lambda: late.outcome == "expired")
            with pytest.raises(ConfirmError) as caught:
                await consumer.confirm(late)
            assert caught.value.code == "CONFIRM_LATE"
            for wrong in (None, 5, late[0]):
                with pytest.raises(LocalProtocolError):
                    await consumer.confirm(wrong)

    run(work())


def test_a_refusal_is_raised(tube: TubeServer) -> None:
    tube.on("RegisterRequestC2M", ("code", 450, "no"), times=None)

    async def work() -> None:
        async with opened(tube) as consumer:
            for call in (consumer.wait_ready, consumer.poll, consumer.records().__anext__):
                with pytest.raises(GroupRefusedError):
                    await call()

    run(work())


@pytest.mark.parametrize("wrong", [float("nan"), -1, True, "1", b"1", [], 1j])
def test_timeouts_that_are_none(tube: TubeServer, wrong: Any) -> None:
    async def work() -> None:
        async with opened(tube) as consumer:
            for method in (consumer.poll, consumer.wait_ready, consumer.close):
                with pytest.raises(ConfigError):
                    await method(wrong)

    run(work())


# --- loops


def test_a_second_loop_is_refused(filled: TubeServer) -> None:
    consumer = opened(filled)

    async def first() -> Any:
        return await consumer.poll()

    async def second() -> None:
        with pytest.raises(LocalProtocolError, match="another loop"):
            await consumer.poll()
        await consumer.close()
        await consumer.close()

    pack = run(first())
    run(second())
    assert pack.outcome == "expired"


def test_a_consumer_is_closed_after_its_loop(filled: TubeServer) -> None:
    consumer = opened(filled)
    run(consumer.poll())
    run(consumer.close())
    assert not any(thread.is_alive() for thread in consumer._threads)
    assert filled.members("g") == []


def test_waits_end_with_the_consumer(tube: TubeServer) -> None:
    async def work() -> None:
        consumer = opened(tube)
        tasks = [asyncio.create_task(consumer.poll()) for _ in range(3)]
        await consumer.wait_ready()
        await consumer.close()
        for task in tasks:
            with pytest.raises(ClosedError):
                await task

    run(work())


def test_a_confirm_that_waits_while_the_consumer_closes(filled: TubeServer) -> None:
    async def work() -> None:
        go = threading.Event()
        filled.on(COMMIT, ("hold", go))
        consumer = opened(filled)
        pack = await consumer.poll()
        task = asyncio.create_task(consumer.confirm(pack))
        await until(lambda: filled.held)
        await consumer.close(0)
        with pytest.raises(DataProxyError) as caught:
            await task
        assert caught.value.code in ("CONFIRM_REVOKED", "CONFIRM_UNANSWERED")
        assert asyncio.get_running_loop().remove_reader(consumer._core.fileno()) is False
        go.set()

    run(work())


def test_the_loop_is_not_blocked(filled: TubeServer) -> None:
    async def ticks() -> AsyncIterator[None]:
        while True:
            await asyncio.sleep(0)
            yield None

    async def work() -> int:
        n = 0
        async with opened(filled) as consumer:
            for _ in range(6):
                await consumer.confirm(await consumer.poll())
            task = asyncio.create_task(consumer.poll(0.05))
            async for _ in ticks():
                n += 1
                if task.done():
                    break
        return n

    assert run(work()) > 10
