"""Client program of a service: many threads or tasks that send one message each and wait for its result.

``python -m benchmarks.clients.service --client dataproxy --mode threads --port N``

All together send ``--rate`` messages a second.  A thread has a plan of its own; a thread that is behind its plan sends
at once, and does not make up for more than one interval.  Tasks of an event loop are woken by a ticker of 1 ms, one for
each message that is due; if no task is idle, what is due waits until one is.  The latency is from the call to the
result in the hands of the thread or task.  Where the results come too late for the rate, fewer messages are sent: the
report has the rate that was reached.
"""

import argparse
import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

from benchmarks import bodies
from benchmarks.clients.section import Section, report

__all__ = ["ASYNCHRONOUS", "THREADED", "main"]

STREAM = "s_bench"
THREADS, TASKS = 64, 1000
TICK = 0.001
LINGER_MS = 5  # of the Kafka clients; dataproxy's default
PERCENTILES = (("50", 0.5), ("99", 0.99), ("999", 0.999))
Send = Callable[[bytes], Any]  # returns when the message has its result
SendAsync = Callable[[bytes], Awaitable[Any]]


@contextmanager
def no_threads(_port: int) -> Iterator[Send]:
    """Give a call that does nothing: what the threads and their plan cost."""
    yield lambda _body: None


@asynccontextmanager
async def no_tasks(_port: int) -> AsyncIterator[SendAsync]:
    """Give an await that lets the loop turn once: what the tasks and their plan cost."""
    yield lambda _body: asyncio.sleep(0)


@contextmanager
def dataproxy_threads(port: int) -> Iterator[Send]:
    """Give the call of ``send`` and ``result()``, all options at their defaults."""
    from dataproxy import Producer

    with Producer(f"tcp://127.0.0.1:{port}", group_id="b_bench") as producer:
        yield lambda body: producer.send(STREAM, body).result()


@asynccontextmanager
async def dataproxy_tasks(port: int) -> AsyncIterator[SendAsync]:
    """Give the awaited ``send``, all options at their defaults."""
    from dataproxy import AsyncProducer

    async with AsyncProducer(f"tcp://127.0.0.1:{port}", group_id="b_bench") as producer:
        yield lambda body: producer.send(STREAM, body)


@contextmanager
def kafka_producer(port: int) -> Iterator[Any]:
    """Give a ``confluent_kafka.Producer`` with a thread that polls for its delivery reports."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "acks": 1, "linger.ms": LINGER_MS, "log_level": 3})
    going = threading.Event()
    going.set()

    def poll() -> None:
        while going.is_set():
            producer.poll(0.1)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        yield producer
        assert producer.flush(60) == 0
    finally:
        going.clear()
        poller.join()


@contextmanager
def confluent_threads(port: int) -> Iterator[Send]:
    """Give a call that waits for a lock, which the delivery report releases."""
    with kafka_producer(port) as producer:

        def send(body: bytes) -> None:
            failed: list[object] = []
            told = threading.Lock()
            told.acquire()

            def on_delivery(error: object, _message: object) -> None:
                if error is not None:
                    failed.append(error)
                told.release()

            producer.produce(STREAM, body, on_delivery=on_delivery)
            told.acquire()
            assert not failed, failed

        yield send


@asynccontextmanager
async def confluent_tasks(port: int) -> AsyncIterator[SendAsync]:
    """Give a call whose delivery report goes to the loop by ``call_soon_threadsafe``."""
    loop = asyncio.get_running_loop()
    with kafka_producer(port) as producer:

        async def send(body: bytes) -> None:
            future = loop.create_future()
            producer.produce(
                STREAM, body, on_delivery=lambda error, _message: loop.call_soon_threadsafe(future.set_result, error)
            )
            error = await future
            assert error is None, error

        yield send


@asynccontextmanager
async def aiokafka_tasks(port: int) -> AsyncIterator[SendAsync]:
    """Give ``send_and_wait``."""
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", acks=1, linger_ms=LINGER_MS)
    await producer.start()
    try:
        yield lambda body: producer.send_and_wait(STREAM, body)
    finally:
        await producer.stop()


THREADED: dict[str, Callable[[int], AbstractContextManager[Send]]] = {
    "none": no_threads,
    "dataproxy": dataproxy_threads,
    "confluent-kafka": confluent_threads,
}
ASYNCHRONOUS: dict[str, Callable[[int], AbstractAsyncContextManager[SendAsync]]] = {
    "none": no_tasks,
    "dataproxy": dataproxy_tasks,
    "confluent-kafka": confluent_tasks,
    "aiokafka": aiokafka_tasks,
}


def in_threads(send: Send, rate: float, seconds: float, block: Sequence[bytes]) -> list[float]:
    """Send from all threads for so long; return the seconds of each call."""
    clock, interval = time.perf_counter, THREADS / rate
    began = clock() + 0.01

    def one(number: int) -> list[float]:
        took: list[float] = []
        due, sent = began + number / rate, number
        while (now := clock()) < began + seconds:
            if now < due:
                time.sleep(due - now)
            called = clock()
            send(block[sent % len(block)])
            ended = clock()
            took.append(ended - called)
            sent += THREADS
            due = max(due + interval, ended - interval)
        return took

    with ThreadPoolExecutor(THREADS) as pool:
        return [each for took in pool.map(one, range(THREADS)) for each in took]


async def in_tasks(send: SendAsync, rate: float, seconds: float, block: Sequence[bytes]) -> list[float]:
    """Send from all tasks for so long; return the seconds of each awaited call."""
    loop, clock = asyncio.get_running_loop(), time.perf_counter
    idle: deque[asyncio.Future[bytes | None]] = deque()
    took: list[float] = []

    async def one() -> None:
        while True:
            turn: asyncio.Future[bytes | None] = loop.create_future()
            idle.append(turn)
            body = await turn
            if body is None:
                return
            called = clock()
            await send(body)
            took.append(clock() - called)

    tasks = [loop.create_task(one()) for _ in range(TASKS)]
    await asyncio.sleep(0)
    began, sent = clock(), 0
    while (now := clock()) < began + seconds:
        for _ in range(min(int((now - began) * rate) - sent, len(idle))):
            idle.popleft().set_result(block[sent % len(block)])
            sent += 1
        await asyncio.sleep(TICK)
    while not all(task.done() for task in tasks):
        while idle:
            idle.popleft().set_result(None)
        await asyncio.sleep(TICK)
    await asyncio.gather(*tasks)
    return took


def fields_of(section: Section, took: list[float], size: int) -> dict[str, float]:
    """Return what the report prints; ``took`` is in seconds."""
    fields = section.end(len(took), size)
    took.sort()
    return fields | {f"p{name}_us": took[int(len(took) * at)] * 1e6 for name, at in PERCENTILES}


def run_threads(asked: argparse.Namespace, block: Sequence[bytes]) -> dict[str, float]:
    """Warm up and measure threads."""
    with THREADED[asked.client](asked.port) as send:
        warm = in_threads(send, asked.rate, asked.warmup, block)
        section = Section()
        took = in_threads(send, asked.rate, asked.seconds, block)
        return fields_of(section, took, asked.body) | {"total_records": len(warm) + len(took)}


async def run_tasks(asked: argparse.Namespace, block: Sequence[bytes]) -> dict[str, float]:
    """Warm up and measure tasks."""
    async with ASYNCHRONOUS[asked.client](asked.port) as send:
        warm = await in_tasks(send, asked.rate, asked.warmup, block)
        section = Section()
        took = await in_tasks(send, asked.rate, asked.seconds, block)
        return fields_of(section, took, asked.body) | {"total_records": len(warm) + len(took)}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=sorted(ASYNCHRONOUS), required=True)
    parser.add_argument("--mode", choices=("threads", "tasks"), required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=50_000, help="messages a second, all together")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--body", type=int, default=100)
    asked = parser.parse_args(argv)
    block = bodies.plain(asked.body)
    report(run_threads(asked, block) if asked.mode == "threads" else asyncio.run(run_tasks(asked, block)))


if __name__ == "__main__":
    main()
