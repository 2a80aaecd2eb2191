"""Public objects after their end, and copies of what cannot be copied."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dataproxy
from dataproxy import rocketmq
from dataproxy.errors import ClosedError
from dataproxy.hub import Hub
from tests.support.rocketpacks import consume, next_pack, send


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


MAKERS: dict[str, Callable[[Hub], Any]] = {
    "producer": lambda hub: dataproxy.Producer(hub.target, group_id="g"),
    "consumer": consume,
    "RocketMQ producer": lambda hub: rocketmq.Producer(hub.rocketmq_target, "p"),
    "push consumer": lambda hub: rocketmq.PushConsumer(hub.rocketmq_target, "g2", "T", print),
    "pull consumer": lambda hub: rocketmq.PullConsumer(hub.rocketmq_target, "g3"),
}


@pytest.mark.parametrize("what", MAKERS)
def test_a_block_of_what_is_closed_does_not_begin(hub: Hub, what: str) -> None:
    made = MAKERS[what](hub)
    with made:
        pass
    with pytest.raises(ClosedError), made:
        pytest.fail("the block has begun")


def test_a_block_of_an_asynchronous_consumer_that_is_closed_does_not_begin(hub: Hub) -> None:
    async def main() -> None:
        consumer = dataproxy.AsyncConsumer(hub.rocketmq_target, group="g4", topics=["T"], release_wait=0)
        async with consumer:
            pass
        with pytest.raises(ClosedError):
            async with consumer:
                pytest.fail("the block has begun")

    asyncio.run(main())


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_what_belongs_to_a_client_says_what_to_send_instead(hub: Hub, how: Callable[[Any], Any]) -> None:
    with dataproxy.Producer(hub.target, group_id="g") as producer:
        undelivered = producer.undelivered()
        with pytest.raises(TypeError, match="send what it yields"):
            how(undelivered)
    send(hub, b"x")
    with consume(hub, group=how.__name__) as consumer:
        pack = next_pack(consumer)
        with pytest.raises(TypeError, match=r"a Pack belongs to its consumer .* send bodies"):
            how(pack)
        with pytest.raises(TypeError, match=r"a Record belongs to its Pack .* send its body"):
            how(pack[0])
        consumer.confirm(pack)
