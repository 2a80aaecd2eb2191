"""A broker that is found at another address under its old name."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import pytest

from dataproxy.consumer.names import Names
from tests.support.consumers import Opener, drain
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

OLD, NEW = "127.0.0.1", "127.0.0.2"


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()  # also when it is cancelled


class Relay:
    """Listen at a second address on a port, and pass everything on to the first one; ``taken``: its connections."""

    def __init__(self, port: int) -> None:
        self._port, self.taken = port, 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        up_reader, up_writer = await asyncio.open_connection(OLD, self._port)
        await asyncio.gather(_pass_on(reader, up_writer), _pass_on(up_reader, writer))

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, NEW, self._port)

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(SECONDS)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()


@pytest.fixture
def relay(tube: TubeServer) -> Iterator[Relay]:
    relay = Relay(tube.broker_port)
    relay.start()
    yield relay
    relay.close()


def test_packs_come_from_where_the_broker_is_now(
    tube: TubeServer, relay: Relay, opened: Opener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The name of the broker is its old address here; what looks names up says where that is."""
    tube.settings.pack_bytes = 1
    consumer = opened()
    tube.put("one", b"old")
    assert drain(consumer, 1) == [b"old"]
    assert relay.taken == 0
    before = consumer.stats().connects
    with caplog.at_level("INFO", logger="dataproxy.consumer"):
        monkeypatch.setattr(Names, "look", lambda self, host, now: NEW if host == OLD else host)
        # The master is looked up as well, and has no second address: the consumer stays a member with what it holds.
        assert eventually(lambda: any("is at 127.0.0.2 now" in text for text in caplog.messages))
    for i in range(5):
        tube.put("one", b"%d" % i)
    assert drain(consumer, 5) == [b"%d" % i for i in range(5)]
    assert relay.taken == 1
    assert consumer.stats().connects > before
    monkeypatch.undo()
