"""Requests and replies, and messages by their keys and ids, at the hub and at RocketMQ's own servers."""

from __future__ import annotations

from tests.interop.rocketmq.sides import Sides


def test_requests_are_replied_to(sides: Sides) -> None:
    topic = sides.new("questions")
    sides.both("admin", topic, "any", "create", "queues=1")
    found = sides.both("request", topic, "answering", 5, order=False)
    assert sorted(line["body"] for line in found if line["event"] == "reply") == [f"re: m-{i}" for i in range(5)]
    assert [line["status"] for line in found if line["event"] == "replied"] == ["SEND_OK"] * 5


def test_messages_are_found_by_their_keys(sides: Sides) -> None:
    topic = sides.new("keyed")
    sides.both("admin", topic, "any", "create", "queues=2")
    sides.both("produce", topic, "producers", 4, "queue=0", "keys=one two")
    sides.both("produce", topic, "producers", 4, "queue=1", "keys=two", "prefix=n")
    found = {key: sides.both("admin", topic, "any", "query", f"key={key}") for key in ("one", "two")}
    assert sorted(found["one"][0]["answer"]) == [f"m-{i}" for i in range(4)]
    assert sorted(found["two"][0]["answer"]) == [*(f"m-{i}" for i in range(4)), *(f"n-{i}" for i in range(4))]
    [line] = sides.both("admin", topic, "any", "query", "key=none", codes=(1,))
    assert line["event"] == "error"


def test_a_message_is_found_by_the_id_that_its_producer_has_given_it(sides: Sides) -> None:
    for names in sides.each:
        sent = sides.at(names, "produce", "viewed", "producers", 3, "queue=0")
        for one in sent[:3]:
            [line] = sides.at(names, "admin", "viewed", "any", "view", f"id={one['id']}")
            assert line["answer"] == one["body"]
