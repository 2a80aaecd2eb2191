"""Consumer for asyncio: waits that block no loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from dataproxy.consumer.base import ConsumerBase
from dataproxy.consumer.inlong import check_arguments, inlong_records
from dataproxy.consumer.outcomes import SOUGHT, check_confirmed
from dataproxy.errors import ClosedError, LocalProtocolError
from dataproxy.problems import seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from dataproxy._core.consumer.pack import Pack, Record
    from dataproxy.consumer.inlong import InLongRecord
    from dataproxy.consumer.places import Choice
    from dataproxy.consumer.seen import SeenRecords
    from dataproxy.errors import RemoteProtocolError

__all__ = ["AsyncConsumer"]

_SLICE_S: Final = 0.5  # between two looks for a refusal, or for the end
_SHORT_S: Final = 0.02
_ANSWER_S: Final = 5.0
_GRACE_S: Final = 0.5  # for the ends of threads, behind the time that a close may take


class AsyncConsumer(ConsumerBase):
    """Read topics of TubeMQ, or of a hub by RocketMQ's protocol, as a member of a group, in one asyncio loop.

    Parameters are those of Consumer.  It is used in the loop that its first await runs in, and closed there; a
    cancelled await loses no pack.  Use it by ``async with``: leaving the block gives all partitions back.
    """

    _awaited = True
    _loop_of: asyncio.AbstractEventLoop | None = None

    def _watch(self) -> asyncio.AbstractEventLoop:
        """Look at the core's descriptor in the running loop, and return the loop.  Raises LocalProtocolError."""
        loop = asyncio.get_running_loop()
        if self._loop_of is None:
            self._loop_of = loop
            self._waiters: set[asyncio.Future[None]] = set()
            loop.add_reader(self._core.fileno(), self._look)
        elif self._loop_of is not loop:
            raise LocalProtocolError(
                "this AsyncConsumer is used in another loop than before", hint="open one in each loop"
            )
        return loop

    def _look(self) -> None:
        self._core.look()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _unwatch(self) -> None:
        if self._loop_of is not None and not self._loop_of.is_closed():
            self._loop_of.remove_reader(self._core.fileno())  # it stays the loop of waits that are under way

    async def _change(self, limit: float) -> None:
        """Wait until there may be a pack, or an outcome, at most so long."""
        waiter = self._watch().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=limit)
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()

    def _who(self) -> object:
        return asyncio.current_task() or super()._who()

    async def poll(self, timeout: float | timedelta | None = 1.0) -> Pack | None:  # noqa: ASYNC109 - as Consumer's
        """Return the next pack, or None if none came within ``timeout`` (s; None: one second).

        With ``auto_confirm`` the pack that this task got before is confirmed.  Raises GroupRefusedError while a master
        does not let this consumer into its group, ClosedError, ForkedError.
        """
        self._check_open()
        self._watch()
        until = time.monotonic() + (1.0 if timeout is None else seconds(timeout))
        if self.config.auto_confirm:
            self._confirm_given()
        while True:
            await asyncio.sleep(0)  # before a pack is taken: so nothing is lost if this is cancelled
            pack = self._take(0.0)
            left = until - time.monotonic()
            if pack is not None or left <= 0:
                return pack
            await self._change(min(left, _SLICE_S))

    async def __aiter__(self) -> AsyncIterator[Pack]:
        """Return packs until the consumer is closed."""
        while True:
            try:
                pack = await self.poll()
            except ClosedError:
                return
            if pack is not None:
                yield pack

    async def records(self) -> AsyncIterator[Record]:
        """Return messages one by one until the consumer is closed; a pack is confirmed when its last one is done with.

        That is when the next message is asked for.  Raises as ``poll`` does; a confirm that fails is in ``stats()``.
        """
        async for pack in self:
            for record in pack:
                yield record
                if pack.code == SOUGHT:  # the partition is read from another place: the rest is not wanted
                    break
            if not self.config.auto_confirm:
                self._core.end_pack(pack, True)

    def inlong_records(
        self,
        on_malformed: Callable[[Record, RemoteProtocolError], Any] | None = None,
        *,
        dedupe: SeenRecords | None = None,
    ) -> AsyncIterator[InLongRecord]:
        """Return the records of InLong's containers one by one until the consumer is closed, as ``records`` does.

        ``on_malformed`` and ``dedupe`` are those of ``dataproxy.inlong_records``.
        """
        check_arguments(on_malformed, dedupe)
        return self._inlong_records(on_malformed, dedupe)

    async def _inlong_records(
        self, on_malformed: Callable[[Record, RemoteProtocolError], Any] | None, dedupe: SeenRecords | None
    ) -> AsyncIterator[InLongRecord]:
        async for pack in self:
            for record in inlong_records(pack, on_malformed, dedupe=dedupe):
                yield record
                if pack.code == SOUGHT:
                    break
            if not self.config.auto_confirm:
                self._core.end_pack(pack, True)

    async def confirm(self, pack: Pack, *, wait: bool = True) -> None:
        """Tell the broker that a pack is done with, and ask for the partition's next one.

        ``wait``: until the broker has answered.  Raises ConfirmError and LocalProtocolError as ``Consumer.confirm``
        does.
        """
        self._end(pack, consumed=True)
        until = time.monotonic() + self.config.call_timeout + _ANSWER_S
        while wait and pack.outcome == "held" and time.monotonic() < until and not self._core.ended:
            await self._change(_SLICE_S)
        if wait:
            check_confirmed(pack)

    async def available(self, timeout: float | timedelta = 30.0) -> list[str]:  # noqa: ASYNC109 - as Consumer's
        """Return the keys of the partitions that can be chosen; see ``Consumer.available``."""
        await self._await_told(seconds(timeout))
        return self._state.available

    async def assign(self, partitions: Choice, timeout: float | timedelta = 30.0) -> None:  # noqa: ASYNC109
        """Read these partitions and no others; see ``Consumer.assign``.  If the await is cancelled, it is done."""
        await self._await_told(seconds(timeout))
        self._assigned(await asyncio.wrap_future(self._ask_assign(partitions)))

    async def _await_told(self, limit: float) -> None:
        """Wait until a master has said what there is."""
        self._check_chooses()
        until = time.monotonic() + limit
        while not self._state.told.is_set():
            self._check_told(limit, late=time.monotonic() >= until)
            await asyncio.sleep(_SHORT_S)

    async def seek(self, partition: str, offset: int | Literal["earliest", "latest"]) -> int:
        """Read an assigned partition from another place, and return the offset where that is.

        What it does and raises is written at ``Consumer.seek``.  If the await is cancelled, the seek goes on.
        """
        asked = self._ask_seek(partition, offset)
        return self._sought(partition, offset, await asyncio.wrap_future(asked))

    async def wait_ready(self, timeout: float | timedelta = 30.0) -> None:  # noqa: ASYNC109 - as Consumer's
        """Wait until a master has taken this consumer into its group.

        Raises GroupRefusedError, TransportError after ``timeout`` (s) with the last fault, ClosedError.
        """
        until = time.monotonic() + seconds(timeout)
        self._check_open()
        while not self._state.member.is_set():
            self._check_ready(seconds(timeout), late=time.monotonic() >= until)
            await asyncio.sleep(_SHORT_S)

    async def close(self, timeout: float | timedelta | None = None) -> None:  # noqa: ASYNC109 - as Consumer's
        """Give all partitions back, and leave the group: within ``timeout`` (s; None: ``close_timeout``)."""
        self._core.check_own()
        limit = self.config.close_timeout if timeout is None else seconds(timeout)
        self._begin_close()
        until = time.monotonic() + limit
        try:
            while not self._state.ended.is_set() and time.monotonic() < until:  # noqa: ASYNC110 - a thread sets it
                await asyncio.sleep(_SHORT_S)
        finally:
            self._unwatch()
            self._finish_close()
        until = max(until, time.monotonic() + _GRACE_S)
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(_SHORT_S / 10)

    async def __aenter__(self) -> Self:
        if self._closed:
            self._check_open()  # which says so
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
