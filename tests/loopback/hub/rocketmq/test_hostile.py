"""Clients of RocketMQ that harm others: by what they name, by what they let wait, and by what they do not read."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from dataproxy.hub import Hub
from dataproxy.hub.rocketmq.topics import table
from dataproxy.wire.rocketmq.codes import Code
from tests.native import probe_rocketmq as wire
from tests.support.remoting import Remote
from tests.support.waiting import SECONDS

SQL = {"sysFlag": 6, "suspendTimeoutMillis": 20_000, "subscription": b"a = 1", "expressionType": b"SQL92"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0, threads=1) as hub:
        yield hub


def asked(remote: Remote, code: int, body: bytes = b"", **given: object) -> dict:
    """Return the answer to a request."""
    return wire.read(remote.answer(remote.request(code, body, **{name: str(value) for name, value in given.items()})))


def heartbeat(client: str, group: str, tags: str = "*") -> bytes:
    """Return the heartbeat of a push consumer of the topic T."""
    wish = {"topic": "T", "subString": tags, "subVersion": 1, "expressionType": "TAG", "tagsSet": [], "codeSet": []}
    group_of = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [wish],
    }  # fmt: skip
    return json.dumps({"clientID": client, "producerDataSet": [], "consumerDataSet": [group_of]}).encode()


@pytest.mark.parametrize("group", ["a b", "\u00e9", "g" * 121, "a/b"])
def test_a_group_that_can_have_no_topic_of_retries_is_refused_each_time_and_has_no_member(hub: Hub, group: str) -> None:
    with Remote(hub.rocketmq_port) as remote:
        for _ in range(2):
            refused = asked(remote, Code.HEART_BEAT, heartbeat("c", group))
            assert (refused["code"], b"%RETRY%" in refused["remark"]) == (1, True)
        assert asked(remote, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)["code"] == 1
        assert asked(remote, Code.HEART_BEAT, heartbeat("c", "g" * 120))["code"] == 0


def test_a_heartbeat_for_which_there_is_no_room_for_a_topic_makes_no_member(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_MOST", 0)
    with Remote(hub.rocketmq_port) as remote:
        for _ in range(2):
            assert asked(remote, Code.HEART_BEAT, heartbeat("c", "g"))["code"] == 1
        assert asked(remote, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g")["code"] == 1
        monkeypatch.undo()
        assert asked(remote, Code.HEART_BEAT, heartbeat("c", "g"))["code"] == 0
        assert asked(remote, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g")["code"] == 0


def test_many_requests_of_the_thread_that_wait_are_answered_once_each(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        numbers = [remote.ask("T", queueOffset=1, consumerGroup=b"g%d" % i, **SQL) for i in range(200)]
        until = time.monotonic() + SECONDS
        while hub.stats()["rocketmq"]["waiting"] < len(numbers) and time.monotonic() < until:
            time.sleep(0.01)
        for _ in range(3):  # they come from the loop to the thread together, and go back together
            remote.send("T", b"y")
        assert {wire.read(remote.answer(number))["code"] for number in numbers} == {20}
        assert remote.answers == {}


def test_a_request_that_is_too_large_does_not_wait(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        wish = {name: value.decode() if isinstance(value, bytes) else value for name, value in SQL.items()}
        answer = asked(
            remote, Code.PULL_MESSAGE, b"b" * 20_000, consumerGroup="g", topic="T", queueId=0, queueOffset=1,
            maxMsgNums=32, commitOffset=0, subVersion=0, **wish,
        )  # fmt: skip
        assert answer["code"] == 2


def test_pulls_confirm_nothing_of_topics_that_are_not_there_and_for_no_endless_names(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        for topic, group in (("none", b"g"), ("T", b"g" * 256)):
            remote.pull(topic, consumerGroup=group, sysFlag=1 | 4, commitOffset=1)
        remote.pull("T", consumerGroup=b"mine", sysFlag=1 | 4, commitOffset=1)
        found = asked(remote, Code.QUERY_CONSUMER_OFFSET, consumerGroup="mine", topic="T", queueId=0)
        assert dict(found["fields"]) == {b"offset": b"1"}
        assert {group for group, *_ in hub._rocketmq.run(lambda: hub._rocketmq._remoting.offsets())} == {"mine"}
        refused = asked(
            remote, Code.UPDATE_CONSUMER_OFFSET, consumerGroup="g" * 256, topic="T", queueId=0, commitOffset=1
        )
        assert refused["code"] == 1
        assert b"256 bytes" in refused["remark"]


def test_an_offset_that_no_store_can_keep_is_refused_and_moves_nothing(hub: Hub) -> None:
    most = (2**63 - 1) // 28
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        given = {"consumerGroup": "g", "topic": "T", "queueId": 0}
        for offset in (most, 1):
            assert asked(remote, Code.UPDATE_CONSUMER_OFFSET, **given, commitOffset=offset)["code"] == 0
            found = asked(remote, Code.QUERY_CONSUMER_OFFSET, **given)
            assert dict(found["fields"]) == {b"offset": str(offset).encode()}
        for offset in (most + 1, 2**61, 2**62, 2**63 - 1):
            refused = asked(remote, Code.UPDATE_CONSUMER_OFFSET, **given, commitOffset=offset)
            assert (refused["code"], b"expected 0 to" in refused["remark"]) == (1, True)
            remote.pull("T", sysFlag=1 | 4, commitOffset=offset)
            found = asked(remote, Code.QUERY_CONSUMER_OFFSET, **given)
            assert dict(found["fields"]) == {b"offset": b"1"}


def test_the_tags_of_a_heartbeat_do_not_hold_up_its_server_loop(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        tags = "||".join(f"t{i}" for i in range(300))
        assert asked(remote, Code.HEART_BEAT, heartbeat("c", "g", tags))["code"] == 0
        refused = wire.read(remote.answer(remote.ask("T", sysFlag=2, subVersion=1)))
        assert (refused["code"], b"256 tags" in refused["remark"]) == (23, True)


def test_a_pull_behind_an_answered_heartbeat_knows_its_subscription(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"x")
        tags = "||".join(f"t{i}" for i in range(60_000))  # it takes the thread a while to tell the loops of them
        assert asked(remote, Code.HEART_BEAT, heartbeat("c", "g", tags))["code"] == 0
        assert wire.read(remote.answer(remote.ask("T", sysFlag=2, subVersion=1)))["code"] == 23


def test_who_reads_is_served_beside_those_who_do_not(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as remote:
        for _ in range(3):
            remote.send("T", b"m" * (4 << 20))
        remote.send("V", b"hello")
        deaf = []
        try:
            for _ in range(40):
                one = Remote(hub.rocketmq_port)
                deaf.append(one)
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                for offset in (0, 1):
                    one.ask("T", queueOffset=offset)
            for _ in range(50):
                assert [found["body"] for found in remote.pull("V")["found"]] == [b"hello"]
        finally:
            for one in deaf:
                one.close()


def test_a_consumer_with_large_answers_under_way_is_told_of_a_change_and_stays(hub: Hub) -> None:
    with Remote(hub.rocketmq_port) as slow, Remote(hub.rocketmq_port) as other:
        for _ in range(12):
            slow.send("T", b"m" * 3_500_000)
        assert asked(slow, Code.HEART_BEAT, heartbeat("A", "g"))["code"] == 0
        numbers = [slow.ask("T", queueOffset=1, sysFlag=2, subVersion=1) for _ in range(20)]
        assert asked(other, Code.HEART_BEAT, heartbeat("B", "g"))["code"] == 0
        ids = json.loads(asked(other, Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g")["body"])
        assert ids == {"consumerIdList": ["A", "B"]}
        assert {wire.read(slow.answer(number))["code"] for number in numbers} <= {0, 19}
        assert hub.stats()["closed"]["replies"] == 0


def test_over_ipv6_filters_and_single_messages_are_answered() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback")
    with Hub(rocketmq_port=0, host="::1") as hub, Remote(hub.rocketmq_port, host="::1") as remote:
        sent = remote.send("T", b"x")
        wish = {**SQL, "sysFlag": 4, "subscription": b"a IS NULL"}
        assert [one["body"] for one in remote.pull("T", **wish)["found"]] == [b"x"]
        place = int(sent["msgId"][-16:], 16)
        assert asked(remote, Code.VIEW_MESSAGE_BY_ID, offset=place)["code"] == 0
