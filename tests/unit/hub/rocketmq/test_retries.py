"""Messages that a consumer wants again: levels, copies, limits, dead letters."""

import pytest

from dataproxy.hub.rocketmq.topics.table import SCHEDULE_TOPIC
from dataproxy.wire.rocketmq.bodies import SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Code
from tests.support.playedremoting import PlayedHub


@pytest.fixture
def hub():
    hub = PlayedHub()
    hub.beat("g")
    hub.send("T", b"m", properties={"UNIQ_KEY": "U1", "KEYS": "k"})
    return hub


def back(hub, handle=None, level=0, most=16, **more):
    handle = hub.messages("T")[0].handle if handle is None else handle
    fields = {"offset": handle, "group": "g", "delayLevel": level, "originMsgId": "U1", "originTopic": "T"}
    return hub.ask(Code.CONSUMER_SEND_MSG_BACK, **{**fields, "maxReconsumeTimes": most, **more})


def test_a_copy_comes_to_the_retry_topic_after_the_delay(hub):
    assert back(hub).answered[0] == 0
    assert hub.bodies("%RETRY%g") == []
    assert len(hub.messages(SCHEDULE_TOPIC, 2)) == 1  # level 3
    hub.pass_time(10.1)
    [copy] = hub.messages("%RETRY%g")
    assert copy.body == b"m"
    assert copy.reconsume_times == 1
    assert copy.properties["RETRY_TOPIC"] == "T"
    assert copy.properties["ORIGIN_MESSAGE_ID"] == "U1"
    assert copy.properties["KEYS"] == "k"
    assert back(hub, copy.handle).answered[0] == 0
    assert len(hub.messages(SCHEDULE_TOPIC, 3)) == 1  # one level more
    hub.pass_time(31)
    again = hub.messages("%RETRY%g")[1]
    assert again.reconsume_times == 2
    assert again.properties["RETRY_TOPIC"] == "T"


def test_the_consumer_may_say_the_level(hub):
    back(hub, level=1)
    hub.pass_time(1.1)
    assert len(hub.messages("%RETRY%g")) == 1


@pytest.mark.parametrize(("level", "most"), [(-1, 16), (0, 0)])
def test_dead_letters_go_to_their_topic_at_once(hub, level, most):
    assert back(hub, level=level, most=most).answered[0] == 0
    [dead] = hub.messages("%DLQ%g")
    assert dead.body == b"m"
    assert dead.properties["RETRY_TOPIC"] == "T"
    hub.pass_time(100, 10)
    assert hub.bodies("%RETRY%g") == []
    assert hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="%DLQ%g").answered[0] == 0


def test_without_a_limit_of_its_own_the_group_s_counts(hub):
    assert hub.ask(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g", retry_max_times=0).write()
    ).answered[0] == 0  # fmt: skip
    back(hub, most=-1)
    assert hub.bodies("%DLQ%g") == [b"m"]


def test_what_is_not_there_cannot_come_again(hub):
    for handle in (10**15, -1, hub.messages("T")[0].handle + 1):
        code, _, remark, _ = back(hub, handle).answered
        assert code == 1
        assert str(handle) in remark


def test_a_store_that_refuses_is_told(hub):
    hub.remoting.refuse = 2
    assert back(hub).answered[0] == 1
    hub.remoting.refuse = 0
    hub.pass_time(100, 10)
    assert hub.bodies("%RETRY%g") == []


def test_a_copy_that_waits_survives_a_kill(hub):
    back(hub)
    hub.kill()
    hub.pass_time(10.1)
    assert hub.bodies("%RETRY%g") == [b"m"]


def test_a_client_that_sends_its_copy_itself_is_held_to_the_limit_too(hub):
    hub.send("%RETRY%g", b"copy", times=3, l=16, properties={"DELAY": 3})
    hub.send("%RETRY%g", b"dead", times=16, l=16, properties={"DELAY": 3})
    assert hub.bodies("%DLQ%g") == [b"dead"]
    hub.pass_time(10.1)
    assert hub.bodies("%RETRY%g") == [b"copy"]


def test_a_group_with_a_name_that_is_none_gets_no_topic(hub):
    for name in ("a b", "x" * 125, "ä"):
        code, _, remark, _ = back(hub, group=name).answered
        assert code == 1, name
    assert all(name.isascii() and len(name) < 128 for name in hub.remoting.topics)
