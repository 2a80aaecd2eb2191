"""Every call that takes a data time refuses one in seconds, and takes numpy's numbers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.aio.send import AsyncStream

NOBODY = "tcp://127.0.0.1:9"
SECONDS = 1_700_000_000


def test_a_producer_takes_numpy_s_numbers() -> None:
    producer = dataproxy.Producer(NOBODY, group_id="g")
    producer.send_nowait("s", b"x", dt=np.int64(SECONDS * 1000 + 123))
    assert producer.close(0).accepted == 1


def calls(producer: Any, stream: Any, options: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Return every call of a producer and of its handle that takes a data time."""
    column = pa.array([b"x"])
    given = {"send_batch": [b"x"], "send_arrow": column}
    found: dict[str, Callable[[], object]] = {}
    for name in dir(producer):
        if name.startswith("send") and name != "send_rows":  # a table has its data times in a column
            body = given.get(name, b"x")
            found[name] = lambda name=name, body=body: getattr(producer, name)("s", body, **options)  # type: ignore[misc]
            found[f"stream.{name}"] = lambda name=name, body=body: getattr(stream, name)(body, **options)  # type: ignore[misc]
    return found


def test_every_call_refuses_seconds_and_accepts_nothing() -> None:
    with dataproxy.Producer(NOBODY, group_id="g") as producer:
        found = calls(producer, producer.stream("s"), {"dt": SECONDS})
        assert len(found) == 8
        assert all(
            "dt" in inspect.signature(getattr(dataproxy.Stream, name)).parameters for name in found if "." not in name
        )
        for call in found.values():
            with pytest.raises(dataproxy.InvalidMessageError, match="looks like seconds"):
                call()
        assert producer.report().accepted == 0


def test_every_call_of_an_event_loop_refuses_seconds_and_accepts_nothing() -> None:
    async def ask(call: Callable[[], object]) -> None:
        given = call()
        if isinstance(given, Awaitable):
            await given

    async def main() -> None:
        async with dataproxy.AsyncProducer(NOBODY, group_id="g") as producer:
            stream = producer.stream("s")
            assert isinstance(stream, AsyncStream)
            found = calls(producer, stream, {"dt": SECONDS})
            assert len(found) == 10
            for call in found.values():
                with pytest.raises(dataproxy.InvalidMessageError, match="looks like seconds"):
                    await ask(call)
            with pytest.raises(dataproxy.InvalidMessageError, match="looks like seconds"):
                async with producer.batch("s") as batch:
                    await batch.add(b"x", dt=SECONDS)
            assert producer.report().accepted == 0

    asyncio.run(asyncio.wait_for(main(), 60))
