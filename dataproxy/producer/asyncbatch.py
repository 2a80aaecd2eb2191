"""A block that gathers messages, waits for room where it must, and for all acks at its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dataproxy._core.producer.aio.send import checked_body, grow_batch, new_batch, seal_all, waiting_body
from dataproxy.errors import BufferFullError, LocalProtocolError, UndeliveredError
from dataproxy.outcomes import BatchDelivered

if TYPE_CHECKING:
    from dataproxy._core.producer.ingest.stream import Stream
    from dataproxy._core.producer.results.delivery import BatchDelivery, Delivery
    from dataproxy.producer.asynchronous import AsyncProducer

__all__ = ["AsyncBatch"]


class _Accepted:
    """Awaitable of a message that found room at once."""

    def __await__(self) -> Generator[Any, None, None]:
        return iter(())  # type: ignore[return-value]


class _Turn:
    """Awaitable of a message that found room at once; awaiting it lets the loop's other tasks run."""

    def __await__(self) -> Generator[Any, None, None]:
        yield


class _Queued:
    """Awaitable of a message that waits for room, together with those before it."""

    def __init__(self, batch: AsyncBatch) -> None:
        self._batch = batch

    def __await__(self) -> Generator[Any, None, None]:
        return self._batch.drain().__await__()


_ACCEPTED = _Accepted()
_TURN = _Turn()
_EACH_TURN = 256  # messages that are accepted before other tasks may run: about a millisecond


class AsyncBatch:
    """Gather messages of one stream; made by ``AsyncProducer.batch``, used by ``async with``.

    Leaving the block waits for every ack and raises UndeliveredError, whose ``report`` is the BatchDelivered,
    if a message was not delivered.  After an exception in the block it does not wait: accepted messages are still
    delivered and counted by the producer, and a note of the exception says how many there were.  One loop's thread.
    """

    def __init__(self, producer: AsyncProducer, bind: Callable[[], Stream]) -> None:
        self._producer = producer
        self._bind = bind
        self._stream: Stream | None = None
        self._batch: BatchDelivery
        self._backlog: deque[tuple[bytes, dict[str, Any]]] = deque()
        self._backlog_bytes = 0
        self._lock = asyncio.Lock()
        self.result: BatchDelivered | None = None

    async def __aenter__(self) -> Self:
        await self._producer.open()
        self._stream = self._bind()
        self._batch = new_batch(self._producer._inner)
        return self

    def add(self, body: Any, **options: Any) -> Awaitable[None]:
        """Accept one message; arguments and errors as for ``Stream.send``.

        With room in the buffer the call accepts it.  Without room it is checked, copied, and kept until there is
        room: await what ``add`` returns to wait for that.  Without any await, ``add`` raises BufferFullError when the
        kept messages are as large as the buffer.
        """
        stream = self._stream
        if stream is None:
            raise LocalProtocolError(
                "add() outside of the batch's block", hint="use it inside of 'async with producer.batch(...)'"
            )
        if not self._backlog and not self._producer._queueing:
            try:
                self._note(stream.send(body, **options))
            except BufferFullError:
                if self._producer.config.on_full != "block":
                    raise
            else:
                return _ACCEPTED if len(self._batch) % _EACH_TURN else _TURN
        kept = checked_body(stream, body, **options)
        if options.get("attrs"):
            options["attrs"] = dict(options["attrs"])  # a copy, as of the body: the caller may change them later
        limit = self._producer.config.buffer_bytes
        if self._backlog_bytes + len(kept) > limit:
            raise BufferFullError(
                f"{len(self._backlog)} messages of the batch wait for room already",
                hint="await add(...)",
                details={"limit_bytes": limit, "accepted": 0},
            )
        self._backlog.append((kept, options))
        self._backlog_bytes += len(kept)
        return _Queued(self)

    async def drain(self) -> None:
        """Wait until every message that was added is accepted.  Raises as ``Stream.send``."""
        async with self._lock:
            while self._backlog and self._stream is not None:
                body, options = self._backlog[0]
                try:
                    ready = waiting_body(self._stream, body)
                    self._note(await self._producer._accept(self._stream.send, (ready,), options, len(body)))
                except asyncio.CancelledError:
                    raise
                except BaseException:
                    self._drop_first()
                    raise
                self._drop_first()

    def _drop_first(self) -> None:
        body, _ = self._backlog.popleft()
        self._backlog_bytes -= len(body)

    def _note(self, delivery: Delivery) -> None:
        grow_batch(self._batch, delivery)

    def __len__(self) -> int:
        """Return how many messages were accepted."""
        return len(self._batch) if self._stream is not None or self.result is not None else 0

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.drain()
        finally:
            self._stream = None
        if error is not None:
            if self._batch or self._backlog:
                error.add_note(
                    f"in addition, the batch had accepted {len(self._batch)} messages, which are still delivered; "
                    f"{len(self._backlog)} more waited for room and were not accepted"
                )
            return
        seal_all(self._producer._inner)
        result = await self._batch
        self.result = result
        if not result.ok:
            lost = result.accepted - result.delivered - result.sent
            raise UndeliveredError(
                result,
                f"{lost} of {result.accepted} messages of the batch were not delivered",
                hint="error.report.failures says which and why",
            ) from result.failures[0].error
