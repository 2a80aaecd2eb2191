"""One table of bad bodies against every way to send: each refuses them with the same error and accepts nothing."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from tests.support.scripted import Scripted, silent


class Shouting(str):
    """Text that says it is something else."""

    __slots__ = ()

    def __bytes__(self) -> bytes:
        return b"bytes of its own"


class Counting:
    """What ``bytes`` takes for a number of NULs."""

    def __index__(self) -> int:
        return 3


RELEASED = memoryview(b"gone")
RELEASED.release()
#: Body and the code of its error.
BAD = {
    "none": (None, "BAD_BODY"),
    "int": (5, "BAD_BODY"),
    "huge": (10**400, "BAD_BODY"),
    "bool": (True, "BAD_BODY"),
    "float": (1.5, "BAD_BODY"),
    "index": (Counting(), "BAD_BODY"),
    "list": ([1, 2, 3], "BAD_BODY"),
    "list of bytes": ([b"x"], "BAD_BODY"),
    "tuple": ((1, 2), "BAD_BODY"),
    "dict": ({}, "BAD_BODY"),
    "object": (object(), "BAD_BODY"),
    "class": (bytes, "BAD_BODY"),
    "text": ("text", "BAD_BODY"),
    "no text": ("", "BAD_BODY"),
    "text of its own": (Shouting("x"), "BAD_BODY"),
    "empty": (b"", "EMPTY_BODY"),
    "empty array": (bytearray(), "EMPTY_BODY"),
    "empty view": (memoryview(b"abc")[3:], "EMPTY_BODY"),
    "empty ctypes": ((ctypes.c_char * 0)(), "EMPTY_BODY"),
    "large": (b"x" * (1 << 20), "BODY_TOO_LARGE"),
    "large view": (memoryview(bytearray(1 << 21))[::2], "BODY_TOO_LARGE"),
    "released": (RELEASED, "BAD_BODY"),
    "objects": (np.array([b"x"], dtype=object), "BAD_BODY"),
    "characters": ((ctypes.c_wchar * 2)(*"ab"), "BAD_BODY"),
    "addresses": ((ctypes.c_void_p * 2)(), "BAD_BODY"),
    "dates": (np.array(["2020-01-01"], dtype="M8[s]"), "BAD_BODY"),
}
LINES = {"line feed": (b"two\nlines", "BAD_BODY"), "line feed in an array": (bytearray(b"\n"), "BAD_BODY")}
PLAIN: dict[str, Callable[[dataproxy.Producer, Any], object]] = {
    "send": lambda p, body: p.send("s", body),
    "send_nowait": lambda p, body: p.send_nowait("s", body),
    "send_batch": lambda p, body: p.send_batch("s", [b"good", body, b"good"]),
    "send_batch of an iterator": lambda p, body: p.send_batch("s", iter([b"good", body])),
    "stream.send": lambda p, body: p.stream("s").send(body),
    "stream.send_nowait": lambda p, body: p.stream("s").send_nowait(body),
    "stream.send_batch": lambda p, body: p.stream("s").send_batch((b"good", body)),
    "with attributes": lambda p, body: p.send("s", body, attrs={"a": "1"}),
    "with a key": lambda p, body: p.send("s", body, key="k"),
}


def same(caught: pytest.ExceptionInfo[dataproxy.InvalidMessageError], code: str, expected: Exception | None) -> None:
    """Check an error against the code of the table and against what ``send`` says of the same body."""
    assert caught.value.code == code
    assert caught.value.hint
    assert not caught.value.retriable
    if expected is not None:
        assert str(caught.value) == str(expected)


@pytest.fixture(scope="module")
def nowhere() -> str:
    with Scripted() as server:
        return server.target


def said(target: str, body: object, **options: Any) -> Exception:
    """Return what ``send`` says of a body."""
    p = dataproxy.Producer(target, group_id="g", **options)
    try:
        p.send("s", body)
    except dataproxy.InvalidMessageError as error:
        return error
    finally:
        p.close(0)
    raise AssertionError(body)


@pytest.mark.parametrize("call", PLAIN)
def test_plain_calls(nowhere: str, call: str) -> None:
    with dataproxy.Producer(nowhere, group_id="g", ordering="key") as p:
        for body, code in BAD.values():
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                PLAIN[call](p, body)
            same(caught, code, None)
        assert p.stats().accepted == 0


@pytest.mark.parametrize("call", [call for call in PLAIN if call != "with attributes"])
def test_lines(nowhere: str, call: str) -> None:
    with dataproxy.Producer(nowhere, group_id="g", ordering="key", message_type=3) as p:
        for body, code in LINES.values():
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                PLAIN[call](p, body)
            same(caught, code, None)
        assert p.stats().accepted == 0


async def refused(code: str, expected: Exception | None, thing: Callable[[], Awaitable[Any]]) -> None:
    """Check what a call or its await raises."""
    with pytest.raises(dataproxy.InvalidMessageError) as caught:
        await thing()
    same(caught, code, expected)


def of_loops(p: dataproxy.AsyncProducer) -> dict[str, Callable[[Any], Awaitable[Any]]]:
    """Return every awaited way to send one body."""
    handle = p.stream("s")

    async def soon(call: Callable[..., object], *args: object) -> None:
        call(*args)

    return {
        "send": lambda body: p.send("s", body),
        "send_soon": lambda body: soon(p.send_soon, "s", body),
        "send_nowait": lambda body: soon(p.send_nowait, "s", body),
        "stream.send": handle.send,
        "stream.send_soon": lambda body: soon(handle.send_soon, body),
        "stream.send_nowait": lambda body: soon(handle.send_nowait, body),
    }


def test_calls_of_loops(nowhere: str) -> None:
    async def main() -> None:
        async with dataproxy.AsyncProducer(nowhere, group_id="g") as p:
            for body, code in BAD.values():
                expected = said(nowhere, body)
                for call in of_loops(p).values():
                    await refused(code, expected, lambda call=call, body=body: call(body))
                for batch in (p.send_batch, p.stream("s").send_batch):
                    args = ("s", [b"good", body]) if batch == p.send_batch else ([b"good", body],)
                    await refused(code, None, lambda batch=batch, args=args: batch(*args))
            assert p.stats().accepted == 0

    asyncio.run(main())


def test_before_it_is_open(nowhere: str) -> None:
    async def main() -> None:
        for body, code in BAD.values():
            p = dataproxy.AsyncProducer(nowhere, group_id="g")
            await refused(code, said(nowhere, body), lambda body=body, p=p: p.send("s", body))
            assert (await p.close()).accepted == 0

    asyncio.run(main())


@pytest.mark.parametrize("full", [False, True])
def test_a_batch_that_gathers(full: bool) -> None:
    """With room ``add`` sends; without, it checks and copies what it keeps."""

    async def main(target: str) -> None:
        p = await dataproxy.AsyncProducer(
            target, group_id="g", buffer_bytes=1 << 20, max_block=5, close_timeout=0, linger=0.001
        ).open()  # fmt: skip
        try:
            async with p.batch("s") as batch:
                if full:
                    for _ in range(3):
                        batch.add(b"x" * 400_000)
                kept = p.stats().accepted
                for body, code in BAD.values():
                    expected = said(target, body)
                    with pytest.raises(dataproxy.InvalidMessageError) as caught:
                        batch.add(body)
                    same(caught, code, None if code == "BODY_TOO_LARGE" else expected)
                for options in BAD_OPTIONS.values():
                    with pytest.raises((dataproxy.DataProxyError, TypeError)) as alone:
                        p.send_soon("s", b"x", **options)
                    with pytest.raises((dataproxy.DataProxyError, TypeError)) as added:
                        batch.add(b"x", **options)
                    assert type(added.value) is type(alone.value)
                    if isinstance(alone.value, dataproxy.DataProxyError):
                        assert str(added.value) == str(alone.value)
                assert p.stats().accepted == kept
                raise KeyboardInterrupt  # nothing of it need arrive
        except KeyboardInterrupt:
            pass
        await p.close()

    with Scripted(silent) as server:
        asyncio.run(main(server.target))


BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "attrs": {"attrs": {"a": 1}},
    "no attrs": {"attrs": 5},
    "reserved": {"attrs": {"dt": "1"}},
    "dt": {"dt": "now"},
    "huge dt": {"dt": 10**400},
    "message_id": {"message_id": "a b"},
    "key without ordering": {"key": "k"},
    "on_delivery": {"on_delivery": 5},
    "unknown": {"nothing": 1},
}


def test_what_a_batch_keeps_is_a_copy() -> None:
    async def main(target: str, server: Scripted) -> None:
        async with (
            dataproxy.AsyncProducer(
                target, group_id="g", buffer_bytes=1024, max_block=20, linger=0.001, on_full="block"
            ) as p,
            p.batch("s") as batch,
        ):
            batch.add(b"x" * 1000)
            body, attrs = bytearray(b"before" * 20), {"a": "before"}
            waits = batch.add(body, attrs=attrs)
            body[:] = b"after!" * 20
            attrs["a"] = "after"
            await waits
        arrived, its = server.messages()[1]
        assert (arrived, its["a"]) == (b"before" * 20, "before")

    with Scripted() as server:
        asyncio.run(main(server.target, server))


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_arrow_data(nowhere: str, name: str) -> None:
    with dataproxy.Producer(nowhere, group_id="g") as p:
        for send in (lambda body: p.send_arrow("s", body), p.stream("s").send_arrow):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                send(BAD[name][0])
            assert caught.value.hint
        assert p.stats().accepted == 0


COLUMNS = {
    "null": (pa.array([b"good", None]), "BAD_BODY"),
    "empty": (pa.array([b"good", b""]), "EMPTY_BODY"),
    "empty text": (pa.array(["good", ""]), "EMPTY_BODY"),
    "large": (pa.array([b"good", b"x" * (1 << 20)]), "BODY_TOO_LARGE"),
    "numbers": (pa.array([1, 2]), "BAD_BODY"),
    "lists": (pa.array([[b"x"]]), "BAD_BODY"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_and_rows_of_record_batches(nowhere: str, name: str) -> None:
    column, code = COLUMNS[name]
    with dataproxy.Producer(nowhere, group_id="g") as p:
        for send in (
            lambda: p.send_arrow("s", column),
            lambda: p.stream("s").send_arrow(column),
            lambda: send_record_batch(p, pa.record_batch({"v": column}), value=0, group="g", stream="s"),
        ):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                send()
            same(caught, caught.value.code if code == "BAD_BODY" else code, None)
        assert p.stats().accepted == 0
