"""Messages of RocketMQ's producers: what is stored at once, what goes to the thread, and what answers say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dataproxy._core.server.rocketmq.core import STORED
from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as reference
from tests.support.reference.rocketvectors import CAPTURED
from tests.support.remoting import JSON, RMQ, Port, batch, fields, one_stored, properties

Start = Callable[..., Port]
SENDS = [one for one in CAPTURED if one["code"] in (10, 310, 320) and one["direction"] == "client->server"]


def host(port: Port) -> tuple[bytes, int]:
    return bytes([127, 0, 0, 1]), port.port


@pytest.mark.parametrize("form", [JSON, RMQ])
@pytest.mark.parametrize("code", [10, 310])
def test_a_message_is_stored_and_its_answer_names_the_place(port: Port, form: int, code: int) -> None:
    remote = port.connect(form)
    for offset in range(2):
        frame = remote.answer(remote.post("T", b"hello", code, queueId=2, properties=properties(TAGS="a")))
        sent = wire.take("sent", frame)
        head = wire.read(frame)
        assert (head["form"], head["version"], head["flag"], head["code"]) == (form, 409, 1, 0)
        assert (sent["queueId"], sent["queueOffset"]) == (2, offset)
        assert fields(frame)["MSG_REGION"] == "DefaultRegion"
        assert fields(frame)["TRACE_ON"] == "true"
        named, handle = wire.read_id(sent["msgId"])
        assert named == host(port)
        assert port.remoting.place(handle) == ("T", 2, offset)
        assert port.remoting.handle("T", 2, offset) == handle
    assert not port.has_call()


def test_what_a_message_is_comes_back_to_the_byte(port: Port) -> None:
    remote = port.connect()
    text = "UNIQ_KEY\x017F\x02KEYS\x01a b\x02WAIT\x01true\x02TAGS\x01t\x02x%&=\x01\u00e9\U0001f600%41"
    sent = remote.send("T", b"\x00\xff" * 50, queueId=1, flag=-7, sysFlag=0x301, bornTimestamp=1234567890123,
                       properties=text.encode())  # fmt: skip
    [found] = remote.pull("T", queueId=1)["found"]
    assert found == {
        "queueId": 1, "flag": -7, "queueOffset": 0, "physicalOffset": wire.read_id(sent["msgId"])[1], "sysFlag": 0x301,
        "bornTimestamp": 1234567890123, "bornHost": (bytes([127, 0, 0, 1]), remote.socket.getsockname()[1]),
        "storeTimestamp": found["storeTimestamp"], "storeHost": host(port), "reconsumeTimes": 0,
        "preparedTransactionOffset": 0, "bodyCRC": wire.checksum(b"\x00\xff" * 50), "body": b"\x00\xff" * 50,
        "topic": b"T", "properties": text.replace("WAIT\x01true\x02", "").encode(),
    }  # fmt: skip
    assert found["storeTimestamp"] > 1_700_000_000_000


@pytest.mark.parametrize("i", range(len(SENDS)))
def test_recorded_messages_are_stored(port: Port, i: int) -> None:
    frame = bytes.fromhex(SENDS[i]["hex"])
    said = wire.take("send", frame)
    port.topic(said["topic"].decode())
    remote = port.connect()
    remote.socket.sendall(frame)
    read = wire.read(frame)
    is_half = dict(wire.properties(said["properties"])).get(b"TRAN_MSG") == b"true"
    if is_half or b"DELAY" in dict(wire.properties(said["properties"])):
        assert port.call().code == read["code"]
        return
    answer = remote.answer(read["opaque"])
    sent = wire.take("sent", answer)
    assert (sent["code"], sent["queueId"], sent["queueOffset"]) == (0, said["queueId"], 0)
    found = remote.pull(said["topic"].decode(), queueId=said["queueId"])["found"]
    bodies = [item["body"] for item in wire.read_batch(said["body"])] if read["code"] == 320 else [said["body"]]
    assert [one["body"] for one in found] == bodies
    assert sent["msgId"].split(b",") == [wire.message_id(host(port), one["physicalOffset"]) for one in found]


def test_a_remark_with_escapes_does_not_change_the_fields_behind_it(port: Port) -> None:
    remote = port.connect(JSON)
    text = 'TAGS\x01a\x02x\x01\u00e9"\\'
    number, frame = remote.send_frame("T", b"body", queueId=1, properties=text.encode())
    header = json.loads(frame[8 : 8 + int.from_bytes(frame[5:8])])
    header = {"remark": '\u00e9 says "\\"', **{name: value for name, value in header.items() if name != "remark"}}
    remote.socket.sendall(reference.frame_of(0, json.dumps(header).encode(), b"body"))
    assert wire.take("sent", remote.answer(number))["code"] == 0
    [found] = remote.pull("T", queueId=1)["found"]
    assert (found["topic"], found["body"], found["properties"]) == (b"T", b"body", text.encode())


def test_a_queue_that_is_not_named_is_one_after_the_other(port: Port) -> None:
    remote = port.connect()
    assert [remote.send("T", b"x", queueId=-1)["queueId"] for _ in range(6)] == [0, 1, 2, 3, 0, 1]


def test_a_message_of_one_way_is_stored_without_an_answer(port: Port) -> None:
    remote = port.connect()
    remote.post("T", b"one way", oneway=True)
    assert remote.send("T", b"asked")["queueOffset"] == 1
    assert [one["body"] for one in remote.pull("T")["found"]] == [b"one way", b"asked"]


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "unknown"},
        {"queueId": 4},
        {"properties": properties(DELAY="3")},
        {"properties": properties(TRAN_MSG="true", PGROUP="pg")},
        {"sysFlag": 4},
        {"reconsumeTimes": 1},
        {"topic": "%RETRY%g"},
        {"topic": "closed"},
        {"topic": "unknown", "code": 320, "batch": True},
    ],
)
def test_what_has_to_be_decided_goes_to_the_thread(port: Port, given: dict) -> None:
    port.topic("%RETRY%g")
    port.topic("closed", permission=4)
    remote = port.connect()
    topic = given.get("topic", "T")
    number = remote.post(topic, b"x", **{name: value for name, value in given.items() if name != "topic"})
    call = port.call()
    assert call.code == given.get("code", 310)
    assert wire.take("send", call.frame)["topic"] == topic.encode()
    call.answer(17, {}, "no such topic")
    assert wire.take("sent", remote.answer(number))["code"] == 17
    assert port.remoting.extent(topic, 0) == (0, 0)


def test_a_delay_of_nothing_is_none(port: Port) -> None:
    assert port.connect().send("T", b"x", properties=properties(DELAY="0", TRAN_MSG="false"))["code"] == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"body": bytes(1001)}, b"larger than the hub takes"),
        ({"properties": b"a\x01" + b"x" * 32766}, b"longer than 32767 bytes"),
        ({"properties": b"a\x01" + b"%" * 32000}, b"too long to be stored"),
        ({"code": 320, "body": b""}, b"no message"),
        ({"code": 320, "body": bytes(22)}, b"length is not what it says"),
        ({"code": 320, "body": batch((0, b"x", b""))[:-1]}, b"length is not what it says"),
        ({"code": 320, "body": batch(*[(0, b"x" * 600, b"")] * 2)}, b"larger than the hub takes"),
    ],
)
def test_what_is_too_large_or_broken_is_refused(start_port: Start, given: dict, words: bytes) -> None:
    port = start_port(rocketmq_message=1000)
    port.topic("T")
    for form in (JSON, RMQ):
        remote = port.connect(form)
        answer = wire.read(remote.answer(remote.post("T", **({"body": b"x"} | given))))
        assert (answer["code"], answer["form"]) == (13, form)
        assert words in answer["remark"]
        assert answer["fields"] is not None or form == RMQ
    assert port.remoting.extent("T", 0) == (0, 0)
    assert port.core.stats()["refused"] == {13: 2}


def test_a_batch_has_too_many_messages(port: Port) -> None:
    remote = port.connect()
    body = batch((0, b"", b"")) * 16385
    answer = wire.read(remote.answer(remote.post("T", body, 320)))
    assert (answer["code"], b"16384" in answer["remark"]) == (13, True)


def test_a_missing_field_is_named(port: Port) -> None:
    remote = port.connect()
    number = remote.request(310, a="pg", b="T")
    answer = wire.read(remote.answer(number))
    assert answer["code"] == 1
    assert b"defaultTopic" in answer["remark"]
    remote.request(310, oneway=True, a="pg")  # nobody is told
    number = remote.request(11, consumerGroup="g", topic="T", queueId="none")
    assert b"queueId" in wire.read(remote.answer(number))["remark"]


@pytest.mark.parametrize("n", [1, 3, 500])
def test_the_messages_of_a_batch_have_offsets_of_their_own(port: Port, n: int) -> None:
    remote = port.connect()
    remote.send("T", b"before", queueId=3)
    items = [(i, b"item %d" % i, properties(TAGS=f"t{i % 3}", WAIT="true")) for i in range(n)]
    sent = remote.send("T", batch(*items), 320, queueId=3, batch=True)
    assert (sent["queueOffset"], sent["queueId"]) == (1, 3)
    found = remote.pull("T", queueId=3, queueOffset=1, maxMsgNums=1024)["found"]
    assert [(one["flag"], one["body"]) for one in found] == [item[:2] for item in items]
    assert sent["msgId"] == b",".join(wire.message_id(host(port), one["physicalOffset"]) for one in found)
    tagged = remote.pull("T", queueId=3, subscription=b"t1", maxMsgNums=1024)["found"]
    assert [one["flag"] for one in tagged] == list(range(1, n, 3))
    assert port.remoting.stats()["batches"] == 1


def test_a_batch_of_one_way_and_one_whose_sender_is_gone(port: Port) -> None:
    remote, gone = port.connect(), port.connect()
    gone.post("T", batch((0, b"1", b""), (0, b"2", b"")), 320, oneway=True)
    assert gone.send("T", batch((0, b"3", b"")), 320)["queueOffset"] == 2
    gone.post("T", batch(*[(0, b"x", b"")] * 100), 320)
    gone.close()
    assert remote.send("U", b"y")["code"] == 0


def test_messages_in_turn_and_many_at_once(port: Port) -> None:
    remotes = [port.connect(i % 2) for i in range(4)]
    numbers = [(remote, remote.post("T", b"%d" % i, queueId=i % 4)) for i in range(100) for remote in remotes]
    places = [wire.take("sent", remote.answer(number)) for remote, number in numbers]
    assert len({(one["queueId"], one["queueOffset"]) for one in places}) == 400
    assert [port.remoting.extent("T", queue) for queue in range(4)] == [(0, 100)] * 4


def test_a_hub_that_takes_no_messages_says_so(port: Port) -> None:
    port.core.set_service(1)
    assert port.connect().send("T", b"x")["code"] == 14
    port.core.set_service(0)
    assert port.connect().send("T", b"x")["code"] == 0


def test_the_thread_stores_messages(port: Port) -> None:
    stored = one_stored("%RETRY%g", body=b"again", reconsumeTimes=2, preparedTransactionOffset=77, sysFlag=16,
                        bornHost=(bytes(range(16)), 4), properties=properties(TAGS="a", RETRY_TOPIC="T"))  # fmt: skip
    port.remoting.append(5, [("%RETRY%g", 0, stored), ("T", 3, one_stored()), ("%RETRY%g", 0, stored)])
    call = port.call(STORED)
    assert (call.token, call.connection) == (5, 0)
    assert [place[:2] for place in call.places] == [(0, 0), (0, 0), (0, 1)]
    places = [port.remoting.place(place[2]) for place in call.places]
    assert places == [("%RETRY%g", 0, 0), ("T", 3, 0), ("%RETRY%g", 0, 1)]
    port.topic("%RETRY%g", queues=1)
    [first, second] = port.connect().pull("%RETRY%g")["found"]
    assert first["physicalOffset"] == call.places[0][2]
    assert (first["body"], first["reconsumeTimes"], first["preparedTransactionOffset"]) == (b"again", 2, 77)
    assert (first["bornHost"], first["sysFlag"]) == ((bytes(range(16)), 4), 16)
    assert [offset for offset, _ in port.remoting.read("%RETRY%g", 0, 0, 10)] == [0, 1]
    data = port.remoting.read("%RETRY%g", 0, 1, 10, local=f"127.0.0.1:{port.port}")
    assert wire.read_stored_messages(data[0][1]) == [second]
    assert port.remoting.read("%RETRY%g", 0, 0, 10, 1)[0][0] == 0  # one is there however large it is
    assert port.remoting.read("nothing", 0, 0, 10) == []


def test_nothing_is_stored_of_what_cannot_be(port: Port) -> None:
    good = one_stored()
    for wrong, words in (
        ([("T", 0, good), ("T", 0, good[:-1])], "no stored message"),
        ([("T", 0, good + b"x")], "no stored message"),
        ([("T", -1, good)], "no queue"),
        ([("", 0, good)], "topic"),
        ([("T", 0, one_stored(properties=b"a\x01" + b"%" * 32000))], "too long"),
    ):
        with pytest.raises(ValueError, match=words):
            port.remoting.append(1, wrong)
    port.remoting.append(9, [])
    call = port.call(STORED)
    assert (call.token, call.places) == (9, [])
    assert port.remoting.extent("T", 0) == (0, 0)


def test_what_the_store_refuses_is_told(start_port: Start, tmp_path: Any) -> None:
    port = start_port(str(tmp_path))
    port.store.stop()
    port.threads[0].join()
    port.remoting.append(3, [("T", 0, one_stored())])
    assert port.call(STORED).places == [(1, -1, -1)]
    port.topic("T")
    assert port.connect().send("T", b"x")["code"] == 1


def test_handles_hold_over_a_restart(start_port: Start, tmp_path: Any) -> None:
    port = start_port(str(tmp_path / "store"))
    port.topic("A", "B")
    remote = port.connect()
    handle = wire.read_id([remote.send(topic, b"x") for topic in "AB"][1]["msgId"])[1]
    port.close()
    again = start_port(str(tmp_path / "store"))
    assert again.remoting.place(handle) == ("B", 0, 0)
    assert again.remoting.place(handle + (7 << 39)) is None
    assert again.remoting.place(-1) is None
    assert again.remoting.handle("none", 0, 0) == -1
