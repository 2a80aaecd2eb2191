"""Ranges of offsets at TubeMQ's own broker, as a source that reads by ranges needs them: exact, again and again.

Offsets count messages of a store, and partitions of a topic share their store: a message has an offset that no answer
to a reader tells.  What is known is where a pack begins, and where the next one would.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies
from tests.support.tubekit import Servers

_NAMES = itertools.count(1)


@pytest.fixture(params=["one", "three"])
def topic(request: pytest.FixtureRequest) -> str:
    """Return a topic with as many partitions in its store."""
    return str(request.param)


@pytest.fixture
def broker(tubemq: Servers) -> Iterator[Connection]:
    with Connection(tubemq.broker) as connection:
        yield connection


@pytest.fixture
def stored(tubemq: Servers, broker: Connection, topic: str) -> list[tuple[int, int, bytes]]:
    """Return (offset, partition, body) of messages that were sent to all partitions, in the order of offsets."""
    source = random.Random(1)
    partitions = {"one": 1, "three": 3}[topic]
    found = []
    with Connection(tubemq.master) as master:
        sender = Sender(master, broker, topic)
        for _ in range(120):
            partition = source.randrange(partitions)
            body = source.randbytes(source.choice([10, 20_000]))
            answer = sender.send(partition, body)
            assert answer["errCode"] == 200
            found.append((answer["appendOffset"], partition, body))
        sender.close()
    return sorted(found)


def name() -> str:
    """Return a group that nobody else is."""
    return f"range_{next(_NAMES)}"


def first_from(broker: Connection, topic: str, partition: int, offset: int) -> int | None:
    """Return the id of the first message of a partition at an offset or behind it."""
    reader = Reader(broker, topic, name(), partition)
    assert reader.register(0, currOffset=offset).currOffset == offset
    answer = reader.get()
    assert answer["errCode"] in (200, 404)
    assert reader.unregister(1).errCode == 200
    return answer["messages"][0]["messageId"] if answer["messages"] else None


def read_range(broker: Connection, topic: str, partition: int, begin: int, end: int) -> list[bytes]:
    """Return the bodies of a range: from pack to pack, and up to the message that the next range begins with."""
    stop = first_from(broker, topic, partition, end)
    reader = Reader(broker, topic, name(), partition)
    assert reader.register(0, currOffset=begin).errCode == 200
    found: list[bytes] = []
    at = begin
    while at < end:
        answer = reader.get()
        if answer["errCode"] == 404:
            break
        assert answer["errCode"] == 200, answer
        for message, body in zip(answer["messages"], bodies(answer), strict=True):
            if message["messageId"] == stop:
                at = end
                break
            found.append(body)
        else:
            at = reader.commit()["currOffset"]
    assert reader.unregister(1).errCode == 200
    return found


def test_every_range_is_exact_whatever_shares_the_store(
    broker: Connection, topic: str, stored: list[tuple[int, int, bytes]]
) -> None:
    source = random.Random(2)
    first, last = stored[0][0], stored[-1][0] + INDEX
    for partition in {partition for _, partition, _ in stored}:
        for _ in range(6):
            begin, end = sorted(INDEX * source.randrange(first // INDEX, last // INDEX + 1) for _ in range(2))
            expected = [body for at, where, body in stored if begin <= at < end and where == partition]
            assert read_range(broker, topic, partition, begin, end) == expected
            assert read_range(broker, topic, partition, begin, end) == expected
        cuts = sorted({first, last, *(INDEX * source.randrange(first // INDEX, last // INDEX) for _ in range(4))})
        parts = [read_range(broker, topic, partition, *pair) for pair in itertools.pairwise(cuts)]
        assert [body for part in parts for body in part] == [body for _, where, body in stored if where == partition]


def test_two_readers_of_a_partition_with_names_of_their_own_do_not_meet(
    broker: Connection, topic: str, stored: list[tuple[int, int, bytes]]
) -> None:
    """A copy of a task reads beside the first one; neither takes the partition from a consumer of the group."""
    partition = stored[0][1]
    owner = Reader(broker, topic, name(), partition)
    assert owner.register(0, currOffset=stored[0][0]).errCode == 200
    tasks = [Reader(broker, topic, name(), partition) for _ in range(2)]
    for task in tasks:
        assert task.register(0, currOffset=stored[0][0]).errCode == 200
    answers = [reader.get() for reader in (owner, *tasks)]
    assert bodies(answers[0]) == bodies(answers[1]) == bodies(answers[2]) != []
    for reader in (owner, *tasks):
        assert reader.commit()["errCode"] == 200
        assert reader.unregister(0).errCode == 200


def test_a_group_is_moved_by_a_registration_with_an_offset(
    broker: Connection, topic: str, stored: list[tuple[int, int, bytes]]
) -> None:
    """So a driver tells the brokers how far a query is, for those who look at the group's lag."""
    partition, group = stored[0][1], name()
    for offset in (stored[5][0], stored[50][0], stored[20][0]):
        driver = Reader(broker, topic, group, partition)
        assert driver.register(0, currOffset=offset).currOffset == offset
        assert driver.unregister(1).errCode == 200
        again = Reader(broker, topic, group, partition)
        answer = again.register(0)
        assert (answer.errCode, answer.currOffset) == (200, offset)
        assert answer.maxOffset >= stored[-1][0] + INDEX
        assert again.unregister(1).errCode == 200


def test_a_group_can_begin_at_the_end(broker: Connection, topic: str) -> None:
    reader = Reader(broker, topic, name())
    answer = reader.register(1)
    assert answer.currOffset == answer.maxOffset
    assert reader.get()["errCode"] == 404
    assert reader.unregister(1).errCode == 200


def test_an_offset_beyond_the_end_is_the_end(
    broker: Connection, topic: str, stored: list[tuple[int, int, bytes]]
) -> None:
    """Nothing tells that messages are gone but the offset of the answer: whoever needs to know compares."""
    end = stored[-1][0] + INDEX
    reader = Reader(broker, topic, name(), stored[0][1])
    answer = reader.register(0, currOffset=end + 100 * INDEX)
    assert (answer.errCode, answer.currOffset, answer.maxOffset) == (200, end, end)
    assert reader.unregister(1).errCode == 200
