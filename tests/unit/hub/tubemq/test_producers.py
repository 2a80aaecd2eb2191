"""The hub's master and producers: who they are, and where topics take messages."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.hub.clients import Client, Identity
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker
from tests.support.mastercalls import BROKER, Cluster

OTHER = Broker(2, "10.0.0.2", 8200)


def register(cluster: Cluster, client: str = "p1", **more: Any) -> Any:
    """Register a producer."""
    fields = {"clientId": client, "hostName": "h", "brokerCheckSum": -1, "appdConfig": {"configId": -2}, **more}
    return cluster.call(messages.RegisterRequestP2M(**fields))


def beat(cluster: Cluster, client: str = "p1", topics: Any = ("t",), version: int = -1, **more: Any) -> Any:
    """Send a producer's heartbeat."""
    fields = {"clientId": client, "hostName": "h", "brokerCheckSum": version, "topicList": topics, **more}
    return cluster.call(messages.HeartRequestP2M(**fields))


def test_a_producer_registers_and_is_told_the_brokers() -> None:
    cluster = Cluster()
    answer = register(cluster)
    assert (answer.success, answer.errCode, answer.errMsg) == (True, 200, "OK!")
    assert (list(answer.brokerInfos), answer.brokerCheckSum) == (["1:10.0.0.1:8123"], cluster.layout.version)
    assert (answer.appdConfig.configId, answer.appdConfig.maxMsgSize) == (1, 1 << 20)
    assert answer.authorizedInfo.visitAuthorizedToken == 1


def test_a_heartbeat_tells_where_topics_take_messages() -> None:
    cluster = Cluster({"t": 3, "u": 1})
    cluster.layout.put(OTHER, {"t": TopicAt(2, stores=4), "u": TopicAt(1, publish=False)})
    version = register(cluster).brokerCheckSum
    answer = beat(cluster, topics=["u", "t", "t", "nope"], version=version)
    assert list(answer.topicInfos) == ["t#1:3:1,2:2:4#", "u#1:1:1#"]
    assert list(answer.brokerInfos) == []
    cluster.layout.set_online(2, online=False)
    answer = beat(cluster, topics=["t"], version=version)
    assert list(answer.topicInfos) == ["t#1:3:1#"]
    assert list(answer.brokerInfos) == ["1:10.0.0.1:8123"]
    assert answer.brokerCheckSum > version
    assert not beat(cluster, topics=[], version=answer.brokerCheckSum).topicInfos


def test_the_largest_body_is_told_to_who_does_not_know_it() -> None:
    cluster = Cluster()
    register(cluster)
    assert not beat(cluster).HasField("appdConfig")
    assert beat(cluster, appdConfig={"configId": -2}).appdConfig.maxMsgSize == 1 << 20
    assert not beat(cluster, appdConfig={"configId": 1}).appdConfig.HasField("maxMsgSize")


def test_who_is_not_known_is_told_so() -> None:
    cluster = Cluster(producer_s=45.0)
    answer = beat(cluster)
    assert (answer.success, answer.errCode, answer.brokerCheckSum) == (False, 411, -1)
    register(cluster)
    cluster.wait(44)
    assert beat(cluster).errCode == 200
    cluster.wait(46)
    assert beat(cluster).errCode == 411
    assert cluster.master.used_bytes == 0


def test_the_end_of_a_producer_is_taken_from_everybody() -> None:
    cluster = Cluster()
    register(cluster)
    register(cluster)
    for client in ("p1", "p1", "never_there"):
        assert cluster.call(messages.CloseRequestP2M(clientId=client)).errCode == 200
    assert (cluster.clients.count("producer"), cluster.master.used_bytes) == (0, 0)


@pytest.mark.parametrize("more", [{"clientId": ""}, {"clientId": "a b"}, {"hostName": " "}, {"hostName": "h" * 257}])
def test_a_bad_name_is_refused(more: dict[str, Any]) -> None:
    cluster = Cluster()
    assert register(cluster, **more).errCode == 400 if "clientId" not in more else True
    fields = {"clientId": "p1", "hostName": "h", "brokerCheckSum": -1, **more}
    assert cluster.call(messages.RegisterRequestP2M(**fields)).errCode == 400
    assert cluster.clients.count("producer") == 0


def test_producers_beyond_the_room_are_refused() -> None:
    cluster = Cluster(memory_bytes=20 << 10)
    codes = [register(cluster, f"p{i}").errCode for i in range(40)]
    assert codes == [200] * 20 + [500] * 20


# --- the layout


def test_a_layout_changes_its_version_only_with_what_it_has() -> None:
    layout = Layout(5)
    layout.put(BROKER, {"t": TopicAt(2)})
    assert layout.version == 6
    layout.put(BROKER, {"t": TopicAt(2)})
    layout.set_online(1, online=True)
    layout.set_online(9, online=True)
    layout.remove(9)
    assert layout.version == 6
    layout.remove(1)
    assert (layout.version, layout.brokers(), layout.missing({"t"})) == (7, [], ["t"])


def test_a_layout_has_no_topic_that_texts_cannot_name() -> None:
    layout = Layout()
    layout.put(BROKER, {"t": TopicAt(1), "a#b": TopicAt(1), "a:b": TopicAt(1), "": TopicAt(1), "a b": TopicAt(1)})
    assert layout.missing({"t", "a#b", "a:b", "", "a b"}) == ["", "a b", "a#b", "a:b"]


def test_partitions_are_in_the_order_of_topic_broker_and_number() -> None:
    layout = Layout()
    layout.put(OTHER, {"t": TopicAt(1), "s": TopicAt(1, subscribe=False)})
    layout.put(BROKER, {"t": TopicAt(2, stores=2), "s": TopicAt(1)})
    keys = [one.key for one in layout.partitions({"t", "s"})]
    assert keys == ["1:s:0", "1:t:0", "1:t:1", "1:t:10000", "1:t:10001", "2:t:0"]
    assert layout.partitions({"t", "s"}) == sorted(
        layout.partitions({"t", "s"}), key=lambda one: (one.topic, one.broker.id, one.id)
    )
    assert layout.metadata("s") == "s#1:1:1:1,2:1:1:0"
    layout.set_online(1, online=False)
    assert [one.key for one in layout.partitions({"t"})] == ["2:t:0"]
    assert layout.missing({"t", "s"}) == []


def test_clients_of_tubemq_are_in_the_registry_of_all_protocols() -> None:
    cluster = Cluster()
    register(cluster)
    cluster.call(
        messages.RegisterRequestC2M(clientId="c1", hostName="h", groupName="g", topicList=["t"], requireBound=False)
    )
    cluster.now += 2.0
    found = cluster.clients.snapshot(cluster.now)
    assert [one.identity for one in found] == [
        Identity("tubemq", "producer", "p1", address="10.0.2.1"),
        Identity("tubemq", "consumer", "c1", "g", "10.0.2.1"),
    ]
    assert isinstance(found[0], Client)
    assert [one.silent_s for one in found] == [2.0, 2.0]
