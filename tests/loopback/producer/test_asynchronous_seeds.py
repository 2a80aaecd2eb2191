"""Many tasks do many things at once, by seed: sends, cancellations, batches, flushes; the accounting decides."""

import asyncio
import random
import threading
from typing import Any

import pytest
import uvloop

import dataproxy
from dataproxy._core.producer.aio.notifier import open_notifiers
from tests.support.scripted import Peer, Scripted, ack, refusal

SEEDS = 200
LOSSES = (dataproxy.DeliveryFailed, dataproxy.DeliveryExpired)


class Fickle:
    """A proxy that accepts, refuses, keeps an answer for later, or closes the connection; by seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._kept: list[tuple[Peer, bytes]] = []
        self.honest = False

    def __call__(self, peer: Peer, frame: bytes) -> None:
        """React to one frame."""
        with self._lock:
            kind = 1.0 if self.honest else self._random.random()
            answer = refusal(frame, 110) if kind < 0.15 else ack(frame)
            if kind < 0.05:
                peer.close()
            elif kind > 0.75 and not self.honest:
                self._kept.append((peer, answer))
            else:
                peer.send(answer)
                self.release()

    def release(self) -> None:
        """Send what was kept, newest first."""
        while self._kept:
            peer, answer = self._kept.pop()
            peer.send(answer)

    def settle(self) -> None:
        """Accept everything from now on."""
        with self._lock:
            self.honest = True
            self.release()


class Play:
    """One seed: tasks with random steps on one producer, and what they were told."""

    def __init__(self, seed: int, producer: dataproxy.AsyncProducer) -> None:
        self.random = random.Random(seed)
        self.producer = producer
        self.told_delivered = 0
        self.told_lost = 0
        self.unknown = 0  # of cancelled calls: accepted or not
        self.balanced = True
        self.silent = 0  # accepted, and nobody looked

    def body(self) -> bytes:
        """Return a body of a random size."""
        return b"x" * self.random.choice((1, 10, 100, 700))

    async def hear(self, awaitable: Any, messages: int = 1) -> None:
        """Await a result, perhaps not to its end, and write down what it says."""
        patience = self.random.choice((None, None, 0.0, 0.001, 0.01))
        try:
            got = await (awaitable if patience is None else asyncio.wait_for(awaitable, patience))
        except LOSSES:
            self.told_lost += messages
        except dataproxy.BufferFullError as full:
            self.silent += full.details["accepted"]  # of a batch that does not fit at once
        except (TimeoutError, asyncio.CancelledError):
            self.unknown += messages
        else:
            good = got.delivered if isinstance(got, tuple) and hasattr(got, "delivered") else messages
            self.told_delivered += good
            self.told_lost += messages - good

    async def soon(self) -> None:
        """Send without waiting; look at the result several times, or never."""
        try:
            delivery = self.producer.send_soon("s", self.body())
        except dataproxy.BufferFullError:
            return
        if self.random.random() < 0.3:
            self.silent += 1
            return
        first, second = await asyncio.gather(delivery, delivery, return_exceptions=True)
        assert type(first) is type(second)
        if isinstance(first, LOSSES):
            self.told_lost += 1
        else:
            assert first == second == delivery.result(0)
            self.told_delivered += 1

    async def block(self) -> None:
        """Gather some messages in a block."""
        n = self.random.randrange(1, 30)
        lost = 0
        try:
            async with self.producer.batch("s") as batch:
                for _ in range(n):
                    await batch.add(self.body())
        except dataproxy.UndeliveredError as error:
            lost = error.report.accepted - error.report.delivered
        except dataproxy.BufferFullError:
            self.unknown += n
            return
        assert len(batch) == n
        self.told_lost += lost
        self.told_delivered += n - lost

    async def flush(self) -> None:
        """Flush, with little patience."""
        try:
            await self.producer.flush(self.random.choice((0.0, 0.001, 0.05)))
        except dataproxy.FlushTimeout as late:
            self.balanced = self.balanced and late.report.balanced

    async def task(self) -> None:
        """Do some steps."""
        for _ in range(self.random.randrange(1, 8)):
            step = self.random.randrange(10)
            if step < 5:
                await self.hear(self.producer.send("s", self.body()))
            elif step < 7:
                await self.soon()
            elif step == 7:
                n = self.random.randrange(1, 20)
                await self.hear(self.producer.send_batch("s", [self.body() for _ in range(n)]), n)
            elif step == 8:
                await self.block()
            else:
                await self.flush()

    async def run(self, fickle: Fickle) -> None:
        """Run all tasks, cancel some, end, and compare."""
        await self.producer.open()
        tasks = [asyncio.create_task(self.task()) for _ in range(self.random.randrange(2, 20))]
        await asyncio.sleep(self.random.choice((0, 0.001, 0.01)))
        stormed = self.random.random() < 0.3
        if stormed:
            for task in self.random.sample(tasks, len(tasks) // 2):
                task.cancel()
        fickle.settle()
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert [x for x in got if x is not None and not isinstance(x, asyncio.CancelledError)] == []
        report = await self.producer.close()
        assert report.balanced
        assert self.balanced
        assert report.pending == 0
        sure = self.told_delivered + self.told_lost + self.silent
        if stormed:
            assert report.accepted >= sure
        else:
            assert sure <= report.accepted <= sure + self.unknown
        assert report.delivered >= self.told_delivered
        assert report.failed + report.expired >= self.told_lost


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_interleavings(first: int) -> None:
    for seed in range(first, first + 25):
        pick = random.Random(~seed)
        fickle = Fickle(seed)
        with Scripted(fickle) as server:
            producer = dataproxy.AsyncProducer(
                server.target,
                group_id="g",
                linger=pick.choice((0, 0.001, 0.004)),
                buffer_bytes=pick.choice((2_048, 8_192, 1 << 20)),
                batch_bytes=1_024,
                batch_messages=pick.choice((1, 3, 1_000)),
                max_block=pick.choice((0.01, 5.0)),
                retry_backoff=0.01,
                reconnect_backoff=0.001,
                delivery_timeout=20,
            )
            (uvloop.run if seed % 2 else asyncio.run)(Play(seed, producer).run(fickle))
        assert open_notifiers() == 0, seed
