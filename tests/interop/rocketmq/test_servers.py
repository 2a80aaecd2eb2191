"""The kit's RocketMQ: its Java client produces and consumes at its servers."""

import pytest

from tests.support.tubekit import RocketServers

pytestmark = pytest.mark.timeout(600)  # Java's client takes its time to start


def test_javas_client_gets_what_it_sent(rocketmq: RocketServers) -> None:
    rocketmq.create_topic("kit", 2)
    sent = rocketmq.drive("produce", "kit", "kit_producers", 5)
    got = rocketmq.drive("push", "kit", "kit_consumers", 5, "hold=3")
    bodies = sorted(line["body"] for line in got if line.get("event") == "received")
    assert len(bodies) == 5 and len([line for line in sent if line.get("event") == "sent"]) == 5
