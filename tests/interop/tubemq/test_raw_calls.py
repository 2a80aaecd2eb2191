"""TubeMQ's own servers take our calls as their own, one by one, and we read what they answer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dataproxy.wire.tubemq.texts import Failure, Partition, Subscription
from tests.support.rawclient import INDEX, Connection, Reader, RpcError, Sender, bodies, read_all
from tests.support.tubekit import Servers

_NAMES = itertools.count(1)


@pytest.fixture
def master(tubemq: Servers) -> Iterator[Connection]:
    with Connection(tubemq.master) as connection:
        yield connection


@pytest.fixture
def broker(tubemq: Servers) -> Iterator[Connection]:
    with Connection(tubemq.broker) as connection:
        yield connection


@pytest.fixture
def group() -> str:
    """Return the name of a group that nobody has used."""
    return f"group_{next(_NAMES)}"


def test_messages_go_in_and_come_out(master: Connection, broker: Connection, group: str) -> None:
    sender, reader = Sender(master, broker, "one"), Reader(broker, "one", group)
    assert reader.register(2).errCode == 200
    sizes = [1, 100, 8000, 8192, 8193, 20_000, 500_000, 1_000_000]
    sent = [bytes(i % 251 for i in range(size)) for size in sizes]
    offsets = []
    for body in sent:
        answer = sender.send(
            0, body, attribute=b"$msgType$=a,$msgTime$=202611251200,k=v", msgType=b"a", msgTime=b"202611251200"
        )
        assert answer["errCode"] == 200, answer
        assert int(answer["errMsg"]) == answer["messageId"] > 0
        assert abs(answer["appendTime"] - time.time() * 1000) < 60_000
        offsets.append(answer["appendOffset"])
    assert [b - a for a, b in itertools.pairwise(offsets)] == [INDEX] * (len(sent) - 1)
    assert read_all(reader, len(sent)) == sent
    assert reader.unregister().errCode == 200
    sender.close()


def test_a_wrong_checksum_is_refused(master: Connection, broker: Connection) -> None:
    answer = Sender(master, broker, "one").send(0, b"abc", checksum=1)
    assert (answer["success"], answer["errCode"]) == (False, 403)


def test_offsets_move_as_packs_are_confirmed(master: Connection, broker: Connection, group: str) -> None:
    """Register, read, read again, confirm by call, by flag, and by the end of the registration."""
    sender, reader = Sender(master, broker, "one"), Reader(broker, "one", group)
    begin = reader.register(2).currOffset
    for i in range(3):
        assert sender.send(0, b"m%d" % i)["errCode"] == 200
    first = reader.get()
    assert (first["errCode"], first["currOffset"], bodies(first)) == (200, begin, [b"m0", b"m1", b"m2"])
    assert bodies(reader.get()) == [b"m0", b"m1", b"m2"]
    assert reader.commit(False)["currOffset"] == begin
    assert bodies(reader.get()) == [b"m0", b"m1", b"m2"]
    assert reader.commit()["currOffset"] == begin + 3 * INDEX
    nothing = reader.get()
    assert (nothing["errCode"], nothing["success"], nothing["messages"]) == (404, False, [])
    assert sender.send(0, b"m3")["errCode"] == 200
    assert bodies(reader.get()) == [b"m3"]
    assert sender.send(0, b"m4")["errCode"] == 200
    assert bodies(reader.get(consumed=True)) == [b"m4"]
    assert reader.unregister(1).errCode == 200  # m4 is not confirmed
    assert reader.register(0).currOffset == begin + 4 * INDEX
    assert bodies(reader.get()) == [b"m4"]
    assert reader.unregister(0).errCode == 200  # now it is
    assert reader.register(0).currOffset == begin + 5 * INDEX
    reader.unregister()


def test_a_confirm_and_the_next_request_need_no_round_trip_between_them(
    master: Connection, broker: Connection, group: str
) -> None:
    sender, reader = Sender(master, broker, "one"), Reader(broker, "one", group)
    reader.register(2)
    for i in range(2):
        assert sender.send(0, b"p%d" % i)["errCode"] == 200
    assert bodies(reader.get()) == [b"p0", b"p1"]
    assert sender.send(0, b"p2")["errCode"] == 200
    fields = reader.fields()
    commit = broker.post_data(
        "CommitOffsetRequestC2B", lastPackConsumed=True,
        **{name: fields[name] for name in ("clientId", "groupName", "topicName", "partitionId")},
    )  # fmt: skip
    get = broker.post_data("GetMessageRequestC2B", **fields)
    assert broker.answer_data(commit, "CommitOffsetRequestC2B")["errCode"] == 200
    assert bodies(broker.answer_data(get, "GetMessageRequestC2B")) == [b"p2"]
    reader.unregister()


def test_who_does_not_hold_a_partition_gets_nothing(broker: Connection, group: str) -> None:
    owner, other = Reader(broker, "one", group), Reader(broker, "one", group)
    assert other.get()["errCode"] == 411
    assert other.commit()["errCode"] == 401
    assert other.unregister().errCode == 411
    assert owner.register().errCode == 200
    taken = other.register()
    assert (taken.errCode, owner.client in taken.errMsg) == (410, True)
    assert other.get()["errCode"] == 412
    assert other.commit()["errCode"] == 401
    assert owner.unregister().errCode == 200
    wrong = Reader(broker, "one", group, partition=7).register()
    assert (wrong.errCode, "Wrong partition value 7" in wrong.errMsg) == (500, True)
    assert Reader(broker, "nowhere", group).register().errCode == 403


def test_a_group_begins_where_it_is_told(master: Connection, broker: Connection, group: str) -> None:
    """Without a word to the master: a broker asks for none."""
    sender, reader = Sender(master, broker, "one"), Reader(broker, "one", group)
    offsets = [sender.send(0, b"b%d" % i)["appendOffset"] for i in range(4)]
    assert reader.register(0, currOffset=offsets[2]).currOffset == offsets[2]
    assert bodies(reader.get()) == [b"b2", b"b3"]
    assert reader.unregister(0).errCode == 200
    assert reader.register(0, currOffset=offsets[1]).currOffset == offsets[1]
    assert bodies(reader.get()) == [b"b1", b"b2", b"b3"]
    reader.unregister()


def test_a_master_gives_partitions_and_takes_them_back(master: Connection, broker: Connection, group: str) -> None:
    reader = Reader(broker, "three", group)
    who = {"clientId": reader.client, "groupName": group}
    ids: dict[str, Any] = {"defFlowCheckId": -2, "groupFlowCheckId": -2, "qryPriorityId": -2, "ssdStoreId": -2}
    answer = master.ask(
        "RegisterRequestC2M", hostName="127.0.0.1", topicList=["three"], requireBound=False,
        sessionTime=int(time.time() * 1000), notAllocated=True, jdkVersion="", **who, **ids,
    )  # fmt: skip
    assert (answer.errCode, answer.notAllocated) == (200, True)
    deadline = time.monotonic() + 30
    while not (answer := master.ask("HeartRequestC2M", reportSubscribeInfo=False, **who, **ids)).HasField("event"):
        assert (answer.errCode, time.monotonic() < deadline) == (200, True)
        time.sleep(0.5)
    event = answer.event
    assert event.opType in (1, 10)
    assert event.rebalanceId > 0
    held = [Subscription.read(text) for text in event.subscribeInfo]
    assert {one.consumer for one in held} == {reader.client}
    assert sorted(one.partition.id for one in held) == [0, 1, 2]
    texts = [str(one) for one in held]
    assert texts == list(event.subscribeInfo)
    done = {"rebalanceId": event.rebalanceId, "opType": event.opType, "status": 2, "subscribeInfo": texts}
    answer = master.ask("HeartRequestC2M", reportSubscribeInfo=True, subscribeInfo=texts, event=done, **who, **ids)
    assert (answer.errCode, answer.HasField("event")) == (200, False)
    for one in held:
        assert Partition.read(str(one.partition)) == one.partition
    assert master.ask("CloseRequestC2M", **who).errCode == 200
    assert master.ask("HeartRequestC2M", reportSubscribeInfo=False, **who, **ids).errCode == 411


def test_a_result_makes_a_master_forget_an_event_whose_answer_was_lost(
    master: Connection, broker: Connection, group: str
) -> None:
    """It looks at neither number nor kind of a result; without one the group waits for ten balances, 50 s here."""
    reader = Reader(broker, "three", group)
    who = {"clientId": reader.client, "groupName": group}
    ids: dict[str, Any] = {"defFlowCheckId": -2, "groupFlowCheckId": -2, "qryPriorityId": -2, "ssdStoreId": -2}
    registration = {"hostName": "127.0.0.1", "topicList": ["three"], "requireBound": False, "notAllocated": True}
    answer = master.ask(
        "RegisterRequestC2M", sessionTime=int(time.time() * 1000), jdkVersion="", **registration, **who, **ids
    )
    assert answer.errCode == 200

    def event(until: float, **fields: Any) -> Any:
        while True:
            answer = master.ask("HeartRequestC2M", **{"reportSubscribeInfo": False, **fields}, **who, **ids)
            if answer.HasField("event") or time.monotonic() > until:
                return answer.event
            fields = {}
            time.sleep(0.5)

    lost = event(time.monotonic() + 30)
    done = {"rebalanceId": 1, "opType": 20, "status": 2}
    again = event(time.monotonic() + 20, reportSubscribeInfo=True, event=done)
    assert sorted(again.subscribeInfo) == sorted(lost.subscribeInfo) != []
    assert again.rebalanceId > lost.rebalanceId
    held = {"reportSubscribeInfo": True, "subscribeInfo": list(again.subscribeInfo)}
    for _ in range(3):  # the first one ends the event, behind it nothing was lost
        answer = master.ask("HeartRequestC2M", event=done, **held, **who, **ids)
        assert (answer.errCode, answer.HasField("event")) == (200, False)
    assert master.ask("CloseRequestC2M", **who).errCode == 200


def test_unknown_calls_are_answered_by_an_exception(tubemq: Servers) -> None:
    with Connection(tubemq.master) as connection, pytest.raises(RpcError, match="No service 2 found"):
        connection.ask_data(
            "CommitOffsetRequestC2B", clientId=b"x", topicName=b"x", partitionId=0, groupName=b"x",
            lastPackConsumed=True,
        )  # fmt: skip


def test_a_producer_that_the_master_does_not_know(master: Connection) -> None:
    answer = master.ask(
        "HeartRequestP2M", clientId="nobody", brokerCheckSum=-1, hostName="127.0.0.1", appdConfig={"configId": -2}
    )
    assert (answer.success, answer.errCode) == (False, 411)


def test_reading_on_without_a_confirm(master: Connection, broker: Connection, group: str) -> None:
    """A confirm covers all that was read: so a pack that waits for its turn must not be read on past."""
    sender, reader = Sender(master, broker, "one"), Reader(broker, "one", group)
    begin = reader.register(2).currOffset
    for i in range(6):
        assert sender.send(0, bytes([i]) * 200_000)["errCode"] == 200
    first, second = reader.get(manual=True), reader.get(manual=True)
    assert [body[0] for body in bodies(first) + bodies(second)] == [0, 1, 2, 3, 4, 5]
    assert (first["currOffset"], second["currOffset"]) == (begin, begin + INDEX * len(first["messages"]))
    assert reader.commit()["currOffset"] == begin + 6 * INDEX
    reader.unregister()


def test_who_left_without_a_word_keeps_a_partition(tubemq: Servers, broker: Connection, group: str) -> None:
    """A registration belongs to the name, not to the connection."""
    with Connection(tubemq.broker) as connection:
        owner = Reader(connection, "one", group)
        assert owner.register().errCode == 200
    assert Reader(broker, "one", group).register().errCode == 410
    assert broker.ask("HeartBeatRequestC2B", readStatus=0, **owner.heartbeat()).errCode == 200
    again = owner.heartbeat("three")
    failed = broker.ask("HeartBeatRequestC2B", readStatus=0, **again)
    assert (failed.errCode, failed.hasPartFailure) == (200, True)
    assert [Failure.read(text).code for text in failed.failureInfo] == [411]
