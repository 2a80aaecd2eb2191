"""Packs of messages from a hub's broker, byte by byte as from TubeMQ's: positions, filters, limits, codes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Producer
from dataproxy.hub import Hub
from tests.native import probe_tubemq as wire
from tests.support.rawclient import INDEX, Connection, Reader, Sender, bodies
from tests.support.reference.containers import decode
from tests.support.waiting import SECONDS, eventually

Raw = Callable[[Hub], Connection]
Start = Callable[..., Hub]


@pytest.fixture(params=["memory", "disk"])
def stored(request: pytest.FixtureRequest, start_hub: Start, tmp_path: Path) -> Hub:
    """A hub of each kind of store."""
    return start_hub(*([tmp_path / "s"] if request.param == "disk" else []), tubemq_port=0, partitions=3)


@pytest.fixture
def sender(stored: Hub, raw: Raw) -> Iterator[Sender]:
    connection = raw(stored)
    one = Sender(connection, connection, "demo")
    yield one
    one.close()


def fill(sender: Sender, count: int, items: str = "a", partition: int = 0, size: int = 0) -> list[bytes]:
    """Send messages with filter items in turn; return their bodies."""
    sent = []
    for i in range(count):
        item = items[i % len(items)].encode()
        sent.append(b"%d" % i + b"." * size)
        assert sender.send(partition, sent[-1], attribute=b"$msgType$=" + item, msgType=item)["errCode"] == 200
    return sent


def reader(stored: Hub, raw: Raw, group: str = "g", read_status: int = 0, **more: Any) -> Reader:
    one = Reader(raw(stored), "demo", group)
    assert one.register(read_status, **more).errCode == 200
    return one


def test_a_pack_comes_again_until_it_is_confirmed(stored: Hub, sender: Sender, raw: Raw) -> None:
    sent = fill(sender, 7)
    one = reader(stored, raw)
    for _ in range(2):
        answer = one.get()
        assert (answer["errCode"], answer["currOffset"], answer["maxOffset"]) == (200, 0, 7 * INDEX)
        assert (answer["errMsg"], answer["escFlowCtrl"], answer["requireSlow"]) == (b"OK!", False, False)
        assert (answer["currDataDlt"], answer["minLimitTime"]) == (0, 0)
        assert bodies(answer) == sent
    assert one.commit(False)["currOffset"] == 0
    assert bodies(one.get()) == sent
    answer = one.commit()
    assert (answer["errCode"], answer["currOffset"], answer["maxOffset"]) == (200, 7 * INDEX, 7 * INDEX)
    assert one.commit()["currOffset"] == 7 * INDEX
    answer = one.get(consumed=True)
    assert (answer["errCode"], answer["currOffset"], answer["currDataDlt"], answer["minLimitTime"]) == (404, -1, -1, 0)


def test_the_next_request_can_confirm(stored: Hub, sender: Sender, raw: Raw) -> None:
    one = reader(stored, raw)
    for i in range(3):
        sent = fill(sender, 4)
        answer = one.get(consumed=True)
        assert (answer["currOffset"], bodies(answer)) == (4 * i * INDEX, sent)
    assert bodies(one.get()) == sent
    assert one.unregister(0).errCode == 200
    assert reader(stored, raw).register().currOffset == 12 * INDEX


def test_reading_on_without_a_confirm(stored: Hub, sender: Sender, raw: Raw) -> None:
    first, second = fill(sender, 2), fill(sender, 3, size=1)
    one = reader(stored, raw)
    assert bodies(one.get(manual=True)) == first + second
    third = fill(sender, 1, size=2)
    answer = one.get(manual=True)
    assert (answer["currOffset"], bodies(answer)) == (5 * INDEX, third)
    assert one.commit()["currOffset"] == 6 * INDEX


def test_each_message_has_its_place_as_id(stored: Hub, sender: Sender, raw: Raw) -> None:
    answers = [sender.send(0, b"%d" % i) for i in range(5)]
    found = reader(stored, raw).get()["messages"]
    assert [one["messageId"] for one in found] == [one["messageId"] for one in answers]
    assert [one["flag"] for one in found] == [0] * 5


def test_payloads_come_back_to_the_byte(stored: Hub, sender: Sender, raw: Raw) -> None:
    attributes = [b"", b"k=v", b"$msgType$=a,$msgTime$=202607010930,x=%26&y", b"\xff\xfe", b"k=" + b"=" * 20_000]
    payloads = [wire.payload(one, b"body %d" % i) for i, one in enumerate(attributes)]
    for one in attributes:
        assert sender.send(0, b"body %d" % attributes.index(one), attribute=one)["errCode"] == 200
    found = reader(stored, raw).get()["messages"]
    assert [(one["flag"], one["payLoadData"]) for one in found] == payloads
    assert all(wire.checksum(one["payLoadData"]) == one["checkSum"] for one in found)


def test_what_dataproxy_producers_send_is_inlongs_container(stored: Hub, raw: Raw) -> None:
    with Producer(stored.target, group_id="demo") as producer:
        producer.stream("s_click").send_batch([b"one", b"two"]).result(SECONDS)
    partition = next(record.partition for record in stored.records("demo"))
    one = Reader(raw(stored), "demo", "g", partition)
    assert eventually(lambda: one.register().errCode == 200)  # the hub looks at the store's topics from time to time
    (message,) = one.get()["messages"]
    attribute, body = wire.split(message["flag"], message["payLoadData"])
    minute = time.strftime("%Y%m%d%H%M", time.localtime(next(stored.records("demo")).dt_ms // 1000))
    assert attribute == b"$msgType$=s_click,$msgTime$=" + minute.encode()
    assert wire.checksum(message["payLoadData"]) == message["checkSum"]
    assert [text for text, _ in decode(body)] == [b"one", b"two"]


@pytest.mark.parametrize("items", ["a", "ab", "abc", "ca"])
def test_filters_give_what_matches_and_nothing_else(stored: Hub, sender: Sender, raw: Raw, items: str) -> None:
    sent = fill(sender, 60, "abcd")
    wanted = [body for i, body in enumerate(sent) if "abcd"[i % 4] in items]
    one = reader(stored, raw, filterCondStr=list(items))
    answer = one.get()
    assert (bodies(answer), answer["currOffset"]) == (wanted, 0)
    assert one.commit()["currOffset"] == 60 * INDEX


def test_what_does_not_match_counts_as_read(stored: Hub, sender: Sender, raw: Raw) -> None:
    fill(sender, 50, "a")
    one = reader(stored, raw, filterCondStr=["b", "never"])
    assert one.get()["errCode"] == 404
    assert one.commit()["currOffset"] == 50 * INDEX
    sent = fill(sender, 1, "b")
    answer = one.get()
    assert (bodies(answer), answer["currOffset"]) == (sent, 50 * INDEX)


def test_start_positions(stored: Hub, sender: Sender, raw: Raw) -> None:
    fill(sender, 5)
    for read_status, offset in ((0, 0), (1, 5), (2, 5)):
        answer = Reader(raw(stored), "demo", f"g{read_status}").register(read_status)
        assert (answer.currOffset, answer.maxOffset) == (offset * INDEX, 5 * INDEX)


@pytest.mark.parametrize(("wanted", "offset"), [(0, 0), (2 * INDEX, 2), (99 * INDEX, 5), (2 * INDEX + 5, 2)])
def test_bound_consumption_begins_where_it_is_told(
    stored: Hub, sender: Sender, raw: Raw, wanted: int, offset: int
) -> None:
    sent = fill(sender, 5)
    one = reader(stored, raw, currOffset=wanted)
    answer = one.get()
    assert answer["errCode"] == (200 if offset < 5 else 404)
    assert bodies(answer) == sent[offset:]
    if offset < 5:
        assert one.commit()["currOffset"] == 5 * INDEX


def test_a_pack_has_limits(stored: Hub, sender: Sender, raw: Raw) -> None:
    sent = fill(sender, 12, size=100_000) + fill(sender, 2, size=1_000_000)
    one, found, counts = reader(stored, raw), [], []
    while len(found) < len(sent):
        answer = one.get(consumed=True)
        found += bodies(answer)
        counts.append(len(answer["messages"]))
        assert answer["currOffset"] == (len(found) - counts[-1]) * INDEX
        assert (answer["currDataDlt"] > 0) == (len(found) < len(sent))
    assert found == sent
    assert counts == [4, 4, 4, 1, 1]  # 320 KiB are enough, 512 KiB too many


def test_codes_of_who_has_no_right(stored: Hub, sender: Sender, raw: Raw) -> None:
    fill(sender, 3)
    stranger = Reader(raw(stored), "demo", "g")
    assert stranger.get()["errCode"] == 411
    assert stranger.commit()["errCode"] == 401
    one = reader(stored, raw)
    assert (stranger.get()["errCode"], stranger.get(consumed=True)["errCode"]) == (412, 412)
    assert stranger.commit()["errCode"] == 401
    assert len(bodies(one.get())) == 3
    assert one.unregister().errCode == 200
    assert one.get(consumed=True)["errCode"] == 411


def test_an_owner_loses_its_partition_in_time(stored: Hub, sender: Sender, raw: Raw) -> None:
    fill(sender, 3)
    one = reader(stored, raw)
    assert len(bodies(one.get())) == 3
    stored._core.advance_clock(60.0)
    assert one.get(consumed=True)["errCode"] == 411
    other = Reader(raw(stored), "demo", "g")
    assert other.register().errCode in (200, 410)  # 410: this very call has removed the owner
    assert other.register().currOffset == 0


def test_a_group_that_is_behind_the_oldest_message_goes_on_there(start_hub: Start, raw: Raw) -> None:
    hub = start_hub(tubemq_port=0, max_store_bytes=1 << 20)
    connection = raw(hub)
    sender = Sender(connection, connection, "demo")
    fill(sender, 1)
    one = reader(hub, raw)
    assert len(bodies(one.get(consumed=True))) == 1
    sent = fill(sender, 40, size=50_000)
    answer = one.get()
    first = answer["currOffset"] // INDEX
    assert 20 < first < 30
    assert bodies(answer) == sent[first - 1 :][:7]


def test_a_request_that_cannot_be_read_is_refused(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    for name in ("GetMessageRequestC2B", "CommitOffsetRequestC2B"):
        assert connection.answer_data(connection._post(name, b"\x0a\x01c"), name)["errCode"] == 400
