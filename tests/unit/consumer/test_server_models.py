"""Models of TubeMQ's servers on virtual time: how partitions are divided, and what ends by itself."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker as Address
from dataproxy.wire.tubemq.texts import Partition, Subscription
from tests.simgroup.servers import Bound, Locks, MasterModel
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.master import Master
from tests.support.tubeserver.settings import Settings

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "golden" / "tubemq.json").read_text())
BROKER = Address(1, "10.0.0.1", 8123)


def partitions(topic: str, numbers: list[int]) -> list[Partition]:
    """Return partitions of a topic."""
    return [Partition(BROKER, topic, i) for i in numbers]


def register(model: MasterModel, client: str, now: float = 0.0, **more: Any) -> Any:
    """Register a member."""
    request = messages.RegisterRequestC2M(clientId=client, groupName="g", hostName="h", **more)
    return model.call("RegisterRequestC2M", request, now)


def beat(model: MasterModel, client: str, now: float, **more: Any) -> Any:
    """Send a heartbeat."""
    request = messages.HeartRequestC2M(clientId=client, groupName="g", **{"reportSubscribeInfo": False, **more})
    return model.call("HeartRequestC2M", request, now)


def given(answer: Any) -> list[tuple[str, int]]:
    """Return the partitions of an answer's event."""
    return [(one.topic, one.id) for one in (Subscription.read(text).partition for text in answer.event.subscribeInfo)]


@pytest.mark.parametrize("vector", VECTORS["bulk_assign"], ids=lambda vector: len(vector["partitions"]))
def test_a_first_division_is_in_blocks(vector: dict[str, Any]) -> None:
    model = MasterModel(partitions("t", vector["partitions"]), "g", random.Random(1))
    model.lead(0.0)
    for client in vector["consumers"]:
        register(model, client)
    found = {client: [i for _, i in given(beat(model, client, 5.0))] for client in vector["consumers"]}
    assert found == vector["result"]


def test_each_topic_is_divided_by_itself() -> None:
    model = MasterModel(partitions("t", [0, 1, 2]) + partitions("s", [0]), "g", random.Random(1))
    model.lead(0.0)
    for client in "ab":
        register(model, client)
    assert given(beat(model, "a", 5.0)) == [("s", 0), ("t", 0), ("t", 1)]
    assert given(beat(model, "b", 5.0)) == [("t", 2)]


@pytest.mark.parametrize(
    ("larger", "offsets", "winner"),
    [
        (True, (28, 56), "b"),
        (True, (56, 28), "a"),
        (True, (28, 28), "b"),
        (False, (28, 56), "a"),
        (False, (28, 28), "a"),
    ],
)
def test_who_gets_a_partition_that_two_members_name(larger: bool, offsets: tuple[int, int], winner: str) -> None:
    model = MasterModel(partitions("t", [0]), "g", random.Random(1), balance_s=0, bound=Bound(2, larger))
    for client, offset in zip("ab", offsets, strict=True):
        register(model, client, requiredPartition=f"1:t:0={offset}")
    found = {client: given(beat(model, client, 1.0)) for client in "ab"}
    assert found == {client: [("t", 0)] if client == winner else [] for client in "ab"}


def test_an_event_without_a_result_is_forgotten_in_the_end() -> None:
    model = MasterModel(partitions("t", [0]), "g", random.Random(1), balance_s=1, event_cycles=3, member_limit_s=99)
    register(model, "a")
    first = beat(model, "a", 1.0).event
    found = [beat(model, "a", float(now)).HasField("event") for now in range(2, 8)]
    assert found == [False, False, False, False, True, False]
    assert first.rebalanceId > 0


def test_members_that_held_something_make_a_group_allocated() -> None:
    model = MasterModel(partitions("t", [0]), "g", random.Random(1))
    assert register(model, "a", notAllocated=True).notAllocated
    assert not register(model, "a", notAllocated=False).notAllocated


def test_a_registration_is_kept_by_using_it() -> None:
    locks = Locks(10.0)
    assert locks.take("k", "a", 0.0)
    assert [locks.use("k", "a", 9.0), locks.use("k", "b", 18.0), locks.use("k", "a", 19.1)] == [200, 412, 411]
    assert locks.owner("k", 18.0) == "a"
    assert [locks.take("k", "b", 20.0), locks.take("k", "b", 20.0)] == [False, True]
    assert [locks.leave("k", "a", 21.0), locks.leave("k", "b", 21.0), locks.leave("k", "b", 21.0)] == [412, 200, 411]


def test_a_pack_whose_reader_was_silent_is_read_again() -> None:
    broker = Broker(Settings({"t": 1}))
    broker.put("t", 0, b"m", 0, "")
    who: dict[str, Any] = {"clientId": "a", "groupName": "g", "topicName": "t", "partitionId": 0}
    take = messages.RegisterRequestC2B(opType=31, readStatus=0, **who)
    leave = messages.RegisterRequestC2B(opType=32, readStatus=0, **who)
    get, commit = messages.GetMessageRequestC2B(**who), messages.CommitOffsetRequestC2B(**who)
    assert broker.work("RegisterRequestC2B", take, 0.0).errCode == 200
    assert len(broker.work("GetMessageRequestC2B", get, 1.0).messages) == 1
    late = [
        broker.work(name, request, 37.0).errCode
        for name, request in (
            ("GetMessageRequestC2B", get), ("CommitOffsetRequestC2B", commit), ("RegisterRequestC2B", leave),
        )
    ]  # fmt: skip
    assert late == [411, 401, 411]
    assert broker.work("RegisterRequestC2B", take, 38.0).currOffset == 0
    assert len(broker.work("GetMessageRequestC2B", get, 38.0).messages) == 1
    assert broker.work("CommitOffsetRequestC2B", commit, 38.0).currOffset == 28


def test_a_registration_of_a_partition_that_is_not_there_stays() -> None:
    """The real broker looks for the partition behind the registration."""
    broker = Broker(Settings({"t": 1}))

    def take(client: str) -> int:
        request = messages.RegisterRequestC2B(
            opType=31, readStatus=0, clientId=client, groupName="g", topicName="t", partitionId=1
        )
        return int(broker.work("RegisterRequestC2B", request, 0.0).errCode)

    assert [take("a"), take("b")] == [500, 410]
    get = messages.GetMessageRequestC2B(clientId="a", groupName="g", topicName="t", partitionId=1)
    assert broker.work("GetMessageRequestC2B", get, 0.0).errCode == 500


def test_producers_and_members_that_are_silent() -> None:
    master = Master(Settings({"t": 1}), [BROKER])
    producer: dict[str, Any] = {"clientId": "p", "hostName": "h", "brokerCheckSum": -1}
    member: dict[str, Any] = {"clientId": "m", "groupName": "g"}
    master.work("RegisterRequestP2M", messages.RegisterRequestP2M(**producer), 0.0)
    request = messages.RegisterRequestC2M(hostName="h", topicList=["t"], **member)
    assert master.work("RegisterRequestC2M", request, 0.0).errCode == 200
    beats = [
        ("HeartRequestP2M", messages.HeartRequestP2M(**producer)),
        ("HeartRequestC2M", messages.HeartRequestC2M(reportSubscribeInfo=False, **member)),
    ]
    assert [master.work(name, request, 29.0).errCode for name, request in beats] == [200, 200]
    assert [master.work(name, request, 60.0).errCode for name, request in beats] == [200, 411]
    assert [master.work(name, request, 106.0).errCode for name, request in beats] == [411, 411]
