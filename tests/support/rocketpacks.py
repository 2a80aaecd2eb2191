"""Consumers of a hub that pushes by RocketMQ's protocol, for tests: what they read, and what the hub knows of them."""

from __future__ import annotations

from typing import Any

import dataproxy
from dataproxy import Consumer
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.waiting import SECONDS

__all__ = ["balanced", "committed", "consume", "drain", "next_pack", "numbers", "send"]


def consume(hub: Hub, **options: Any) -> Consumer:
    """Return a consumer of the topic T in the group g, which gives queues back at once."""
    return Consumer(hub.rocketmq_target, **{"group": "g", "topics": ["T"], "release_wait": 0, **options})


def send(hub: Hub, *bodies: bytes, topic: str = "T", **options: Any) -> list[bytes]:
    """Send messages; those of one queue in their order."""
    with Producer(hub.rocketmq_target, "p") as producer:
        made = []
        for body in bodies:
            made.append(producer.send(topic, body, **options))
            if "queue" in options:
                made[-1].result(SECONDS)
        for one in made:
            one.result(SECONDS)
    return list(bodies)


def numbers(begin: int, end: int) -> list[bytes]:
    """Return bodies, in their order."""
    return [b"%d" % n for n in range(begin, end)]


def next_pack(consumer: Consumer) -> dataproxy.Pack:
    """Return the next pack, which has to come."""
    pack = consumer.poll(SECONDS)
    assert pack is not None, consumer.stats()
    return pack


def drain(consumer: Consumer, n: int) -> list[bytes]:
    """Return the bodies of packs, which are confirmed, until there are so many."""
    found: list[bytes] = []
    while len(found) < n:
        pack = next_pack(consumer)
        found += pack.bodies()
        consumer.confirm(pack)
    return found


def committed(hub: Hub, group: str = "g") -> int:
    """Return the sum of the offsets that the hub keeps of a group in the topic T."""
    service = hub._rocketmq
    assert service is not None
    return service.run(lambda: sum(at for of, topic, _, at in service.offsets._remoting.offsets()
                                   if (of, topic) == (group, "T")))  # fmt: skip


def balanced(consumer: Consumer) -> bool:
    """Tell whether all packs and messages are accounted for."""
    stats = consumer.stats()
    return all(
        one.fetched == one.confirmed + one.rolled_back + one.expired + one.held for one in (stats.packs, stats.messages)
    )
