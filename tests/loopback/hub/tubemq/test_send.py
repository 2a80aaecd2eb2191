"""What producers of TubeMQ send to a hub is stored, answered as a broker does, and read by the hub's readers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Producer, rocketmq
from dataproxy.hub import Hub, open_store
from tests.native import probe_tubemq as wire
from tests.support.rawclient import INDEX, Connection, Sender
from tests.support.waiting import SECONDS, eventually

Raw = Callable[[Hub], Connection]
Start = Callable[..., Hub]
MIB = 1 << 20


def test_our_producer_sends_and_the_hub_reads(hub: Hub) -> None:
    with Producer(hub.tubemq_target) as producer:
        for i in range(300):
            producer.send_nowait("clicks", b"%d" % i, attrs={"$msgType$": "ab"[i % 2], "k": "v w"})
        report = producer.flush(SECONDS)
    assert (report.delivered, report.failed, report.retries) == (300, 0, 0)
    records = list(hub.records("clicks"))
    assert sorted(int(one.body) for one in records) == list(range(300))
    assert {one.partition for one in records} == {0, 1, 2}
    assert {(one.group_id, one.source) for one in records} == {("clicks", "127.0.0.1")}
    assert all(one.stream_id == "ab"[int(one.body) % 2] for one in records)
    assert [int(one.body) % 2 for one in hub.records("clicks", "b")] == [1] * 150
    assert abs(records[0].dt_ms - time.time() * 1000) < 60_000


@pytest.mark.parametrize("first", ["tubemq", "rocketmq"])
def test_partitions_that_a_client_of_rocketmq_began_take_messages(start_hub: Start, first: str) -> None:
    hub = start_hub(tubemq_port=0, rocketmq_port=0)
    if first == "tubemq":
        with Producer(hub.tubemq_target) as producer:
            producer.send("one", b"x").result(SECONDS)
    with rocketmq.Producer(hub.rocketmq_target) as other:
        assert {other.send("one", b"x", queue=i).result(SECONDS).queue for i in range(4)} == {0, 1, 2, 3}
    service = hub._tubemq
    assert service is not None
    assert eventually(lambda: len(service.run(lambda: list(service.layout.partitions({"one"})))) == 4)
    with Producer(hub.tubemq_target) as producer:
        producer.send_batch("one", [b"%d" % i for i in range(40)]).result(SECONDS)
        report = producer.flush(SECONDS)
    assert (report.delivered, report.retries) == (40, 0)
    assert {one.partition for one in hub.records("one") if one.body != b"x"} == {0, 1, 2, 3}


@pytest.mark.parametrize("item", ["größer", "数据", "a😀b"])
def test_filter_items_of_any_characters(hub: Hub, item: str) -> None:
    with Producer(hub.tubemq_target) as producer:
        producer.send("one", b"x", attrs={"$msgType$": item}).result(SECONDS)
    (record,) = hub.records("one", item)
    assert (record.body, record.group_id, record.stream_id) == (b"x", "one", item)


def test_answers_tell_id_time_and_offset(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    sender = Sender(connection, connection, "one")
    ids = set()
    for partition in (0, 2):
        for i in range(3):
            answer = sender.send(partition, b"m%d" % i, attribute=b"$msgType$=a,x=1", msgType=b"a")
            assert (answer["success"], answer["errCode"], answer["appendOffset"]) == (True, 200, i * INDEX)
            assert int(answer["errMsg"]) == answer["messageId"]
            assert abs(answer["appendTime"] - time.time() * 1000) < 60_000
            ids.add(answer["messageId"])
    assert len(ids) == 6
    assert [(one.partition, one.offset, one.body) for one in hub.records("one")] == [
        (partition, i, b"m%d" % i) for partition in (0, 2) for i in range(3)
    ]
    sender.close()


@pytest.mark.parametrize("size", [1, 8_000, 8_192, 8_193, 100_000, MIB])
def test_bodies_of_all_sizes(hub: Hub, raw: Raw, size: int) -> None:
    connection = raw(hub)
    body = bytes(i * 7 % 251 for i in range(size))
    answer = Sender(connection, connection, "one").send(1, body, attribute=b"$msgType$=t", msgType=b"t")
    assert answer["errCode"] == 200
    (record,) = hub.records("one")
    assert (record.body == body, record.stream_id, record.partition) == (True, "t", 1)


def test_a_store_on_disk_has_them_after_the_answer(start_hub: Start, tmp_path: Path, raw: Raw) -> None:
    hub = start_hub(tmp_path / "s", tubemq_port=0)
    connection = raw(hub)
    assert Sender(connection, connection, "one").send(0, b"kept")["errCode"] == 200
    with open_store(tmp_path / "s") as store:
        assert [one.body for one in store.records("one")] == [b"kept"]


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "no such partition": ({"partitionId": 3}, 403),
    "a negative partition": ({"partitionId": -1}, 403),
    "a partition of another store": ({"partitionId": 10_000}, 403),
    "no topic": ({"topicName": b""}, 403),
    "a topic with a separator": ({"topicName": b"a#b"}, 403),
    "a topic that no attribute text holds": ({"topicName": b"a&b=c"}, 403),
    "a long topic": ({"topicName": b"t" * 256}, 403),
    "a topic that is no text": ({"topicName": b"\xff"}, 403),
    "a wrong checksum": ({"checkSum": 1}, 403),
    "a long filter item": ({"msgType": b"i" * 256}, 400),
    "a filter item that no attribute text holds": ({"msgType": b"a=b"}, 400),
    "no message": ({"data": b""}, 400),
    "a large message": ({"data": bytes(MIB + 10 * 1024 + 1)}, 400),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_broker_refuses(hub: Hub, raw: Raw, what: str) -> None:
    more, code = REFUSED[what]
    fields = {
        "clientId": b"c", "topicName": b"one", "partitionId": 0, "data": b"x", "flag": 0, "sentAddr": 0,
        "checkSum": -1, "msgType": b"", "msgTime": b"",
    }  # fmt: skip
    connection = raw(hub)
    answer = connection.ask_data("SendMessageRequestP2B", **{**fields, **more})
    assert (answer["success"], answer["errCode"]) == (False, code)
    assert answer["errMsg"]
    assert connection.ask_data("SendMessageRequestP2B", **fields)["errCode"] == 200
    assert [one.body for one in hub.records("one")] == [b"x"]
    assert hub.stats()["refused"] == {code: 1}


def test_the_option_topics_says_what_is_taken(start_hub: Start, raw: Raw) -> None:
    hub = start_hub(tubemq_port=0, topics=["one"])
    connection = raw(hub)
    assert Sender(connection, connection, "one").send(0, b"x")["errCode"] == 200
    _, payload = wire.payload(b"", b"x")
    answer = connection.ask_data(
        "SendMessageRequestP2B", clientId=b"c", topicName=b"two", partitionId=0, data=payload, flag=0, sentAddr=0,
        checkSum=-1, msgType=b"", msgTime=b"",
    )  # fmt: skip
    assert answer["errCode"] == 403


def test_a_hub_with_credentials_takes_messages_of_those_it_has_admitted(start_hub: Start) -> None:
    key = os.urandom(8).hex()
    hub = start_hub(tubemq_port=0, secret_id="me", secret_key=key)
    connection = Connection(hub.tubemq_port, 30)
    with connection:
        answer = connection.ask_data(
            "SendMessageRequestP2B", clientId=b"c", topicName=b"one", partitionId=0, data=b"x", flag=0, sentAddr=0,
            checkSum=-1, msgType=b"", msgTime=b"", authInfo={"visitAuthorizedToken": 7, "authAuthorizedToken": b""},
        )  # fmt: skip
        assert answer["errCode"] == 415
    with Producer(hub.tubemq_target, user="me", password=key) as producer:
        producer.send("one", b"signed").result(SECONDS)
    assert [one.body for one in hub.records("one")] == [b"signed"]


@pytest.mark.parametrize(("state", "code"), [("not_ready", 503), ("stopped", 503), ("running", 200)])
def test_states_of_service(hub: Hub, raw: Raw, state: str, code: int) -> None:
    connection = raw(hub)
    sender = Sender(connection, connection, "one")
    hub.set_service(state)
    assert sender.send(0, b"x")["errCode"] == code


def test_faults_of_data_are_made_on_messages(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    sender = Sender(connection, connection, "one")
    with hub.faults.add("refuse", code=114, times=1):
        assert sender.send(0, b"x")["errCode"] == 419
        assert sender.send(0, b"y")["errCode"] == 200
    assert [one.body for one in hub.records("one")] == [b"y"]


def test_a_stopping_hub_answers_what_it_took(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    sender = Sender(connection, connection, "one")
    numbers = [
        connection.post_data(
            "SendMessageRequestP2B", clientId=b"c", topicName=b"one", partitionId=0, data=b"%d" % i, flag=0,
            sentAddr=0, checkSum=-1, msgType=b"", msgTime=b"",
        )
        for i in range(50)
    ]  # fmt: skip
    assert connection.answer_data(numbers[0], "SendMessageRequestP2B")["errCode"] == 200
    taken = sum(1 for _ in hub.records("one"))
    hub.close()
    answered = 1
    for number in numbers[1:]:
        try:
            answered += connection.answer_data(number, "SendMessageRequestP2B")["errCode"] == 200
        except ConnectionError:
            break
    assert answered >= taken >= 1
    assert sender.client
