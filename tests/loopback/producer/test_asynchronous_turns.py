"""What the tasks of one turn of a loop wait for leaves together, and waits for nothing but what is on its way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

import dataproxy
from dataproxy.producer.producer import Producer
from tests.support.scripted import Scripted, ack, silent

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
LINGER = 60  # seconds, more than a test takes: nothing leaves by it

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def lingering(target: str) -> dataproxy.AsyncProducer:
    """Return a producer that sends no open pack of its own accord."""
    return dataproxy.AsyncProducer(target, group_id="g", linger=LINGER, delivery_timeout=2 * LINGER, close_timeout=20)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - there is no event for what the server has got
            await asyncio.sleep(0)


@LOOPS
def test_one_message_at_a_time_does_not_linger(run: Run) -> None:
    async def main(target: str) -> None:
        async with lingering(target) as p, asyncio.timeout(20):
            for _ in range(5):
                await p.send("s", b"x")
            await p.send_soon("s", b"x")
            await p.send_batch("s", [b"x", b"y"])

    with Scripted() as server:
        run(main(server.target))
        assert len(server.frames) == 7


@LOOPS
def test_what_is_sent_in_one_turn_shares_a_pack(run: Run) -> None:
    async def main(target: str) -> None:
        async with lingering(target) as p, asyncio.timeout(20):
            for _ in range(3):
                await asyncio.gather(*(p.send("s", b"%d" % i) for i in range(100)))

    with Scripted() as server:
        run(main(server.target))
        assert len(server.frames) == 3


@LOOPS
def test_what_is_on_its_way_is_waited_for(run: Run) -> None:
    async def main(server: Scripted) -> None:
        async with lingering(server.target) as p, asyncio.timeout(20):
            tasks = [asyncio.create_task(p.send("s", b"first"))]
            await until(lambda: len(server.frames) == 1)
            for i in range(5):
                tasks.append(asyncio.create_task(p.send("s", b"%d" % i)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            server.react = lambda peer, frame: peer.send(ack(frame))
            assert len(server.frames) == 1
            server.peers[0].send(ack(server.frames[0][1]))
            await asyncio.gather(*tasks)

    with Scripted(silent) as server:
        run(main(server))
        assert len(server.frames) == 2


@LOOPS
def test_what_nobody_awaits_lingers(run: Run) -> None:
    async def main(server: Scripted) -> None:
        async with lingering(server.target) as p, asyncio.timeout(20):
            p.send_nowait("other", b"x")
            p.send_soon("other", b"y")
            await p.send("s", b"z")
            assert len(server.frames) == 1
            assert p.report().pending == 2
            cancelled = asyncio.create_task(p.send("s", b"z"))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)

    with Scripted() as server:
        run(main(server))
        assert len(server.frames) == 3


def test_deliveries_of_plain_producers_do_not_linger_either() -> None:
    async def main(p: Producer) -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(p.send("s", b"x"), p.send("s", b"y"))

    with Scripted() as server, Producer(server.target, group_id="g", linger=LINGER, delivery_timeout=2 * LINGER) as p:
        asyncio.run(main(p))
        assert len(server.frames) == 1
