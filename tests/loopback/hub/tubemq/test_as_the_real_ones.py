"""The tests of TubeMQ's own servers (`tests/interop/tubemq`), at a hub."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.tubemq import service
from tests.interop.tubemq import test_group, test_ranges, test_raw_calls
from tests.support.rawclient import Connection, Sender

FIXTURES = {
    test_raw_calls: ("group",),
    test_ranges: ("stored",),
    test_group: ("sender",),
}
OTHERWISE = {
    "test_unknown_calls_are_answered_by_an_exception",  # the hub is both on one port, and knows no services
    "test_reading_on_without_a_confirm",  # its packs are smaller: two do not have all of that test's messages
}
TOPICS = {"one": 1, "three": 3, "group": 6}


class Ports(NamedTuple):
    """Ports of a master and a broker."""

    master: int
    broker: int


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Return a hub with topics of different numbers of partitions: those that its store has."""
    store = tmp_path_factory.mktemp("hub") / "store"
    with Hub(store, tubemq_port=0, partitions=6) as hub, Connection(hub.tubemq_port) as connection:
        for topic, partitions in TOPICS.items():
            assert Sender(connection, connection, topic).send(partitions - 1, b"first")["errCode"] == 200
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "LONG_POLL_S", 0.0)  # some of these clients make one call at a time for all partitions
        with Hub(store, tubemq_port=0) as hub:
            yield hub


@pytest.fixture
def topic() -> str:
    """Return a topic whose partitions share no offsets: those of a hub never do."""
    return "one"


@pytest.fixture
def tubemq(served: Hub) -> Ports:
    return Ports(served.tubemq_port, served.tubemq_port)


@pytest.fixture
def master(tubemq: Ports) -> Iterator[Connection]:
    with Connection(tubemq.master) as connection:
        yield connection


@pytest.fixture
def broker(tubemq: Ports) -> Iterator[Connection]:
    with Connection(tubemq.broker) as connection:
        yield connection


@pytest.fixture
def heartbeat_s() -> float:
    return 0.1


def borrowed(module: ModuleType) -> dict[str, object]:
    """Return the tests of a module with their fixtures, but for those that this folder has in its own way."""
    return {
        name: value
        for name, value in vars(module).items()
        if (name.startswith("test_") and name not in OTHERWISE) or name in FIXTURES[module]
    }


for _module in FIXTURES:
    globals().update(borrowed(_module))
