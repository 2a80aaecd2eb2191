"""A hub with three listeners, and raw connections to them."""

import socket
from collections.abc import Callable, Iterator

import pytest

from dataproxy.hub import Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(nodes=3, fault_api="on") as one:
        yield one


@pytest.fixture
def dial() -> Iterator[Callable[..., socket.socket]]:
    """Return a function that opens a raw connection to a listener of a hub."""
    opened = []

    def open_one(hub: Hub, listener: int = 0) -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", hub.listeners[listener].port), timeout=30))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
