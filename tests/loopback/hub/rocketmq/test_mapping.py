"""What one protocol has stored, and another one reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataproxy import Producer
from dataproxy._core.server.tubemq.callcore import CallsCore
from dataproxy.hub.reading.records import read_records
from tests.native import probe_rocketmq as wire
from tests.support.rawclient import Connection
from tests.support.remoting import Port, batch, messages, properties
from tests.support.waiting import SECONDS, eventually

Start = Callable[..., Port]


@pytest.fixture(params=["memory", "disk"])
def both(request: pytest.FixtureRequest, start_port: Start, tmp_path: object) -> Port:
    """Return a port beside one of TubeMQ."""
    port = start_port(
        f"{tmp_path}/store" if request.param == "disk" else None, tubemq_port=0, tubemq_message=1 << 20,
        tubemq_partitions=4, tube=CallsCore(16, 1 << 20),
    )  # fmt: skip
    port.topic("T")
    return port


def test_messages_of_dataproxy_are_read(both: Port) -> None:
    with Producer(f"tcp://127.0.0.1:{both.core.port}", group_id="T") as producer:
        producer.send("view", b"click 1").result(timeout=SECONDS)
        producer.send("other", b"click 2").result(timeout=SECONDS)
    remote = both.connect()
    found = [one for queue in range(4) for one in remote.pull("T", queueId=queue)["found"]]
    assert {wire.property_of(one["properties"], b"TAGS") for one in found} == {b"view", b"other"}
    for one in found:
        assert one["body"][:1] == b"\x0f"  # InLong's container
        assert b"click" in one["body"]
        assert one["bodyCRC"] == wire.checksum(one["body"])
        assert (one["topic"], one["sysFlag"], one["bornHost"][0]) == (b"T", 0, bytes([127, 0, 0, 1]))
    assert sum(len(remote.pull("T", queueId=i, subscription=b"view")["found"]) for i in range(4)) == 1


def test_messages_of_tubemq_are_read(both: Port) -> None:
    sent = {"clientId": b"c", "topicName": b"T", "partitionId": 2, "sentAddr": 0, "checkSum": -1, "msgTime": b""}
    with Connection(both.core.ports[both.core.tubemq], SECONDS) as tube:
        for flag, data, kind in ((0, b"plain", b""), (1, b"\x00\x00\x00\x0d$msgType$=tag" + b"text", b"tag")):
            answer = tube.ask_data("SendMessageRequestP2B", data=data, flag=flag, msgType=kind, **sent)
            assert answer["errCode"] == 200, answer
    remote = both.connect()
    [first, second] = remote.pull("T", queueId=2)["found"]
    assert (first["body"], first["properties"]) == (b"plain", b"")
    assert (second["body"], second["properties"]) == (b"text", properties(TAGS="tag"))
    assert [one["body"] for one in remote.pull("T", queueId=2, subscription=b"tag")["found"]] == [b"text"]


def test_messages_of_rocketmq_are_read_as_records(both: Port) -> None:
    remote = both.connect()
    remote.send("T", b"body", queueId=3, flag=5, properties=properties(TAGS="view", KEYS="a b", odd="x&y=%"))
    remote.send("T", batch((1, b"one", b""), (2, b"two", properties(TAGS="view"))), 320, queueId=3)
    found = list(read_records(both.store, "T"))
    assert [(one.partition, one.offset, one.stream_id, one.body) for one in found] == [
        (3, 0, "view", b"body"), (3, 1, "", b"one"), (3, 2, "view", b"two"),
    ]  # fmt: skip
    first = found[0]
    assert first.group_id == "T"
    port = remote.socket.getsockname()[1]
    assert first.attrs["rocketmq"] == f"5,0,1700000000000,0,0,7F000001{port:08X}"
    assert first.attrs["properties"] == "TAGS%01view%02KEYS%01a b%02odd%01x%26y%3D%25"
    assert [one.body for one in read_records(both.store, "T", "view")] == [b"body", b"two"]


def test_offsets_of_a_group_are_those_of_tubemq(both: Port) -> None:
    both.remoting.commit("g", "T", 1, 5)
    assert both.registrations.found() == [(b"g", b"T", 1, b"", 140, 0)]
    both.registrations.reset(b"g", b"T", 1, 28 * 7)
    assert both.remoting.committed("g", "T", 1) == 7


def test_a_wait_ends_with_a_message_of_another_protocol(both: Port) -> None:
    remote = both.connect()
    numbers = [remote.ask("T", queueId=i, sysFlag=6, suspendTimeoutMillis=20_000) for i in range(4)]
    with Producer(f"tcp://127.0.0.1:{both.core.port}", group_id="T") as producer:
        producer.send("view", b"click").result(timeout=SECONDS)
    assert eventually(lambda: both.remoting.stats()["waiting"] == 3)
    while not remote.answers:
        remote.receive()
    [(number, frame)] = remote.answers.items()
    assert number in numbers
    assert b"click" in messages(frame)[0]["body"]
