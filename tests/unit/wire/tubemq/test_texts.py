"""Texts inside of TubeMQ's messages: the golden vectors, written and read, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.wire.tubemq.texts import (
    BROKER_TLS_PORT,
    Broker,
    Condition,
    Failure,
    Partition,
    Subscription,
    Topic,
    TopicPart,
    join_held,
    join_offsets,
    read_meta,
    read_offset,
    write_offset,
)
from tests.support.reference.tubevectors import VECTORS

STRINGS = VECTORS["strings"]
READERS = [Broker.read, Partition.read, Subscription.read, Failure.read, Topic.read, Condition.read, read_meta]


def only(kind: str) -> dict[str, object]:
    (vector,) = STRINGS[kind]
    return dict(vector)


def test_brokers() -> None:
    plain, blank = STRINGS["broker_info"]
    broker = Broker(plain["id"], plain["host"], plain["port"])
    assert Broker.read(plain["text"]) == broker
    assert str(broker) == plain["text"]
    assert Broker.read(blank["text"]) == (blank["id"], blank["host"], blank["port"])
    assert Broker.read(blank["text"], BROKER_TLS_PORT).port == blank["tls_port"]
    assert Broker.read("3: h : 81 ") == (3, "h", 81)
    assert Broker.read("1:::1:8123").host == "::1"


def test_partitions() -> None:
    vector = only("partition")
    partition = Partition.read(str(vector["text"]))
    assert partition.broker == (vector["broker_id"], vector["host"], vector["port"])
    assert (partition.topic, partition.id, partition.key) == (vector["topic"], vector["partition_id"], vector["key"])
    assert str(partition) == vector["text"]


def test_subscriptions() -> None:
    vector = only("subscribe_info")
    subscription = Subscription.read(str(vector["text"]))
    assert (subscription.consumer, subscription.group) == (vector["consumer_id"], vector["group"])
    assert str(subscription.partition) == vector["partition"]
    assert str(subscription) == vector["text"]


@pytest.mark.parametrize("vector", STRINGS["failure_info"], ids=lambda v: v["text"])
def test_failures(vector: dict[str, object]) -> None:
    failure = Failure.read(str(vector["text"]))
    assert (failure.code, str(failure.partition)) == (vector["code"], vector["partition"])
    assert str(failure) == vector["text"]


@pytest.mark.parametrize("vector", STRINGS["topic_info"], ids=lambda v: v["text"])
def test_topics(vector: dict[str, object]) -> None:
    topic = Topic.read(str(vector["text"]))
    assert (topic.name, [list(part) for part in topic.parts]) == (vector["topic"], vector["brokers"])
    assert topic.largest == vector["max_msg_size"]
    assert str(topic).rstrip("#") == str(vector["text"]).rstrip("#")
    if "partitions_of_broker_1" in vector:
        assert topic.parts[0].ids == vector["partitions_of_broker_1"]


@pytest.mark.parametrize("vector", STRINGS["topic_condition"], ids=lambda v: v["text"])
def test_conditions(vector: dict[str, object]) -> None:
    condition = Condition.read(str(vector["text"]))
    assert (condition.topic, list(condition.items)) == (vector["topic"], vector["filters"])
    assert str(condition) == vector["text"]


def test_lists() -> None:
    offsets = only("required_partition")
    assert join_offsets(offsets["offsets"]) == offsets["text"]  # type: ignore[arg-type]
    held = only("part_sub_info")
    pairs = [(broker, partition) for broker, partition in held["parts"]]  # type: ignore[attr-defined]
    assert join_held(str(held["topic"]), pairs) == held["text"]


def test_what_can_be_subscribed() -> None:
    vector = only("topic_meta_info")
    (item,) = vector["items"]  # type: ignore[misc]
    part = TopicPart(item["broker_id"], item["partitions"], item["stores"])
    assert read_meta(str(vector["text"])) == (vector["topic"], ((part, item["subscribable"]),))
    assert read_meta("t#1:2:3:0,2:1:1:1")[1][0][1] is False


def test_offsets_in_zookeeper() -> None:
    vector = only("zk_offset")
    assert read_offset(str(vector["value"])) == (vector["message_id"], vector["offset"])
    assert write_offset(0, 280) == vector["value"]
    assert read_offset("280") == (0, 280)
    assert read_offset(" 17-28\n") == (17, 28)
    assert read_offset("0--1") == (0, -1)
    assert read_offset("-1-28") == (-1, 28)
    assert read_offset("-5") == (0, -5)
    for text in ("", "x", "1-x", "x-1", "1_0-2_8", "٣-٤", "9223372036854775808", "1-2-3"):
        with pytest.raises(ValueError, match="is no stored offset"):
            read_offset(text)


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (Broker.read, "1", "expected 'id:host:port'"),
        (Broker.read, "1:h", "expected 'id:host:port'"),
        (Broker.read, "x:h:1", "its id is 'x'"),
        (Broker.read, "-1:h:1", "its id is '-1'"),
        (Broker.read, "1:h:70000", "its port is '70000', expected a number from 0 to 65535"),
        (Broker.read, "1:h:²", "its port is '²'"),
        (Broker.read, "99999999999999999999999:h:1", "its id is"),
        (Partition.read, "1:h:1", "expected 'id:host:port#topic:partition'"),
        (Partition.read, "1:h:1#:1", "expected 'id:host:port#topic:partition'"),
        (Partition.read, "1:h:1#t:x", "its partition is 'x'"),
        (Subscription.read, "c@#1:h:1#t:1", "expected 'consumer@group#"),
        (Subscription.read, "c#1:h:1#t:1", "expected 'consumer@group#"),
        (Failure.read, "411", "expected 'code:"),
        (Failure.read, "x:1:h:1#t:0", "its code is 'x'"),
        (Topic.read, "t", "expected 'topic#broker"),
        (Topic.read, "t#1:1", "is not 'broker:partitions:stores'"),
        (Topic.read, "t#1:1:x", "its part is 'x'"),
        (Topic.read, "t#1:2000000000:2000000000", "are more than 65536 partitions"),
        (Topic.read, "t#" + ",".join(f"{i}:65536:1" for i in range(17)), "more than 1048576 partitions"),
        (Topic.read, "t#1:1:1#x", "its largest message is 'x'"),
        (Topic.read, "t#1:1:1#1#1", "expected 'topic#broker"),
        (Condition.read, "t", "expected 'topic#item,item'"),
        (read_meta, "t#1:1:1", "is not 'broker:stores:partitions:status'"),
        (read_meta, "t#1:99999:99999:1", "are more than 65536 partitions"),
        (read_meta, "#1:1:1:1", "expected 'topic#broker"),
    ],
)
def test_what_is_refused(read, text: str, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="is no ") as caught:
        read(text)
    assert why in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("read", READERS)
@given(text=st.text(st.sampled_from("1a:#,@= \0é"), max_size=30))
def test_any_text_is_read_or_refused(read, text: str) -> None:  # type: ignore[no-untyped-def]
    with contextlib.suppress(ValueError):
        read(text)


def test_a_long_text_is_shown_in_part() -> None:
    with pytest.raises(ValueError, match="is no broker") as caught:
        Broker.read("x" * 100_000)
    assert len(str(caught.value)) < 1000
