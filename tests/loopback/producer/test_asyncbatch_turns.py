"""A loop goes on while one of its tasks fills a batch."""

import asyncio

import pytest
import uvloop

import dataproxy
from tests.support.scripted import Scripted

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@LOOPS
def test_adding_with_room_lets_other_tasks_run(run) -> None:
    async def main(target: str) -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with dataproxy.AsyncProducer(target, group_id="g", buffer_bytes="16MiB") as p, p.batch("s") as batch:
            task = asyncio.create_task(other())
            await asyncio.sleep(0)
            before = turns
            for _ in range(1024):
                await batch.add(b"x")
            assert turns - before >= 4
            task.cancel()

    with Scripted() as server:
        run(main(server.target))
