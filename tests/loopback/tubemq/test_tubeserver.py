"""The TubeMQ servers in plain Python, beyond what TubeMQ's own are asked: messages, offsets, registrations, groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import Subscription
from tests.native import probe_tubemq as wire
from tests.support.rawclient import INDEX, Connection, Reader, RpcError, Sender, bodies
from tests.support.rawmember import Process, together
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "golden" / "tubemq.json").read_text())
IDS: dict[str, Any] = {"defFlowCheckId": -2, "groupFlowCheckId": -2, "qryPriorityId": -2, "ssdStoreId": -2}
GET, COMMIT = "GetMessageRequestC2B", "CommitOffsetRequestC2B"
SEND, TAKE, BEAT = "SendMessageRequestP2B", "RegisterRequestC2B", "HeartBeatRequestC2B"


def join(master: Connection, client: str, group: str = "g", topics: tuple[str, ...] = ("one",), **more: Any) -> Any:
    """Register at a master."""
    fields = {"hostName": "127.0.0.1", "topicList": topics, "clientId": client, "groupName": group, **IDS, **more}
    return master.ask("RegisterRequestC2M", **fields)


def beat(master: Connection, client: str, group: str = "g", **more: Any) -> Any:
    """Send a heartbeat to a master."""
    fields = {"reportSubscribeInfo": False, "clientId": client, "groupName": group, **IDS, **more}
    return master.ask("HeartRequestC2M", **fields)


def done(event: Any) -> dict[str, Any]:
    """Return the fields of a heartbeat that reports the end of an event by which a member has what it was given."""
    held = list(event.subscribeInfo) if event.opType in (1, 10) else []
    return {"event": event, "reportSubscribeInfo": True, "subscribeInfo": held}


# --- producers and messages


def test_producers_are_told_brokers_and_topics(server: TubeServer, master: Connection) -> None:
    settings = {"clientId": "p", "hostName": "127.0.0.1"}
    first = master.ask("RegisterRequestP2M", brokerCheckSum=-1, appdConfig={"configId": -2}, **settings)
    assert list(first.brokerInfos) == [f"1:127.0.0.1:{server.broker_port}"]
    assert (first.appdConfig.configId, first.appdConfig.HasField("maxMsgSize")) == (-2, False)
    same = {"brokerCheckSum": first.brokerCheckSum, **settings}
    beat = master.ask("HeartRequestP2M", topicList=["three", "nowhere", "one"], **same)
    assert (list(beat.topicInfos), list(beat.brokerInfos)) == (["three#1:3:1#", "one#1:1:1#"], [])
    again = master.ask("HeartRequestP2M", topicList=[], **{**same, "brokerCheckSum": -1})
    assert (list(again.topicInfos), list(again.brokerInfos)) == ([], list(first.brokerInfos))
    for _ in range(2):
        assert master.ask("CloseRequestP2M", clientId="p").errCode == 200
    gone = master.ask("HeartRequestP2M", **same)
    assert (gone.errCode, gone.success, gone.brokerCheckSum) == (411, False, -1)
    assert master.ask("RegisterRequestP2M", brokerCheckSum=-1, **{**settings, "clientId": " "}).errCode == 400


def test_the_largest_message_is_told_and_kept() -> None:
    with TubeServer({"one": 1}, max_body_bytes=1000) as server, Connection(server.master_port) as master:
        settings = {"clientId": "p", "hostName": "h", "brokerCheckSum": -1}
        told = master.ask("RegisterRequestP2M", appdConfig={"configId": -2}, **settings).appdConfig
        assert (told.configId, told.maxMsgSize) == (1, 1000)
        known = master.ask("HeartRequestP2M", appdConfig={"configId": 1}, **settings).appdConfig
        assert (known.configId, known.HasField("maxMsgSize")) == (1, False)
        with Connection(server.broker_port) as broker:
            sender = Sender(master, broker, "one")
            most = 1000 + (10 << 10)
            assert sender.send(0, b"x" * most)["errCode"] == 200
            refused = sender.send(0, b"x" * (most + 1))
            assert (refused["errCode"], str(most) in refused["errMsg"].decode()) == (400, True)
            assert sender.send(0, b"")["errCode"] == 400


def test_what_is_sent_is_stored_once_it_is_right(server: TubeServer, master: Connection, broker: Connection) -> None:
    sender = Sender(master, broker, "three")
    answers = [sender.send(i, b"m", checksum=-1) for i in (2, 0)]
    assert [one["appendOffset"] for one in answers] == [0, INDEX]
    assert answers[1]["messageId"] > answers[0]["messageId"]
    assert sender.send(3, b"m")["errCode"] == 403
    assert sender.send(-1, b"m")["errCode"] == 403
    assert server.end("three") == 2 * INDEX
    assert [call[2:] for call in server.calls if call.method == SEND] == [
        ("three", 2, 200), ("three", 0, 200), ("three", 3, 403), ("three", -1, 403),
    ]  # fmt: skip


def test_a_test_puts_messages_without_a_producer(server: TubeServer, broker: Connection) -> None:
    assert server.put("three", b"a", partition=1, attribute="$msgType$=t,k=v") == 0
    assert server.put("three", b"b", partition=0) == INDEX
    reader = Reader(broker, "three", "g", 1)
    reader.register()
    (message,) = reader.get()["messages"]
    assert wire.split(message["flag"], message["payLoadData"]) == (b"$msgType$=t,k=v", b"a")
    with pytest.raises(ValueError, match="no partition 3"):
        server.put("three", b"c", partition=3)


# --- packs and offsets


def test_the_vectors_of_offsets(broker: Connection, server: TubeServer) -> None:
    """4 messages, then 2, then 1: packs end where their bytes do."""
    server.settings.pack_bytes = 4 * (100 + 52)
    for size in (100, 100, 100, 100, 600, 8, 1000):
        server.put("one", bytes(size))
    steps = iter(VECTORS["offset_semantics"])
    reader = Reader(broker, "one", "g")

    def settled(answer: dict[str, Any] | None = None) -> None:
        step = next(steps)
        assert server.confirmed("g", "one", 0) == step["committed"], step
        if answer is not None and "returned_curr_offset" in step:
            assert (answer["currOffset"], len(answer["messages"]) * INDEX) == (
                step["returned_curr_offset"], step["pending"],
            )  # fmt: skip

    assert reader.register(0).maxOffset == 196
    settled()
    settled(reader.get())
    settled(reader.get())
    assert reader.commit()["currOffset"] == 112
    settled()
    server.settings.pack_bytes = 700
    settled(reader.get(consumed=True))
    settled(reader.get(consumed=True))
    assert reader.unregister(1).currOffset == -1
    step = next(steps)
    assert server.confirmed("g", "one", 0) == step["committed"]


def test_partitions_of_a_store_share_its_offsets(server: TubeServer, broker: Connection) -> None:
    """A partition's pack steps over what lies between; behind its last message a 404 moves the group on."""
    for i in range(6):
        server.put("three", b"%d" % i, partition=i % 2)
    readers = [Reader(broker, "three", "g", i) for i in range(3)]
    for reader in readers:
        assert (reader.register().currOffset, reader.register().maxOffset) == (0, 6 * INDEX)
    assert [bodies(reader.get()) for reader in readers] == [[b"0", b"2", b"4"], [b"1", b"3", b"5"], []]
    assert readers[0].commit()["currOffset"] == 6 * INDEX  # it looked through the last message of the other one, too
    assert readers[1].commit()["currOffset"] == 6 * INDEX
    assert server.confirmed("g", "three", 2) == 6 * INDEX  # nothing was there: confirmed at once
    assert server.confirmed("g", "one", 0) is None
    assert [call[1:] for call in server.calls if call.method == GET] == [
        (reader.client, "three", i, code) for i, (reader, code) in enumerate(zip(readers, (200, 200, 404), strict=True))
    ]


def test_filters_compare_hashes_and_look_at_the_whole_store(server: TubeServer, broker: Connection) -> None:
    for i, item in enumerate(("a", "b", "", "a", "Aa", "c")):
        server.put("three", b"%d" % i, partition=0, attribute=f"$msgType$={item}" if item else "")
    server.put("three", b"other", partition=1, attribute="$msgType$=c")
    reader = Reader(broker, "three", "g")
    reader.register(filterCondStr=["a", " BB ", ""])  # BB has the hash of Aa
    pack = reader.get()
    assert (bodies(pack), pack["requireSlow"]) == ([b"0", b"3", b"4"], True)
    assert reader.commit()["currOffset"] == 7 * INDEX
    other = Reader(broker, "three", "h")
    other.register(currOffset=6 * INDEX, filterCondStr=["c"])
    pack = other.get()  # some partition has a message of that type
    assert (pack["errCode"], pack["messages"], pack["currOffset"]) == (200, [], 6 * INDEX)
    assert server.confirmed("h", "three", 0) == 7 * INDEX
    assert other.get()["errCode"] == 404
    third = Reader(broker, "three", "i")
    third.register(filterCondStr=["nothing"])
    assert third.get()["errCode"] == 404
    assert server.confirmed("i", "three", 0) == 7 * INDEX


def test_a_request_looks_through_so_many_messages(server: TubeServer, broker: Connection) -> None:
    server.settings.scan_entries = 2
    for i in range(5):
        server.put("three", b"%d" % i, partition=0 if i == 4 else 1)
    reader = Reader(broker, "three", "g")
    reader.register()
    packs = [reader.get() for _ in range(3)]
    assert [(one["errCode"], one["currOffset"], bodies(one)) for one in packs] == [
        (200, 0, []), (200, 2 * INDEX, []), (200, 4 * INDEX, [b"4"]),
    ]  # fmt: skip


def test_what_an_answer_tells_beside_messages(server: TubeServer, broker: Connection) -> None:
    server.settings.pack_bytes = 1
    server.settings.empty_wait_ms = 250
    for size in (10, 20, 30):
        server.put("one", bytes(size))
    reader = Reader(broker, "one", "g")
    reader.register()
    backlogs = [reader.get(consumed=True)["currDataDlt"] for _ in range(3)]
    assert backlogs == [20 + 30 + 2 * 52, 30 + 52, 0]
    reader.commit()
    nothing = reader.get()
    assert {name: nothing[name] for name in ("errCode", "errMsg", "currOffset", "minLimitTime", "currDataDlt")} == {
        "errCode": 404, "errMsg": b"The request offset reached maxOffset!", "currOffset": -1, "minLimitTime": 250,
        "currDataDlt": -1,
    }  # fmt: skip


def test_where_a_registration_begins(server: TubeServer, broker: Connection) -> None:
    for i in range(4):
        server.put("one", b"%d" % i)

    def begins(group: str, status: int, **more: Any) -> int:
        reader = Reader(broker, "one", group)
        offset = reader.register(status, **more).currOffset
        assert reader.unregister().errCode == 200
        return int(offset)

    assert [begins("a", 0), begins("b", 1), begins("c", 2)] == [0, 4 * INDEX, 4 * INDEX]
    server.put("one", b"4")
    assert [begins("b", 1), begins("c", 2), begins("b", 0)] == [4 * INDEX, 5 * INDEX, 4 * INDEX]
    assert begins("a", 0, currOffset=2 * INDEX) == 2 * INDEX
    assert begins("a", 0, currOffset=99 * INDEX) == 5 * INDEX
    assert begins("a", 2, currOffset=0) == 5 * INDEX
    server.trim("one", 3 * INDEX)
    assert [begins("a", 0, currOffset=0), begins("new", 0)] == [3 * INDEX, 3 * INDEX]


def test_a_position_that_was_deleted_moves_to_the_oldest_message(server: TubeServer, broker: Connection) -> None:
    for i in range(4):
        server.put("one", b"%d" % i)
    reader = Reader(broker, "one", "g")
    assert reader.register().currOffset == 0
    server.trim("one", 2 * INDEX)
    pack = reader.get()
    assert (pack["currOffset"], bodies(pack), server.confirmed("g", "one", 0)) == (2 * INDEX, [b"2", b"3"], 2 * INDEX)
    server.trim("one", 99 * INDEX)
    assert reader.get()["errCode"] == 404
    assert server.put("one", b"4") == 4 * INDEX
    assert bodies(reader.get()) == [b"4"]


def test_a_confirm_without_its_flag_confirms(server: TubeServer, broker: Connection) -> None:
    server.put("one", b"a")
    reader = Reader(broker, "one", "g")
    reader.register()
    reader.get()
    who = {"clientId": reader.client, "topicName": "one", "partitionId": 0, "groupName": "g"}
    assert broker.ask(COMMIT, **who).currOffset == INDEX
    assert broker.ask(COMMIT, **{**who, "partitionId": 5}).errCode == 403


# --- registrations


def test_whose_a_partition_is(server: TubeServer, broker: Connection) -> None:
    server.put("one", b"a")
    owner, other = Reader(broker, "one", "g"), Reader(broker, "one", "g")
    owner.register()
    assert server.owner("g", "one", 0) == owner.client
    assert other.unregister().errCode == 412
    assert broker.ask(BEAT, readStatus=0, **other.heartbeat()).failureInfo[0].startswith("412:1:")
    assert Reader(broker, "one", "h").register().errCode == 200  # groups do not meet
    owner.get()
    assert owner.unregister(0).errCode == 200
    assert (server.owner("g", "one", 0), server.confirmed("g", "one", 0)) == (None, INDEX)
    assert other.register().currOffset == INDEX
    assert [call.method for call in server.calls].count("UnregisterRequestC2B") == 2
    strange = {"clientId": "c", "groupName": "g", "topicName": "one", "partitionId": 0, "readStatus": 0}
    assert broker.ask(TAKE, opType=33, **strange).errCode == 400


def test_a_registration_ends_with_its_time() -> None:
    with TubeServer({"one": 1}, lock_limit_s=0.05) as server, Connection(server.broker_port) as broker:
        owner, other = Reader(broker, "one", "g"), Reader(broker, "one", "g")
        assert owner.register().errCode == 200
        assert eventually(lambda: server.owner("g", "one", 0) is None)
        assert owner.get()["errCode"] == 411
        assert [other.register().errCode for _ in range(2)] == [410, 200]


# --- groups


def test_a_first_member_fixes_what_the_group_is(master: Connection, server: TubeServer) -> None:
    bound: dict[str, Any] = {"requireBound": True, "sessionKey": "k", "totalCount": 2, "selectBig": True}
    assert join(master, "a", "plain", topicCondition=["one#x,y"]).errCode == 200
    assert join(master, "a", "bound", **bound).errCode == 200
    codes = {
        424: join(master, "b", "plain", **bound),
        425: join(master, "b", "plain", ("one", "three")),
        426: join(master, "b", "plain", topicCondition=["one#x"]),
        427: join(master, "b", "bound", **{**bound, "sessionKey": "l"}),
        428: join(master, "b", "bound", **{**bound, "selectBig": False}),
        429: join(master, "b", "bound", **{**bound, "totalCount": 3}),
        431: join(master, "b", "other", ("one", "nope")),
        400: join(master, "b", "other", ()),
    }
    assert {code: answer.errCode for code, answer in codes.items()} == {code: code for code in codes}
    assert codes[431].errMsg == "Requested topic [[nope]] not deployed!"
    assert join(master, "b", "other", **{**bound, "sessionKey": ""}).errCode == 400
    assert join(master, "b", "other", **{**bound, "totalCount": 0}).errCode == 400
    assert join(master, "b", "plain", topicCondition=["one#y,x"]).errCode == 200
    assert server.members("plain") == ["a", "b"]
    for client in "ab":
        assert master.ask("CloseRequestC2M", clientId=client, groupName="plain").errCode == 200
    assert join(master, "c", "plain", ("three",)).errCode == 200  # nobody was left: another group of that name


def test_a_filter_without_items_breaks_the_call(master: Connection) -> None:
    with pytest.raises(RpcError, match=r"InvocationTargetException: $"):
        join(master, "a", topicCondition=["one#"])


def test_groups_that_are_not_allowed() -> None:
    with TubeServer({"one": 1}, groups=["good"]) as server, Connection(server.master_port) as master:
        assert [join(master, "a", group).errCode for group in ("good", "bad")] == [200, 450]


@pytest.fixture
def eager() -> Iterator[TubeServer]:
    """Return servers whose master divides partitions at every call."""
    with TubeServer({"one": 1, "three": 3}, balance_s=0) as server:
        yield server


def given(event: Any) -> list[str]:
    """Return the partitions of an event, as topic and number."""
    found = [Subscription.read(text).partition for text in event.subscribeInfo]
    return [f"{one.topic}-{one.id}" for one in found]


def test_partitions_are_taken_before_they_are_given(eager: TubeServer) -> None:
    with Connection(eager.master_port) as master:
        assert join(master, "a", topics=("three", "one")).notAllocated
        event = beat(master, "a").event
        assert (event.opType, given(event)) == (10, ["one-0", "three-0", "three-1", "three-2"])
        assert not beat(master, "a").HasField("event")  # it is told once
        assert not beat(master, "a", **done(event)).notAllocated
        assert not join(master, "b", topics=("one", "three")).notAllocated
        assert not beat(master, "b").HasField("event")
        taken = beat(master, "a").event
        assert (taken.opType, len(given(taken)), taken.rebalanceId > event.rebalanceId) == (20, 2, True)
        assert not beat(master, "b").HasField("event")
        left = [text for text in event.subscribeInfo if text not in taken.subscribeInfo]
        report = {"event": taken, "reportSubscribeInfo": True, "subscribeInfo": left}
        assert not beat(master, "a", **report).HasField("event")
        got = beat(master, "b").event
        assert (got.opType, sorted(given(got))) == (10, sorted(given(taken)))


def test_what_a_member_reports_counts(eager: TubeServer) -> None:
    """A partition that could not be registered is given again."""
    with Connection(eager.master_port) as master:
        join(master, "a", topics=("three",))
        event = beat(master, "a").event
        assert len(given(event)) == 3
        report = {"event": event, "reportSubscribeInfo": True, "subscribeInfo": list(event.subscribeInfo)[:2]}
        beat(master, "a", **report)
        assert given(beat(master, "a").event) == ["three-2"]


def test_a_bound_group_waits_for_all_its_members(eager: TubeServer) -> None:
    bound: dict[str, Any] = {
        "topics": ("three",),
        "requireBound": True,
        "sessionKey": "k",
        "totalCount": 2,
        "selectBig": True,
    }
    with Connection(eager.master_port) as master:
        join(master, "a", **bound, requiredPartition="1:three:0=28,1:three:1=56")
        assert not beat(master, "a").HasField("event")
        join(master, "b", **bound, requiredPartition="1:three:0=56,1:three:1=28")
        events = {client: beat(master, client).event for client in "ab"}
        assert {"three-1"} <= set(given(events["a"])) <= {"three-1", "three-2"}
        assert {"three-0"} <= set(given(events["b"])) <= {"three-0", "three-2"}
        assert len(given(events["a"]) + given(events["b"])) == 3


def test_a_member_that_is_silent_is_forgotten() -> None:
    with TubeServer({"one": 1}, member_limit_s=0.05) as server, Connection(server.master_port) as master:
        assert join(master, "a").errCode == 200
        assert eventually(lambda: server.members("g") == [])
        answer = beat(master, "a")
        assert (answer.errCode, answer.errMsg) == (411, "Not found groupName g in holder!")


def test_flow_rules_are_told_once_for_each_change(master: Connection, server: TubeServer) -> None:
    first = join(master, "a")
    told = (first.defFlowCheckId, first.defFlowControlInfo, first.groupFlowCheckId, first.groupFlowControlInfo)
    assert told == (-2, " ", -2, " ")
    server.set_rules(cluster="[1]", group="[2]")
    answer = beat(master, "a")
    assert (answer.defFlowControlInfo, answer.groupFlowControlInfo) == ("[1]", "[2]")
    known = {"defFlowCheckId": answer.defFlowCheckId, "groupFlowCheckId": answer.groupFlowCheckId}
    again = beat(master, "a", **known)
    assert (again.defFlowControlInfo, again.defFlowCheckId) == (" ", answer.defFlowCheckId)
    server.set_rules(group="[3]")
    changed = beat(master, "a", **known)
    assert (changed.defFlowControlInfo, changed.groupFlowControlInfo) == (" ", "[3]")
    server.set_rules(cluster="")
    assert beat(master, "a", **known).defFlowCheckId == -2
    silent = {"clientId": "a", "groupName": "g", "reportSubscribeInfo": False}
    assert not master.ask("HeartRequestC2M", **silent).HasField("defFlowCheckId")


def test_who_tells_no_user_is_refused() -> None:
    rules = {"cluster_rules": "[]", "group_rules": "[4]"}
    with (
        TubeServer({"one": 1}, require_auth=True, **rules) as server,
        Connection(server.master_port) as master,
        Connection(server.broker_port) as broker,
    ):
        assert join(master, "a").errCode == 415
        answer = beat(master, "a")
        assert (answer.errCode, answer.requireAuth) == (415, True)
        old = Signature.make("user", "pass", 1, 2)
        made = {"userName": "user", "timestamp": old.time_ms, "nonce": 2, "othParams": "", "signature": old.signature}
        assert join(master, "a", authInfo={"authInfo": made}).errCode == 415
        reader = Reader(broker, "one", "g")
        assert reader.register().errCode == 415
        refused = broker.ask(BEAT, readStatus=0, **reader.heartbeat())
        assert (refused.errCode, refused.requireAuth) == (415, True)
        producer = {"clientId": "p", "hostName": "h", "brokerCheckSum": -1}
        assert master.ask("RegisterRequestP2M", **producer).errCode == 415
        assert master.ask("HeartRequestP2M", **producer).requireAuth
        sent = {"clientId": "p", "topicName": "one", "partitionId": 0, "data": b"m", "flag": 0, "checkSum": -1}
        refused = broker.ask(SEND, sentAddr=0, **sent)
        assert (refused.errCode, refused.requireAuth) == (415, True)
        process = Process(server.master_port, "g", 1, {"one": ()}, user="user", password="pass", heartbeat_s=0.05)
        together([process], lambda: process.held == {"1:one:0"})
        assert process.member.rules == {"cluster": "[]", "group": "[4]"}
        process.close()
