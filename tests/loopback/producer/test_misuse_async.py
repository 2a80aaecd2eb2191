"""Wrong uses of AsyncProducer and the exact texts they get."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import dataproxy
from dataproxy._core.producer.aio.send import AsyncStream
from dataproxy._core.producer.aio.waiter import Waiter
from dataproxy.errors import LocalProtocolError
from tests.loopback.producer.test_misuse_texts import CALLBACK, TIMEOUT, refused
from tests.support.scripted import Scripted, silent

CLOSED = "the AsyncProducer is closed; open a new one to continue [CLOSED]"
EARLY = "the AsyncProducer is not open yet; enter it with 'async with', or await its open() before [LOCAL_PROTOCOL]"
NO_LOOP = (
    "there is no running event loop in this thread; call it from a coroutine, or use dataproxy.Producer in plain "
    "threads [LOCAL_PROTOCOL]"
)
FULL = (
    "the buffer of 1024 bytes is full, and this call never waits; await producer.send(...), or await producer.room() "
    "first [BUFFER_FULL]"
)


def producer(target: str, **options: Any) -> dataproxy.AsyncProducer:
    """Return a producer of the group ``g``."""
    return dataproxy.AsyncProducer(target, group_id="g", **{"linger": 0.001, **options})


async def awaited(error: type[Exception], text: str, thing: Callable[[], Awaitable[Any]]) -> None:
    """Check class and exact text of what a call or its await raises."""
    with pytest.raises(error) as caught:
        await thing()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.send_soon("s", b"x"),
        lambda p: p.send_nowait("s", b"x"),
        lambda p: p.stream("s"),
        lambda p: p.stats(),
        lambda p: p.undelivered(),
    ],
)
def test_before_it_is_open(use: Callable[[dataproxy.AsyncProducer], Any]) -> None:
    refused(LocalProtocolError, EARLY, lambda: use(producer("tcp://127.0.0.1:9")))


def test_after_it_was_closed() -> None:
    async def main(target: str) -> None:
        async with producer(target) as p:
            handle = p.stream("s")
        for use in (lambda: p.send("s", b"x"), p.open, p.__aenter__, lambda: p.send_batch("s", [b"x"]), p.room):
            await awaited(dataproxy.ClosedError, CLOSED, use)
        await awaited(dataproxy.ClosedError, CLOSED, lambda: handle.send(b"x"))
        plain = "the producer is closed; open a new one to continue [CLOSED]"
        refused(dataproxy.ClosedError, plain, lambda: p.send_soon("s", b"x"))
        refused(dataproxy.ClosedError, plain, lambda: handle.send_nowait(b"x"))

    with Scripted() as server:
        asyncio.run(main(server.target))


def test_outside_of_a_loop() -> None:
    with Scripted() as server:
        p = asyncio.run(producer(server.target).open())
        refused(LocalProtocolError, NO_LOOP, lambda: p.send("s", b"x"))
        delivery = p.send_soon("s", b"x")
        delivery.result(20)
        refused(LocalProtocolError, NO_LOOP, lambda: delivery.__await__())
        assert asyncio.run(p.close()).accepted == 1


def test_a_full_buffer() -> None:
    async def main(target: str) -> None:
        p = await producer(target, buffer_bytes=1024, batch_bytes=1024, max_block=0.01, close_timeout=0).open()
        p.send_nowait("s", b"x" * 1000)
        refused(dataproxy.BufferFullError, FULL, lambda: p.send_nowait("s", b"x" * 100))
        refused(dataproxy.BufferFullError, FULL, lambda: p.send_soon("s", b"x" * 100))
        late = (
            "the buffer had no room within max_block=0.01 s; send slower, raise buffer_bytes, or check that "
            "the proxies answer (stats()) [BUFFER_FULL]"
        )
        await awaited(dataproxy.BufferFullError, late, lambda: p.send("s", b"x" * 100))
        await p.close()

    with Scripted(silent) as server:
        asyncio.run(main(server.target))


@pytest.mark.parametrize("value", [-1, float("nan"), "soon"])
def test_timeouts(value: Any) -> None:
    async def main(target: str) -> None:
        async with producer(target) as p:
            await awaited(dataproxy.ConfigError, TIMEOUT.format(repr(value)), lambda: p.flush(value))
            await awaited(dataproxy.ConfigError, TIMEOUT.format(repr(value)), lambda: p.close(value))
            assert not p.closed

    with Scripted() as server:
        asyncio.run(main(server.target))


def test_making_one() -> None:
    target = "tcp://127.0.0.1:9"
    for options, text in (
        ({"on_delivery": 3}, CALLBACK.format("on_delivery", "3")),
        ({"close_timeout": -1}, "option close_timeout (argument): -1 is too small; allowed is 0s .. 7d [CONFIG]"),
    ):
        refused(dataproxy.ConfigError, text, lambda options=options: producer(target, **options))
    with pytest.raises(TypeError, match=r"make AsyncProducer\(config=\.\.\.\) in the other process"):
        pickle.dumps(producer(target))
    refused(TypeError, "Waiter objects are made by AsyncProducer.send", Waiter)
    with pytest.raises(TypeError):
        AsyncStream()


def test_adding_outside_of_the_block() -> None:
    async def main(target: str) -> None:
        async with producer(target) as p:
            batch = p.batch("s")
            outside = "add() outside of the batch's block; use it inside of 'async with producer.batch(...)'"
            refused(LocalProtocolError, f"{outside} [LOCAL_PROTOCOL]", lambda: batch.add(b"x"))
            async with batch:
                assert len(batch) == 0

    with Scripted() as server:
        asyncio.run(main(server.target))
