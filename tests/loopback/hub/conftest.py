"""What the hub's socket tests share: small hubs, raw connections, the vectors."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataproxy.hub import Hub

VECTORS = Path(__file__).parents[2] / "data" / "golden" / "inlong.json"


@pytest.fixture(scope="session")
def vectors() -> dict:
    return json.loads(VECTORS.read_text())


@pytest.fixture
def start_hub() -> Iterator[Callable[..., Hub]]:
    """Return a function that starts hubs, which are closed after the test."""
    started = []

    def start(*args, **options) -> Hub:
        started.append(Hub(*args, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def hub(start_hub) -> Hub:
    return start_hub()


@pytest.fixture
def connect() -> Iterator[Callable[[Hub], socket.socket]]:
    """Return a function that opens a raw connection to a hub."""
    opened = []

    def open_one(hub: Hub) -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", hub.port), timeout=30))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
