"""`dataproxy.AsyncConsumer` at a hub that pushes: waits that block no loop, cancellation, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from dataproxy import AsyncConsumer
from dataproxy.consumer.pushed.unpacking import Unpacking
from dataproxy.errors import ClosedError, ConfirmError, GroupRefusedError, LocalProtocolError
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def consume(hub: Hub, **options: Any) -> AsyncConsumer:
    return AsyncConsumer(hub.rocketmq_target, **{"group": "g", "topics": ["T"], "release_wait": 0, **options})


def send(hub: Hub, n: int, queue: int = 0) -> list[bytes]:
    with Producer(hub.rocketmq_target, "p") as producer:
        for i in range(n):
            producer.send("T", b"%d" % i, queue=queue).result(SECONDS)
    return [b"%d" % i for i in range(n)]


def test_packs_are_awaited_confirmed_and_rolled_back(hub: Hub) -> None:
    wanted = send(hub, 200)

    async def main() -> None:
        async with consume(hub) as consumer:
            await consumer.wait_ready(SECONDS)
            first = await consumer.poll(SECONDS)
            assert first is not None
            first.rollback()
            found: list[bytes] = []
            async for pack in consumer:
                found += pack.bodies()
                await pack.confirm()
                assert pack.outcome == "confirmed"
                if len(found) == len(wanted):
                    break
            assert found == wanted and consumer.stats().packs.rolled_back == 1
            assert await consumer.poll(0.01) is None
            assert await consumer.seek("dataproxy:T:0", 150) == 150
            pack = await consumer.poll(SECONDS)
            assert pack is not None and pack.bodies()[0] == b"150"
            with pytest.raises(LocalProtocolError, match="no meaning with rocketmq"):
                await consumer.available()
        with pytest.raises(ClosedError):
            await consumer.poll()
        with pytest.raises(ConfirmError):
            await pack.confirm()
        assert asyncio.get_running_loop().remove_reader(consumer._core.fileno()) is False

    asyncio.run(main())


def test_a_message_ends_a_wait_at_once_and_a_cancelled_one_loses_nothing(hub: Hub) -> None:
    send(hub, 1)  # which makes the topic

    async def main() -> None:
        async with consume(hub) as consumer:
            await consumer.wait_ready(SECONDS)
            first = await consumer.poll(SECONDS)
            assert first is not None
            await first.confirm()
            for _ in range(5):
                waiting = asyncio.ensure_future(consumer.poll(SECONDS))
                await asyncio.sleep(0.01)
                waiting.cancel()
            waiting = asyncio.ensure_future(consumer.poll(SECONDS))
            wanted = await asyncio.to_thread(send, hub, 1)
            pack = await waiting
            assert pack is not None and pack.bodies() == wanted
            await consumer.confirm(pack, wait=False)
            records = consumer.records()
            await asyncio.to_thread(send, hub, 1, 1)
            assert (await anext(records)).partition == "dataproxy:T:1"

    asyncio.run(main())


def test_a_large_packed_body_is_unpacked_in_several_turns_of_the_loop(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataproxy.consumer.pushed.unpacking.PORTION", 1 << 14)
    body = bytes(range(256)) * 8192
    with Producer(hub.rocketmq_target, "p") as producer:
        producer.send("T", body, queue=0).result(SECONDS)

    async def main() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async with consume(hub) as consumer:
            counting = asyncio.ensure_future(count())
            portions: list[int] = []
            real = Unpacking.go_on

            def go_on(self: Unpacking) -> bool:
                portions.append(turns)
                return real(self)

            monkeypatch.setattr(Unpacking, "go_on", go_on)
            pack = await consumer.poll(SECONDS)
            counting.cancel()
            assert pack is not None and pack.bodies() == [body]
            assert len(portions) >= len(body) >> 14 and len(set(portions)) == len(portions)

    asyncio.run(main())


def test_without_pushes_every_await_says_so() -> None:
    async def main(target: str) -> None:
        async with AsyncConsumer(target, group="g", topics=["T"]) as consumer:
            with pytest.raises(GroupRefusedError, match="does not push"):
                await consumer.wait_ready(SECONDS)
            with pytest.raises(GroupRefusedError):
                await consumer.poll()

    with RocketServer({"T": 2}) as server:
        asyncio.run(main(server.target))
