"""A lifespan for Starlette and FastAPI: one AsyncProducer for each worker process, open while it serves.

::

    app = FastAPI(lifespan=lifespan("tcp://proxy:46801", group_id="g_app"))
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from dataproxy.logs import logger
from dataproxy.producer.asynchronous import AsyncProducer

if TYPE_CHECKING:
    from typing import Unpack

    from dataproxy.config.typed import ProducerOptions

__all__ = ["lifespan"]

_LOG = logger()

_Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    target: str | list[str] | tuple[str, ...] | None = None,
    *,
    group_id: str | None = None,
    name: str = "producer",
    within: _Lifespan | None = None,
    **options: Unpack[ProducerOptions],
) -> _Lifespan:
    """Return a lifespan that opens an AsyncProducer in each worker and closes it when the worker ends.

    Requests find it as ``request.state.producer``; ``name`` gives it another name there, and ``app.state`` has it too.
    ``within``: the application's own lifespan; it runs inside this one, and its state is kept.  Other arguments are
    those of AsyncProducer.  Messages that are not delivered at the end cause a record of level ERROR, and the server
    ends as usual.

    If a worker starts and no proxy is found, the lifespan raises DiscoveryError (never with ``start="lazy"``).  With
    ``start="connect"`` it raises TransportError if no proxy is reached.  It raises ConfigError for options that are not
    allowed.
    """

    @asynccontextmanager
    async def opened(app: Any) -> AsyncIterator[dict[str, Any]]:
        producer = AsyncProducer(target, group_id=group_id, **options)
        try:
            await producer.open()
            state: dict[str, Any] = {name: producer}
            setattr(app.state, name, producer)
            async with AsyncExitStack() as stack:
                if within is not None:
                    state.update(await stack.enter_async_context(within(app)) or {})
                yield state
        finally:
            report = await producer.close()
            if not report.ok:
                _LOG.error("messages were not delivered when a worker ended: %s", report)

    return opened
