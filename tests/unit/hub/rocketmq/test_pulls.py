"""Pulls that come to the thread: filters of SQL, waits, codes, groups that may not all they want."""

import pytest

from dataproxy.wire.rocketmq.bodies import SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.messages import StoredMessage
from tests.support.playedremoting import PlayedHub


@pytest.fixture
def hub():
    hub = PlayedHub()
    for i in range(10):
        hub.send("T", b"%d" % i, properties={"number": i, "TAGS": "red" if i % 2 else "blue"})
    return hub


def pull(hub, expression="number >= 4", kind="SQL92", offset=0, most=32, flags=4, **more):
    fields = {"consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": offset, "maxMsgNums": most,
              "sysFlag": flags, "commitOffset": 0, "suspendTimeoutMillis": 15000, "subscription": expression,
              "subVersion": 0, "expressionType": kind, **more}  # fmt: skip
    return hub.ask(Code.PULL_MESSAGE, **fields)


def bodies(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:4])
        found.append(StoredMessage.read(data[:size]).body)
        data = data[size:]
    return found


def test_what_a_filter_lets_through(hub):
    code, fields, remark, body = pull(hub).answered
    assert (code, remark) == (0, "SUCCESS")
    assert bodies(body) == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert fields == {"suggestWhichBrokerId": "0", "nextBeginOffset": "10", "minOffset": "0", "maxOffset": "10"}


def test_no_more_messages_than_wanted_and_the_next_pull_goes_on_there(hub):
    code, fields, _, body = pull(hub, most=2).answered
    assert bodies(body) == [b"4", b"5"]
    assert fields["nextBeginOffset"] == "6"
    assert bodies(pull(hub, offset=6).answered[3]) == [b"6", b"7", b"8", b"9"]


def test_an_answer_has_a_bound_of_bytes_and_one_message_at_least(hub):
    for _ in range(3):
        hub.send("T", bytes(200 << 10), properties={"number": 50})
    _, fields, _, body = pull(hub, "number = 50").answered
    assert (len(bodies(body)), fields["nextBeginOffset"]) == (1, "11")


def test_a_long_stretch_without_a_match_is_passed_in_pieces(hub):
    for i in range(1000):
        hub.send("T", b"", properties={"number": i})
    code, fields, _, _ = pull(hub, "number = -1").answered
    assert (code, fields["nextBeginOffset"]) == (20, "800")


@pytest.mark.parametrize(
    ("offset", "first", "code", "following"),
    [(10, 0, 19, 10), (11, 0, 21, 10), (2, 5, 21, 5), (500, 0, 21, 10), (9, 0, 20, 10)],
)
def test_codes_and_where_to_go_on(hub, offset, first, code, following):
    if first:
        hub.store.firsts["T", 0] = first
        del hub.store.logs["T", 0][:first]
    answer = pull(hub, "number = 77", offset=offset).answered
    assert (answer[0], answer[1]["nextBeginOffset"]) == (code, str(following))


def test_an_empty_queue(hub):
    assert pull(hub, queueId=1, offset=0).answered[0] == 19
    answer = pull(hub, queueId=1, offset=5).answered
    assert (answer[0], answer[1]["nextBeginOffset"]) == (21, "0")


def test_a_pull_that_may_wait_does_so_once(hub):
    call = pull(hub, offset=10, flags=6)
    assert call.answers == []
    [(topic, queue, offset, until_us)] = call.waits
    assert (topic, queue, offset) == ("T", 0, 10)
    assert until_us == hub.at_us + 15_000_000
    hub.remoting.calls.append(call)  # it comes again
    hub.settle()
    assert call.answered[0] == 19
    call = pull(hub, offset=10, flags=6)
    hub.send("T", b"new", properties={"number": 9})
    hub.remoting.calls.append(call)
    hub.settle()
    assert bodies(call.answered[3]) == [b"new"]
    pull(hub, offset=11, flags=6)
    hub.remoting.end(1)
    hub.settle()
    assert hub.service.pulls._held == {}


def test_a_member_s_own_subscription_counts_without_one_in_the_pull(hub):
    assert pull(hub, flags=0).answered[0] == 24
    hub.beat("g", "T", "number < 3", kind="SQL92", version=7)
    assert hub.remoting.subscribed[1, "g", "T"] == (7, None, True)
    assert bodies(pull(hub, flags=0, subVersion=7).answered[3]) == [b"0", b"1", b"2"]
    assert pull(hub, flags=0, subVersion=8).answered[0] == 25
    hub.beat("g", "T", "number < 2", kind="SQL92", version=8)
    assert bodies(pull(hub, flags=0, subVersion=8).answered[3]) == [b"0", b"1"]
    hub.beat("g", "U", "red || blue")
    assert pull(hub, flags=0).answered[0] == 24
    assert hub.remoting.subscribed == {(1, "g", "U"): (1, ("blue", "red"), False)}


def test_tags_and_types(hub):
    assert bodies(pull(hub, "red", "TAG", most=2).answered[3]) == [b"1", b"3"]
    assert len(bodies(pull(hub, "red||blue ", "").answered[3])) == 10
    assert len(bodies(pull(hub, "*", "TAG").answered[3])) == 10
    code, _, remark, _ = pull(hub, "x", "XPATH").answered
    assert (code, "XPATH" in remark) == (1, True)
    code, _, remark, _ = pull(hub, "number >").answered
    assert (code, "expected a property" in remark) == (23, True)


@pytest.mark.parametrize(
    ("more", "code"), [({"topic": "X"}, 17), ({"queueId": 4}, 1), ({"queueId": -1}, 1), ({"topic": "TBW102"}, 19)]
)
def test_what_is_not_there(hub, more, code):
    assert pull(hub, offset=0, **more).answered[0] == code


def test_topics_and_groups_that_may_not(hub):
    fields = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4, "perm": 2,
              "topicFilterType": "SINGLE_TAG"}  # fmt: skip
    assert hub.ask(Code.UPDATE_AND_CREATE_TOPIC, **fields).answered[0] == 0
    assert pull(hub).answered[0] == 16
    hub.ask(Code.UPDATE_AND_CREATE_TOPIC, **{**fields, "perm": 6})
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g", consume_enable=False).write())
    assert hub.remoting.handed == {"g": True}
    assert pull(hub).answered[0] == 16
    hub.kill()
    assert hub.remoting.handed == {"g": True}
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g", consume_broadcast_enable=False).write())
    assert pull(hub).answered[0] == 0
    hub.beat("g", model="BROADCASTING")
    assert pull(hub).answered[0] == 16
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g").write())
    assert hub.remoting.handed == {"g": False}


def test_a_pull_commits_on_its_first_pass_alone(hub):
    hub.beat("g")
    call = pull(hub, offset=10, flags=7, commitOffset=5)
    assert hub.remoting.committed("g", "T", 0) == 5
    hub.remoting.commit("g", "T", 0, 9)
    hub.remoting.calls.append(call)
    hub.settle()
    assert hub.remoting.committed("g", "T", 0) == 9
