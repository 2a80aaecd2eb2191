"""The service thread: routes, topics, offsets, administration, questions to clients, and what is kept over a kill."""

import json
import threading

import pytest

from dataproxy.errors import ClosedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.wire.rocketmq.bodies import ClientCheck, ClusterInfo, ConsumerIds, Route, Subscription, SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.queues import (
    LockRequest,
    Queue,
    read_locked,
    read_member_offsets,
    read_offsets,
    write_own_offsets,
)
from tests.support.playedremoting import PlayedHub

TOPIC = {"defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "topicFilterType": "SINGLE_TAG"}


@pytest.fixture
def hub():
    return PlayedHub()


def offset_of(hub, code, **fields):
    code, found, _, _ = hub.ask(code, **fields).answered
    return int(found["offset"]) if code == 0 else -code


# --- routes and topics


def test_a_route_names_the_address_that_the_client_has_reached(hub):
    hub.send("T")
    route = Route.read(hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="T").answered[3])
    [queue], [broker] = route.queue_datas, route.broker_datas
    assert (queue.read_queue_nums, queue.write_queue_nums, queue.perm) == (4, 4, 6)
    assert broker.broker_addrs == {0: "127.0.0.1:10911"}
    assert route.filter_server_table == {}
    first = hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="T").answered[3]
    assert first == hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="T").answered[3]


def test_a_route_names_the_address_that_was_configured():
    hub = PlayedHub(address="broker.example:1")
    route = Route.read(hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="TBW102").answered[3])
    assert route.broker_datas[0].broker_addrs == {0: "broker.example:1"}
    assert route.queue_datas[0].perm == 7


def test_topics_without_a_route(hub):
    for name in ("T", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_HUB_CONFIG", "a b"):
        assert hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic=name).answered[0] == 17, name


def test_a_group_has_a_retry_topic_with_its_first_heartbeat(hub):
    assert hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="%RETRY%g").answered[0] == 17
    assert hub.beat("g").answered[0] == 0
    route = Route.read(hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="%RETRY%g").answered[3])
    assert route.queue_datas[0].read_queue_nums == 1


def test_the_cluster_is_the_hub(hub):
    found = ClusterInfo.read(hub.ask(Code.GET_BROKER_CLUSTER_INFO).answered[3])
    [(name, broker)] = found.broker_addr_table.items()
    assert found.cluster_addr_table == {"DefaultCluster": [name]}
    assert broker.broker_addrs[0] == "127.0.0.1:10911"


def test_topics_and_groups_that_were_configured_are_there_after_a_kill(hub):
    assert hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="T", **{**TOPIC, "readQueueNums": 7}).answered[0] == 0
    config = SubscriptionGroup("g", retry_max_times=3)
    assert hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.write()).answered[0] == 0
    hub.kill()
    assert hub.remoting.topics["T"] == (7, 4, 6)
    assert hub.service.registry.configs.get("g") == config


def test_a_change_is_answered_when_it_is_stored_and_a_store_that_refuses_is_told(hub):
    hub.remoting.waiting = []
    call = hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="T", **TOPIC)
    assert call.answers == []
    hub.remoting.store_now()
    hub.settle()
    assert call.answered[0] == 0
    hub.remoting.refuse = 2
    code, _, remark, _ = hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="U", **TOPIC).answered
    assert (code, "counts until the hub ends" in remark) == (1, True)
    hub.remoting.refuse = 0  # the same change is not taken for one that is stored
    assert hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="U", **TOPIC).answered[0] == 0
    hub.kill()
    assert hub.remoting.topics["U"] == (4, 4, 6)


def test_a_change_that_the_store_did_not_take_holds_up_no_later_one(hub, monkeypatch, caplog):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(hub.remoting, "append", full)
    code, _, remark, _ = hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="T", **TOPIC).answered
    assert (code, bool(remark), "no space left" in caplog.text) == (1, True, True)
    monkeypatch.undo()
    assert hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="U", **TOPIC).answered[0] == 0
    config = SubscriptionGroup("g", retry_max_times=3)
    monkeypatch.setattr(hub.remoting, "append", full)
    assert hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.write()).answered[0] == 1
    monkeypatch.undo()
    assert hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.write()).answered[0] == 0
    hub.kill()
    assert (hub.remoting.topics["U"], hub.service.registry.configs.get("g")) == ((4, 4, 6), config)


@pytest.mark.parametrize(
    "row",
    [
        ["topic", "X", [1 << 40, 4, 6]], ["topic", "X", [4, -1, 6]], ["topic", "X", [4, 4, 99]],
        ["topic", "X", [5000, 4, 6]], ["topic", "X", [4, 4, 6, 1, 0, 0]], ["topic", "X", ["4", 4, 6]],
        ["topic", "X", {"reads": 4}], ["topic", "X", [4, 4, 6, False, 1 << 70]], ["topic", "a b", [4, 4, 6]],
        ["topic", "SCHEDULE_TOPIC_XXXX", [4, 4, 6]], ["topic", "RMQ_SYS_HUB_CONFIG", [4, 4, 6]],
        ["topic", "TBW102", [4, 4, 6]], ["topic", "TRANS_CHECK_MAX_TIME_TOPIC", [4]], ["topic"], [], "text", None,
        ["topic", None, None, None],
    ],
    ids=str,
)  # fmt: skip
def test_a_configuration_that_was_forged_makes_no_topic(hub, row):
    assert hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="T", **TOPIC).answered[0] == 0
    before = dict(hub.remoting.topics)
    body = json.dumps([row]).encode()
    hub.remoting.append(0, [("RMQ_SYS_HUB_CONFIG", 0, StoredMessage("RMQ_SYS_HUB_CONFIG", 0, body).write())])
    hub.kill()
    assert hub.remoting.topics == before


def test_many_changes_are_written_whole_once_and_read_from_there(hub):
    for i in range(150):
        for queues in (4, 5):
            hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic=f"T{i}", **{**TOPIC, "readQueueNums": queues})
    hub.kill()
    begin = hub.remoting.committed("RMQ_SYS_HUB", "RMQ_SYS_HUB_CONFIG", 0)
    assert begin == 300
    del hub.store.logs["RMQ_SYS_HUB_CONFIG", 0][:begin]
    hub.store.firsts["RMQ_SYS_HUB_CONFIG", 0] = begin
    hub.kill()
    assert [hub.remoting.topics[f"T{i}"][0] for i in range(150)] == [5] * 150


@pytest.mark.parametrize(
    ("topic", "more", "says"),
    [
        ("a b", {}, "no name"), ("TBW102", {}, "system topic"), ("SCHEDULE_TOPIC_XXXX", {}, "system topic"),
        ("T", {"readQueueNums": 0}, "readQueueNums is 0"), ("T", {"writeQueueNums": 5000}, "writeQueueNums is 5000"),
        ("T", {"perm": 9}, "perm is 9"),
    ],
)  # fmt: skip
def test_a_topic_that_cannot_be(hub, topic, more, says):
    code, _, remark, _ = hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic=topic, **{**TOPIC, **more}).answered
    assert (code, says in remark) == (1, True)


def test_what_other_protocols_have_stored_is_a_topic_within_a_second():
    hub = PlayedHub(partitions=3)
    hub.store.logs["orders", 5] = []
    hub.store.logs["no name", 0] = []
    hub.pass_time(1.5)
    assert hub.remoting.topics["orders"] == (6, 6, 6)
    assert "no name" not in hub.remoting.topics


# --- offsets


def test_offsets_of_a_queue_and_of_a_group(hub):
    for i in range(5):
        hub.send("T", b"%d" % i)
        hub.wall_ms += 1000
    begun = hub.messages("T")[0].stored_ms
    queue = {"topic": "T", "queueId": 0}
    assert offset_of(hub, Code.GET_MAX_OFFSET, **queue) == 5
    assert offset_of(hub, Code.GET_MIN_OFFSET, **queue) == 0
    found = [offset_of(hub, Code.SEARCH_OFFSET_BY_TIMESTAMP, timestamp=begun + ms, **queue)
             for ms in (-10**6, 0, 1, 1000, 3999, 10**6)]  # fmt: skip
    assert found == [0, 0, 1, 1, 4, 5]
    assert hub.ask(Code.GET_EARLIEST_MSG_STORETIME, **queue).answered[1] == {"timestamp": str(begun)}
    assert hub.ask(Code.GET_EARLIEST_MSG_STORETIME, topic="T", queueId=1).answered[1] == {"timestamp": "-1"}
    hub.beat("g")
    kept = {"consumerGroup": "g", **queue}
    hub.pass_time(120, 6)
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, **kept) == -22
    assert hub.ask(Code.UPDATE_CONSUMER_OFFSET, commitOffset=3, **kept).answered[0] == 0
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, **kept) == 3
    hub.kill()
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, **kept) == 3


def test_a_topic_that_has_just_begun_is_read_from_its_beginning(hub):
    hub.send("T")
    kept = {"consumerGroup": "g", "topic": "T", "queueId": 0}
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, **kept) == 0
    hub.pass_time(61)
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, **kept) == -22


def test_what_pulls_commit_by_the_way_counts_before_it_is_asked_for(hub):
    hub.send("T")
    hub.beat("g")
    hub.remoting.pulled.append((1, "g", "T", 0, 1))
    assert offset_of(hub, Code.QUERY_CONSUMER_OFFSET, consumerGroup="g", topic="T", queueId=0) == 1


@pytest.mark.parametrize(
    ("code", "more", "answer"),
    [
        (Code.GET_MAX_OFFSET, {"topic": "X", "queueId": 0}, 17),
        (Code.GET_MIN_OFFSET, {"topic": "T", "queueId": 4}, 1),
        (Code.UPDATE_CONSUMER_OFFSET, {"topic": "T", "queueId": 0, "consumerGroup": "g", "commitOffset": -1}, 1),
        (Code.UPDATE_CONSUMER_OFFSET, {"topic": "T", "queueId": -2, "consumerGroup": "g", "commitOffset": 1}, 1),
        (Code.UPDATE_CONSUMER_OFFSET, {"topic": "X", "queueId": 0, "consumerGroup": "g", "commitOffset": 1}, 17),
        (Code.QUERY_CONSUMER_OFFSET, {"topic": "T"}, 1),
        (Code.GET_MAX_OFFSET, {"topic": "T", "queueId": "many"}, 1),
    ],
)
def test_offsets_of_what_is_not_there(hub, code, more, answer):
    hub.send("T")
    call = hub.ask(code, **more)
    assert call.answered[0] == answer
    assert call.answered[2]
    assert not [one for one in hub.store.offsets if one[0] == "g"]


def test_a_message_is_found_by_its_physical_offset(hub):
    hub.send("T", b"found")
    [message] = hub.messages("T")
    code, _, _, body = hub.ask(Code.VIEW_MESSAGE_BY_ID, offset=message.handle).answered
    assert (code, body) == (0, message.write())
    for handle in (message.handle + 1, -1, 2**62):
        assert hub.ask(Code.VIEW_MESSAGE_BY_ID, offset=handle).answered[0] == 1


def test_the_progress_of_a_group(hub):
    for _ in range(3):
        hub.send("T")
    hub.remoting.commit("g", "T", 0, 2)
    hub.remoting.commit("other", "T", 0, 1)
    body = json.loads(hub.ask(Code.GET_CONSUME_STATS, consumerGroup="g", topic="T").answered[3])
    key = '{"brokerName":"dataproxy","queueId":0,"topic":"T"}'
    assert body["offsetTable"][key] == {
        "brokerOffset": 3, "consumerOffset": 2, "lastTimestamp": hub.messages("T")[1].stored_ms,
    }  # fmt: skip
    assert len(body["offsetTable"]) == 4
    hub.remoting.commit("g", "a topic that is gone", 0, 5)
    body = json.loads(hub.ask(Code.GET_CONSUME_STATS, consumerGroup="g").answered[3])
    assert len(body["offsetTable"]) == 4


# --- clients and groups


def test_members_hear_of_each_other_and_the_list_has_each_once(hub):
    hub.beat("g")
    hub.beat("g", connection=2)
    hub.pass_time(0.3)
    told = {one[0] for one in hub.remoting.sent if one[1] == Code.NOTIFY_CONSUMER_IDS_CHANGED}
    assert told == {1, 2}
    ids = ConsumerIds.read(hub.ask(Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g").answered[3])
    assert ids.consumer_id_list == ("127.0.0.1@1", "127.0.0.1@2")
    hub.remoting.end(2)
    hub.settle()
    ids = ConsumerIds.read(hub.ask(Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g").answered[3])
    assert ids.consumer_id_list == ("127.0.0.1@1",)
    assert hub.ask(Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="nobody").answered[0] == 1


def test_leaving_takes_the_subscriptions_along(hub):
    hub.beat("g")
    assert hub.remoting.subscribed == {(1, "g", "T"): (1, None, False)}
    call = hub.ask(Code.UNREGISTER_CLIENT, clientID="127.0.0.1@1", consumerGroup="g")
    assert call.answered[:2] == (0, {})
    assert hub.remoting.subscribed == {}
    assert hub.ask(Code.GET_CONSUMER_CONNECTION_LIST, consumerGroup="g").answered[0] == 206


def test_a_heartbeat_that_cannot_be_read_is_refused_and_changes_nothing(hub):
    for body in (b"", b"[]", b'{"clientID":5', b'{"clientID":"c","consumerDataSet":[{"groupName":"a b"}]}'):
        code, _, remark, _ = hub.ask(Code.HEART_BEAT, body).answered
        assert (code, bool(remark)) == (1, True), body
    assert hub.remoting.subscribed == {}


def test_queues_are_locked_for_one_member(hub):
    hub.send("T")
    hub.beat("g")
    hub.beat("g", connection=2)
    queue = Queue("dataproxy", 0, "T")
    first, second = (LockRequest(f"127.0.0.1@{i}", "g", (queue,)).write() for i in (1, 2))
    assert read_locked(hub.ask(Code.LOCK_BATCH_MQ, first).answered[3]) == (queue,)
    assert read_locked(hub.ask(Code.LOCK_BATCH_MQ, second, connection=2).answered[3]) == ()
    assert hub.ask(Code.UNLOCK_BATCH_MQ, first).answered[0] == 0
    assert read_locked(hub.ask(Code.LOCK_BATCH_MQ, second, connection=2).answered[3]) == (queue,)


def test_nobody_gets_a_lock_that_a_member_of_an_earlier_hub_may_believe_to_have():
    hub = PlayedHub()
    hub.send("T")
    hub.remoting.commit("g", "T", 0, 1)
    hub.kill()
    hub.beat("g")
    queue = Queue("dataproxy", 0, "T")
    wanted = LockRequest("127.0.0.1@1", "g", (queue,)).write()
    assert read_locked(hub.ask(Code.LOCK_BATCH_MQ, wanted).answered[3]) == ()
    hub.pass_time(33)
    assert read_locked(hub.ask(Code.LOCK_BATCH_MQ, wanted).answered[3]) == (queue,)


@pytest.mark.parametrize(
    ("expression", "kind", "code"), [("a > 1", "SQL92", 0), ("a >", "SQL92", 23), ("*", "TAG", 0), ("x", "XPATH", 1)]
)
def test_an_expression_is_checked(hub, expression, kind, code):
    wanted = ClientCheck("c", "g", Subscription("T", expression, expression_type=kind))
    assert hub.ask(Code.CHECK_CLIENT_CONFIG, wanted.write()).answered[0] == code


def test_a_reset_is_stored_and_told_to_the_members(hub):
    for _ in range(4):
        hub.send("T")
    hub.beat("g")
    for queue in range(4):
        hub.remoting.commit("g", "T", queue, 4 if queue == 0 else 0)
    call = hub.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, topic="T", group="g", timestamp=0, isForce=True)
    assert call.answered[0] == 0
    assert read_offsets(call.answered[3])[Queue("dataproxy", 0, "T")] == 0
    assert hub.remoting.committed("g", "T", 0) == 0
    [told] = [one for one in hub.remoting.sent if one[1] == Code.RESET_CONSUMER_CLIENT_OFFSET]
    assert (told[0], told[3], told[4]["isForce"]) == (1, True, "true")


def test_members_are_asked_for_their_offsets_together(hub):
    hub.send("T")
    hub.beat("g")
    hub.beat("g", connection=2)
    call = hub.ask(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, topic="T", group="g", connection=9)
    asked = {one[0]: one for one in hub.remoting.sent if one[1] == Code.GET_CONSUMER_STATUS_FROM_CLIENT}
    assert asked.keys() == {1, 2}
    assert asked[1][2] != asked[2][2]
    assert call.answers == []
    queue = Queue("dataproxy", 0, "T")
    hub.remoting.answer_to(1, asked[1][2], body=write_own_offsets({queue: 5}), remark="not set any response code")
    hub.remoting.answer_to(1, asked[2][2], body=b"{}")  # of another connection's question
    hub.settle()
    assert call.answers == []
    hub.pass_time(5.1)
    assert read_member_offsets(call.answered[3]) == {"127.0.0.1@1": {queue: 5}}
    assert "127.0.0.1@2" in call.answered[2]


def test_a_member_is_asked_what_it_does(hub):
    hub.beat("g")
    fields = {"consumerGroup": "g", "clientId": "127.0.0.1@1", "jstackEnable": False}
    call = hub.ask(Code.GET_CONSUMER_RUNNING_INFO, connection=9, **fields)
    [asked] = [one for one in hub.remoting.sent if one[1] == Code.GET_CONSUMER_RUNNING_INFO]
    assert asked[4]["clientId"] == "127.0.0.1@1"
    hub.remoting.answer_to(1, asked[2], body=b'{"jstack":"x"}')
    hub.settle()
    assert (call.answered[0], call.answered[3]) == (0, b'{"jstack":"x"}')
    call = hub.ask(Code.GET_CONSUMER_RUNNING_INFO, connection=9, **fields)
    hub.pass_time(11)
    assert call.answered[0] == 207
    call = hub.ask(Code.GET_CONSUMER_RUNNING_INFO, connection=9, **fields)
    hub.remoting.end(1)
    hub.settle()
    assert call.answered[0] == 207


def test_a_member_consumes_a_message_that_is_named_by_its_id(hub):
    hub.send("T", b"again")
    hub.beat("g")
    [message] = hub.messages("T")
    from dataproxy.wire.rocketmq.names import MessageId

    fields = {"consumerGroup": "g", "clientId": "127.0.0.1@1", "msgId": MessageId("127.0.0.1", 1, message.handle)}
    hub.ask(Code.CONSUME_MESSAGE_DIRECTLY, connection=9, **fields)
    [asked] = [one for one in hub.remoting.sent if one[1] == Code.CONSUME_MESSAGE_DIRECTLY]
    assert asked[5] == message.write()
    for wrong in ("xyz", MessageId("127.0.0.1", 1, 2**50)):
        assert hub.ask(Code.CONSUME_MESSAGE_DIRECTLY, connection=9, **{**fields, "msgId": wrong}).answered[0] == 1


def test_producers_are_told(hub):
    hub.beat("", producers=["p"])
    assert b"127.0.0.1@1" in hub.ask(Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="p").answered[3]
    assert hub.ask(Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="q").answered[0] == 1
    assert b'"p"' in hub.ask(Code.GET_ALL_PRODUCER_INFO).answered[3]


def test_filter_servers_are_a_table(hub):
    call = hub.ask(Code.REGISTER_FILTER_SERVER, filterServerAddr="127.0.0.1:5")
    assert call.answered[:2] == (0, {"brokerName": "dataproxy", "brokerId": "0"})
    assert hub.service.registry.filter_servers() == ("127.0.0.1:5",)


def test_a_silent_client_is_closed():
    hub = PlayedHub(limits=Limits(client=5))
    hub.beat("g")
    hub.pass_time(7, 7)
    assert hub.remoting.closed == [1]


# --- the thread


@pytest.mark.parametrize("code", [999, 25, 0, -3, 326, 351])
def test_codes_that_nobody_knows_are_answered_unless_they_are_one_way(hub, code):
    answer = hub.ask(code).answered
    assert (answer[0], str(code) in answer[2]) == (3, True)
    assert hub.ask(code, bits=2).answers == []


def test_what_fails_here_is_answered_and_the_thread_goes_on(hub, monkeypatch, caplog):
    monkeypatch.setattr(hub.remoting, "extent", lambda *_: 1 / 0)
    hub.send("T", properties={"DELAY": 1})
    assert hub.ask(Code.GET_MAX_OFFSET, topic="T", queueId=0).answered[0] == 1
    assert "ZeroDivisionError" in caplog.text
    hub.pass_time(2)
    monkeypatch.undo()
    assert hub.ask(Code.GET_MAX_OFFSET, topic="T", queueId=0).answered[0] == 0


def test_work_that_fails_again_and_again_does_not_keep_the_thread_busy(hub, monkeypatch):
    hub.send("T", properties={"DELAY": 1})
    monkeypatch.setattr(hub.remoting, "read", lambda *_: 1 / 0)
    hub.pass_time(2)
    assert hub.service._sleep_s() > 0.5
    monkeypatch.undo()
    hub.pass_time(1.1)
    assert hub.bodies("T") == [b"m"]


def test_news_of_what_is_not_known_does_no_harm(hub):
    hub.remoting.answer_to(77, 5)
    hub.remoting.end(77)
    hub.remoting.calls.append(hub.remoting.ask(0))
    hub.remoting.calls.clear()
    hub.settle()


def test_another_thread_s_function_runs_on_the_thread_of_the_service(hub):
    thread = threading.Thread(target=hub.service.serve)
    thread.start()
    try:
        assert hub.service.run(threading.get_ident) == thread.ident
        with pytest.raises(ZeroDivisionError):
            hub.service.run(lambda: 1 / 0)
    finally:
        hub.service.stop()
        thread.join(10)
    with pytest.raises(ClosedError):
        hub.service.run(lambda: None)
