"""The hub's master and groups whose members choose their partitions themselves."""

from __future__ import annotations

from typing import Any

from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker
from tests.support.mastercalls import Cluster

OTHER = Broker(2, "10.0.0.2", 8200)


def register(cluster: Cluster, client: str, node: int = 0, count: int = 2, **more: Any) -> Any:
    """Register a member."""
    fields = {
        "clientId": client, "groupName": "g", "hostName": "h", "sourceCount": count, "nodeId": node,
        "topicList": ["t"], **more,
    }  # fmt: skip
    return cluster.call(messages.RegisterRequestC2MV2(**fields))


def beat(cluster: Cluster, client: str, **seen: Any) -> Any:
    """Send a heartbeat."""
    info = {"brokerConfigId": -2, "topicMetaInfoId": -2, **seen}
    return cluster.call(messages.HeartRequestC2MV2(clientId=client, groupName="g", subRepInfo=info))


def ask(cluster: Cluster, client: str, version: int = -2) -> Any:
    """Ask for metadata."""
    return cluster.call(
        messages.GetPartMetaRequestC2M(clientId=client, groupName="g", brokerConfigId=version, topicMetaInfoId=version)
    )


def test_a_member_is_told_what_there_is() -> None:
    cluster = Cluster({"t": 3})
    cluster.layout.put(OTHER, {"t": TopicAt(1, stores=2, subscribe=False)})
    answer = register(cluster, "c1")
    assert (answer.errCode, answer.errMsg) == (200, "OK!")
    assert list(answer.brokerConfigList) == ["1:10.0.0.1:8123", "2:10.0.0.2:8200"]
    assert answer.authorizedInfo.visitAuthorizedToken == 1
    assert (answer.opsTaskInfo.defFlowCheckId, answer.opsTaskInfo.qryPriorityId) == (-2, -2)
    answer = ask(cluster, "c1")
    assert list(answer.topicMetaInfoList) == ["t#1:1:3:1,2:2:1:0"]
    version = answer.topicMetaInfoId
    answer = ask(cluster, "c1", version)
    assert (answer.errCode, list(answer.topicMetaInfoList), list(answer.brokerConfigList)) == (200, [], [])
    cluster.layout.set_online(2, online=False)
    answer = beat(cluster, "c1", brokerConfigId=version, topicMetaInfoId=version)
    assert list(answer.topicMetaInfoList) == ["t#1:1:3:1"]
    assert list(answer.brokerConfigList) == ["1:10.0.0.1:8123"]


def test_numbers_of_members_are_their_own() -> None:
    cluster = Cluster()
    assert register(cluster, "c1", 0).errCode == 200
    assert register(cluster, "c2", 0).errCode == 430
    assert register(cluster, "c1", 0).errCode == 200, "it comes back"
    assert register(cluster, "c2", 2).errCode == 400
    assert register(cluster, "c2", -1).errCode == 400
    assert register(cluster, "c2", 1, 3).errCode == 429
    assert register(cluster, "c2", 1, topicList=["nope"]).errCode == 431
    assert register(cluster, "c2", 1, topicCondition=["t#a"]).errCode == 426
    assert register(cluster, "c2", 1).errCode == 200


def test_a_group_is_divided_or_chosen_and_not_both() -> None:
    cluster = Cluster()
    register(cluster, "c1")
    assert cluster.register("c2").errCode == 424
    cluster.close("c1")
    assert cluster.register("c2").errCode == 200
    assert register(cluster, "c1").errCode == 424


def test_a_report_is_kept_and_charged() -> None:
    cluster = Cluster()
    register(cluster, "c1")
    before = cluster.master.used_bytes
    beat(cluster, "c1", reportSubInfo=True, partSubInfo=["t#1:0,1:1"])
    assert cluster.master.choosers.held("g", "c1") == ("t#1:0,1:1",)
    assert cluster.master.used_bytes > before
    beat(cluster, "c1")
    assert cluster.master.choosers.held("g", "c1") == ("t#1:0,1:1",)
    assert beat(cluster, "c1", reportSubInfo=True, partSubInfo=["t#1:0"] * 1025).errCode == 400
    beat(cluster, "c1", reportSubInfo=True)
    assert (cluster.master.choosers.held("g", "c1"), cluster.master.used_bytes) == ((), before)
    cluster.close("c1")
    assert cluster.master.used_bytes == 0


def test_only_heartbeats_show_that_a_member_lives() -> None:
    cluster = Cluster(consumer_s=30.0)
    register(cluster, "c1")
    cluster.wait(29)
    assert ask(cluster, "c1").errCode == 200
    assert beat(cluster, "c1").errCode == 200
    cluster.wait(31)
    assert beat(cluster, "c1").errCode == 411
    assert ask(cluster, "c1").errCode == 411
    assert cluster.master.used_bytes == 0
