"""Back-pressure in an event loop: tasks wait for room in the buffer, in the order in which they came."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import TypeVar

from dataproxy._core.producer.aio.notifier import Notifier
from dataproxy._core.producer.aio.send import AsyncCore, room, seal_idle, turns
from dataproxy._core.producer.handle import CoreHandle
from dataproxy.errors import BufferFullError

__all__ = ["Room"]

T = TypeVar("T")

_Entry = tuple[int, int, "asyncio.Future[bool]"]


class Room:
    """Queue of one loop's tasks that wait for room in one producer's buffer.  All methods: the loop's thread."""

    def __init__(self, producer: AsyncCore, core: CoreHandle, notifier: Notifier) -> None:
        self._producer = producer
        self._core = core
        self._notifier = notifier
        self._tickets = itertools.count()
        self._queue: list[_Entry] = []
        self._given: dict[int, int] = {}  # ticket -> bytes, of tasks that have a turn and have not resumed
        self._promised = 0  # the sum of these bytes
        self._aside: list[asyncio.Future[bool]] = []  # of tasks that wait for room among unknown groups alone
        self._armed = False

    async def accept(self, attempt: Callable[[], T], need: int, max_block: float) -> T:
        """Call ``attempt`` until it finds room, for at most ``max_block`` seconds, and return what it returns.

        ``need`` is an estimate of the bytes that it takes.  Raises BufferFullError, and what ``attempt`` raises.  If
        the task is cancelled in the wait, ``attempt`` has not succeeded.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max_block
        ticket = next(self._tickets)
        in_turn = not self._is_awaited()
        while True:
            seen = turns(self._core)
            if in_turn:
                full = aside = False
                try:
                    return attempt()
                except BufferFullError as error:
                    full = True
                    aside = bool(error.details.get("unknown_group"))
                    if loop.time() >= deadline:
                        raise
                finally:
                    if not full or aside:
                        self._give_turns()  # the rest of the room may be enough for the next task
                if aside:
                    await self._wait_aside(deadline, seen)
                    continue
            in_turn = await self._turn(ticket, need, deadline, seen)
            if not in_turn:
                raise self._too_late(max_block)

    async def _wait_aside(self, deadline: float, seen: int) -> None:
        """Wait until the buffer gets bytes back, or for the deadline, and hold nobody up meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_at(deadline, _answer, future, False)
        self._aside.append(future)
        self._producer._join_queue()
        self._arm(seen)
        try:
            await future
        finally:
            self._producer._leave_queue()
            timer.cancel()

    async def _turn(self, ticket: int, need: int, deadline: float, seen: int) -> bool:
        """Wait for this ticket's turn; False at the deadline."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_at(deadline, _answer, future, False)
        heapq.heappush(self._queue, (ticket, need, future))
        self._producer._join_queue()
        self._arm(seen)
        try:
            in_turn = await future
        except asyncio.CancelledError:
            if self._end_turn(ticket):
                self._give_turns()  # this task will not use its turn, so the next task gets it
            raise
        finally:
            self._producer._leave_queue()
            timer.cancel()
        self._end_turn(ticket)
        return in_turn

    def _end_turn(self, ticket: int) -> bool:
        """Remove the bytes that were promised to a task; False if it had no turn."""
        need = self._given.pop(ticket, None)
        self._promised -= need or 0
        return need is not None

    def look(self, need: int) -> None:
        """Raise BufferFullError if the buffer has room for less than ``need`` bytes."""
        free, messages = room(self._core)
        if free < need or messages == 0:
            raise BufferFullError(f"the buffer has room for {free} bytes", details={"free_bytes": free, "accepted": 0})

    def _too_late(self, max_block: float) -> BufferFullError:
        limit = sum(room(self._core)[:1])
        return BufferFullError(
            f"the buffer had no room within max_block={max_block:g} s",
            hint="send slower, raise buffer_bytes, or check that the proxies answer (stats())",
            details={"free_bytes": limit, "accepted": 0},
        )

    def _arm(self, seen: int) -> None:
        """Call ``_rang`` when the buffer gets bytes back."""
        if not self._armed:
            self._armed = True
            if not self._notifier.call_on_room(self._core, seen, self._rang):
                asyncio.get_running_loop().call_soon(self._rang)
        seal_idle(self._core)

    def _rang(self) -> None:
        self._armed = False
        aside, self._aside = self._aside, []
        for future in aside:
            _answer(future, True)
        self._give_turns(1 if self._promised == 0 else 0)  # ``need`` is an estimate: the first may try

    def _is_awaited(self) -> bool:
        """Remove tasks that no longer wait from the head of the queue; tell whether a task still waits."""
        while self._queue and self._queue[0][2].done():
            heapq.heappop(self._queue)
        return bool(self._queue)

    def _give_turns(self, least: int = 0) -> None:
        """Give a turn to as many tasks as there is room for, and to ``least`` tasks in any case."""
        seen = turns(self._core)
        free, messages = room(self._core)
        free -= self._promised
        given = 0
        while self._is_awaited():
            ticket, need, future = self._queue[0]
            if given >= least and (need > free or given == messages):
                self._arm(seen)
                return
            free -= need
            self._promised += need
            self._given[ticket] = need
            given += 1
            future.set_result(True)


def _answer(future: asyncio.Future[bool], turn: bool) -> None:
    if not future.done():
        future.set_result(turn)
