"""What an AsyncProducer's waits hold is freed with them, on asyncio's loop and on uvloop's."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

import dataproxy
from dataproxy._core.producer.aio.notifier import open_notifiers
from tests.support.scripted import Scripted

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Held:
    """Something that a task holds."""


class Service:
    """An object that owns a producer, is called by it, and keeps what ``send`` returned."""

    def __init__(self, target: str) -> None:
        self.producer = dataproxy.AsyncProducer(target, group_id="g", linger=0.001, on_delivery=self.heard)
        self.heard_of = 0
        self.sent: list[Any] = []

    def heard(self, _result: object) -> None:
        self.heard_of += 1

    async def use(self) -> None:
        """Send four messages: awaited, cancelled, never awaited, awaited from the plain Delivery."""
        async with self.producer as p:
            self.sent = [p.send("s", b"1"), p.send("s", b"2"), p.send("s", b"3"), p.send_soon("s", b"4")]
            await self.sent[0]
            self.sent[1].cancel()
            await self.sent[3]


async def hold(p: dataproxy.AsyncProducer, body: bytes, held: object) -> object:
    """Await a send and stop the loop; return what is held meanwhile."""
    await p.send("s", body)
    asyncio.get_running_loop().stop()
    return held


def end_too_early(p: dataproxy.AsyncProducer, loop: asyncio.AbstractEventLoop, held: object) -> None:
    """Close a loop amid the waking of its tasks."""
    loop.set_exception_handler(lambda loop, context: None)  # that tasks were destroyed
    loop.run_until_complete(p.open())
    tasks = [loop.create_task(hold(p, b"%d" % i, held)) for i in range(2_000)]
    loop.run_forever()
    assert not all(task.done() for task in tasks)
    loop.close()


@LOOPS
def test_tasks_of_a_closed_loop_are_freed(run: Run) -> None:
    with Scripted() as server:
        p = dataproxy.AsyncProducer(server.target, group_id="g", linger=0.001)
        held = Held()
        end_too_early(p, uvloop.new_event_loop() if run is uvloop.run else asyncio.new_event_loop(), held)
        freed = weakref.ref(held)
        del held
        assert run(p.close()).delivered == 2_000
        gc.collect()
        assert freed() is None
        assert open_notifiers() == 0


@LOOPS
def test_a_kept_result_does_not_keep_its_producer(run: Run) -> None:
    with Scripted() as server:
        service = Service(server.target)
        run(service.use())
        assert service.heard_of == 4
        freed = weakref.ref(service)
        del service
        gc.collect()
        assert freed() is None
