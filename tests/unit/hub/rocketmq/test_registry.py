"""The whole registry: what is asked of it, what hostile clients send, and what readers see."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.clients import Client, Identity
from dataproxy.hub.rocketmq.clients.actions import Peer
from dataproxy.wire.rocketmq.bodies import MessageModel
from dataproxy.wire.rocketmq.codes import Answer
from tests.support.rocketclients import RocketHub, heartbeat, queues, refusal


def test_who_is_connected_for_a_consumer_group() -> None:
    hub = RocketHub()
    hub.peer(2, "CPP", 200)
    hub.beat(1, "a", {"g": {"t": "A"}}, version=1)
    hub.beat(2, "b", {"g": {"t": "B"}}, version=2)
    found = hub.registry.consumer_connections("g")
    assert [(one.client_addr, one.client_id, one.language, one.version) for one in found.connection_set] == [
        ("10.0.0.1:50001", "a", "JAVA", 409), ("10.0.0.1:50002", "b", "CPP", 200),
    ]  # fmt: skip
    assert found.subscription_table["t"].sub_string == "B"
    assert found.message_model is MessageModel.CLUSTERING
    assert refusal(lambda: hub.registry.consumer_connections("h")).code == Answer.CONSUMER_NOT_ONLINE


def test_who_is_connected_for_a_producer_group() -> None:
    hub = RocketHub()
    hub.beat(1, "a", produces=["p"])
    hub.beat(2, "b", produces=["p", "q"])
    assert [one.client_id for one in hub.registry.producer_connections("p").connection_set] == ["a", "b"]
    assert refusal(lambda: hub.registry.producer_connections("r")).code == Answer.SYSTEM_ERROR
    hub.wait(7.0)
    table = hub.registry.all_producers(hub.now, 1_000_000).data
    assert [one.last_update_timestamp for one in table["p"]] == [993_000, 993_000]
    assert set(table) == {"p", "q"}


def test_readers_get_what_does_not_change() -> None:
    """RocketMQ's snapshot copies the outer map alone, and its readers go over inner ones that others change."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, ["p"])
    hub.lock(1, "a", "g", *queues("t", 0))
    view, clients = hub.registry.snapshot(hub.now), hub.clients.snapshot(hub.now)
    groups = hub.registry.producers.groups()
    hub.beat(2, "b", {"g": ["t"]}, ["p"])
    hub.close(1)
    assert [one.members for one in view.groups] == [("a",)]
    assert [(one.client_id, one.queue) for one in view.locks] == [("a", queues("t", 0)[0])]
    assert [one.client_id for one in groups["p"]] == ["a"]
    assert clients == (
        Client(Identity("rocketmq", "consumer", "a", "g", "10.0.0.1:50001", "JAVA", "V4_9_8"), 0.0, 120.0),
        Client(Identity("rocketmq", "producer", "a", "p", "10.0.0.1:50001", "JAVA", "V4_9_8"), 0.0, 120.0),
    )


def test_an_unchanged_heartbeat_is_not_read_again() -> None:
    hub = RocketHub()
    body = heartbeat("a", {"g": ["t"]}, ["p"])
    for _ in range(5):
        hub.registry.heartbeat(hub.peer(1), body, hub.now)
        hub.wait(30.0)
    assert hub.registry._heartbeats.shortcuts == 4
    assert hub.registry.member_ids("g") == ("a",)
    assert [one.client_id for one in hub.registry.producers.of("p")] == ["a"]


def test_the_same_body_from_a_client_of_another_version_is_read() -> None:
    hub = RocketHub()
    body = heartbeat("a", {"g": ["t"]})
    hub.registry.heartbeat(Peer(1, "10.0.0.1:1", "JAVA", 100), body, hub.now)
    hub.registry.heartbeat(Peer(1, "10.0.0.1:1", "JAVA", 409), body, hub.now)
    found = hub.registry.members.find("g", "a")
    assert found is not None
    assert found.peer.version == 409


def test_a_heartbeat_after_the_end_of_its_time_and_before_the_scan_is_a_new_life() -> None:
    hub = RocketHub()
    body = heartbeat("a", {"g": ["t"]})
    hub.registry.heartbeat(hub.peer(1), body, hub.now)
    hub.now += 120.5  # no scan has come meanwhile
    hub.registry.heartbeat(hub.peer(1), body, hub.now)
    hub.wait(119.0)
    assert hub.registry.member_ids("g") == ("a",)
    assert hub.closing() == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"clientID":5}', b'{"clientID":null}', b'{"clientID":"a","consumerDataSet":[{}]}',
     b'{"clientID":"a","producerDataSet":[{"groupName":7}]}', b"[" * 100,
     b'{"clientID":"a","consumerDataSet":' + b"9" * 30, b'{"clientID":"a","x":{"$ref":"$"}}', b"\xff\xfe", b"{}" * 3],
)  # fmt: skip
def test_a_body_that_is_no_heartbeat_changes_nothing(body: bytes) -> None:
    hub = RocketHub()
    with pytest.raises(RemoteProtocolError):
        hub.registry.heartbeat(hub.peer(1), body, hub.now)
    assert hub.clients.snapshot(hub.now) == ()


@pytest.mark.parametrize(
    ("client", "group"), [("", "g"), ("a" * 256, "g"), ("a\nb", "g"), ("a", ""), ("a", "g" * 256), ("a", "g\x00")]
)
def test_a_name_that_is_none_is_refused_with_the_whole_heartbeat(client: str, group: str) -> None:
    hub = RocketHub()
    error = refusal(lambda: hub.beat(1, client, {"ok": ["t"], group: ["t"]}, ["p"]))
    assert "expected 1 to 255 characters" in error.remark
    assert hub.clients.snapshot(hub.now) == ()


def test_names_with_separators_are_names_like_others() -> None:
    """Names with "@" break the front node's table, whose keys are texts that are split."""
    hub = RocketHub({"t@u": 2, "t": 2})
    hub.beat(1, "a@b@c", {"g@h": ["t@u"], "g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    assert hub.registry.member_ids("g@h") == ("a@b@c",)
    assert hub.lock(1, "a@b@c", "g@h", *queues("t@u", 0)) == queues("t@u", 0)
    assert hub.lock(2, "b", "g", *queues("t", 0)) == queues("t", 0)
    hub.leave(1, consumer="g@h")
    assert hub.registry.members.names() == ("g",)


def test_ordinals_and_texts_of_clients_of_cpp_are_what_they_mean() -> None:
    hub = RocketHub()
    body = (
        b'{"clientID":"7-10.0.0.1@x","consumerDataSet":[{"groupName":"g","consumeType":1,"messageModel":1,'
        b'"consumeFromWhere":0,"subscriptionDataSet":[{"topic":"t","subString":"*","subVersion":"1700000000000"}]}],'
        b'"producerDataSet":[]}\n'
    )
    hub.registry.heartbeat(hub.peer(1, "CPP"), body, hub.now)
    assert hub.registry.subscription(1, "g", "t", 1_700_000_000_000).expression_type == "TAG"


def test_groups_of_a_heartbeat_and_records_of_all_are_bounded() -> None:
    hub = RocketHub(groups=10, records=25)
    assert "names 11 groups" in refusal(lambda: hub.beat(1, "a", {f"g{i}": [] for i in range(11)})).remark
    hub.beat(1, "a", {f"g{i}": [] for i in range(10)})
    hub.beat(2, "b", {f"g{i}": [] for i in range(10)})
    error = refusal(lambda: hub.beat(3, "c", {f"g{i}": [] for i in range(10)}))
    assert error.code == Answer.SYSTEM_BUSY
    hub.beat(2, "b", {f"g{i}": [] for i in range(9)})  # who is there may go on
    hub.close(1)
    hub.beat(3, "c", {f"g{i}": [] for i in range(10)})


def test_the_memory_of_heartbeats_is_bounded_and_given_back() -> None:
    hub = RocketHub(bytes=4000)
    hub.beat(1, "a", {"g": [f"topic{i}" for i in range(20)]})
    assert refusal(lambda: hub.beat(2, "b", {"g": [f"topic{i}" for i in range(20)]})).code == Answer.SYSTEM_BUSY
    hub.beat(1, "a", {"g": [f"topic{i}" for i in range(19)]})
    hub.close(1)
    hub.beat(2, "b", {"g": [f"topic{i}" for i in range(20)]})
    hub.close(2)
    assert hub.registry._heartbeats.used_bytes == 0


def test_a_heartbeat_may_name_a_group_twice_and_no_group_at_all() -> None:
    hub = RocketHub()
    twice = heartbeat("a", {"g": ["t"]}).replace(
        b'"producerDataSet":[]', b'"producerDataSet":[{"groupName":"p"},{"groupName":"p"}]'
    )
    hub.registry.heartbeat(hub.peer(1), twice, hub.now)
    hub.registry.heartbeat(hub.peer(1), twice, hub.now)
    assert [one.client_id for one in hub.registry.producers.of("p")] == ["a"]
    assert hub.beat(2, "b") == ()
    hub.close(1)
    hub.close(2)
    assert hub.clients.snapshot(hub.now) == ()


def test_whatever_happens_no_table_keeps_who_has_gone() -> None:
    source = random.Random(5)
    hub = RocketHub()
    alive: list[int] = []
    for number in range(1, 400):
        hub.beat(number, f"c{source.randrange(60)}", {f"g{source.randrange(8)}": ["t"] for _ in range(2)},
                 [f"p{source.randrange(4)}"])  # fmt: skip
        alive.append(number)
        hub.lock(number, f"c{source.randrange(60)}", f"g{source.randrange(8)}", *queues("t", source.randrange(4)))
        hub.leave(source.choice(alive), consumer=f"g{source.randrange(8)}", producer=f"p{source.randrange(4)}")
        if source.random() < 0.5:
            hub.close(alive.pop(source.randrange(len(alive))))
        hub.wait(source.random() * 3)
    for number in alive:
        hub.close(number)
    hub.wait(80.0)
    view = hub.registry.snapshot(hub.now)
    assert (view.groups, view.locks, hub.clients.snapshot(hub.now)) == ((), (), ())
    registry: Any = hub.registry
    assert not any((registry._heartbeats._last, registry._heartbeats._bytes, registry.members._tombstones,
                    registry._closing, registry._locks._owned, registry._locks._groups, registry._notices._due,
                    hub.clients._connections))  # fmt: skip
