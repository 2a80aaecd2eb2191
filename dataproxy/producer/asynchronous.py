"""AsyncProducer: the producer for event loops."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from dataproxy._core.producer.aio.notifier import Notifier
from dataproxy._core.producer.aio.send import AsyncCore, AsyncStream, seal_all, waiting_args
from dataproxy._core.producer.ingest.stream import Stream
from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
from dataproxy._core.producer.results.drain import UndeliveredMessages
from dataproxy.config import PRODUCER, ProducerConfig, conceal
from dataproxy.errors import BufferFullError, ClosedError, ConfigError, FlushTimeout
from dataproxy.outcomes import BatchDelivered, Delivered, DeliveryResult, Report, Sent
from dataproxy.problems import checked_serializer, is_count, seconds, shown
from dataproxy.process.threads import start_quiet
from dataproxy.producer import lifecycle
from dataproxy.producer.arguments import checked_config
from dataproxy.producer.asyncbatch import AsyncBatch
from dataproxy.producer.discovery.credentials import ManagerAuth
from dataproxy.producer.producer import Producer, tell_undelivered
from dataproxy.producer.room import Room
from dataproxy.producer.stats import ProducerStats
from dataproxy.producer.worker import Job, Worker, closed
from dataproxy.unmade import made_by_init

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from datetime import timedelta
    from typing import Unpack

    from _typeshed import ReadableBuffer as Buffer

    from dataproxy.config.typed import ProducerOptions
    from dataproxy.rows.options import RowFormat, RowOptions

__all__ = ["AsyncProducer"]

T = TypeVar("T")

_INLINE_MESSAGES = 10_000
_INLINE_BYTES = 1 << 20
_EMPTY = Report(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


class AsyncProducer(AsyncCore):
    """Send messages to InLong DataProxy from event loops, asyncio's own or uvloop's.

    Parameters as for ``Producer``.  The constructor only checks them. ``async with``, ``open`` or the first
    awaited call asks the Manager, resolves names and starts the threads, on a background thread.
    Several loops in several threads may use one AsyncProducer.  Use it with ``async with``: leaving the block
    delivers everything or raises UndeliveredError.

    Raises ConfigError; ``open`` raises DiscoveryError and can then be called again.
    """

    config: ProducerConfig = made_by_init()
    _closing: Job[Report] | None = made_by_init()
    _serializer: Callable[[Any], Buffer] | None = made_by_init()

    def __init__(
        self,
        target: str | list[str] | tuple[str, ...] | None = None,
        *,
        group_id: str | None = None,
        on_delivery: Callable[[DeliveryResult], object] | None = None,
        callback_on: Executor | asyncio.AbstractEventLoop | None = None,
        config: ProducerConfig | None = None,
        config_file: str | Path | None = None,
        serializer: Callable[[Any], Buffer] | None = None,
        manager_auth: ManagerAuth | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__()
        self._serializer = checked_serializer(serializer)
        conceal(PRODUCER, cast("dict[str, Any]", options))
        self.config = checked_config(target, group_id, on_delivery, callback_on, config, config_file, options)
        self._make = partial(
            Producer,
            config=self.config,
            on_delivery=on_delivery,
            callback_on=callback_on,
            serializer=serializer,
            manager_auth=manager_auth,
        )
        self._worker = Worker("dataproxy-worker")
        self._opening: Job[None] | None = None
        self._closing = None
        self._rooms: dict[Notifier, Room] = {}

    # --- life

    async def open(self) -> Self:
        """Find the proxies and start the threads; returns the producer.

        Does nothing if it is open already.  Raises DiscoveryError (the call can then be repeated), ConfigError,
        ClosedError, ForkedError.
        """
        self._check()
        if self._closing is not None:
            raise closed()
        if not self._is_open:
            if self._opening is None or self._opening.failed:
                self._opening = self._worker.submit(self._start)
            await self._opening.wait()
            if self._closing is not None:  # ``close`` was called in the meantime
                raise closed()
        self._watch()
        return self

    def _start(self) -> None:
        """Make the plain producer.  Thread: the worker."""
        if self._is_open:
            return
        producer = self._make()
        producer._warns_when_left = False  # this object warns in its place
        producer._suspend_when_full()
        producer._wait_here()
        self._attach(producer)

    async def flush(self, timeout: float | timedelta | None = None) -> Report:  # noqa: ASYNC109 - as the plain producer's
        """Send everything now and wait until each message accepted so far has its final result.

        ``timeout`` in seconds, None for ``delivery_timeout`` and a second.  Returns the report, after ``close``
        the final one.  Raises FlushTimeout (with the report) if the time was not enough; the messages are still
        in flight then.
        """
        limit = self.config.delivery_timeout + 1.0 if timeout is None else seconds(timeout)
        self._check_process()
        if self._closing is not None:
            return await self.close()
        await self.open()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mark = seal_all(self._inner)
        if self._watch().call_on_settled(self._inner, mark, partial(_finish, future)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await future
            if not future.done() or future.cancelled():
                report = self.report()
                raise FlushTimeout(
                    f"{report.pending} messages have no result after {limit:g} s{self._inner._trouble()}",
                    report=report,
                    hint="they are still in flight: flush again, or see stats() for the state of the proxies",
                )
        return self.report()

    async def wait_ready(self, timeout: float | timedelta | None = None) -> None:  # noqa: ASYNC109 - as the plain producer's
        """Open the producer and wait until a connection to a proxy is established; see ``Producer.wait_ready``.

        ``timeout`` in seconds, None for ``connect_timeout`` and a second.  Cancelling ends the wait.  Raises what
        ``open`` raises, and TransportError with code CONNECT_FAILED.
        """
        limit = None if timeout is None else seconds(timeout)
        await self.open()
        job = Job(partial(self._inner.wait_ready, limit))
        start_quiet("dataproxy-ready", job.run)
        await job.wait()

    async def close(self, timeout: float | timedelta | None = None) -> Report:  # noqa: ASYNC109 - as the plain producer's
        """Deliver what was accepted, stop all threads, and return the final report.

        ``timeout`` in seconds, None for ``close_timeout``; messages without a result by then fail with code CLOSED
        and are counted in the report.  Batches that still wait for room then end with ClosedError, and an opening
        that has no answer then is left behind: it ends in the background.  A second call returns the same report.
        Cancelling ends the wait, not the closing.
        """
        self._check_process()
        limit = self.config.close_timeout if timeout is None else seconds(timeout)
        if self._closing is None:
            self._closing = self._worker.finish(partial(self._shut, time.monotonic() + limit))
        try:
            if not await self._turn_comes(self._closing, limit):
                return _EMPTY
            report = await self._closing.wait()
            self._worker.wait_end()
            with contextlib.suppress(ClosedError):  # another loop closed it and released every loop
                if self._notifiers:
                    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._watch().call_in_turn(partial(_finish, woken))
                    await woken  # tasks that wait for results resume before ``close`` returns
        finally:
            self._closing.at_end(self._leave)  # also if this wait was cancelled
        return report

    def _leave(self) -> None:
        """Release every loop.  Any thread."""
        self._rooms.clear()
        self._let_go()

    async def _turn_comes(self, closing: Job[Report], limit: float) -> bool:
        """Give the worker's earlier jobs ``limit`` seconds, then end them; False: one still opens the producer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await closing.wait()
        if closing.begun:
            return True
        if self._is_open:
            self._inner._begin_close()  # a batch on the worker no longer waits for room
            return True
        return self._opening is None or self._opening.done

    def _shut(self, end: float) -> Report:
        """Close the plain producer until ``end``, a time of ``time.monotonic()``.  Thread: the worker."""
        return self._inner.close(max(0.0, end - time.monotonic())) if self._is_open else _EMPTY

    def __del__(self) -> None:
        """Let the worker thread close a producer that was not closed, and warn; see ``Producer.__del__``."""
        if not self._is_open or self.closed or self._is_inherited or sys.is_finalizing():
            return
        self._worker.abandon(self._end_left)
        lifecycle.warn_left(self)

    def _end_left(self) -> None:
        """Close a producer that was garbage while open.  Thread: the worker."""
        self._inner._close_left()
        self._leave()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tell_undelivered(await self.close(), error)

    @property
    def closed(self) -> bool:
        """Tell whether ``close`` was called."""
        return self._closing is not None

    def report(self) -> Report:
        """Return counts by outcome since the producer was opened; after close, the final ones."""
        self._check_process()
        return self._inner.report() if self._is_open else _EMPTY

    def stats(self) -> ProducerStats:
        """Return one consistent snapshot of the counts, the buffer, the latency and each connection."""
        plain: Producer = self._inner
        return plain.stats()

    def undelivered(self) -> UndeliveredMessages:
        """Return an iterator over messages that were accepted and not delivered; see ``Producer.undelivered``."""
        plain: Producer = self._inner
        return plain.undelivered()

    # --- sending

    def stream(
        self,
        stream_id: str,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        serializer: Callable[[Any], Buffer] | None = None,
    ) -> AsyncStream:
        """Return a handle bound to one stream; parameters and errors as for ``Producer.stream``."""
        plain = self._inner.stream(stream_id, group_id=group_id, attrs=attrs, serializer=serializer)
        return AsyncStream(self, plain)

    def batch(
        self,
        stream_id: str,
        *,
        group_id: str | None = None,
        attrs: Mapping[str, str] | None = None,
        serializer: Callable[[Any], Buffer] | None = None,
    ) -> AsyncBatch:
        """Return an ``async with`` block that gathers messages of one stream and awaits all acks at its end."""
        return AsyncBatch(
            self, lambda: self._inner.stream(stream_id, group_id=group_id, attrs=attrs, serializer=serializer)
        )

    def _batch_of(self, stream: Stream) -> AsyncBatch:
        """Return the block of ``batch`` for a bound handle."""
        return AsyncBatch(self, lambda: stream)

    async def send_rows(
        self,
        stream_id: str | None,
        table: Any,
        format: RowFormat = "json",  # noqa: A002 - as everywhere in the field
        **options: Unpack[RowOptions],
    ) -> BatchDelivered:
        """Accept each row of a table on a background thread; the await ends with all acks and returns a BatchDelivered.

        Parameters and errors as for ``Producer.send_rows``.  The table must not be changed before it returns.
        Cancelling ends the wait; accepted messages are still delivered.
        """
        await self.open()
        return await self._on_worker(self._inner.send_rows, (stream_id, table, format), dict(options))

    async def room(self, need: int = 1) -> None:
        """Wait up to ``max_block`` until the buffer has room for ``need`` bytes.

        Raises BufferFullError, and ConfigError if ``need`` is not a number of bytes that the buffer can hold.
        """
        if not is_count(need, self.config.buffer_bytes):
            raise ConfigError(
                f"room takes a number of bytes up to buffer_bytes={self.config.buffer_bytes}, not {shown(need)}",
                hint="ask for less, or raise buffer_bytes",
            )
        await self.open()
        room = self._room()
        await room.accept(partial(room.look, need), need, self.config.max_block)

    # --- calls that wait

    def _room(self) -> Room:
        notifier = self._watch()
        room = self._rooms.get(notifier)
        if room is None:
            for other in [b for b in list(self._rooms) if b.loop.is_closed()]:
                self._rooms.pop(other, None)
            room = self._rooms[notifier] = Room(self, self._inner, notifier)
        return room

    async def _accept(self, call: Callable[..., T], args: tuple[Any, ...], options: dict[str, Any], need: int) -> T:
        """Make a sending call; wait up to ``max_block`` for room of ``need`` bytes.  Raises BufferFullError."""
        return await self._room().accept(partial(call, *args, **options), need, self.config.max_block)

    async def _later(
        self, call: Callable[..., Delivery] | None, args: tuple[Any, ...], options: dict[str, Any], body: object
    ) -> Delivered | Sent:
        """Open, wait for room, accept, and wait for the ack."""
        await self.open()
        if self._serializer is not None:
            args = waiting_args(self._inner, args, options)
        return await (await self._accept(call or self._inner.send, args, options, _size(body)))

    async def _batch_later(
        self, call: Callable[..., BatchDelivery] | str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> BatchDelivered:
        """Accept a batch, on the worker thread if it is large or finds no room, and wait for its acks."""
        await self.open()
        function = cast("Callable[..., BatchDelivery]", getattr(self._inner, call) if isinstance(call, str) else call)
        bodies = args[-1] if args else options.get("bodies")
        if _is_small(bodies) and self._worker.idle and not self._queueing:
            try:
                return await function(*args, **options)
            except BufferFullError:
                if self.config.on_full != "block":
                    raise
        return await self._on_worker(function, args, options)

    async def _on_worker(
        self, function: Callable[..., BatchDelivery], args: tuple[Any, ...], options: dict[str, Any]
    ) -> BatchDelivered:
        """Accept a batch on the worker thread and wait for its acks."""
        job = self._worker.submit(partial(function, *args, **options))
        try:
            batch = await job.wait()
        except asyncio.CancelledError:
            job.give_up()
            raise
        return await batch

    def __reduce__(self) -> Any:
        raise TypeError(
            "an AsyncProducer owns threads and sockets and cannot be pickled: send its settings (producer.config, "
            "which can be pickled) and make AsyncProducer(config=...) in the other process"
        )

    def __repr__(self) -> str:
        if "_closing" not in vars(self):
            return f"<{type(self).__name__} not made>"
        state = "closed" if self.closed else "open" if self._is_open else "not open yet"
        return f"<AsyncProducer {self.config.target!r} group {self.config.group_id!r} {state}>"


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _size(body: object) -> int:
    """Return about how many bytes of the buffer a body takes."""
    try:
        return memoryview(body).nbytes + 8  # type: ignore[arg-type]
    except (BufferError, TypeError, ValueError):
        return 8  # not a body: the sending call raises the error


def _is_small(bodies: object) -> bool:
    """Tell whether the batch is small enough to be copied on the loop's thread."""
    if isinstance(bodies, list | tuple):
        return len(bodies) <= _INLINE_MESSAGES
    size = getattr(bodies, "nbytes", -1)
    return isinstance(size, int) and 0 <= size <= _INLINE_BYTES
