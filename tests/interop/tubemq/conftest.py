"""TubeMQ's own master and broker, started once; ZooKeeper, started for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.support.tubekit import Servers, ZooKeeper

TOPICS = "one:1 three:3 group:6"


@pytest.fixture(scope="session")
def tubemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("tubemq"), TOPICS)
    try:
        servers.run("start", "tubemq")
        yield servers
    finally:
        servers.run("stop", "tubemq-master", "tubemq-broker")


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.run("start", "zookeeper")
        yield server
    finally:
        server.run("stop", "zookeeper")
