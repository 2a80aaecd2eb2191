"""One client that names, registers and reports as much as it can: bounds, typed answers, and the others served."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.tubemq import broker as broker_module
from dataproxy.hub.tubemq import service as service_module
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.topics import MOST_NAMED
from dataproxy.wire.tubemq import messages
from tests.loopback.hub.tubemq.test_hostile import answers, connected, is_served
from tests.support.rawclient import METHODS
from tests.support.reference import tubemq as wire
from tests.support.waiting import eventually

HOSTILE, OTHER = "127.0.0.9", "127.0.0.10"
Start = Callable[..., Hub]


@pytest.fixture
def hub(start_hub: Start) -> Hub:
    return start_hub(tubemq_port=0, partitions=1)


class Client:
    """Many calls in one write, from an address."""

    def __init__(self, hub: Hub, source: str) -> None:
        self._socket: socket.socket = connected(hub, source)

    def ask(self, name: str, *requests: dict[str, Any]) -> list[Any]:
        """Send requests of one kind, some hundreds at a time, and return their answers in the same order."""
        method, service, answer = METHODS[name]
        kind: Any = getattr(messages, name)
        read: Any = getattr(messages, answer)
        found: list[Any] = []
        for start in range(0, len(requests), 500):
            some = requests[start : start + 500]
            calls = [wire.called(service, 3, method, 10_000, kind(**one).SerializeToString()) for one in some]
            self._socket.sendall(b"".join(wire.cut(i, call) for i, call in enumerate(calls)))
            got = answers(self._socket, len(some))
            assert {one["status"] for one in got.values()} == {0}
            found += [read.FromString(got[i]["data"]) for i in range(len(some))]
        return found

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


@pytest.fixture
def hostile(hub: Hub) -> Iterator[Client]:
    one = Client(hub, HOSTILE)
    yield one
    one.close()


@pytest.fixture
def other(hub: Hub) -> Iterator[Client]:
    one = Client(hub, OTHER)
    yield one
    one.close()


def member(client: str, group: str, *topics: str) -> dict[str, Any]:
    """Return the registration of a consumer at the master."""
    who = {"clientId": client, "groupName": group, "hostName": "h", "topicList": topics or ("t",)}
    return {**who, "requireBound": False, "notAllocated": True}


def reader(client: str, group: str, partition: int = 0) -> dict[str, Any]:
    """Return the registration of a consumer at the broker."""
    who = {"clientId": client, "groupName": group, "topicName": "t", "partitionId": partition}
    return {**who, "opType": 31, "readStatus": 0}


def producer_topics(client: Client, name: str, topics: list[str]) -> int:
    """Return how many topics a producer is told places of."""
    who = {"clientId": name, "hostName": "h", "brokerCheckSum": -1, "topicList": topics}
    client.ask("RegisterRequestP2M", who)
    return len(client.ask("HeartRequestP2M", who)[0].topicInfos)


def test_topics_without_a_message_are_shared_by_address(hub: Hub, hostile: Client, other: Client) -> None:
    assert producer_topics(hostile, "p", [f"a{i}" for i in range(MOST_NAMED)]) == MOST_NAMED // 2
    assert producer_topics(hostile, "q", [f"b{i}" for i in range(10)]) == 0, "another client of the same address"
    assert producer_topics(other, "p", [f"c{i}" for i in range(MOST_NAMED)]) == MOST_NAMED // 4
    assert producer_topics(hostile, "p", [f"a{i}" for i in range(MOST_NAMED)]) == MOST_NAMED // 2, "what is there stays"
    (answer,) = hostile.ask("RegisterRequestC2M", member("c", "g", "late"))
    assert (answer.errCode, "late" in answer.errMsg) == (431, True)
    assert is_served(hub), "a third address"


def test_a_topic_that_gets_a_message_counts_no_more(hub: Hub, hostile: Client) -> None:
    producer_topics(hostile, "p", [f"a{i}" for i in range(MOST_NAMED)])
    who = {"clientId": "p", "topicName": "a0", "partitionId": 0, "data": b"x", "flag": 0, "sentAddr": 0}
    assert hostile.ask("SendMessageRequestP2B", {**who, "checkSum": -1})[0].errCode == 200
    assert eventually(lambda: producer_topics(hostile, "p", ["b0"]) == 1)
    assert producer_topics(hostile, "p", ["b1"]) == 0


def test_a_consumer_of_1025_topics_is_refused_and_names_what_it_may(hub: Hub, hostile: Client, other: Client) -> None:
    (answer,) = hostile.ask("RegisterRequestC2M", member("c", "g", *(f"t{i}" for i in range(1025))))
    assert (answer.errCode, "1025 topics" in answer.errMsg) == (400, True)
    (answer,) = other.ask("RegisterRequestC2M", member("c", "g", *(f"t{i}" for i in range(500))))
    assert answer.errCode == 200
    assert is_served(hub)


def test_ten_thousand_groups_of_one_client_at_the_master(start_hub: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an eighth of the memory that a hub has."""
    monkeypatch.setattr(service_module, "MasterLimits", lambda **more: MasterLimits(memory_bytes=8 << 20, **more))
    hub = start_hub(tubemq_port=0, partitions=1)
    service = hub._tubemq
    hostile, other = Client(hub, HOSTILE), Client(hub, OTHER)
    try:
        found = hostile.ask("RegisterRequestC2M", *(member("c", f"g{i}") for i in range(10_000)))
        codes = Counter(one.errCode for one in found)
        assert codes.keys() == {200, 500}
        assert codes[500] > 5000
        assert {one.errMsg.partition(" has ")[0] for one in found if one.errCode == 500} == {HOSTILE}
        assert service.run(lambda: service.master.used_bytes) <= 4 << 20
        mine = other.ask("RegisterRequestC2M", *(member("c", f"h{i}") for i in range(300)))
        assert {one.errCode for one in mine} == {200}
        beats = [{"clientId": "c", "groupName": f"h{i}", "reportSubscribeInfo": False} for i in range(300)]
        assert {one.errCode for one in other.ask("HeartRequestC2M", *beats)} == {200}
        hub._core.advance_clock(31.0)
        assert eventually(lambda: service.run(lambda: service.master.used_bytes) == 0)
        assert hostile.ask("RegisterRequestC2M", member("c", "g"))[0].errCode == 200
    finally:
        hostile.close()
        other.close()


def test_ten_thousand_groups_of_one_client_at_the_broker(start_hub: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions stay when members go, so the share counts what an address has begun."""
    monkeypatch.setattr(service_module, "_REGISTRATION_BYTES", 4 << 20)
    hub = start_hub(tubemq_port=0, partitions=1)
    service = hub._tubemq
    hostile, other = Client(hub, HOSTILE), Client(hub, OTHER)
    try:
        hostile.ask("RegisterRequestP2M", {"clientId": "p", "hostName": "h", "brokerCheckSum": -1, "topicList": ["t"]})
        found = hostile.ask("RegisterRequestC2B", *(reader("c", f"g{i}") for i in range(10_000)))
        codes = [one.errCode for one in found]
        most = codes.index(500)
        assert 3000 < most < 6000
        assert set(codes[:most]) == {200}
        assert set(codes[most:]) == {500}
        assert HOSTILE in found[-1].errMsg
        assert service.registrations.bytes < 2 << 20
        assert hostile.ask("RegisterRequestC2B", reader("c", "g0"))[0].errCode == 200, "what it has goes on"
        hub._core.advance_clock(40.0)
        assert eventually(lambda: not any(owner for _, _, _, owner, *_ in service.registrations.found()))
        assert hostile.ask("RegisterRequestC2B", reader("c", "new"))[0].errCode == 500
        assert hostile.ask("RegisterRequestC2B", reader("d", "g1"))[0].errCode == 200
        mine = other.ask("RegisterRequestC2B", *(reader("c", f"h{i}") for i in range(1000)))
        assert {one.errCode for one in mine} == {200}
        again = hostile.ask("RegisterRequestC2B", *(reader("d", f"g{i}") for i in range(2, most)))
        assert {one.errCode for one in again} == {200}, "also when others have taken of what it left"
    finally:
        hostile.close()
        other.close()


def test_an_address_that_gave_up_a_refused_group_pays_nothing_for_it(
    start_hub: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table itself may be full before the shares are: a position that was not made is not charged."""
    monkeypatch.setattr(broker_module, "_POSITION_BYTES", 0)
    monkeypatch.setattr(service_module, "_REGISTRATION_BYTES", 256 << 10)
    hub = start_hub(tubemq_port=0, partitions=1)
    room = hub._tubemq.broker._room
    one = Client(hub, HOSTILE)
    try:
        one.ask("RegisterRequestP2M", {"clientId": "p", "hostName": "h", "brokerCheckSum": -1, "topicList": ["t"]})
        taken = one.ask("RegisterRequestC2B", *(reader("c", f"g{i}") for i in range(2000)))
        found = [answer.errCode for answer in taken]
        assert set(found) == {200, 500}
        assert room.used == sum(len(f"g{i}") + 1 for i in range(2000) if found[i] == 200)
    finally:
        one.close()


def test_heartbeats_of_a_thousand_dead_clients(hub: Hub, hostile: Client, other: Client) -> None:
    service = hub._tubemq
    found = hostile.ask("RegisterRequestC2M", *(member(f"c{i}", f"g{i % 10}") for i in range(1000)))
    assert {one.errCode for one in found} == {200}
    producers = [{"clientId": f"p{i}", "hostName": "h", "brokerCheckSum": -1} for i in range(1000)]
    assert {one.errCode for one in hostile.ask("RegisterRequestP2M", *producers)} == {200}
    readers = hostile.ask("RegisterRequestC2B", *(reader(f"c{i}", f"g{i}") for i in range(1000)))
    assert {one.errCode for one in readers} == {200}
    assert other.ask("RegisterRequestC2M", member("alive", "live"))[0].errCode == 200
    hub._core.advance_clock(25.0)
    alive = {"clientId": "alive", "groupName": "live", "reportSubscribeInfo": False}
    assert other.ask("HeartRequestC2M", alive)[0].errCode == 200
    hub._core.advance_clock(25.0)
    assert other.ask("HeartRequestC2M", alive)[0].errCode == 200
    assert eventually(lambda: service.run(lambda: len(service.master.consumers.groups())) == 1)
    beats = [{"clientId": f"c{i}", "groupName": f"g{i % 10}", "reportSubscribeInfo": False} for i in range(1000)]
    assert {one.errCode for one in hostile.ask("HeartRequestC2M", *beats)} == {411}
    assert {one.errCode for one in hostile.ask("HeartRequestP2M", *producers)} == {411}
    holding = [
        {"clientId": f"c{i}", "groupName": f"g{i}", "readStatus": 0, "partitionInfo": ["1:127.0.0.1:1#t:0"]}
        for i in range(1000)
    ]
    held = hostile.ask("HeartBeatRequestC2B", *holding)
    assert {(one.errCode, one.hasPartFailure, one.failureInfo[0].partition(":")[0]) for one in held} == {
        (200, True, "411")
    }
    assert other.ask("HeartRequestC2M", alive)[0].errCode == 200
    assert service.run(lambda: len(service.master.consumers.groups())) == 1, "the dead stay dead until they register"
    assert is_served(hub)
