"""RocketMQ's own name server and broker, started once."""

from collections.abc import Iterator

import pytest

from dataproxy.hub import Hub
from tests.interop.rocketmq.sides import Sides
from tests.support.tubekit import RocketServers


@pytest.fixture(scope="session")
def rocketmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RocketServers]:
    servers = RocketServers(tmp_path_factory.mktemp("rocketmq"))
    try:
        servers.run("start", "rocketmq")
        yield servers
    finally:
        servers.run("stop", "rocketmq")


@pytest.fixture(scope="session")
def sides(rocketmq: RocketServers) -> Iterator[Sides]:
    """RocketMQ's servers and a hub."""
    with Hub(rocketmq_port=0) as hub:
        sides = Sides(rocketmq, hub)
        yield sides
        sides.close()


@pytest.fixture(scope="session")
def messages(sides: Sides) -> str:
    """A topic with eight messages in one queue of two."""
    topic = sides.new("lines")
    sides.both("admin", topic, "any", "create", "queues=2")
    sides.both("produce", topic, "producers", 8, "queue=0", "tags=red,blue", "keys=k")
    return topic
