"""A producer of TubeMQ topics, in the usual course of things: where messages go, and what they carry."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime

import pytest

from dataproxy import AsyncProducer, Producer
from dataproxy.errors import ConfigError, DiscoveryError, InvalidMessageError
from tests.support.consumers import Opener, drain, next_pack
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

SEND = "SendMessageRequestP2B"
HEARTBEAT = "HeartRequestP2M"


def test_messages_are_stored_in_all_partitions_in_turn(tube: TubeServer) -> None:
    bodies = [b"%d" % i for i in range(300)]
    with Producer(tube.target) as producer:
        for body in bodies:
            producer.send_nowait("three", body)
        delivered = producer.send("three", b"last").result(SECONDS)
        report = producer.flush(SECONDS)
    assert (report.accepted, report.delivered, report.failed) == (301, 301, 0)
    assert (delivered.node, delivered.attempts, delivered.position) == (f"127.0.0.1:{tube.broker_port}", 1, 0)
    stored = tube.stored("three")
    assert {one.body for one in stored} == {*bodies, b"last"}
    assert sorted(Counter(one.partition for one in stored).values()) == [100, 100, 101]
    assert all(one.attributes == {} for one in stored)


def test_a_consumer_reads_what_was_sent(tube: TubeServer, opened: Opener) -> None:
    sent = {"$msgType$": "view", "$msgTime$": "202501020304", "user": "u1"}
    with Producer(tube.target) as producer:
        producer.send("one", b"body", attrs=sent).result(SECONDS)
        producer.stream("one", attrs={"app": "web"}).send(b"more", attrs={"$msgType$": "buy"}).result(SECONDS)
        producer.stream("one", attrs={"$msgType$": "all"}).send_batch([b"a", b"b"]).result(SECONDS)
    consumer, found = opened(), []
    while len(found) < 4:
        pack = next_pack(consumer)
        found += [(one.body, one.attributes) for one in pack]
        pack.confirm()
    assert found == [
        (b"body", sent),
        (b"more", {"app": "web", "$msgType$": "buy"}),
        (b"a", {"$msgType$": "all"}),
        (b"b", {"$msgType$": "all"}),
    ]


def test_filter_items_choose_messages(tube: TubeServer, opened: Opener) -> None:
    with Producer(tube.target) as producer:
        for i in range(20):
            producer.send_nowait("one", b"%d" % i, attrs={"$msgType$": "even" if i % 2 == 0 else "odd"})
    assert drain(opened(topics={"one": ["even"]}), 10) == [b"%d" % i for i in range(0, 20, 2)]


def test_a_time_is_an_attribute(tube: TubeServer) -> None:
    when = datetime(2025, 1, 2, 3, 4).astimezone()
    with Producer(tube.target) as producer:
        producer.send("one", b"x", dt=when, attrs={"a": "1"}).result(SECONDS)
    assert [one.attributes for one in tube.stored("one")] == [{"$msgTime$": "202501020304", "a": "1"}]


@pytest.mark.parametrize("size", [1, 8_000, 8_192, 100_000, 1 << 20])
def test_bodies_of_all_sizes(tube: TubeServer, size: int) -> None:
    body = bytes(i * 7 % 251 for i in range(size))
    with Producer(tube.target) as producer:
        producer.send("one", body, attrs={"k": "v"}).result(SECONDS)
        producer.send_batch("one", [memoryview(body)]).result(SECONDS)
    assert [(one.body == body, one.attributes) for one in tube.stored("one")] == [(True, {"k": "v"}), (True, {})]


def test_keys_keep_their_partition_and_their_order(tube: TubeServer) -> None:
    with Producer(tube.target, ordering="key") as producer:
        for i in range(600):
            producer.send_nowait("three", b"%d:%d" % (i % 30, i), key=b"key-%d" % (i % 30))
        producer.send_nowait("three", b"free")
    places: dict[bytes, set[int]] = {}
    order: dict[bytes, list[int]] = {}
    for one in tube.stored("three"):
        key, _, number = one.body.partition(b":")
        places.setdefault(key, set()).add(one.partition)
        order.setdefault(key, []).append(int(number or 0))
    assert len(places) == 31
    assert all(len(found) == 1 for found in places.values())
    assert all(found == sorted(found) for found in order.values())
    assert {next(iter(found)) for found in places.values()} == {0, 1, 2}


def test_a_producer_registers_says_its_topics_and_leaves(tube: TubeServer) -> None:
    producer = Producer(tube.target)
    assert len(tube.producers) == 1
    assert producer.send("one", b"x").result(SECONDS)
    producer.close()
    assert tube.producers == []
    methods = [call.method for call in tube.calls]
    assert methods[0] == "RegisterRequestP2M"
    assert methods[-1] == "CloseRequestP2M"
    assert methods.count(SEND) == 1
    assert len({call.client for call in tube.calls}) == 1


def test_several_brokers_share_the_messages() -> None:
    with TubeServer({"t": 2}, more_brokers=2) as tube, Producer(tube.target) as producer:
        for i in range(3_000):
            producer.send_nowait("t", b"%d" % i)
        assert producer.flush(SECONDS).delivered == 3_000
        places = Counter((one.broker, one.partition) for one in tube.stored("t"))
    assert len(places) == 6
    assert len({(one.broker, one.body) for one in tube.stored("t")}) == 3_000


def test_rows_go_to_the_topics_that_they_name(tube: TubeServer) -> None:
    import pyarrow as pa

    table = pa.table({"topic": ["one", "three"] * 10, "n": list(range(20))})
    with Producer(tube.target) as producer:
        producer.send_rows(None, table, stream_column="topic").result(SECONDS)
        producer.send_arrow("one", pa.array([b"arrow"])).result(SECONDS)
    assert len(tube.stored("one")) == 11
    assert len(tube.stored("three")) == 10
    assert tube.stored("one")[-1].body == b"arrow"


def test_an_asynchronous_producer_sends_too(tube: TubeServer) -> None:
    async def work() -> int:
        async with AsyncProducer(tube.target) as producer:
            first = await producer.send("one", b"first", attrs={"a": "b"})
            await asyncio.gather(*(producer.send("three", b"%d" % i) for i in range(200)))
            assert first.node
            return (await producer.flush()).delivered

    assert asyncio.run(work()) == 201
    assert len(tube.stored("three")) == 200


def test_results_name_the_topic(tube: TubeServer) -> None:
    found = []
    with Producer(tube.target, on_delivery=found.append) as producer:
        producer.send_nowait("one", b"x")
    assert [(one.group_id, one.stream_id, one.error) for one in found] == [("", "one", None)]


@pytest.mark.parametrize(
    ("attrs", "what"),
    [
        ({"a,b": "c"}, "','"), ({"a": "b=c"}, "'='"), ({"": "x"}, "key is empty"), ({"a": "\ud800"}, "surrogate"),
        ({"$msgType$": "a b"}, "filter item"), ({"$msgType$": ""}, "filter item"), ({"a": "x" * 40_000}, "allowed are"),
        ({"$msgTime$": "today"}, "time of a message"),
    ],
)  # fmt: skip
def test_attributes_that_cannot_travel_are_refused(tube: TubeServer, attrs: dict[str, str], what: str) -> None:
    with Producer(tube.target) as producer:
        with pytest.raises(InvalidMessageError, match=what) as caught:
            producer.send("one", b"x", attrs=attrs)
        assert caught.value.code == "BAD_ATTRIBUTE"
        with pytest.raises(InvalidMessageError, match="same name"):
            producer.stream("one", attrs={"a": "1"}).send(b"x", attrs={"a": "2"})
    assert tube.stored("one") == []


def test_messages_that_cannot_be_sent_are_refused(tube: TubeServer) -> None:
    tube.settings.max_body_bytes = 50_000
    with Producer(tube.target) as producer:
        with pytest.raises(InvalidMessageError, match="empty"):
            producer.send("one", b"")
        with pytest.raises(InvalidMessageError) as caught:
            producer.send("one", b"x" * 60_000)
        assert caught.value.code == "BODY_TOO_LARGE"
        assert producer.send("one", b"x" * 50_000).result(SECONDS)
        with pytest.raises(InvalidMessageError, match="not a name of a topic"):
            producer.send("1", b"x")
        with pytest.raises(InvalidMessageError, match="no meaning in TubeMQ"):
            producer.send("one", b"x", group_id="g")
        with pytest.raises(InvalidMessageError, match="ids"):
            producer.send("one", b"x", message_id="m")
        with pytest.raises(ConfigError, match="ordering"):
            producer.send("one", b"x", key=b"k")


def test_a_user_is_proved_to_master_and_broker(tube: TubeServer) -> None:
    tube.settings.require_auth = True
    with pytest.raises(DiscoveryError, match="415") as caught:
        Producer(tube.target)
    assert "user and password" in caught.value.hint
    with Producer(tube.target, user="u", password="p") as producer:
        for i in range(50):
            producer.send_nowait("three", b"%d" % i)
    assert len(tube.stored("three")) == 50


def test_a_heartbeat_keeps_a_producer_known(tube: TubeServer) -> None:
    with Producer(tube.target, discovery_interval=1.0) as producer:
        producer.send("one", b"x").result(SECONDS)
        first = [call.method for call in tube.calls].count(HEARTBEAT)
        assert eventually(lambda: [call.method for call in tube.calls].count(HEARTBEAT) >= first + 2)
