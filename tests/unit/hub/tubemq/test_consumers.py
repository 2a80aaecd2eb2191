"""The hub's master and groups whose partitions it divides: checks in their order, events, time limits."""

from __future__ import annotations

import logging
import random
from collections import Counter
from typing import Any

import pytest

from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import RefusedError
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker
from tests.support.mastercalls import WALL_MS, Cluster, given, texts

OTHER = Broker(2, "10.0.0.2", 8123)


# --- registration


def test_a_member_is_taken() -> None:
    cluster = Cluster()
    answer = cluster.register("c1", defFlowCheckId=-2, groupFlowCheckId=-2)
    assert (answer.success, answer.errCode, answer.errMsg, answer.notAllocated) == (True, 200, "OK!", True)
    assert (answer.defFlowCheckId, answer.groupFlowCheckId, answer.qryPriorityId, answer.ssdStoreId) == (-2,) * 4
    assert (answer.defFlowControlInfo, answer.groupFlowControlInfo) == (" ", " ")
    assert answer.authorizedInfo.visitAuthorizedToken == 1


BAD: list[tuple[int, str, dict[str, Any]]] = [
    (400, "clientId", {"clientId": " "}),
    (400, "clientId", {"clientId": "a@b"}),
    (400, "clientId", {"clientId": "x" * 1025}),
    (400, "hostName", {"hostName": ""}),
    (400, "hostName", {"hostName": "h" * 257}),
    (400, "groupName", {"groupName": ""}),
    (400, "groupName", {"groupName": "1g"}),
    (400, "groupName", {"groupName": "a#b"}),
    (400, "topicList", {"topicList": []}),
    (400, "topicList", {"topicList": [" "]}),
    (400, "1025 topics", {"topicList": [f"t{i}" for i in range(1025)]}),
    (400, "no name of a topic", {"topicList": ["a#b"]}),
    (400, "no name of a topic", {"topicList": ["x" * 256]}),
    (431, "nope", {"topicList": ["t", "nope"]}),
    (400, "expected 'topic#item", {"topicCondition": ["no separator"]}),
    (400, "not subscribed", {"topicCondition": ["u#a"]}),
    (400, "filter item", {"topicCondition": ["t#a b"]}),
    (400, "filter item", {"topicCondition": ["t#" + "x" * 257]}),
    (400, "501 filter items", {"topicCondition": ["t#" + ",".join(f"i{n}" for n in range(501))]}),
    (400, "sessionKey", {"requireBound": True, "totalCount": 1}),
    (400, "totalSourceCount", {"requireBound": True, "sessionKey": "k"}),
    (400, "requiredPartition", {"requireBound": True, "sessionKey": "k", "totalCount": 1, "requiredPartition": "x=y"}),
    (400, "no subscription", {"subscribeInfo": ["no subscription"]}),
]


@pytest.mark.parametrize(("code", "text", "more"), BAD)
def test_a_bad_registration_is_refused_and_leaves_nothing(code: int, text: str, more: dict[str, Any]) -> None:
    cluster = Cluster({"t": 4, "u": 1})
    answer = cluster.register(**{"client": "c1", **_named(more)})
    assert (answer.success, answer.errCode) == (False, code)
    assert text in answer.errMsg
    assert len(answer.errMsg) < 1000
    assert cluster.master.consumers.groups() == []
    assert cluster.clients.count("consumer") == 0
    assert cluster.master.used_bytes == 0


def _named(more: dict[str, Any]) -> dict[str, Any]:
    names = {"clientId": "client", "groupName": "group", "topicList": "topics"}
    return {names.get(key, key): value for key, value in more.items()}


def test_what_is_wrong_is_told_in_the_order_of_the_checks() -> None:
    access = Access({"u": "p"}, groups={"t": {"other"}}, items={("g", "t"): {"a"}})
    cluster = Cluster({"t": 1}, access=access)
    fields: dict[str, Any] = {
        "client": "", "topics": ["t", "nope"], "topicCondition": ["t#b c"], "requireBound": True, "authInfo": {},
    }  # fmt: skip
    fixes: list[tuple[int, dict[str, Any]]] = [
        (415, {"authInfo": proof("u", "p")}),
        (400, {"client": "c1"}),
        (431, {"topics": ["t"]}),
        (400, {"topicCondition": ["t#b"]}),
        (400, {"sessionKey": "k"}),
        (400, {"totalCount": 1}),
        (450, {"group": "other"}),
    ]
    for code, fix in fixes:
        assert cluster.register(**fields).errCode == code
        fields.update(fix)
    assert cluster.register(**fields).errCode == 200
    fields["group"] = "g"
    cluster.master._access._groups.clear()
    assert cluster.register(**fields).errCode == 455


def proof(user: str, password: str, time_ms: int = WALL_MS) -> dict[str, Any]:
    """Return a user's proof, as a field of a request."""
    from dataproxy.wire.tubemq.credentials import Signature

    made = Signature.make(user, password, time_ms, 5)
    return {
        "authInfo": {
            "userName": user, "timestamp": time_ms, "nonce": 5, "othParams": "", "signature": made.signature,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "first", "second"),
    [
        (424, {}, {"requireBound": True, "sessionKey": "k", "totalCount": 2}),
        (425, {}, {"topics": ["u"]}),
        (425, {}, {"topics": ["t", "u"]}),
        (426, {}, {"topicCondition": ["t#a"]}),
        (426, {"topicCondition": ["t#a"]}, {"topicCondition": ["t#b"]}),
        (427, {"sessionKey": "k"}, {"sessionKey": "l"}),
        (428, {"sessionKey": "k"}, {"sessionKey": "k", "selectBig": False}),
        (429, {"sessionKey": "k"}, {"sessionKey": "k", "totalCount": 3}),
    ],
)
def test_a_member_must_ask_for_what_its_group_asks(code: int, first: dict[str, Any], second: dict[str, Any]) -> None:
    cluster = Cluster({"t": 4, "u": 1})

    def filled(one: dict[str, Any]) -> dict[str, Any]:
        return {"requireBound": True, "totalCount": 2, **one} if "sessionKey" in one else one

    assert cluster.register("c1", **filled(first)).errCode == 200
    assert cluster.register("c2", **filled(second)).errCode == code
    assert cluster.register("c2", **filled(first)).errCode == 200
    for client in ("c1", "c2"):
        cluster.close(client)
    assert cluster.register("c2", **filled(second)).errCode == 200, "the record goes with the last member"


def test_the_order_of_topics_and_a_condition_without_items_make_no_difference() -> None:
    cluster = Cluster({"t": 4, "u": 1})
    assert cluster.register("c1", topics=["t", "u", "t"], topicCondition=["t#a,b", "u#"]).errCode == 200
    assert cluster.register("c2", topics=["u", "t"], topicCondition=["t#b,a"]).errCode == 200


def test_a_bound_group_of_too_few_members_for_the_brokers_is_refused() -> None:
    cluster = Cluster(brokers_a_member=1)
    cluster.layout.put(OTHER, {"t": TopicAt(1)})
    bound = {"requireBound": True, "sessionKey": "k"}
    answer = cluster.register("c1", totalCount=1, **bound)
    assert (answer.errCode, "at least 2" in answer.errMsg) == (400, True)
    assert cluster.register("c1", totalCount=2, **bound).errCode == 200


def test_a_group_with_too_few_members_for_the_brokers_gets_nothing() -> None:
    cluster = Cluster(brokers_a_member=1)
    cluster.layout.put(OTHER, {"t": TopicAt(1)})
    cluster.register("c1")
    cluster.wait(1)
    assert not cluster.beat("c1").HasField("event")
    cluster.register("c2")
    cluster.wait(1)
    assert cluster.beat("c1").event.opType == 10


# --- heartbeats and events


def test_who_is_not_known_is_told_so() -> None:
    cluster = Cluster()
    answer = cluster.beat("c1")
    assert (answer.success, answer.errCode, answer.errMsg) == (False, 411, "Not found groupName g in holder!")
    cluster.register("c1")
    assert cluster.beat("c2").errCode == 411
    assert cluster.close("c2").errCode == 200
    assert cluster.close("c1", "other").errCode == 200
    assert cluster.beat("c1").errCode == 200


def test_a_group_from_its_first_member_to_its_last() -> None:
    cluster = Cluster({"t": 4})
    cluster.register("c1")
    answer = cluster.beat("c1")
    assert not answer.HasField("event") and answer.notAllocated
    cluster.wait(0.5)
    event = cluster.beat("c1").event
    assert (event.opType, event.rebalanceId, event.HasField("status")) == (10, 1, True)
    assert list(event.subscribeInfo) == texts("c1", "g", "t", range(4))
    assert not cluster.beat("c1").HasField("event"), "an event is told once"
    answer = cluster.report("c1", range(4), event)
    assert not answer.HasField("event") and not answer.notAllocated

    cluster.register("c2")
    cluster.wait(0.5)
    assert not cluster.beat("c2").HasField("event"), "nothing is given while something is to be taken"
    taken = cluster.beat("c1").event
    assert (taken.opType, given(taken_answer(taken))) == (20, [2, 3])
    assert not cluster.beat("c2").HasField("event")
    cluster.report("c1", [0, 1], taken)
    found = cluster.beat("c2").event
    assert (found.opType, given(taken_answer(found))) == (10, [2, 3])
    cluster.report("c2", [2, 3], found)

    cluster.close("c1")
    cluster.wait(0.5)
    assert given(cluster.beat("c2")) == [0, 1]
    cluster.close("c2")
    assert cluster.master.consumers.groups() == []
    assert cluster.master.used_bytes == 0


def taken_answer(event: Any) -> Any:
    """Return an answer with an event."""
    return messages.HeartResponseM2C(success=True, errCode=200, errMsg="", event=event)


def settle(cluster: Cluster, held: dict[str, list[int]], rounds: int = 20) -> int:
    """Play members that do what they are told until nothing is told any more; return the number of events."""
    n = 0
    results: dict[str, Any] = {}
    for _ in range(rounds):
        cluster.wait(1)
        for client in sorted(held):
            event = results.pop(client, None)
            answer = cluster.report(client, held[client], event)
            if answer.HasField("event"):
                n += 1
                numbers = given(answer)
                if answer.event.opType in (2, 20):
                    held[client] = [one for one in held[client] if one not in numbers]
                else:
                    assert not any(set(numbers) & set(mine) for mine in held.values()), "given before it was taken"
                    held[client] = sorted(held[client] + numbers)
                results[client] = answer.event
    return n


def test_moves_that_swap_partitions_are_paired_events() -> None:
    cluster = Cluster({"t": 4})
    consumers = cluster.master.consumers
    held = {"c1": [0, 1], "c2": [2, 3]}
    for client, numbers in held.items():
        cluster.register(client, subscribeInfo=texts(client, "g", "t", numbers))
    cluster.wait(1)
    assert not any(cluster.beat(client).HasField("event") for client in held)
    consumers.move("g", "t", "1:t:0", "c2", cluster.now)
    consumers.move("g", "t", "1:t:2", "c1", cluster.now)
    cluster.wait(1)
    events = {client: cluster.beat(client).event for client in held}
    assert [(one.opType, given(taken_answer(one))) for one in events.values()] == [(2, [0]), (2, [2])]
    assert not cluster.report("c1", [1], events["c1"]).HasField("event"), "the other one has still to give"
    second = cluster.report("c2", [3], events["c2"]).event
    assert (second.opType, given(taken_answer(second))) == (1, [0])
    assert given(cluster.beat("c1")) == [2]


def test_what_cannot_be_moved() -> None:
    cluster = Cluster({"t": 1, "u": 1})
    cluster.register("c1")
    move = cluster.master.consumers.move
    for code, group, topic, key, client in (
        (411, "h", "t", "1:t:0", "c1"),
        (411, "g", "t", "1:t:0", "c2"),
        (400, "g", "t", "1:t:1", "c1"),
        (400, "g", "u", "1:u:0", "c1"),
    ):
        with pytest.raises(RefusedError) as caught:
            move(group, topic, key, client, cluster.now)
        assert caught.value.code == code


def test_members_come_and_go_until_shares_are_even() -> None:
    cluster = Cluster({"t": 10})
    held: dict[str, list[int]] = {}
    for client in ("c1", "c2", "c3"):
        cluster.register(client)
        held[client] = []
        settle(cluster, held)
        counts = [len(numbers) for numbers in held.values()]
        assert sum(counts) == 10 and max(counts) - min(counts) <= 1
    cluster.close("c2")
    del held["c2"]
    settle(cluster, held)
    assert sorted(len(numbers) for numbers in held.values()) == [5, 5]
    assert settle(cluster, held) == 0, "then nothing moves any more"


def test_a_report_wins_over_what_the_master_thinks() -> None:
    cluster = Cluster({"t": 4})
    held: dict[str, list[int]] = {"c1": []}
    cluster.register("c1")
    settle(cluster, held)
    assert held == {"c1": [0, 1, 2, 3]}
    held["c1"] = [0, 1]  # the broker did not let it have the others
    cluster.report("c1", [0, 1])
    assert cluster.held("c1") == [0, 1]
    settle(cluster, held)
    assert held == {"c1": [0, 1, 2, 3]}


def test_what_two_members_hold_is_taken_from_one() -> None:
    cluster = Cluster({"t": 2})
    held = {"c1": [0], "c2": [0, 1]}
    for client, numbers in held.items():
        cluster.register(client, subscribeInfo=texts(client, "g", "t", numbers))
    cluster.wait(1)
    assert not cluster.beat("c1").HasField("event")
    answer = cluster.beat("c2")
    assert (answer.event.opType, given(answer)) == (20, [0])


def test_partitions_that_are_not_there_are_taken_back() -> None:
    cluster = Cluster({"t": 2})
    cluster.layout.put(OTHER, {"t": TopicAt(1)})
    foreign = texts("c1", "g", "t", [9]) + texts("c1", "g", "secret", [0])
    cluster.register("c1", subscribeInfo=foreign + texts("c1", "g", "t", [0, 1]) + texts("c1", "g", "t", [0], OTHER))
    cluster.wait(1)
    answer = cluster.beat("c1")
    assert answer.event.opType == 20
    assert sorted(answer.event.subscribeInfo) == sorted(foreign)
    cluster.report("c1", [0, 1], answer.event)
    cluster.beat(
        "c1", reportSubscribeInfo=True, subscribeInfo=texts("c1", "g", "t", [0, 1]) + texts("c1", "g", "t", [0], OTHER)
    )
    cluster.layout.set_online(2, online=False)
    cluster.wait(1)
    cluster.wait(1)
    answer = cluster.beat("c1")
    assert (answer.event.opType, list(answer.event.subscribeInfo)) == (20, texts("c1", "g", "t", [0], OTHER))


def test_what_another_member_holds_by_now_is_not_given() -> None:
    cluster = Cluster({"t": 4})
    held: dict[str, list[int]] = {"c1": [0, 1, 2, 3]}
    cluster.register("c1", subscribeInfo=texts("c1", "g", "t", range(4)))
    cluster.register("c2")
    cluster.wait(1)
    assert given(cluster.beat("c1")) == [2, 3]
    # It registers anew in the middle of the event, and still holds all: the event is gone with its old record.
    cluster.register("c1", subscribeInfo=texts("c1", "g", "t", range(4)))
    assert not cluster.beat("c2").HasField("event")
    held["c2"] = []
    settle(cluster, held)
    assert held == {"c1": [0, 1], "c2": [2, 3]}


def test_an_event_that_is_not_answered_is_dropped_after_its_periods() -> None:
    cluster = Cluster({"t": 4}, balance_s=1.0, event_cycles=3, consumer_s=1000.0)
    cluster.register("c1")
    cluster.wait(1)
    assert cluster.beat("c1").HasField("event")
    for _ in range(3):
        cluster.wait(1)
        assert not cluster.beat("c1").HasField("event")
    cluster.wait(1)
    cluster.wait(1)
    answer = cluster.beat("c1")
    assert (answer.event.opType, given(answer), answer.event.rebalanceId) == (10, [0, 1, 2, 3], 2)


def test_a_result_without_an_event_changes_nothing() -> None:
    cluster = Cluster({"t": 2})
    cluster.register("c1")
    cluster.wait(1)
    old = messages.EventProto(rebalanceId=99, opType=10, status=2)
    answer = cluster.report("c1", [], old)  # of an event that another master gave
    assert given(answer) == [0, 1], "what was not told yet is not finished"
    assert not cluster.report("c1", [0, 1], answer.event).HasField("event")
    assert cluster.beat("c1", event=messages.EventProto(rebalanceId=0, opType=10)).errCode == 200


def test_who_is_silent_is_forgotten_and_its_partitions_are_given_away() -> None:
    cluster = Cluster({"t": 2}, consumer_s=30.0)
    held: dict[str, list[int]] = {"c1": [], "c2": []}
    for client in held:
        cluster.register(client)
    settle(cluster, held)
    for _ in range(31):
        cluster.wait(1)
        assert cluster.beat("c1").errCode == 200
    assert cluster.beat("c2").errCode == 411
    cluster.wait(1)
    assert given(cluster.beat("c1")) == held["c2"]
    cluster.wait(40)
    assert cluster.beat("c1").errCode == 411
    assert cluster.master.consumers.groups() == []
    assert cluster.master.used_bytes == 0


def test_a_thousand_dead_clients_end_with_one_scan() -> None:
    cluster = Cluster(consumer_s=30.0)
    for i in range(1000):
        assert cluster.register(f"c{i}", f"g{i % 100}").errCode == 200
    cluster.wait(31)
    assert (cluster.clients.count("consumer"), cluster.master.used_bytes) == (0, 0)


def test_two_clients_with_one_id_are_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    with caplog.at_level(logging.WARNING, "dataproxy.hub.tubemq"):
        cluster.register("c1")
        cluster.register("c1")
        assert caplog.records == [], "who registers anew is on the same host"
        cluster.register("c1", hostName="other")
    assert "two clients with one id" in caplog.text
    assert cluster.clients.count("consumer") == 1


# --- after the start of a master


def test_nothing_is_divided_while_members_may_still_come_back() -> None:
    cluster = Cluster({"t": 4}, first_balance_s=10.0)
    cluster.register("c1", notAllocated=False, subscribeInfo=texts("c1", "g", "t", [0, 1]))
    assert not cluster.beat("c1").notAllocated
    for _ in range(9):
        cluster.wait(1)
        assert not cluster.beat("c1").HasField("event")
    cluster.register("c2", subscribeInfo=texts("c2", "g", "t", [2, 3]))
    cluster.wait(5)
    assert not any(cluster.beat(client).HasField("event") for client in ("c1", "c2"))


def test_groups_that_nobody_had_seen_do_not_wait() -> None:
    cluster = Cluster({"t": 4}, first_balance_s=10.0, returning={"old"})
    cluster.register("c1", "old")
    cluster.register("c2", "new")
    cluster.wait(1)
    assert given(cluster.beat("c2", "new")) == [0, 1, 2, 3]
    assert not cluster.beat("c1", "old").HasField("event")
    cluster.wait(10)
    assert given(cluster.beat("c1", "old")) == [0, 1, 2, 3]


def test_the_first_member_of_a_group_waits_for_nobody() -> None:
    cluster = Cluster({"t": 4}, alone_s=0.0)
    cluster.register("c1")
    assert given(cluster.beat("c1")) == [0, 1, 2, 3]
    cluster.register("c2")
    assert not cluster.beat("c2").HasField("event")
    assert cluster.master.next_tick == cluster.now + 0.5


def test_tubemqs_own_timing_waits_for_the_period() -> None:
    cluster = Cluster(soon_s=None, balance_s=30.0, consumer_s=100.0)
    cluster.register("c1")
    cluster.wait(29)
    assert not cluster.beat("c1").HasField("event")
    cluster.wait(2)
    assert cluster.beat("c1").HasField("event")


def test_the_master_says_when_it_has_something_to_do() -> None:
    cluster = Cluster(balance_s=5.0)
    cluster.wait(0)
    assert cluster.master.next_tick == 1001.0  # a scan
    cluster.register("c1")
    assert cluster.master.next_tick == 1000.5  # a balance


# --- bound groups


def test_a_bound_group_waits_for_its_members_and_begins_where_they_say() -> None:
    cluster = Cluster({"t": 3})
    bound = {"requireBound": True, "sessionKey": "k", "totalCount": 2}
    cluster.register("c1", requiredPartition="1:t:0=280,1:t:2=28", **bound)
    cluster.wait(5)
    assert not cluster.beat("c1").HasField("event")
    cluster.register("c2", requiredPartition="1:t:2=56, 1:gone:0=1", **bound)
    cluster.wait(1)
    assert 0 in given(cluster.beat("c1"))
    assert 2 in given(cluster.beat("c2"))


# --- rules and tokens


def test_rules_are_told_to_who_has_others() -> None:
    cluster = Cluster()
    cluster.register("c1")
    text = '[{"type":1,"rule":[{"zeroCnt":2,"freqInMs":900}]}]'
    cluster.master.rules.set(text, "g")
    answer = cluster.beat("c1", groupFlowCheckId=-2)
    assert (answer.groupFlowCheckId, answer.groupFlowControlInfo) == (101, text)
    answer = cluster.beat("c1", groupFlowCheckId=101)
    assert (answer.groupFlowCheckId, answer.groupFlowControlInfo) == (101, " ")
    cluster.master.rules.set(" ", "g")
    answer = cluster.beat("c1", groupFlowCheckId=101)
    assert (answer.groupFlowCheckId, answer.groupFlowControlInfo) == (-2, " ")
    cluster.master.rules.set(text)
    assert cluster.beat("c1", defFlowCheckId=-2).defFlowControlInfo == text
    with pytest.raises(ValueError, match="flow rule"):
        cluster.master.rules.set('[{"type":9,"rule":[]}]')


def test_tokens_change_and_brokers_know_the_last_ones() -> None:
    cluster = Cluster(token_s=300.0, consumer_s=10_000.0)
    cluster.register("c1")
    tokens = []
    for _ in range(10):
        tokens.append(cluster.beat("c1").authorizedInfo.visitAuthorizedToken)
        cluster.wait(300)
    assert tokens == list(range(1, 11))
    assert list(cluster.master.tokens.known(cluster.now)) == [6, 7, 8, 9, 10, 11]
    assert list(cluster.master.tokens.known(1000.0)) == [1]


# --- who clients are


@pytest.mark.parametrize(
    ("given_proof", "text"),
    [
        ({}, "userName is Blank"),
        ({"authInfo": {**proof("u", "p")["authInfo"], "signature": " "}}, "signature is Blank"),
        (proof("u", "p", WALL_MS - 20_001), "20 s"),
        (proof("u", "p", WALL_MS + 20_001), "20 s"),
        (proof("u", "wrong"), "not that of the user 'u'"),
        (proof("nobody", "p"), "not that of the user 'nobody'"),
    ],
)
def test_a_proof_that_is_none_is_refused(given_proof: dict[str, Any], text: str) -> None:
    cluster = Cluster(access=Access({"u": "p"}))
    answer = cluster.register("c1", authInfo=given_proof)
    assert (answer.errCode, text in answer.errMsg) == (415, True)
    assert cluster.register("c1", authInfo=proof("u", "p", WALL_MS - 20_000)).errCode == 200
    answer = cluster.beat("c1", authInfo=given_proof)
    assert (answer.errCode, answer.requireAuth) == (415, True)
    answer = cluster.beat("c1", authInfo=proof("u", "p"))
    assert (answer.errCode, answer.requireAuth) == (200, True)


def test_a_token_of_the_registration_proves_the_same_user_later() -> None:
    access = Access({"u": "p", "v": "q"})
    cluster = Cluster(access=access)
    token = cluster.register("c1", authInfo=proof("u", "p")).authorizedInfo.authAuthorizedToken
    other = cluster.register("c2", authInfo=proof("v", "q")).authorizedInfo.authAuthorizedToken
    answer = cluster.beat("c1", authInfo={"authorizedToken": token})
    assert (answer.errCode, answer.authorizedInfo.authAuthorizedToken) == (200, token)
    for wrong in ("", other, "u:" + other.partition(":")[2], "nobody:1", token + "0", "é"):
        assert cluster.beat("c1", authInfo={"authorizedToken": wrong}).errCode == 411, "it registers again, and signs"
    assert cluster.beat("c1").errCode == 415
    assert cluster.register("c1", authInfo={"authorizedToken": token}).errCode == 415
    again = Cluster(access=Access({"u": "p"}))
    again.register("c1", authInfo=proof("u", "p"))
    assert again.beat("c1", authInfo={"authorizedToken": token}).errCode == 411, "another master does not know it"
    assert not Cluster().register("c1").authorizedInfo.HasField("authAuthorizedToken")


# --- memory


def test_a_client_with_ten_thousand_groups_is_stopped_and_others_are_served() -> None:
    cluster = Cluster({"t": 4}, memory_bytes=4 << 20)
    taken = [cluster.register("c1", f"g{i}").errCode for i in range(10_000)]
    assert set(taken) == {200, 500}
    assert taken.index(500) > 400 and set(taken[taken.index(500) :]) == {500}
    assert cluster.master.used_bytes <= 2 << 20
    answer = cluster.register("c1", "another")
    assert "10.0.2.1 has" in answer.errMsg
    cluster.peer = "10.0.2.2"
    assert [cluster.register("c1", f"h{i}").errCode for i in range(100)] == [200] * 100
    cluster.peer = "10.0.2.1"
    assert cluster.beat("c1", "g0").errCode == 200, "what it has goes on"
    for i in range(100):
        cluster.close("c1", f"g{i}")
    assert cluster.register("c1", "another").errCode == 200


def test_what_a_member_reports_is_charged() -> None:
    cluster = Cluster({"t": 1}, memory_bytes=1 << 20)
    cluster.register("c1")
    before = cluster.master.used_bytes
    cluster.report("c1", range(3000))
    assert cluster.master.used_bytes == before + 64 * 3000
    answer = cluster.report("c1", range(4098))
    assert (answer.errCode, "4098 partitions, and the topics have 1" in answer.errMsg) == (400, True)
    assert len(cluster.held("c1")) == 3000
    cluster.report("c1", [])
    assert cluster.master.used_bytes == before


def test_a_member_that_has_no_room_any_more_is_gone() -> None:
    cluster = Cluster({"t": 1}, memory_bytes=16 << 10)
    assert cluster.register("c1").errCode == 200
    assert cluster.register("c1", subscribeInfo=texts("c1", "g", "t", range(500))).errCode == 500
    assert cluster.beat("c1").errCode == 411
    assert cluster.master.used_bytes == 0


# --- any order of calls


def counts_hold(cluster: Cluster) -> None:
    """Check what a group counts against its members."""
    group = cluster.master.consumers.group("g")
    if group is not None:
        members = group.members.values()
        assert dict(group._holders) == dict(Counter(one for member in members for one in member.held))
        assert group._open == sum(bool(member.events) for member in members)
        assert group._takes == sum(event.takes for member in members for event in member.events)
        assert all(member.events or not member.out for member in members)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_given_that_another_member_holds_or_is_told_to_take(seed: int) -> None:
    """Members that lose events, come back, and report what they like: the master never gives a partition twice."""
    source = random.Random(seed)
    n = source.randrange(1, 12)
    cluster = Cluster({"t": n}, seed=seed, balance_s=1.0, event_cycles=3, consumer_s=6.0)
    held: dict[str, set[int]] = {}
    events: dict[str, Any] = {}
    for _ in range(300):
        cluster.wait(source.choice((0.0, 0.1, 0.6, 1.0)))
        client = f"c{source.randrange(4)}"
        action = source.random()
        if client not in held or action < 0.03:
            mine = held.setdefault(client, set())
            events.pop(client, None)
            cluster.register(client, subscribeInfo=texts(client, "g", "t", sorted(mine)))
        elif action < 0.06:
            cluster.close(client)
            del held[client]
            events.pop(client, None)
        else:
            answer = cluster.report(client, sorted(held[client]), events.pop(client, None))
            if answer.errCode == 411:
                cluster.register(client, subscribeInfo=texts(client, "g", "t", sorted(held[client])))
            elif answer.HasField("event") and source.random() < 0.9:
                numbers = set(given(answer))
                if answer.event.opType in (2, 20):
                    held[client] -= numbers
                else:
                    known = cluster.master.consumers.group("g")
                    assert known is not None
                    for other in known.members.values():
                        if other.client != client:
                            assert not numbers & {one.id for one in other.held}, "given while it is held"
                    held[client] |= {one for one in numbers if source.random() < 0.8}
                events[client] = answer.event
        counts_hold(cluster)
    for client in [one for one in held if cluster.beat(one).errCode == 411]:
        cluster.register(client, subscribeInfo=texts(client, "g", "t", sorted(held[client])))
    if not held:
        return
    cluster.wait(6.0)  # who was told something and lost it is forgotten, or its event is
    lists = {client: sorted(numbers) for client, numbers in held.items()}
    for client in lists:
        cluster.register(client, subscribeInfo=texts(client, "g", "t", lists[client]))
    for number in range(n):  # brokers let one of them have it
        holders = [client for client in lists if number in lists[client]]
        for client in holders[1:]:
            lists[client].remove(number)
    settle(cluster, lists, rounds=40)
    assert sorted(one for numbers in lists.values() for one in numbers) == list(range(n))
    counts = [len(numbers) for numbers in lists.values()]
    assert max(counts) - min(counts) <= 1
