"""Callbacks that fork: the child ends with its callback, and has no part in what is the parent's."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import dataproxy
from tests.loopback.producer.test_delivery import producer
from tests.support.forking import Forks
from tests.support.scripted import Scripted
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

WAYS = pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1), ("exit", 3)])


@contextmanager
def calls() -> Iterator[tuple[int, Callable[[], list[int]]]]:
    """Give a descriptor into which callbacks of parent and child write, and a function that returns who wrote."""
    read, write = os.pipe()
    try:
        yield write, lambda: [int(one) for one in os.read(read, 1 << 16).split()]
    finally:
        os.close(read)
        os.close(write)


@WAYS
def test_a_child_that_a_result_forks_ends_with_it(how: str, code: int) -> None:
    forks, parent = Forks(how), os.getpid()
    with calls() as (log, callers), Scripted() as server:

        def on_delivery(_result: object) -> None:
            os.write(log, b"%d " % os.getpid())
            if not forks.over.is_set() and os.getpid() == parent:
                forks.fork()

        with producer(server.target, on_delivery=on_delivery) as p:
            p.send_batch("s", [b"x"] * 50)
            assert forks.ended() == code
            for _ in range(20):
                p.send("s", b"y")
        assert p.report().delivered == 70
        assert len(server.bodies()) == 70
        who = callers()
    assert who == [parent] * 70, "the child has got results of its parent"


@WAYS
def test_a_child_that_a_done_callback_forks_ends_with_it(how: str, code: int) -> None:
    forks = Forks(how)
    with Scripted() as server, producer(server.target, linger=0.05) as p:
        p.send("s", b"x").add_done_callback(lambda _: forks.fork())
        assert forks.ended() == code
        assert p.send("s", b"y").result(SECONDS)


def test_what_such_a_child_sends_is_delivered() -> None:
    forks, parent = Forks("return"), os.getpid()
    with Scripted() as server:

        def on_delivery(_result: object) -> None:
            if os.getpid() == parent and not forks.over.is_set():
                forks.fork()
                if os.getpid() != parent:
                    p.send_nowait("s", b"of the child")

        with producer(server.target, linger=60, on_delivery=on_delivery) as p:
            p.send_nowait("s", b"of the parent")
            p.flush(SECONDS)
            assert forks.ended() == 0
        assert sorted(server.bodies()) == [b"of the child", b"of the parent"]


@pytest.mark.parametrize("place", ["executor", "loop"])
def test_a_child_on_a_thread_of_the_application_gets_no_results_of_its_parent(place: str) -> None:
    """Its thread goes on, since it is the application's; what waits there for the parent is the parent's alone."""
    forks = Forks("return")
    parent = os.getpid()
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    executor = ThreadPoolExecutor(1)
    queued: list[Any] = []

    def last() -> None:
        if os.getpid() != parent:
            os._exit(7)

    with calls() as (log, callers), Scripted() as server:

        def on_delivery(_result: object) -> None:
            os.write(log, b"%d " % os.getpid())
            if not queued:
                queued.append(eventually(lambda: p._callbacks._ahead.results == 300))
                loop.call_soon(last) if place == "loop" else executor.submit(last)
                forks.fork()

        running.start()
        target: Any = loop if place == "loop" else executor
        with producer(server.target, on_delivery=on_delivery, callback_on=target) as p:
            p.send_batch("s", [b"x"] * 300)
            assert forks.ended() == 7
        executor.shutdown()
        loop.call_soon_threadsafe(loop.stop)
        running.join(SECONDS)
        loop.close()
        who = callers()
    assert queued == [True]
    assert who == [parent] * 300


def test_an_asynchronous_producers_child_ends_too() -> None:
    forks = Forks("return")

    def on_delivery(_result: object) -> None:
        if not forks.over.is_set():
            forks.fork()

    async def main(target: str) -> None:
        async with dataproxy.AsyncProducer(target, group_id="g", on_delivery=on_delivery) as p:
            await p.send("s", b"x")
            assert await asyncio.to_thread(forks.ended) == 0
            await p.send("s", b"y")

    with Scripted() as server:
        asyncio.run(main(server.target))
        assert sorted(server.bodies()) == [b"x", b"y"]
