"""Messages by their key (12), and replies to messages (324 to 326), in the bytes of a client of Java."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from dataproxy.hub import Hub
from dataproxy.wire.rocketmq.bodies import Route
from dataproxy.wire.rocketmq.codes import Code
from tests.native import probe_rocketmq as wire
from tests.support.remoting import JSON, RMQ, Remote, fields, properties
from tests.support.waiting import SECONDS

LONG_MAX = 9223372036854775807
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
CLIENT = "127.0.0.1@77#1"
SENT = {
    "producerGroup": "repliers", "topic": REPLY_TOPIC, "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
    "queueId": "0", "sysFlag": "0", "bornTimestamp": "1764000000000", "flag": "5", "reconsumeTimes": "0",
    "unitMode": "false",
}  # fmt: skip
LETTERS = dict(zip(SENT, "abcdefghjk", strict=True))
REPLIED = {"MSG_TYPE": "reply", "REPLY_TO_CLIENT": CLIENT, "CORRELATION_ID": "c-1", "TTL": "3000"}


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


@pytest.fixture(params=[JSON, RMQ], ids=["json", "rocketmq"])
def remote(request: pytest.FixtureRequest, hub: Hub) -> Iterator[Remote]:
    with Remote(hub.rocketmq_port, request.param) as remote:
        yield remote


def query(remote: Remote, topic: str, key: str, **given: object) -> dict:
    asked = {"topic": topic, "key": key, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": LONG_MAX, **given}
    number = remote.request(12, **{name: str(value) for name, value in asked.items()})
    frame = remote.answer(number)
    answer = wire.read(frame)
    return answer | {"fields": fields(frame), "found": wire.read_stored_messages(answer["body"])}


def pass_ms() -> None:
    """Wait for the next millisecond, so that the times of messages tell their order."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now:
        pass


def beat(remote: Remote, client: str, *groups: str) -> None:
    body = {"clientID": client, "producerDataSet": [{"groupName": one} for one in groups], "consumerDataSet": []}
    assert wire.read(remote.answer(remote.request(34, json.dumps(body).encode())))["code"] == 0


def reply(remote: Remote, code: int, body: bytes = b"answer", **given: str) -> int:
    """Send a reply as a client does, and return the number of the request."""
    text = properties(**(REPLIED | given)).decode()
    sent = SENT if code == 324 else {LETTERS[name]: value for name, value in SENT.items()} | {"m": "false"}
    return remote.request(code, body, **sent, **{"properties" if code == 324 else "i": text})


def test_messages_are_found_by_their_keys_and_their_ids_the_newest_first(remote: Remote) -> None:
    topic = f"keys{remote.form}"
    for i in range(6):
        keys = {"UNIQ_KEY": f"ID{i}", "KEYS": f"order-{i % 2} all"}
        assert remote.send(topic, b"%d" % i, queueId=i % 3, properties=properties(**keys))["code"] == 0
        pass_ms()
    found = query(remote, topic, "order-1")
    assert (found["code"], found["form"]) == (0, remote.form)
    assert [one["body"] for one in found["found"]] == [b"5", b"3", b"1"]
    assert {one["topic"] for one in found["found"]} == {topic.encode()}
    assert abs(int(found["fields"]["indexLastUpdateTimestamp"]) - time.time() * 1000) < 60_000
    assert found["fields"]["indexLastUpdatePhyoffset"] == "0"
    [one] = query(remote, topic, "ID4", _UNIQUE_KEY_QUERY="true")["found"]
    assert (one["body"], one["queueId"], one["queueOffset"]) == (b"4", 1, 1)
    assert query(remote, topic, "all", _UNIQUE_KEY_QUERY="true")["code"] == 22
    assert [one["body"] for one in query(remote, topic, "ID4")["found"]] == [b"4"]


def test_the_time_bounds_what_is_found(remote: Remote) -> None:
    topic = f"times{remote.form}"
    for i in range(4):
        remote.send(topic, b"%d" % i, queueId=0, properties=properties(KEYS="k"))
        pass_ms()
    stamps = [one["storeTimestamp"] for one in reversed(query(remote, topic, "k")["found"])]
    within = query(remote, topic, "k", beginTimestamp=stamps[1], endTimestamp=stamps[2])
    assert [one["body"] for one in within["found"]] == [b"2", b"1"]
    assert query(remote, topic, "k", beginTimestamp=stamps[3] + 1)["code"] == 22
    assert query(remote, topic, "k", endTimestamp=stamps[0] - 1)["code"] == 22


def test_what_is_not_there_has_the_code_of_a_broker(remote: Remote) -> None:
    remote.send("some", b"x", properties=properties(KEYS="k"))
    nothing = query(remote, "some", "no such")
    assert (nothing["code"], nothing["found"]) == (22, [])
    assert nothing["remark"].startswith(b"can not find message")
    assert query(remote, "never", "k")["code"] == 17
    assert query(remote, "RMQ_SYS_HUB_CONFIG", "k")["code"] == 17
    refused = wire.read(remote.answer(remote.request(12, topic="some", key="k")))
    assert refused["code"] == 1
    assert b"maxNum" in refused["remark"]


def test_the_topic_of_replies_has_a_route_and_takes_replies_alone(remote: Remote) -> None:
    route = Route.read(wire.read(remote.answer(remote.request(105, topic=REPLY_TOPIC)))["body"])
    assert [(one.read_queue_nums, one.write_queue_nums, one.perm) for one in route.queue_datas] == [(1, 1, 2)]
    assert remote.send(REPLY_TOPIC, b"no reply", queueId=0)["code"] == 16


def test_a_message_that_waits_for_a_reply_names_the_cluster(remote: Remote) -> None:
    topic = f"asks{remote.form}"
    given = properties(REPLY_TO_CLIENT=CLIENT, CORRELATION_ID="c-1", TTL="3000", TAGS="t")
    for _ in range(2):  # the topic is not known first, and then it is
        assert remote.send(topic, b"question", queueId=0, properties=given)["code"] == 0
    found = remote.pull(topic, sysFlag=4)["found"]
    assert [dict(wire.properties(one["properties"]))[b"CLUSTER"] for one in found] == [b"DefaultCluster"] * 2


@pytest.mark.parametrize("code", [324, 325])
def test_a_reply_goes_to_the_client_that_asked_and_its_answer_comes_back(hub: Hub, remote: Remote, code: int) -> None:
    with Remote(hub.rocketmq_port) as asker:
        beat(asker, CLIENT, "askers")
        number = reply(remote, code)
        frame = asker.hear()
        pushed, told = wire.read(frame), fields(frame)
        assert (pushed["code"], pushed["flag"], pushed["body"]) == (326, 0, b"answer")
        text = dict(wire.properties(told.pop("properties").encode()))
        stamp = told.pop("storeTimestamp")
        assert text.pop(b"PUSH_REPLY_TIME").decode() == stamp
        assert text == {name.encode(): value.encode() for name, value in REPLIED.items()}
        plain = {name: value for name, value in SENT.items() if name not in ("unitMode", "reconsumeTimes")}
        assert told == plain | {
            "bornHost": "{}:{}".format(*remote.socket.getsockname()), "storeHost": f"127.0.0.1:{hub.rocketmq_port}",
        }  # fmt: skip
        asker.reply(frame)
        taken = remote.answer(number)
        assert wire.read(taken)["code"] == 0
        assert fields(taken) == {
            "msgId": "0", "queueId": "0", "queueOffset": "0", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
        }  # fmt: skip
        number = reply(remote, code)
        asker.reply(asker.hear(), 1)
        refused = wire.read(remote.answer(number))
        assert (refused["code"], b"it answered 1" in refused["remark"]) == (1, True)


def test_a_reply_for_nobody_is_refused(remote: Remote) -> None:
    answer = wire.read(remote.answer(reply(remote, 325, REPLY_TO_CLIENT="gone@1")))
    assert (answer["code"], b"channel of <'gone@1'> not found" in answer["remark"]) == (1, True)
    text = properties(MSG_TYPE="reply").decode()
    sent = {LETTERS[name]: value for name, value in SENT.items()}
    answer = wire.read(remote.answer(remote.request(325, **sent, i=text)))
    assert (answer["code"], b"REPLY_TO_CLIENT is null" in answer["remark"]) == (1, True)
    answer = wire.read(remote.answer(reply(remote, 324, bytes((4 << 20) + 1))))
    assert answer["code"] == 13


def test_a_client_that_does_not_take_a_reply_is_waited_for_less_than_its_sender_waits(
    start_hub: Callable[..., Hub],
) -> None:
    hub = start_hub(rocketmq_port=0)
    with Remote(hub.rocketmq_port) as asker, Remote(hub.rocketmq_port) as replier:
        beat(asker, CLIENT, "askers", "others")
        begun = time.monotonic()
        first, second = reply(replier, 325), reply(replier, 325)
        asker.hear()
        answer = wire.read(replier.answer(first))
        assert (answer["code"], b"has not answered in time" in answer["remark"]) == (1, True)
        assert 2 < time.monotonic() - begun < SECONDS
        replier.answer(second)
        third = reply(replier, 325)
        asker.hear()
        asker.hear()
        asker.close()
        answer = wire.read(replier.answer(third))
        assert (answer["code"], b"connection ended" in answer["remark"]) == (1, True)
        answer = wire.read(replier.answer(reply(replier, 325)))
        assert b"not found" in answer["remark"]


def test_a_client_with_two_connections_gets_replies_by_the_newer_one(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as old, Remote(hub.rocketmq_port) as replier:
        beat(old, CLIENT, "askers")
        with Remote(hub.rocketmq_port) as new:
            beat(new, CLIENT, "askers")
            reply(replier, 325)
            assert wire.read(new.hear())["code"] == Code.PUSH_REPLY_MESSAGE_TO_CLIENT
        until = time.monotonic() + SECONDS
        while not old.requests and time.monotonic() < until:  # until the hub knows that the newer one is gone
            number = reply(replier, 325)
            old.answer(old.request(106))
            if not old.requests:
                replier.answer(number)
        assert wire.read(old.hear())["code"] == Code.PUSH_REPLY_MESSAGE_TO_CLIENT
