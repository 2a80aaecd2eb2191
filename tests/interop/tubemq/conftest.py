"""TubeMQ's own master and broker, started once."""

from collections.abc import Iterator

import pytest

from tests.support.tubekit import Servers

TOPICS = "one:1 three:3 group:6"


@pytest.fixture(scope="session")
def tubemq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("tubemq"), TOPICS)
    try:
        servers.run("start", "tubemq")
        yield servers
    finally:
        servers.run("stop", "tubemq-master", "tubemq-broker")
