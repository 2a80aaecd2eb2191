"""Brokers at the hub's master: who may register, what they have, and what groups are told of it."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.deployed import BrokerClient, Defaults, TopicText, checksum
from dataproxy.wire.tubemq.texts import Broker, Subscription
from tests.support.mastercalls import BROKER, WALL_MS, Cluster

SECOND = Broker(2, "10.0.0.2", 8123)
HUB = Broker(3, "10.0.0.3", 8124)


def cluster(**more: Any) -> Cluster:
    """Return a master that has broker 1 in its own process, and lets the hub 3 come."""
    return Cluster(admit=lambda broker: broker == HUB, **more)


def topics(**partitions: int) -> list[str]:
    """Return what a broker reports."""
    return [str(TopicText(name, n)) for name, n in partitions.items()]


def register(at: Cluster, broker: Broker = HUB, number: int = 1, texts: Any = (), **more: Any) -> Any:
    """Register a broker."""
    return at.call(
        messages.RegisterRequestB2M(
            clientId=f"{broker}:2.4.0", brokerOnline=True, enableTls=False, readStatusRpt=0, writeStatusRpt=0,
            curBrokerConfId=number, confCheckSumId=0, brokerDefaultConfInfo=" ", brokerTopicSetConfInfo=texts, **more,
        )
    )  # fmt: skip


def beat(at: Cluster, broker: Broker = HUB, number: int = 1, texts: Any = None, **more: Any) -> Any:
    """Send a broker's heartbeat, with what it has unless that is None."""
    fields = {"brokerDefaultConfInfo": " ", "brokerTopicSetConfInfo": texts} if texts is not None else {}
    return at.call(
        messages.HeartRequestB2M(
            brokerId=str(broker.id), brokerOnline=True, readStatusRpt=0, writeStatusRpt=0, curBrokerConfId=number,
            confCheckSumId=0, takeConfInfo=texts is not None, takeRemovedTopicInfo=False, **fields, **more,
        )
    )  # fmt: skip


def parts(at: Cluster, topic: str) -> list[str]:
    """Return the keys of the partitions that can be read."""
    return [one.key for one in at.layout.partitions({topic})]


def test_a_hub_says_what_it_has() -> None:
    at = cluster()
    answer = register(at, texts=topics(t=2, u=1))
    assert (answer.success, answer.errCode, answer.takeConfInfo) == (True, 200, False)
    assert (answer.stopRead, answer.stopWrite, answer.authorizedInfo.visitAuthorizedToken) == (False, False, 1)
    assert answer.brokerAuthorizedInfo.visitAuthorizedToken == "1"
    assert parts(at, "t") == ["1:t:0", "1:t:1", "1:t:2", "1:t:3", "3:t:0", "3:t:1"]
    assert parts(at, "u") == ["3:u:0"]
    assert not beat(at).needReportData
    assert beat(at, number=2).needReportData
    assert not beat(at, number=2, texts=topics(u=3)).needReportData
    assert parts(at, "u") == ["3:u:0", "3:u:1", "3:u:2"]
    assert parts(at, "t") == ["1:t:0", "1:t:1", "1:t:2", "1:t:3"]


def test_a_broker_that_is_declared_has_what_it_reports_of_that() -> None:
    at = cluster()
    at.master.brokers.declare(SECOND, {"t": TopicAt(3), "v": TopicAt(2, publish=False)})
    assert (parts(at, "v"), at.layout.missing({"v"})) == ([], [])
    answer = register(at, SECOND, number=-1)
    assert answer.takeConfInfo
    assert [TopicText.read(text, Defaults()).topic for text in answer.brokerTopicSetConfInfo] == ["t", "v"]
    assert answer.confCheckSumId == checksum(answer.brokerDefaultConfInfo, list(answer.brokerTopicSetConfInfo))
    assert parts(at, "v") == []
    number = answer.curBrokerConfId
    answer = beat(at, SECOND, number)
    assert (answer.needReportData, answer.takeConfInfo) == (True, False)
    answer = beat(at, SECOND, number, [*topics(t=3, v=2), "w:1:true:true: : : : :1:0: : : : "])
    assert not answer.needReportData
    assert parts(at, "v") == ["2:v:0", "2:v:1"]
    assert (at.layout.published("v"), at.layout.missing({"w"})) == (None, ["w"])
    at.master.brokers.declare(SECOND, {"t": TopicAt(3)})
    answer = beat(at, SECOND, number)
    assert answer.takeConfInfo
    assert answer.curBrokerConfId > number
    assert not answer.needReportData
    assert parts(at, "v") == ["2:v:0", "2:v:1"]  # until it says that it has the new one
    beat(at, SECOND, answer.curBrokerConfId, topics(t=3))
    assert parts(at, "v") == []


@pytest.mark.parametrize(
    ("broker", "text"),
    [(Broker(4, "10.0.0.4", 8123), "create first"), (Broker(3, "10.0.0.9", 8124), "create first"),
     (SECOND._replace(port=1), "is declared at 10.0.0.2:8123, not at 10.0.0.2:1"), (BROKER, "create first")],
)  # fmt: skip
def test_others_may_not_register(broker: Broker, text: str) -> None:
    at = cluster()
    at.master.brokers.declare(SECOND, {})
    answer = register(at, broker, texts=topics(t=1))
    assert (answer.success, answer.errCode) == (False, 400)
    assert text in answer.errMsg
    assert parts(at, "t") == ["1:t:0", "1:t:1", "1:t:2", "1:t:3"]
    assert (beat(at, broker).errCode, at.master.used_bytes) == (411, 0)


@pytest.mark.parametrize("client", ["", "3", "x:h:1:v", "3:10.0.0.3", "3::8124:v", "-3:10.0.0.3:8124:v"])
def test_ids_that_are_none(client: str) -> None:
    at = cluster()
    request = messages.RegisterRequestB2M(
        clientId=client, brokerOnline=True, enableTls=False, readStatusRpt=0, writeStatusRpt=0, curBrokerConfId=1,
        confCheckSumId=0, brokerDefaultConfInfo=" ",
    )  # fmt: skip
    assert at.call(request).errCode == 400
    for number in ("", "x", "-1", "9" * 30, "3"):
        fields = {"readStatusRpt": 0, "writeStatusRpt": 0, "curBrokerConfId": 1, "confCheckSumId": 0}
        flags = {"brokerOnline": True, "takeConfInfo": False, "takeRemovedTopicInfo": False}
        assert at.call(messages.HeartRequestB2M(brokerId=number, **fields, **flags)).errCode == 411
        assert at.call(messages.CloseRequestB2M(brokerId=number)).errCode == 200


@pytest.mark.parametrize(
    "text", ["t", "t:x:true:true: : : : :1:0", "t:1:maybe:true: : : : :1:0", "t:99999:true:true: : : : :9:0"]
)
def test_reports_that_are_none_change_nothing(text: str) -> None:
    at = cluster()
    assert register(at, texts=[text]).errCode == 400
    register(at, texts=topics(u=1))
    assert beat(at, number=2, texts=[text]).errCode == 400
    assert parts(at, "u") == ["3:u:0"]


def test_a_silent_broker_is_off_line_and_comes_back() -> None:
    at = cluster(broker_s=25.0)
    register(at, texts=topics(u=2))
    at.wait(24)
    assert beat(at).errCode == 200
    at.wait(26)
    assert (parts(at, "u"), at.layout.missing({"u"}), at.master.used_bytes) == ([], [], 0)
    answer = beat(at)
    assert (answer.success, answer.errCode) == (False, 411)
    register(at, texts=topics(u=2))
    assert parts(at, "u") == ["3:u:0", "3:u:1"]
    assert at.call(messages.CloseRequestB2M(brokerId="3")).errCode == 200
    assert (parts(at, "u"), at.master.used_bytes) == ([], 0)


def test_a_broker_is_known_by_its_last_address() -> None:
    moved = HUB._replace(port=9000)
    at = Cluster(admit=lambda broker: broker in (HUB, moved))
    register(at, texts=topics(u=1))
    register(at, moved, texts=topics(u=1))
    assert [str(one.broker) for one in at.layout.partitions({"u"})] == ["3:10.0.0.3:9000"]
    at.call(messages.CloseRequestB2M(brokerId="3"))
    assert at.master.used_bytes == 0


def test_groups_follow_brokers() -> None:
    at = cluster(soon_s=0.5, balance_s=1.0)
    at.register("a", topics=("t",))
    at.wait(1)
    event = at.beat("a").event
    assert len(event.subscribeInfo) == 4
    at.report("a", range(4), event)
    register(at, texts=topics(t=2))
    at.wait(1)
    event = at.beat("a").event
    assert {Subscription.read(text).partition.key for text in event.subscribeInfo} == {"3:t:0", "3:t:1"}


def test_a_new_master_has_the_brokers_of_the_last_one_from_its_first_moment() -> None:
    at = cluster(broker_s=25.0)
    register(at, texts=topics(u=2))
    found = at.master.brokers.online()
    assert found == [(HUB, {"u": TopicAt(2)})]
    new = cluster(broker_s=25.0)
    for broker, there in found:
        new.master.brokers.expect(broker, there, new.now)
    assert parts(new, "u") == ["3:u:0", "3:u:1"]
    version = new.layout.version
    assert beat(new).errCode == 411  # it has to say again what it has
    assert register(new, texts=topics(u=2)).errCode == 200
    assert new.layout.version == version  # for groups nothing has changed
    new.master.brokers.expect(SECOND, {"u": TopicAt(1)}, new.now)
    new.wait(20)
    beat(new)
    new.wait(10)
    assert parts(new, "u") == ["3:u:0", "3:u:1"]


def test_flow_rules_of_the_cluster_are_told_once() -> None:
    at = cluster()
    rules = '[{"type":0,"rule":[{"start":"00:00","end":"24:00","dltInM":1024,"limitInM":10,"freqInMs":1000}]}]'
    at.master.rules.set(rules)
    answer = register(at, flowCheckId=-2)
    assert answer.flowControlInfo == rules
    assert beat(at, flowCheckId=answer.flowCheckId).flowControlInfo == " "


def test_the_largest_body_is_told() -> None:
    at = cluster()
    answer = register(at, clsConfig={"configId": -2})
    assert (answer.clsConfig.configId, answer.clsConfig.maxMsgSize) == (1, 1 << 20)
    assert not beat(at, clsConfig={"configId": 1}).clsConfig.HasField("maxMsgSize")


def proof(user: str, password: str) -> dict[str, Any]:
    """Return the field authInfo of a request."""
    one = Signature.make(user, password, WALL_MS, 7)
    fields = {"userName": user, "timestamp": WALL_MS, "nonce": 7, "othParams": "", "signature": one.signature}
    return {"authInfo": fields}


def test_brokers_have_users_of_their_own() -> None:
    at = cluster(access=Access({"hub": "secret", "reader": "p"}, brokers={"hub"}))
    assert register(at).errCode == 415
    assert register(at, authInfo=proof("hub", "wrong")).errCode == 415
    assert "not one as whom brokers register" in register(at, authInfo=proof("reader", "p")).errMsg
    answer = register(at, authInfo=proof("hub", "secret"))
    assert answer.errCode == 200
    assert beat(at).errCode == 415
    assert beat(at, authInfo={"authorizedToken": answer.authorizedInfo.authAuthorizedToken}).errCode == 200
    assert beat(at, authInfo=proof("hub", "secret")).errCode == 200
    assert beat(at, SECOND, authInfo={"authorizedToken": answer.authorizedInfo.authAuthorizedToken}).errCode == 411


def test_reports_are_bounded() -> None:
    at = cluster(memory_bytes=100_000)
    register(at, texts=topics(u=1))
    answer = register(at, texts=topics(**{f"t{i}": 1 for i in range(500)}))
    assert answer.errCode == 500
    assert parts(at, "u") == ["3:u:0"]
    at.call(messages.CloseRequestB2M(brokerId="3"))
    assert at.master.used_bytes == 0


def test_texts() -> None:
    assert BrokerClient.read("1:10.0.0.1:8123:2.4.0") == BrokerClient(Broker(1, "10.0.0.1", 8123), "2.4.0")
    assert BrokerClient.read("1:10.0.0.1:8123") == BrokerClient(Broker(1, "10.0.0.1", 8123), "")
    assert str(BrokerClient(HUB, "1")) == "3:10.0.0.3:8124:1"
    usual = Defaults(3, True, False, 2)
    assert Defaults.read(str(usual)) == usual
    assert Defaults.read(" ") == Defaults()
    assert TopicText.read("t: : : : : : : : : ", usual) == TopicText("t", 3, 2, True, False, True)
    assert TopicText.read(str(TopicText("t", 1, valid=False)), usual) == TopicText("t", 1, valid=False)
    for text in ("1:true", "x:true:true:1:1:a:b", "1:1:true:1:1:a:b"):
        with pytest.raises(ValueError, match="is no"):
            Defaults.read(text)
