"""Sends that need a decision: topics that begin, queues, names, batches, what is refused."""

import pytest

from dataproxy.hub.rocketmq.topics.table import HALF_TOPIC, SCHEDULE_TOPIC
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.names import MessageId
from tests.support.playedremoting import PlayedHub


def item(body: bytes, properties: str) -> bytes:
    rest = bytes(12) + len(body).to_bytes(4) + body + len(properties).to_bytes(2) + properties.encode()
    return (4 + len(rest)).to_bytes(4) + rest


def test_a_send_begins_a_topic_that_has_a_route_before_the_answer():
    hub = PlayedHub()
    code, fields, _, _ = hub.send("T", b"m", queue=3, properties={"WAIT": "true", "KEYS": "k"}).answered
    assert code == 0
    assert (fields["queueId"], fields["queueOffset"], fields["TRACE_ON"]) == ("3", "0", "true")
    assert MessageId.read(fields["msgId"])[:2] == ("127.0.0.1", 10911)
    assert hub.remoting.topics["T"] == (4, 4, 6)
    [message] = hub.messages("T", 3)
    assert message.properties == {"KEYS": "k"}
    assert message.born == ("127.0.0.1", 50001)
    assert hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="T").answered[0] == 0


def test_a_topic_has_no_more_queues_than_the_template():
    hub = PlayedHub()
    hub.send("T", d=100)
    assert hub.remoting.topics["T"] == (8, 8, 6)


def test_a_queue_that_is_left_to_the_hub_is_one_of_the_topic():
    hub = PlayedHub()
    queues = {hub.send("T", queue=-1).answered[1]["queueId"] for _ in range(60)}
    assert queues == {"0", "1", "2", "3"}


def test_old_names_of_the_fields_are_read_too():
    hub = PlayedHub()
    fields = {"producerGroup": "p", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": 0,
              "sysFlag": 0, "bornTimestamp": 5, "flag": 3, "properties": "A\x01b\x02"}  # fmt: skip
    assert hub.ask(Code.SEND_MESSAGE, b"m", **fields).answered[0] == 0
    [message] = hub.messages("T")
    assert (message.flag, message.born_ms, message.properties) == (3, 5, {"A": "b"})


@pytest.mark.parametrize(
    ("topic", "more", "code", "says"),
    [
        ("a b", {}, 1, "a b"),
        ("x" * 128, {}, 1, "is no name"),
        (SCHEDULE_TOPIC, {}, 16, "forbidden"),
        (HALF_TOPIC, {}, 16, "forbidden"),
        ("RMQ_SYS_HUB_CONFIG", {}, 16, "forbidden"),
        ("TBW102", {}, 16, "forbidden"),
        ("T", {"c": "another"}, 17, "not exist"),
        ("T", {"queue": 9}, 1, "queueId[9]"),
        ("T", {"e": "nine"}, 1, "'nine'"),
        ("%RETRY%a b", {}, 1, "is no name"),
    ],
)
def test_what_is_refused_says_why(topic, more, code, says):
    hub = PlayedHub()
    answer = hub.send(topic, **more).answered
    assert answer[0] == code
    assert says in answer[2]
    assert not hub.store.logs.get((topic, 0))


def test_a_field_that_is_missing_is_named():
    hub = PlayedHub()
    code, _, remark, _ = hub.ask(Code.SEND_MESSAGE, b"m", topic="T").answered
    assert code == 1
    assert "producerGroup" in remark


def test_a_body_and_properties_have_a_limit():
    hub = PlayedHub()
    assert hub.send("T", bytes((4 << 20) + 1)).answered[0] == 13
    assert hub.send("T", i="A\x01" + "x" * 40_000).answered[0] == 13
    assert hub.bodies("T") == []


def test_a_batch_is_stored_whole_and_answered_with_all_ids():
    hub = PlayedHub()
    body = item(b"one", "KEYS\x01k1") + item(b"two", "KEYS\x01k2\x02WAIT\x01true")
    text = "WAIT\x01true"
    fields = {"a": "p", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": text, "m": True}
    call = hub.ask(Code.SEND_BATCH_MESSAGE, body, **fields)
    assert call.answered[0] == 0
    assert len(call.answered[1]["msgId"].split(",")) == 2
    assert [(one.body, one.properties["KEYS"]) for one in hub.messages("T")] == [(b"one", "k1"), (b"two", "k2")]
    for broken in (body[:-1], b"\0" * 8, b"", item(b"x", "")[:-2] + b"\x7f\xff"):
        call = hub.ask(Code.SEND_BATCH_MESSAGE, broken, **fields)
        assert call.answered[0] == 13, broken
    assert len(hub.bodies("T")) == 2


def test_a_store_that_refuses_is_told_and_one_way_sends_are_never_answered():
    hub = PlayedHub()
    hub.remoting.refuse = 2
    code, fields, remark, _ = hub.send("T").answered
    assert (code, fields) == (1, {})
    assert "the disk is full" in remark
    call = hub.ask(Code.SEND_MESSAGE_V2, b"m", bits=2, a="p", b="T")
    assert call.answers == []


def test_appends_that_wait_have_a_bound(monkeypatch):
    monkeypatch.setattr("dataproxy.hub.rocketmq.topics.remoting._MOST_OPEN", 3)
    hub = PlayedHub()
    hub.remoting.waiting = []
    calls = [hub.send("T", properties={"DELAY": 1}) for _ in range(4)]
    assert [one.answers[0][0] for one in calls if one.answers] == [2, 2]
    hub.remoting.store_now()
    hub.settle()
    assert hub.send("T").answered[0] == 0


def test_appends_that_wait_have_a_bound_in_bytes(monkeypatch):
    monkeypatch.setattr("dataproxy.hub.rocketmq.topics.remoting._MOST_BYTES", 4000)
    hub = PlayedHub()
    hub.send("T")
    hub.remoting.waiting = []
    calls = [hub.send("T", b"m" * 3000, properties={"DELAY": 1}) for _ in range(3)]
    assert [one.answers[0][0] for one in calls if one.answers] == [2, 2]
    hub.remoting.store_now()
    hub.settle()
    assert hub.send("T", b"m" * 9000, properties={"DELAY": 1}).answered[0] == 0  # one that is larger than the bound
    assert hub.service.appends.open == 0


def test_a_hub_with_certain_topics_begins_no_others():
    hub = PlayedHub(allowed=("T", "U/stream"), partitions=2)
    assert hub.send("X").answered[0] == 17
    assert hub.send("T", properties={"DELAY": 1}).answered[0] == 0
    assert hub.remoting.topics["U"] == (2, 2, 6)
    assert hub.ask(Code.GET_ROUTEINFO_BY_TOPIC, topic="TBW102").answered[0] == 17


def test_an_id_that_is_no_text_does_not_make_a_stored_batch_a_failure():
    """It was answered with code 1, and so its client stored it again."""
    hub = PlayedHub()
    call = hub.send("T", item(b"m", "UNIQ_KEY\x01?").replace(b"?", b"\xb3"), m=True)
    code, fields, _, _ = call.answered
    assert (code, fields["queueOffset"], fields["transactionId"]) == (0, "0", "\ufffd")
    assert hub.bodies("T") == [b"m"]
