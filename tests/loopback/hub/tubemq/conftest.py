"""Hubs that listen as TubeMQ, and raw connections to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dataproxy.hub import Hub
from tests.support.rawclient import Connection


@pytest.fixture
def hub(start_hub: Callable[..., Hub]) -> Hub:
    return start_hub(tubemq_port=0, partitions=3)


@pytest.fixture
def raw() -> Iterator[Callable[[Hub], Connection]]:
    """Return a function that connects to a hub's port of TubeMQ."""
    opened = []

    def connect(hub: Hub) -> Connection:
        opened.append(Connection(hub.tubemq_port, 30))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()
