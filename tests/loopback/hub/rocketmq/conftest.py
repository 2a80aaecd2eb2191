"""Hubs' ports of RocketMQ, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.remoting import Port


@pytest.fixture
def start_port() -> Iterator[Callable[..., Port]]:
    """Return a function that opens a port, which is closed after the test."""
    opened: list[Port] = []

    def start(*args: object, **settings: object) -> Port:
        opened.append(Port(*args, **settings))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(params=["memory", "disk"])
def port(request: pytest.FixtureRequest, start_port: Callable[..., Port], tmp_path: object) -> Port:
    """Return a port with the topics T and U."""
    one = start_port(f"{tmp_path}/store" if request.param == "disk" else None)
    one.topic("T", "U")
    return one
