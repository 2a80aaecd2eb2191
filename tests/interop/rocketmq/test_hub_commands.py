"""Commands of Java's client at the hub, compared with the same at RocketMQ's own servers; `long` has the others."""

from __future__ import annotations

import time

import pytest

from tests.interop.rocketmq.sides import Sides, bodies


def test_a_topic_that_was_made_has_its_route(sides: Sides, messages: str) -> None:
    [line] = sides.both("admin", messages, "any", "route")
    assert line["answer"]["queueDatas"][0]["readQueueNums"] == 2


def test_a_topic_begins_with_the_first_message(sides: Sides) -> None:
    topic = sides.new("begun")
    sides.both("produce", topic, "producers", 2, "queue=3")
    sides.both("admin", topic, "any", "route")
    assert sorted(bodies(sides.both("push", topic, sides.new("begun_group"), 2, order=False))) == ["m-0", "m-1"]


def test_batches(sides: Sides) -> None:
    topic = sides.new("batches")
    sides.both("admin", topic, "any", "create", "queues=1")  # clients choose one of several at random
    sides.both("produce", topic, "producers", 6, "batch=3")
    assert len(bodies(sides.both("push", topic, sides.new("batch_group"), 6, order=False))) == 6


def test_tags(sides: Sides, messages: str) -> None:
    found = sides.both("push", messages, sides.new("tag_group"), 4, "expression=blue", order=False)
    assert sorted(bodies(found)) == ["m-1", "m-3", "m-5", "m-7"]


def test_sql(sides: Sides, messages: str) -> None:
    found = sides.both(
        "push", messages, sides.new("sql_group"), 3, "sql=number BETWEEN 2 AND 6 AND TAGS = 'red'", order=False
    )
    assert sorted(bodies(found)) == ["m-2", "m-4", "m-6"]


def test_a_filter_that_is_none_is_refused(sides: Sides, messages: str) -> None:
    for names in sides.each:
        [line] = sides.at(names, "push", messages, sides.new("none_group"), 1, "sql=number >", codes=(1,))
        assert line["event"] == "error"
        assert "CODE: 23" in line["text"]


def test_in_order_with_locks(sides: Sides, messages: str) -> None:
    assert bodies(sides.both("orderly", messages, sides.new("orderly_group"), 8, "fail=1")) == [
        f"m-{i}" for i in range(8)
    ]


def test_broadcasting(sides: Sides, messages: str) -> None:
    assert (
        len(bodies(sides.both("push", messages, sides.new("broadcast_group"), 8, "model=broadcasting", order=False)))
        == 8
    )


@pytest.mark.parametrize("words", [(), ("seek=begin",)])
def test_lite_pull(sides: Sides, messages: str, words: tuple[str, ...]) -> None:
    assert len(bodies(sides.both("lite", messages, sides.new("lite_group"), 8, *words, order=False))) == 8


def test_a_delay(sides: Sides) -> None:
    begun, topic = time.monotonic(), sides.new("put_off")
    # At a level that no other test uses: the answer has the place among those that wait for the same level.
    sides.both("produce", topic, "producers", 2, "queue=0", "delay=3")
    assert len(bodies(sides.both("push", topic, sides.new("put_off_group"), 2, order=False))) == 2
    assert time.monotonic() - begun > 10
