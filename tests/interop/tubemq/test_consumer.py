"""Consumer at TubeMQ's own master and broker: messages of their Java client, members that come, go and are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dataproxy
from dataproxy import Consumer
from tests.support.rawclient import Connection, Sender
from tests.support.tubekit import Servers

TOPIC = "group"
PARTITIONS = 6
SECONDS = 90
#: A member in a process of its own: it prints the bodies of each pack, then confirms it.
MEMBER = """
import sys
from dataproxy import Consumer
target, group = sys.argv[1:]
with Consumer(target, group=group, topics=["group"], start="latest", heartbeat_interval=1) as consumer:
    print("begin", flush=True)
    for pack in consumer:
        for body in pack.bodies():
            print(body.decode())
        sys.stdout.flush()
        pack.confirm()
"""


def target(tubemq: Servers) -> str:
    return f"tubemq://127.0.0.1:{tubemq.master}"


@pytest.fixture
def sender(tubemq: Servers) -> Iterator[Sender]:
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        yield Sender(master, broker, TOPIC)


class Reading(threading.Thread):
    """A consumer that reads and confirms on a thread of its own."""

    def __init__(self, tubemq: Servers, group: str, **options: Any) -> None:
        super().__init__(daemon=True)
        given = {"topics": [TOPIC], "start": "latest", "heartbeat_interval": 1.0, **options}
        self.consumer = Consumer(target(tubemq), group=group, **given)
        self.bodies: list[bytes] = []
        self.start()

    def run(self) -> None:
        """Read until the consumer is closed."""
        for pack in self.consumer:
            self.bodies += pack.bodies()
            pack.confirm()


def until(condition: Callable[[], Any], sender: Sender, sent: list[bytes]) -> None:
    """Send a message again and again until something holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        body = b"%d" % len(sent)
        assert sender.send(len(sent) % PARTITIONS, body)["errCode"] == 200
        sent.append(body)
        time.sleep(0.005)


def test_messages_of_the_java_client(tubemq: Servers) -> None:
    tubemq.run("drive", "tubemq", "TubeDriver", "produce", f"127.0.0.1:{tubemq.master}", "three", "300")
    with Consumer(target(tubemq), group=f"java_{time.time_ns()}", topics=["three"], heartbeat_interval=1) as consumer:
        found: list[dataproxy.Record] = []
        while len(found) < 300:
            pack = consumer.poll(20)
            assert pack is not None
            found += list(pack)
            consumer.confirm(pack)
        while (pack := consumer.poll(20)) is not None and len(found) < 300:
            found += list(pack)
            consumer.confirm(pack)
            if len(found) >= 300:
                break
        stats = consumer.stats()
    assert len({one.body for one in found}) >= 300
    assert (stats.broken, stats.messages.expired) == (0, 0)


def test_members_come_and_go_and_are_killed(tubemq: Servers, sender: Sender) -> None:
    group = f"members_{time.time_ns()}"
    sent: list[bytes] = []
    readers = [Reading(tubemq, group) for _ in range(2)]

    def shares(*counts: int) -> Callable[[], bool]:
        return lambda: sorted(len(one.consumer.assignment()) for one in readers) == sorted(counts)

    until(shares(3, 3), sender, sent)
    begun = len(sent)
    third = subprocess.Popen(
        [sys.executable, "-c", MEMBER, target(tubemq), group], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    until(shares(2, 2), sender, sent)
    joined = len(sent)
    until(lambda: len(sent) >= joined + 200, sender, sent)
    third.kill()
    output, _ = third.communicate(timeout=30)
    killed = [line.encode() for line in output.splitlines()[1:]]
    assert killed
    readers[1].consumer.close()
    left = readers.pop()
    until(shares(6), sender, sent)  # what the killed one had comes when its servers miss it
    bodies = [*readers[0].bodies, *left.bodies, *killed]
    wanted = set(sent[begun:])
    until(lambda: wanted <= {*readers[0].bodies, *left.bodies, *killed}, sender, sent)
    counts = Counter([*readers[0].bodies, *left.bodies, *killed])
    again = {body for body in wanted if counts[body] > 1}
    assert again <= set(killed), "only packs of the killed one come again"
    assert len(bodies) <= sum(counts.values())
    for one in (readers[0], left):
        messages = one.consumer.stats().messages
        assert messages.fetched == messages.confirmed + messages.rolled_back + messages.expired + messages.held
    readers[0].consumer.close()


def test_filters(tubemq: Servers, sender: Sender) -> None:
    group = f"filters_{time.time_ns()}"
    with Consumer(
        target(tubemq), group=group, topics={TOPIC: ["Aa"]}, start="latest", heartbeat_interval=1
    ) as consumer:  # fmt: skip
        deadline = time.monotonic() + SECONDS
        while len(consumer.assignment()) < PARTITIONS:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for i in range(60):
            item = (b"Aa", b"BB", b"other")[i % 3]  # the first two have one hash
            attribute = b"$msgType$=%b,$msgTime$=202601010000" % item
            assert sender.send(i % PARTITIONS, item + b"%d" % i, attribute=attribute, msgType=item)["errCode"] == 200
        found: list[bytes] = []
        while len(found) < 20:
            pack = consumer.poll(20)
            assert pack is not None
            found += pack.bodies()
            consumer.confirm(pack)
        assert sorted(found) == sorted(b"Aa%d" % i for i in range(0, 60, 3))


def test_an_event_loop(tubemq: Servers, sender: Sender) -> None:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        async with dataproxy.AsyncConsumer(
            target(tubemq), group=f"loop_{time.time_ns()}", topics=["three"], heartbeat_interval=1
        ) as consumer:
            await consumer.wait_ready()
            while (pack := await consumer.poll(10)) is not None:
                found += pack.bodies()
                await consumer.confirm(pack)
                if sum(lag.messages or 0 for lag in consumer.lag().values()) == 0 and len(found) >= 300:
                    break
        return found

    assert len(asyncio.run(read())) >= 300


def test_a_group_that_wants_other_topics_is_refused(tubemq: Servers) -> None:
    group = f"refused_{time.time_ns()}"
    with Consumer(target(tubemq), group=group, topics=["one"]) as first:
        first.wait_ready()
        with Consumer(target(tubemq), group=group, topics=["three"]) as second:
            with pytest.raises(dataproxy.GroupRefusedError) as caught:
                second.wait_ready()
            assert caught.value.details["code"] == 425
            with pytest.raises(dataproxy.GroupRefusedError):
                second.poll()


def test_a_partition_is_read_from_other_places(tubemq: Servers, sender: Sender) -> None:
    group = f"seek_{time.time_ns()}"
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        one = Sender(master, broker, "one")
        offsets = [one.send(0, b"seek %d" % i)["appendOffset"] for i in range(50)]
        one.close()
    with Consumer(target(tubemq), group=group, topics=["one"], start="latest", heartbeat_interval=1) as consumer:
        deadline = time.monotonic() + SECONDS
        while not consumer.assignment():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (key,) = consumer.assignment()

        def first() -> bytes:
            pack = consumer.poll(20)
            assert pack is not None
            body = pack[0].body
            consumer.confirm(pack)
            return body

        assert consumer.seek(key, offsets[20]) == offsets[20]
        assert first() == b"seek 20"
        assert consumer.seek(key, offsets[3]) == offsets[3]
        out = consumer.poll(20)
        assert out is not None
        assert out[0].body == b"seek 3"
        assert consumer.seek(key, offsets[45]) == offsets[45]  # while a pack is out
        assert out.outcome == "expired"
        assert first() == b"seek 45"
        assert consumer.seek(key, "earliest") == 0
        end = consumer.seek(key, "latest")
        assert end == offsets[-1] + 28
        assert consumer.poll(0.5) is None
        with pytest.raises(dataproxy.SeekError) as caught:
            consumer.seek(key, end + 28)
        assert (caught.value.code, caught.value.details["end"]) == ("SEEK_BEYOND", end)
        consumer.seek(key, offsets[10])
    with Consumer(target(tubemq), group=group, topics=["one"], heartbeat_interval=1) as consumer:
        pack = consumer.poll(SECONDS)  # the group's offset has moved
        assert pack is not None
        assert pack[0].body == b"seek 10"


def test_a_group_that_is_bound_to_offsets(tubemq: Servers) -> None:
    group, session = f"bound_{time.time_ns()}", f"s{time.time_ns()}"
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        one = Sender(master, broker, "one")
        offsets = [one.send(0, b"bound %d" % i)["appendOffset"] for i in range(20)]
        one.close()
    given = {"offsets": {"1:one:0": offsets[7]}, "session": session, "heartbeat_interval": 1}
    with Consumer(target(tubemq), group=group, topics=["one"], **given) as consumer:
        pack = consumer.poll(SECONDS)
        assert pack is not None
        assert pack[0].body == b"bound 7"
        with Consumer(target(tubemq), group=group, topics=["one"]) as other:
            with pytest.raises(dataproxy.GroupRefusedError) as caught:
                other.wait_ready()
            assert caught.value.details["code"] == 424


def test_members_that_choose_their_partitions(tubemq: Servers, sender: Sender) -> None:
    group = f"choose_{time.time_ns()}"
    given: dict[str, Any] = {"balance": "client", "members": 2, "start": "latest", "heartbeat_interval": 1}
    with Consumer(target(tubemq), group=group, topics=[TOPIC], node=0, **given) as first:
        keys = first.available()
        assert keys == [f"1:{TOPIC}:{i}" for i in range(PARTITIONS)]
        with pytest.raises(dataproxy.ConfigError):
            first.assign([f"1:{TOPIC}:{PARTITIONS}"])
        first.assign(keys[:4])
        deadline = time.monotonic() + SECONDS
        while first.assignment() != keys[:4]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with Consumer(target(tubemq), group=group, topics=[TOPIC], node=0, **given) as wrong:
            with pytest.raises(dataproxy.GroupRefusedError) as caught:
                wrong.wait_ready()
            assert caught.value.details["code"] == 430
        with Consumer(target(tubemq), group=group, topics=[TOPIC], node=1, **given) as second:
            second.assign(keys[3:])  # the fourth is the first member's
            while (first.assignment(), second.assignment()) != (keys[:4], keys[4:]):
                assert time.monotonic() < deadline, (first.assignment(), second.assignment(), first.stats().trouble)
                time.sleep(0.05)
            sent = [b"choose %d" % i for i in range(60)]
            offsets = [sender.send(i % PARTITIONS, body)["appendOffset"] for i, body in enumerate(sent)]
            found: dict[Consumer, list[bytes]] = {first: [], second: []}
            while sum(map(len, found.values())) < len(sent):
                assert time.monotonic() < deadline
                for one, bodies in found.items():
                    pack = one.poll(0.2)
                    if pack is not None:
                        bodies += pack.bodies()
                        one.confirm(pack)
            assert sorted(found[first]) == sorted(body for i, body in enumerate(sent) if i % PARTITIONS < 4)
            assert sorted(found[second]) == sorted(body for i, body in enumerate(sent) if i % PARTITIONS >= 4)
            first.assign(keys[:3])
            while second.assignment() != keys[3:]:  # it comes when it is free
                assert time.monotonic() < deadline
                time.sleep(0.05)
            second.assign({keys[3]: offsets[33]})
            pack = second.poll(20)
            while pack is not None and pack.partition != keys[3]:
                pack = second.poll(20)
            assert pack is not None
            assert pack[0].body == b"choose 33"
            assert (first.stats().trouble, second.stats().state) == ("", "member")
        assert first.assignment() == keys[:3]
