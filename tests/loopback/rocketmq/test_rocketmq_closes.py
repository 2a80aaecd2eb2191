"""Closes of `dataproxy.Consumer` while a server, or a look-up of its name, gives no answer."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dataproxy import AsyncConsumer, Consumer
from tests.support.pushserver import full_port
from tests.support.waiting import SECONDS, eventually

_BOUND_S: Final = 4.0  # of a close that may take 0.1 s: less than any wait for a thread that does not end
_LONG: Final[dict[str, Any]] = {"group": "g", "topics": ["T"], "connect_timeout": 600}


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Return a server that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def is_connecting(port: int) -> bool:
    """Tell whether a connection to a port is begun and not made, by the system's table."""
    table = Path("/proc/net/tcp").read_text("ascii").splitlines()
    return any(fields[2].endswith(f":{port:04X}") and fields[3] == "02" for fields in map(str.split, table))


def close_soon(consumer: Consumer) -> None:
    """Close within 0.1 s; no thread is left."""
    begun = time.monotonic()
    consumer.close(0.1)
    assert time.monotonic() - begun < _BOUND_S
    assert eventually(lambda: not any(one.is_alive() for one in consumer._threads))


def test_a_close_ends_a_handshake_that_has_no_answer(silent: socket.socket) -> None:
    consumer = Consumer(f"rocketmqs://127.0.0.1:{silent.getsockname()[1]}", tls_verify="none", **_LONG)
    made, _ = silent.accept()
    with made:
        assert made.recv(1), "the handshake has begun"
        close_soon(consumer)


def test_a_close_of_an_event_loop_ends_a_handshake_that_has_no_answer(silent: socket.socket) -> None:
    async def main() -> float:
        consumer = AsyncConsumer(f"rocketmqs://127.0.0.1:{silent.getsockname()[1]}", tls_verify="none", **_LONG)
        made, _ = await asyncio.to_thread(silent.accept)
        with made:
            assert await asyncio.to_thread(made.recv, 1)
            begun = time.monotonic()
            await consumer.close(0.1)
            took = time.monotonic() - begun
        assert eventually(lambda: not any(one.is_alive() for one in consumer._threads))
        return took

    assert asyncio.run(main()) < _BOUND_S


def test_a_close_ends_a_connection_that_is_not_made() -> None:
    with full_port() as port:
        assert not is_connecting(port)
        consumer = Consumer(f"rocketmq://127.0.0.1:{port}", **_LONG)
        assert eventually(lambda: is_connecting(port))
        close_soon(consumer)


def test_a_close_waits_for_no_look_up_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun, go_on = socket.getaddrinfo, threading.Event(), threading.Event()

    def look_up(*given: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(SECONDS)
        return real("127.0.0.1", *given[1:], **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    consumer = Consumer("rocketmq://names.invalid:9876", **_LONG)
    assert begun.wait(SECONDS)
    at = time.monotonic()
    consumer.close(0.1)
    took = time.monotonic() - at
    go_on.set()
    assert took < _BOUND_S and eventually(lambda: not any(one.is_alive() for one in consumer._threads))
