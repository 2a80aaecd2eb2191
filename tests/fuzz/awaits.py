"""Fuzz target: random asyncio programs over Waiters, beside the same program over futures of asyncio's own.

Bytes are read as operations: awaitables are made, wrapped in tasks, gathered, shielded, raced against time on a clock
of the program's own, awaited twice, cancelled, answered, and the loop is turned in between.  At the end everything is
answered; then both programs have ended in the same way in each task, the accounting is empty, and nobody waits.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

from tests.fuzz.engine import main
from tests.native.probe_waiter import Desk, answering

__all__ = ["SEEDS", "check"]

OPERATIONS = 11
LIMIT = 60

SEEDS = [
    bytes([0, 0, 0, 0, 2, 3, 8, 1, 10, 0]),  # gather with errors kept, cancelled
    bytes([0, 0, 0, 0, 3, 2, 10, 9, 10, 1]),  # gather against time
    bytes([0, 0, 1, 0, 8, 0, 10, 0]),  # cancelled before it ran
    bytes([0, 0, 4, 0, 10, 0, 8, 0, 6, 0, 10, 0]),  # shielded
    bytes([0, 0, 5, 0, 5, 0, 10, 0, 8, 1, 10, 0, 7, 0]),  # two await the same
    bytes([0, 0, 0, 0, 9, 1, 10, 0, 6, 1, 10, 0]),  # the first of several
    bytes(range(64)),
]


class Refused(Exception):
    """An answer that is an error."""


class Still(selectors.SelectSelector):
    """A selector that never waits."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock moves when the program says so."""

    def __init__(self) -> None:
        super().__init__(Still())
        self.now = 0.0
        self.noted: list[str] = []
        self.set_exception_handler(lambda _, context: self.noted.append(context["message"]))

    def time(self) -> float:
        return self.now

    def turn(self) -> None:
        """Go on until nothing is left to do at this time."""
        self.call_soon(self.stop)
        self.run_forever()
        while self._ready:
            self.call_soon(self.stop)
            self.run_forever()


class Program:
    """One reading of the bytes; ``make`` gives it an awaitable whose result can be set."""

    def __init__(self, loop: Loop, make: Callable[[], Any]) -> None:
        self.loop = loop
        self.make = make
        self.sources: list[Any] = []
        self.tasks: list[asyncio.Future[Any]] = []

    async def step(self, kind: int, value: int) -> None:
        """Do one operation, in the loop."""
        if kind == 0:
            self.sources.append(self.make())
            return
        source = self.sources[value % len(self.sources)] if self.sources else None
        task = self.tasks[value % len(self.tasks)] if self.tasks else None
        if kind == 8 and task is not None:
            task.cancel()
        if source is None:
            return
        some = [self.wait(one) for one in self.sources[value % 4 :][:3]]
        ways: dict[int, Callable[[], Awaitable[Any]]] = {
            1: lambda: self.wait(source),
            2: lambda: self.together(some, keep=value % 2 == 1),
            3: lambda: asyncio.wait_for(self.together(some, keep=value % 3 == 0), 1 + value % 5),
            4: lambda: asyncio.shield(self.wait(source)),
            5: lambda: self.twice(source),
            9: lambda: self.first(some),
        }
        if kind in ways:
            self.tasks.append(asyncio.ensure_future(self.told(ways[kind]())))
        if kind not in (2, 3, 9):
            for one in some:
                one.close()
        if kind == 6 and not source.done():
            source.set_result(value)
        elif kind == 7 and not source.done():
            source.set_exception(Refused(value))

    async def wait(self, source: Any) -> Any:
        """Await one."""
        return await source

    async def together(self, some: list[Any], *, keep: bool) -> Any:
        """Gather."""
        return await asyncio.gather(*some, return_exceptions=keep)

    async def twice(self, source: Any) -> Any:
        """Await against time, and once more."""
        try:
            async with asyncio.timeout(2):
                await asyncio.shield(self.wait(source))
        except TimeoutError:
            pass
        return await source

    async def first(self, some: list[Any]) -> int:
        """Race."""
        if not some:
            return 0
        done, pending = await asyncio.wait([asyncio.ensure_future(one) for one in some], timeout=3)
        for task in pending:
            task.cancel()
        for task in done:
            task.cancelled() or task.exception()
        return len(done)

    async def told(self, what: Awaitable[Any]) -> str:
        """Say how an await ended."""
        try:
            got = await what
        except asyncio.CancelledError:
            return "cancelled"
        except Exception as error:
            return type(error).__name__
        return repr(
            [type(x).__name__ if isinstance(x, BaseException) else x for x in got] if isinstance(got, list) else got
        )

    def run(self, data: bytes) -> list[str]:
        """Do all operations, answer everything, and return how each task ended."""
        for kind, value in list(zip(data[::2], data[1::2], strict=False))[:LIMIT]:
            if kind % OPERATIONS == 10:
                self.loop.now += value % 4
            else:
                self.loop.run_until_complete(self.step(kind % OPERATIONS, value))
            self.loop.turn()
        for number, source in enumerate(self.sources):
            if not source.done():
                source.set_result(number)
        for _ in range(3):
            self.loop.now += 10
            self.loop.turn()
        assert all(task.done() for task in self.tasks), "a task waits for ever"
        return ["cancelled" if task.cancelled() else task.result() for task in self.tasks]


def _play(data: bytes, make: Callable[[Loop], Callable[[], Any]], settle_rest: Callable[[], None]) -> list[str]:
    loop = Loop()
    asyncio.set_event_loop(loop)
    try:
        program = Program(loop, make(loop))
        told = program.run(data)
        settle_rest()
        loop.turn()
        assert not asyncio.all_tasks(loop), "a task was left"
        for source in program.sources:
            source.cancelled() or source.exception()
        return told
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def check(data: bytes) -> None:
    """Run the program over both kinds."""
    expected = _play(data, lambda loop: loop.create_future, lambda: None)
    desk = Desk()
    with answering():
        told = _play(data, lambda loop: lambda: desk.new(loop, False), desk.settle_rest)
    assert told == expected, f"{told} in the place of {expected}"
    assert desk.unsettled == 0, "the accounting is not empty"
    assert desk.waiting == 0, "somebody waits for what is settled"
    desk.close()


if __name__ == "__main__":
    main(check, SEEDS)
