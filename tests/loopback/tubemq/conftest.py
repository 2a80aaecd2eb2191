"""A TubeMQ master and broker in plain Python, in the place of TubeMQ's own of `tests/interop/tubemq`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.consumers import Opener, quick_members
from tests.support.rawclient import Connection
from tests.support.tubeserver import TubeServer

TOPICS = {"one": 1, "three": 3, "group": 6}


@dataclass
class Servers:
    """Ports of a master and a broker."""

    master: int
    broker: int


@pytest.fixture
def server() -> Iterator[TubeServer]:
    with TubeServer(topics=TOPICS) as server:
        yield server


@pytest.fixture
def tubemq(server: TubeServer) -> Servers:
    return Servers(server.master_port, server.broker_port)


@pytest.fixture
def master(server: TubeServer) -> Iterator[Connection]:
    with Connection(server.master_port) as connection:
        yield connection


@pytest.fixture
def broker(server: TubeServer) -> Iterator[Connection]:
    with Connection(server.broker_port) as connection:
        yield connection


@pytest.fixture
def heartbeat_s() -> float:
    return 0.1


@pytest.fixture
def tube() -> Iterator[TubeServer]:
    """Return a server whose members find their partitions in their first heartbeats."""
    with TubeServer(topics=TOPICS, balance_s=0.0) as server:
        yield server


@pytest.fixture
def opened(tube: TubeServer) -> Iterator[Opener]:
    """Return what opens consumers of ``tube``; they are closed at the end."""
    with quick_members():
        opener = Opener(tube)
        yield opener
        opener.close()
