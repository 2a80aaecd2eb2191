"""What a member of a group decides without a connection: shares, subscriptions, what is out of a queue."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from dataproxy._core.remoting.messages import ReceivedMessage, read_messages
from dataproxy.errors import ConfigError, InvalidMessageError, RemoteProtocolError
from dataproxy.rocketmq import Sql
from dataproxy.rocketmq.group.backlog import Backlog
from dataproxy.rocketmq.group.offsets import FileOffsets
from dataproxy.rocketmq.group.shares import average, subscriptions
from dataproxy.wire.rocketmq.names import tag_hash
from dataproxy.wire.rocketmq.queues import Queue

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "golden" / "rocketmq.json").read_text())


def stored(n: int, first: int = 0) -> list[ReceivedMessage]:
    data = b""
    for offset in range(first, first + n):
        rest = struct.pack(
            ">IIiiqqiq4siq4siiqi", 0xDAA320A7, zlib.crc32(b"x") & 0x7FFFFFFF, 0, 0, offset, offset, 0, 0, bytes(4), 0,
            0,
            bytes(4), 0, 0, 0, 1,
        )  # fmt: skip
        rest += b"x\x01t\x00\x00"
        data += struct.pack(">i", len(rest) + 4) + rest
    return read_messages(data, "b")[0]


@pytest.mark.parametrize("case", GOLDEN["allocate_averagely"], ids=str)
def test_shares_are_those_of_java(case: dict) -> None:  # type: ignore[type-arg]
    for client, result in case["result"].items():
        assert average(range(case["queues"]), case["clients"], client) == result
    assert average(range(case["queues"]), case["clients"], "somebody else") is None


def test_what_is_subscribed() -> None:
    found = subscriptions({"a": "*", "b": " x || y||x ", "c": Sql("n > 3")}, 7)
    assert (found["a"].sub_string, found["a"].tags_set, found["a"].sub_version) == ("*", (), 7)
    assert found["b"].tags_set == ("x", "y") and found["b"].code_set == (tag_hash("x"), tag_hash("y"))
    assert found["c"].expression_type == "SQL92" and found["c"].sub_string == "n > 3"
    assert subscriptions("a", 1) == subscriptions(["a"], 1)
    with pytest.raises(ConfigError, match="the expression for topic 'a' is empty"):
        subscriptions({"a": Sql(" ")}, 1)
    with pytest.raises(InvalidMessageError, match="topic 'a b'"):
        subscriptions("a b", 1)


def test_an_offset_moves_when_everything_before_it_is_done() -> None:
    log = Backlog(10)
    first, second, third = log.add(stored(5, 10), 15, 2)
    assert (log.done, log.next, log.count, log.bytes) == (10, 15, 5, 5)
    assert log.finish(second) and log.done == 10
    assert log.finish(first) and log.done == 14
    assert not log.finish(first)
    assert log.finish(third) and (log.done, log.count, log.bytes) == (15, 0, 0)
    assert log.add([], 20, 2) == [] and log.done == 20


def test_after_a_reset_what_was_out_counts_no_more() -> None:
    log = Backlog(0)
    [chunk] = log.add(stored(3), 3, 5)
    log.reset(1)
    assert not log.finish(chunk) and (log.done, log.count, log.finished) == (1, 0, False)


def test_a_place_that_lies_before_what_is_out_begins_anew() -> None:
    log = Backlog(3)
    [old] = log.add(stored(2, 3), 5, 5)
    log.move(9)
    assert (log.next, log.done, log.count) == (9, 3, 2)  # forward: what is out still counts
    log.move(2)
    assert (log.next, log.done, log.count) == (2, 2, 0)
    [new] = log.add(stored(2, 2), 4, 5)
    assert not log.finish(old) and log.done == 2
    assert log.finish(new) and log.done == 4


def test_a_part_of_the_oldest_chunk_can_be_done() -> None:
    log = Backlog(0)
    first, second = log.add(stored(6), 6, 3)
    log.finish_first(second, 1)
    assert log.done == 0  # it is not the oldest
    log.finish_first(first, 2)
    assert log.done == 2
    log.reset(4)
    log.finish_first(first, 2)
    assert log.done == 4


def test_a_caller_gives_back_what_it_has_not_done() -> None:
    log = Backlog(0)
    first, second = log.add(stored(6), 6, 3)
    for chunk in (first, second):
        log.hand_out(chunk)
    assert log.take_back(second, 0) == second and (log.done, log.count, log.bytes, log.finished) == (0, 3, 3, False)
    rest = log.take_back(first, 1)
    assert rest is not None and [one.offset for one in rest.messages] == [1, 2]
    assert (log.done, log.count, log.bytes, log.finished) == (1, 5, 5, True)
    assert log.finish(rest) and log.done == 3
    assert log.take_back(second, 3) is None and (log.done, log.count) == (6, 0)
    assert log.take_back(second, 1) is None, "it is done"
    [old] = log.add(stored(3, 6), 9, 3)
    log.reset(6)
    assert log.take_back(old, 1) is None and (log.done, log.count) == (6, 0)


def test_offsets_of_a_file_that_is_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "offsets"
    queue = Queue("b", 3, "t")
    FileOffsets(path).write({queue: 5})
    assert FileOffsets(path).read(queue) == 5 and FileOffsets(None).read(queue) is None
    assert [one.name for one in tmp_path.iterdir()] == ["offsets"]
    for text in ("{", '{"a": "b"}', "3"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="cannot be read"):
            FileOffsets(path)


def test_messages_are_made_by_consumers_alone() -> None:
    with pytest.raises(TypeError, match="made by a consumer"):
        ReceivedMessage()
    with pytest.raises(RemoteProtocolError, match="at byte 0 of 7 is no message"):
        read_messages(b"garbage", "b")
    whole = stored(2)
    assert len(whole) == 2 and len(whole[0]) == 1 and "t b/0@0, 1 bytes" in repr(whole[0])
