"""A load from event loops: a task for each message, which awaits ``AsyncProducer.send`` as a service's tasks do.

A timer of the kernel keeps the plan, since timers of event loops have a resolution of milliseconds.  A message's
lateness counts until its task makes the call, and its latency until the await returns in the task: the delays of a busy
loop are in both.
"""

from __future__ import annotations

import asyncio
import importlib.util
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dataproxy.errors import BufferFullError, DeliveryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from dataproxy._core.perf.generator import Generator

__all__ = ["loop_name", "run_in_loop", "send_by_tasks"]

T = TypeVar("T")

_EACH_TURN: Final = 256  # tasks that are created before others may run


def loop_name() -> str:
    """Return the name of the event loop for loads: ``uvloop`` if it is installed, else ``asyncio``."""
    return "asyncio" if importlib.util.find_spec("uvloop") is None else "uvloop"


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, as ``asyncio.run`` does, and return its result."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if loop_name() == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


async def send_by_tasks(
    generator: Generator, start_us: int, calls: Sequence[Callable[[bytes], Awaitable[object]]], bodies: Sequence[bytes]
) -> None:
    """Send the plan of a generator by awaited ``calls`` with ``bodies``, each list in turn; wait for all results.

    The plan begins at ``start_us``, a value of ``time.monotonic_ns() // 1000``.  ``Generator.stop`` ends the sending.
    Raises what a call raises, except for BufferFullError and errors of single messages, which are counted.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    tasks: set[asyncio.Task[None]] = set()
    errors: list[BaseException] = []
    number = 0

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def forget(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            errors.append(error)
            end()

    def ring() -> None:
        nonlocal number
        due = generator.take_due(_EACH_TURN)
        if due is None:
            loop.remove_reader(alarm)
            end()
            return
        for planned in due:
            call, body = calls[number % len(calls)], bodies[number % len(bodies)]
            number += 1
            task = loop.create_task(_send(generator, planned, call, body))
            tasks.add(task)
            task.add_done_callback(forget)

    alarm = generator.begin_in_loop(start_us)
    loop.add_reader(alarm, ring)
    try:
        await ended
        if tasks and not errors:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        loop.remove_reader(alarm)
    if errors:
        raise errors[0]


async def _send(generator: Generator, planned: int, call: Callable[[bytes], Awaitable[object]], body: bytes) -> None:
    """Send one message and count its result."""
    if not generator.begin_message(planned):
        return
    try:
        await call(body)
    except (BufferFullError, DeliveryError) as error:
        generator.end_message(planned, error)
    else:
        generator.end_message(planned)
