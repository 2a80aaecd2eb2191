"""Pulls: what is found, filters, codes and offsets, requests that wait, and what other protocols have stored."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dataproxy._core.server.rocketmq.core import CLOSED
from tests.native import probe_rocketmq as wire
from tests.support.reference.rocketvectors import CAPTURED
from tests.support.remoting import JSON, RMQ, Port, Remote, batch, fields, messages, one_stored, properties
from tests.support.waiting import eventually

Start = Callable[..., Port]
FOUND, NOTHING, UNMATCHED, MOVED = 0, 19, 20, 21
LONG = 20_000  # ms that a test never waits


def fill(remote: Remote, n: int = 5, topic: str = "T", **given: object) -> None:
    """Send messages with the tags a, b, c in turn."""
    for i in range(n):
        remote.send(topic, b"%d" % i, properties=properties(TAGS="abc"[i % 3]), **given)


def waiting(port: Port) -> int:
    return port.remoting.stats()["waiting"]


@pytest.mark.parametrize("form", [JSON, RMQ])
def test_an_answer_has_messages_and_offsets(port: Port, form: int) -> None:
    remote = port.connect(form)
    fill(remote)
    frame = remote.answer(remote.ask("T", queueOffset=1, maxMsgNums=3))
    head = wire.read(frame)
    assert (head["form"], head["code"], head["remark"], head["version"]) == (form, FOUND, b"FOUND", 409)
    assert fields(frame) == {"suggestWhichBrokerId": "0", "nextBeginOffset": "4", "minOffset": "0", "maxOffset": "5"}
    assert [(one["queueOffset"], one["body"]) for one in messages(frame)] == [(1, b"1"), (2, b"2"), (3, b"3")]


@pytest.mark.parametrize(
    ("offset", "code", "following"), [(-1, MOVED, 0), (3, NOTHING, 3), (4, MOVED, 3), (1 << 40, MOVED, 3)]
)
def test_offsets_at_which_there_is_nothing(port: Port, offset: int, code: int, following: int) -> None:
    remote = port.connect()
    fill(remote, 3)
    pulled = remote.pull("T", queueOffset=offset, sysFlag=6 if code == MOVED else 4, suspendTimeoutMillis=LONG)
    assert (pulled["code"], pulled["nextBeginOffset"]) == (code, following)
    assert (pulled["minOffset"], pulled["maxOffset"]) == (0, 3)


@pytest.mark.parametrize(("offset", "code"), [(0, NOTHING), (7, MOVED)])
def test_an_empty_queue(port: Port, offset: int, code: int) -> None:
    pulled = port.connect().pull("T", queueOffset=offset)
    assert (pulled["code"], pulled["nextBeginOffset"], pulled["maxOffset"]) == (code, 0, 0)


def test_what_cannot_be_read(port: Port) -> None:
    port.topic("closed", permission=2)
    remote = port.connect()
    assert remote.pull("nowhere")["code"] == 17
    assert remote.pull("closed")["code"] == 16
    assert remote.pull("T", queueId=4)["code"] == 1
    assert remote.pull("T", queueId=-1)["code"] == 1
    port.remoting.drop_topic("T")
    assert remote.pull("T")["code"] == 17


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (b"*", "01234"), (b"", "01234"), (b" * ", "01234"), (b"||", "01234"), (b"a", "03"), (b" a || c", "023"),
        (b"a||a||b", "0134"), (b"d || c", "2"), (b"a|c", ""), (b"d", ""),
    ],
)  # fmt: skip
def test_filters_by_tags(port: Port, expression: bytes, found: str) -> None:
    remote = port.connect()
    fill(remote)
    pulled = remote.pull("T", subscription=expression)
    assert [one["body"].decode() for one in pulled["found"]] == list(found)
    assert (pulled["code"], pulled["nextBeginOffset"]) == (FOUND if found else UNMATCHED, 5)


def test_tags_that_no_stream_is_called_by(port: Port) -> None:
    remote = port.connect()
    odd = ["x&y", "k=v", "t" * 300, "\u00e9\u20ac"]
    for tag in odd:
        remote.send("T", tag.encode(), properties=properties(TAGS=tag))
    remote.send("T", b"untagged")
    remote.send("T", b"plain", properties=properties(TAGS="plain"))
    for tag in odd:
        pulled = remote.pull("T", subscription=f"{tag} || plain".encode())
        assert [one["body"] for one in pulled["found"]] == [tag.encode(), b"plain"]
        assert pulled["nextBeginOffset"] == 6
    assert remote.pull("T", subscription=b"z&z")["code"] == UNMATCHED
    assert len(remote.pull("T")["found"]) == 6


def test_too_many_tags(port: Port) -> None:
    expression = "||".join(f"t{i}" for i in range(257)).encode()
    assert port.connect().pull("T", subscription=expression)["code"] == 23


def test_subscriptions_belong_to_a_connection(port: Port) -> None:
    remote, other = port.connect(), port.connect()
    fill(remote)
    mine, others = port.number(remote), port.number(other)
    assert remote.pull("T", sysFlag=0)["code"] == 24
    port.remoting.subscribe(mine, "g", "T", 10, ["a"])
    port.remoting.subscribe(others, "g", "T", 11, None)
    assert [one["body"] for one in remote.pull("T", sysFlag=0, subVersion=10)["found"]] == [b"0", b"3"]
    assert remote.pull("T", sysFlag=0, subVersion=11)["code"] == 25
    assert len(other.pull("T", sysFlag=0, subVersion=11)["found"]) == 5
    assert remote.pull("T", sysFlag=0, consumerGroup=b"h")["code"] == 24
    port.remoting.subscribe(mine, "g", "T", 12, ("b", "c"))
    assert len(remote.pull("T", sysFlag=0, subVersion=12)["found"]) == 3
    port.remoting.unsubscribe(mine, "h")
    port.remoting.unsubscribe(mine, topic="U")
    assert remote.pull("T", sysFlag=0)["code"] == 0
    port.remoting.unsubscribe(mine)
    assert remote.pull("T", sysFlag=0)["code"] == 24
    assert other.pull("T", sysFlag=0)["code"] == 0
    with pytest.raises(ValueError, match="tag"):
        port.remoting.subscribe(mine, "g", "T", 12, [""])


def test_pulls_that_the_thread_answers(port: Port) -> None:
    remote = port.connect()
    mine = port.number(remote)
    port.remoting.subscribe(mine, "g", "T", 1, None, sql=True)
    port.remoting.hand_over("asked", True)
    for given in (
        {"sysFlag": 0, "subVersion": 1},
        {"expressionType": b"SQL92", "subscription": b"a > 1"},
        {"consumerGroup": b"asked"},
    ):
        number = remote.ask("T", **given)
        call = port.call()
        assert call.code == 11
        assert call.fields["topic"] == "T"
        call.answer(20, {"nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1", "suggestWhichBrokerId": "0"})
        assert wire.take("pulled", remote.answer(number))["nextBeginOffset"] == 1
    port.remoting.hand_over("asked", False)
    assert remote.pull("T", consumerGroup=b"asked")["code"] == NOTHING


def test_a_request_waits_until_its_queue_has_a_message(port: Port) -> None:
    remote, other = port.connect(), port.connect(RMQ)
    numbers = [
        remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=0),
        remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=1),
        other.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=0, subscription=b"b"),
    ]
    assert eventually(lambda: waiting(port) == 3)
    sender = port.connect()
    sender.send("T", b"a", properties=properties(TAGS="a"))
    frame = remote.answer(numbers[0])
    assert [one["body"] for one in messages(frame)] == [b"a"]
    assert fields(frame)["nextBeginOffset"] == "1"
    sender.send("T", b"b", properties=properties(TAGS="b"))
    assert [one["body"] for one in messages(other.answer(numbers[2]))] == [b"b"]
    assert eventually(lambda: waiting(port) == 1)
    sender.send("T", b"1", queueId=1)
    assert len(messages(remote.answer(numbers[1]))) == 1


def test_messages_of_the_thread_and_of_batches_end_waits(port: Port) -> None:
    remote = port.connect()
    number = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG)
    assert eventually(lambda: waiting(port) == 1)
    port.remoting.append(1, [("T", 0, one_stored())])
    assert len(messages(remote.answer(number))) == 1
    number = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueOffset=1)
    assert eventually(lambda: waiting(port) == 1)
    port.connect().send("T", batch(*[(0, b"x", b"")] * 2), 320)
    assert 1 <= len(messages(remote.answer(number))) <= 2


def test_a_wait_ends_at_its_time_and_says_what_was_passed_over(port: Port) -> None:
    remote = port.connect()
    fill(remote, 1)
    before = time.monotonic()
    pulled = remote.pull("T", sysFlag=6, suspendTimeoutMillis=300, queueOffset=1)
    assert (pulled["code"], pulled["nextBeginOffset"]) == (NOTHING, 1)
    assert time.monotonic() - before >= 0.2
    number = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueOffset=1, subscription=b"z")
    assert eventually(lambda: waiting(port) == 1)
    fill(port.connect(), 3)
    port.core.advance_clock(LONG / 1000)
    pulled = wire.take("pulled", remote.answer(number))
    assert (pulled["code"], pulled["nextBeginOffset"]) == (UNMATCHED, 4)
    assert waiting(port) == 0


@pytest.mark.parametrize("given", [{"sysFlag": 4}, {"suspendTimeoutMillis": 0}, {"suspendTimeoutMillis": -5}])
def test_what_may_not_wait_does_not(port: Port, given: dict) -> None:
    pulled = port.connect().pull("T", **({"sysFlag": 6, "suspendTimeoutMillis": LONG} | given))
    assert pulled["code"] == NOTHING


def test_a_newer_request_for_the_same_ends_the_older(port: Port) -> None:
    remote = port.connect()
    older = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG)
    assert eventually(lambda: waiting(port) == 1)
    newer = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG)
    assert wire.take("pulled", remote.answer(older))["code"] == NOTHING
    others = [
        remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, consumerGroup=b"h"),
        remote.ask("U", sysFlag=6, suspendTimeoutMillis=LONG),
        remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=1),
    ]
    assert eventually(lambda: waiting(port) == 4)
    port.connect().send("T", b"x")
    assert len(messages(remote.answer(newer))) == len(messages(remote.answer(others[0]))) == 1
    assert waiting(port) == 2


def test_waits_end_with_their_connection(port: Port) -> None:
    remote = port.connect()
    number = port.number(remote)
    for i in range(4):
        remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=i)
    assert eventually(lambda: waiting(port) == 4)
    remote.close()
    assert port.call(CLOSED).connection == number
    assert eventually(lambda: waiting(port) == 0)
    assert port.connect().send("T", b"x")["code"] == 0


def test_waits_of_a_connection_are_bounded(start_port: Start) -> None:
    port = start_port()
    port.topic("T", queues=2000)
    remote = port.connect(RMQ)
    numbers = [remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG, queueId=i) for i in range(1100)]
    for number in numbers[1024:]:
        assert wire.take("pulled", remote.answer(number))["code"] == NOTHING
    assert waiting(port) == 1024
    port.close()


def test_a_hub_that_stops_answers_what_waits(start_port: Start) -> None:
    port = start_port(threads=2)
    port.topic("T")
    remotes = [port.connect() for _ in range(4)]
    numbers = [one.ask("T", sysFlag=6, suspendTimeoutMillis=LONG) for one in remotes]
    assert eventually(lambda: waiting(port) == 4)
    port.core.stop(5.0)
    for remote, number in zip(remotes, numbers, strict=True):
        assert wire.take("pulled", remote.answer(number))["code"] == NOTHING


def test_a_topic_that_goes_while_a_request_waits(port: Port) -> None:
    remote = port.connect()
    number = remote.ask("T", sysFlag=6, suspendTimeoutMillis=LONG)
    assert eventually(lambda: waiting(port) == 1)
    port.remoting.drop_topic("T")
    port.remoting.append(1, [("T", 0, one_stored())])
    assert wire.read(remote.answer(number))["code"] == 17


def test_the_thread_lets_a_request_wait(port: Port) -> None:
    remote = port.connect()
    port.remoting.hand_over("g", True)
    number = remote.ask("T")
    call = port.call()
    call.wait("T", 0, 0, port.core.clock_us() + 20_000_000)
    with pytest.raises(ValueError, match="waits"):
        call.answer(0)
    assert eventually(lambda: waiting(port) == 1)
    port.connect().send("T", b"x")
    again = port.call()
    assert (again.code, again.opaque, again.frame) == (11, number, call.frame)
    assert waiting(port) == 0
    again.wait("T", 0, 0, port.core.clock_us() + 20_000_000)  # it has come already
    port.call().wait("T", 0, 1, port.core.clock_us() + 100_000)
    port.call().answer(20)  # its time has come
    assert wire.read(remote.answer(number))["code"] == 20


def test_a_request_that_the_thread_lets_wait_ends_with_its_connection(port: Port) -> None:
    remote = port.connect()
    port.remoting.hand_over("g", True)
    remote.ask("T")
    call = port.call()
    call.wait("T", 0, 0, port.core.clock_us() + 40_000_000)
    assert eventually(lambda: waiting(port) == 1)
    remote.close()
    assert port.call(CLOSED).connection == call.connection
    assert waiting(port) == 0


def test_what_pulls_confirm_is_given_to_the_thread_once(port: Port) -> None:
    remote = port.connect()
    fill(remote, 4)
    mine = port.number(remote)
    for offset in (1, 2, 3):
        remote.pull("T", sysFlag=5, commitOffset=offset)
    remote.pull("T", sysFlag=5, commitOffset=2, queueId=1)
    remote.pull("T", sysFlag=4, commitOffset=9, consumerGroup=b"unasked")
    remote.pull("T", sysFlag=5, commitOffset=0, consumerGroup=b"nothing")
    assert sorted(port.remoting.commits()) == [(mine, "g", "T", 0, 3), (mine, "g", "T", 1, 2)]
    remote.pull("T", sysFlag=5, commitOffset=3)
    assert port.remoting.commits() == []
    remote.pull("T", sysFlag=5, commitOffset=1)
    assert port.remoting.commits() == [(mine, "g", "T", 0, 1)]


def test_offsets_of_groups_are_kept(start_port: Start, tmp_path: object) -> None:
    port = start_port(f"{tmp_path}/store")
    assert port.remoting.committed("g", "T", 0) == -1
    assert port.remoting.commit("g", "T", 0, 5)
    assert port.remoting.commit("g", "T", 0, 3)
    assert port.remoting.commit("g", "T", 1, 8)
    assert port.remoting.committed("g", "T", 0) == 3
    assert sorted(port.remoting.offsets()) == [("g", "T", 0, 3), ("g", "T", 1, 8)]
    assert port.registrations.flush() == 0
    port.close()
    again = start_port(f"{tmp_path}/store")
    assert again.remoting.committed("g", "T", 1) == 8
    assert again.remoting.committed("g", "T", 0) == 3


def test_an_answer_ends_behind_enough_bytes(port: Port) -> None:
    remote = port.connect()
    for _ in range(5):
        remote.send("T", bytes(100_000))
    assert [one["queueOffset"] for one in remote.pull("T")["found"]] == [0, 1]
    remote.send("T", bytes(1_000_000))
    assert [one["queueOffset"] for one in remote.pull("T", queueOffset=5)["found"]] == [5]
    assert len(remote.pull("T", maxMsgNums=0)["found"]) == 1


def test_who_does_not_read_gets_no_more_messages(port: Port) -> None:
    remote, other = port.connect(), port.connect()
    port.topic("W", queues=60)
    numbers = [remote.ask("W", queueId=i, sysFlag=6, suspendTimeoutMillis=LONG) for i in range(60)]
    assert eventually(lambda: waiting(port) == 60)
    for i in range(60):
        other.send("W", bytes(1_000_000), queueId=i)
    assert other.pull("W")["code"] == FOUND
    assert 0 < port.core.stats()["answer_bytes"] <= 8 << 20
    codes = [wire.take("pulled", remote.answer(number))["code"] for number in numbers]
    assert set(codes) == {FOUND, NOTHING}
    assert len(codes) - codes.count(NOTHING) < 20
    assert remote.pull("W", queueId=59)["code"] == FOUND


def test_a_pull_of_one_way_is_for_nobody(port: Port) -> None:
    remote = port.connect()
    fill(remote, 1)
    remote.ask("T", oneway=True)
    assert remote.pull("T")["code"] == FOUND
    assert port.remoting.stats()["pulls"] == 1


RECORDED = [one for one in CAPTURED if one["code"] == 11 and one["direction"] == "client->server"]


@pytest.mark.parametrize("i", range(len(RECORDED)))
def test_recorded_pulls_are_answered(port: Port, i: int) -> None:
    frame = bytes.fromhex(RECORDED[i]["hex"])
    said = wire.take("pull", frame)
    port.topic(said["topic"].decode(), queues=16)
    remote = port.connect()
    port.remoting.subscribe(
        port.number(remote), said["consumerGroup"].decode(), said["topic"].decode(), said["subVersion"], None
    )
    remote.socket.sendall(frame)
    number = wire.read(frame)["opaque"]
    if said["queueOffset"] == 0 and said["sysFlag"] & 2:
        assert eventually(lambda: waiting(port) == 1)
        remote.send(said["topic"].decode(), b"x", queueId=said["queueId"])
        assert len(messages(remote.answer(number))) == 1
    else:
        assert wire.take("pulled", remote.answer(number))["code"] in (NOTHING, MOVED)
