"""Results of an AsyncProducer besides its awaits: callbacks on the running loop, and what was not delivered."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvloop

import dataproxy
from tests.support.scripted import Peer, Scripted, ack, refusal

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def moody(peer: Peer, frame: bytes) -> None:
    """Refuse for good what says so, else accept."""
    peer.send(refusal(frame, 110, b"bad type") if b"bad" in frame else ack(frame))


@LOOPS
def test_callbacks_run_on_the_loop_that_sends(run: Run) -> None:
    seen: list[tuple[Any, int]] = []

    def note(result: dataproxy.DeliveryResult) -> None:
        seen.append((result.error is None, threading.get_ident()))

    async def main(target: str) -> None:
        loop = asyncio.get_running_loop()
        async with dataproxy.AsyncProducer(target, group_id="g", on_delivery=note, callback_on=loop) as p:
            await asyncio.gather(*(p.send("s", b"%d" % i, on_delivery=note) for i in range(100)))
        assert seen == [(True, threading.get_ident())] * 200

    with Scripted() as server:
        run(main(server.target))


@LOOPS
def test_callbacks_run_in_an_executor(run: Run) -> None:
    seen: list[int] = []

    async def main(target: str, pool: ThreadPoolExecutor) -> None:
        options = {"on_delivery": lambda _result: seen.append(threading.get_ident()), "callback_on": pool}
        async with dataproxy.AsyncProducer(target, group_id="g", **options) as p:
            assert (await p.send_batch("s", [b"x"] * 10)).ok

    with Scripted() as server, ThreadPoolExecutor(1) as pool:
        run(main(server.target, pool))
        assert seen == [pool.submit(threading.get_ident).result()] * 10


@LOOPS
def test_what_was_not_delivered_is_given_back(run: Run) -> None:
    async def main(target: str) -> None:
        p = await dataproxy.AsyncProducer(target, group_id="g", undelivered_bytes="1MiB").open()
        got = await asyncio.gather(p.send("s", b"good"), p.send("t", b"bad one"), return_exceptions=True)
        assert (await p.close()).failed == 1
        (message,) = p.undelivered()
        assert (message.group_id, message.stream_id, message.body) == ("g", "t", b"bad one")
        assert message.error.code == got[1].code == 110
        assert message.id == got[1].id
        assert list(p.undelivered()) == []

    with Scripted(moody) as server:
        run(main(server.target))
