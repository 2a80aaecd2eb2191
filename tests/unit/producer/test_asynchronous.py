"""The calls of AsyncProducer have the parameters of Producer's."""

import asyncio
import inspect
import threading
from typing import Any

import pytest

import dataproxy
from dataproxy._core.producer.aio.send import AsyncStream
from dataproxy.producer.producer import Producer


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


SENDS = ("send", "send_nowait", "send_batch", "send_arrow")
SEAMS = ("begin_again",)  # an AsyncProducer never begins again
CALLS = [name for name, value in vars(Producer).items() if name[0] != "_" and callable(value) and name not in SEAMS]


@pytest.mark.parametrize("name", [*CALLS, *SENDS])
def test_every_public_call_has_the_plain_ones_parameters(name: str) -> None:
    assert parameters(getattr(dataproxy.AsyncProducer, name)) == parameters(getattr(Producer, name))


def test_the_constructor_and_the_handles_have_the_plain_ones_parameters() -> None:
    assert parameters(dataproxy.AsyncProducer) == parameters(Producer)
    for name in SENDS:
        assert parameters(getattr(AsyncStream, name)) == parameters(getattr(dataproxy.Stream, name))
    assert parameters(AsyncStream.send_soon) == parameters(dataproxy.Stream.send)
    assert parameters(dataproxy.AsyncProducer.send_soon) == parameters(Producer.send)
    assert parameters(dataproxy.AsyncProducer.batch) == parameters(Producer.stream)


NOBODY = "tcp://127.0.0.1:9"


def test_what_comes_while_a_producer_opens_and_closes_is_told() -> None:
    """A batch that waits for the opening finds the producer closed then; nothing is left that nobody works off."""

    async def main() -> None:
        producer = dataproxy.AsyncProducer(NOBODY, group_id="g", close_timeout=0.1)
        sends = [
            asyncio.ensure_future(producer.send_batch("s", [b"x"] * 10)),
            asyncio.ensure_future(producer.send("s", b"x")),
            asyncio.ensure_future(producer.room()),
        ]
        await asyncio.sleep(0)
        report = await producer.close()
        assert [type(error) for error in await asyncio.gather(*sends, return_exceptions=True)] == [
            dataproxy.ClosedError
        ] * 3
        assert report.accepted == 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_several_loops_may_close_one_producer() -> None:
    producer = dataproxy.AsyncProducer(NOBODY, group_id="g", close_timeout=0.1)
    opened = threading.Barrier(4, timeout=60)
    told: list[object] = []

    async def main() -> None:
        await producer.open()
        waiting = asyncio.ensure_future(producer.send("s", b"x"))
        await asyncio.sleep(0)
        await asyncio.to_thread(opened.wait)
        told.append(await asyncio.wait_for(producer.close(), 60))
        told.append(type((await asyncio.gather(waiting, return_exceptions=True))[0]))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    reports = [one for one in told if isinstance(one, dataproxy.Report)]
    assert len(reports) == 4 and len(set(map(repr, reports))) == 1, told
    assert len(told) == 8, told
