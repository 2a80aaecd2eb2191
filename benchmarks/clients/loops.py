"""Client program for ``dataproxy.AsyncProducer`` on one event loop, and for what the loop alone needs.

``python -m benchmarks.clients.loops --mode await_send --loop uvloop --port N``
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from benchmarks import bodies
from benchmarks.clients.section import Section, report
from dataproxy import AsyncProducer, BufferFullError

__all__ = ["MODES", "main"]

STREAM = "s_bench"
TASKS = 1000
RATE = 50_000  # messages a second while the lag is measured
TICK = 0.001


class Clock:
    """Tell tasks when the time is over, so that they need not read the clock for each message."""

    def __init__(self, seconds: float) -> None:
        """Begin now, for ``seconds``; the loop must be running."""
        self.going = True
        asyncio.get_running_loop().call_later(seconds, self._end)

    def _end(self) -> None:
        self.going = False


async def bare_futures(seconds: float, _producer: AsyncProducer | None, _block: Sequence[bytes]) -> int:
    """Await the loop's own futures from many tasks; one callback sets the results of all that wait."""
    loop, clock = asyncio.get_running_loop(), Clock(seconds)
    waiting: list[asyncio.Future[None]] = []

    def fire() -> None:
        given = waiting[:]
        waiting.clear()
        for future in given:
            future.set_result(None)
        if given or clock.going:
            loop.call_soon(fire)

    async def one() -> int:
        done = 0
        while clock.going:
            future = loop.create_future()
            waiting.append(future)
            await future
            done += 1
        return done

    loop.call_soon(fire)
    return sum(await asyncio.gather(*(one() for _ in range(TASKS))))


async def await_send(seconds: float, producer: AsyncProducer | None, block: Sequence[bytes]) -> int:
    """Await ``send`` from many tasks."""
    assert producer is not None
    send, clock, body = producer.send, Clock(seconds), block[0]

    async def one() -> int:
        done = 0
        while clock.going:
            await send(STREAM, body)
            done += 1
        return done

    return sum(await asyncio.gather(*(one() for _ in range(TASKS))))


async def send_soon(seconds: float, producer: AsyncProducer | None, block: Sequence[bytes]) -> int:
    """Call ``send_soon`` for each body of a block, then let the loop turn once; flush at the end."""
    assert producer is not None
    send, clock, done = producer.send_soon, Clock(seconds), 0
    while clock.going:
        try:
            for body in block:
                send(STREAM, body)
                done += 1
        except BufferFullError:
            await producer.room(1 << 20)
        await asyncio.sleep(0)
    await producer.flush(60)
    return done


MODES: dict[str, Callable[[float, AsyncProducer | None, Sequence[bytes]], Awaitable[int]]] = {
    "bare_futures": bare_futures,
    "await_send": await_send,
    "send_soon": send_soon,
}


async def lag(seconds: float, producer: AsyncProducer | None, block: Sequence[bytes]) -> tuple[int, list[float]]:
    """Start awaited sends at a fixed rate; return their number, and how late (s) each tick of a 1 ms timer was."""
    loop, clock = asyncio.get_running_loop(), Clock(seconds)
    late: list[float] = []
    tasks: set[asyncio.Task[object]] = set()
    began = time.perf_counter()
    sent = ticks = 0

    async def one(body: bytes) -> None:
        assert producer is not None
        await producer.send(STREAM, body)

    while clock.going:
        ticks += 1
        planned = began + ticks * TICK
        await asyncio.sleep(max(0.0, planned - time.perf_counter()))
        late.append(time.perf_counter() - planned)
        ticks = max(ticks, int((time.perf_counter() - began) / TICK))  # after a late tick the missed ones are skipped
        due = int((time.perf_counter() - began) * RATE) - sent if producer is not None else 0
        for number in range(due):
            task = loop.create_task(one(block[number % len(block)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        sent += due
    await asyncio.gather(*tasks)
    return sent or ticks, late


def percentiles(late: list[float]) -> dict[str, float]:
    """Return percentiles of the lag in microseconds; ``late`` is in seconds."""
    late.sort()
    return {f"p{name}_us": late[int(len(late) * at)] * 1e6 for name, at in (("50", 0.5), ("99", 0.99), ("999", 0.999))}


async def run(asked: argparse.Namespace) -> dict[str, float]:
    """Warm up, measure, and check the accounting."""
    block = bodies.plain(asked.body, bodies.BLOCK)
    if not asked.port:
        return await measured(asked, None, block)
    target = f"tcp://127.0.0.1:{asked.port}"
    async with AsyncProducer(target, group_id="b_bench", linger=asked.linger) as producer:
        fields = await measured(asked, producer, block)
        final = await producer.flush(60)
        assert final.ok, final
        assert final.balanced, final
        return fields | {"total_records": final.accepted}


async def measured(
    asked: argparse.Namespace, producer: AsyncProducer | None, block: Sequence[bytes]
) -> dict[str, float]:
    """Return the fields of one measurement."""
    if asked.mode == "lag":
        await lag(asked.warmup, producer, block)
        section = Section()
        done, late = await lag(asked.seconds, producer, block)
        return section.end(done, asked.body) | percentiles(late)
    await MODES[asked.mode](asked.warmup, producer, block)
    section = Section()
    done = await MODES[asked.mode](asked.seconds, producer, block)
    return section.end(done, asked.body)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted([*MODES, "lag"]), required=True)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--port", type=int, default=0, help="0: no producer, the loop alone")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--linger", default="1ms")
    asked = parser.parse_args(argv)
    if asked.loop == "uvloop":
        import uvloop

        report(uvloop.run(run(asked)))
    else:
        report(asyncio.run(run(asked)))


if __name__ == "__main__":
    main()
