"""Commands of Java's client that take long, at the hub and at RocketMQ's own servers: `make test-rocketmq`."""

from __future__ import annotations

import time

from tests.interop.rocketmq.sides import Sides, bodies


def test_a_message_that_fails_comes_again(sides: Sides, messages: str) -> None:
    found = sides.both("push", messages, sides.new("retry_group"), 8, "fail=1", order=False)
    assert sum(line.get("reconsumed") == 1 for line in found) == 1


def test_transactions(sides: Sides) -> None:
    topic = sides.new("money")
    sides.both("admin", topic, "any", "create", "queues=1")
    for outcome in ("commit", "rollback", "unknown"):
        sides.both("transaction", topic, "bank", 1, f"outcome={outcome}", f"prefix={outcome}")
    found = sides.both("push", topic, sides.new("money_group"), 2, order=False)
    assert sorted(bodies(found)) == ["commit-0", "unknown-0"]


def test_administrators_find_whom_they_look_for(sides: Sides, messages: str) -> None:
    group = sides.new("admin_group")
    with sides.beside("push", messages, group, 8, "hold=20"):
        time.sleep(6)
        for call in ("consumers", "status", "running", "progress"):
            for names in sides.each:
                [line] = sides.at(names, "admin", messages, group, call)
                assert line["event"] == call
                assert line["answer"]
    sides.both("admin", messages, "nobody", "consumers", codes=(1,))


def test_a_message_is_given_to_a_member_by_hand(sides: Sides, messages: str) -> None:
    topic, group = sides.new("handed"), sides.new("hand_group")
    for names in sides.each:
        sent = sides.at(names, "produce", topic, "producers", 1)
        with sides.beside("push", topic, group, 2, "hold=15"):
            time.sleep(6)
            words = ("admin", topic, group, "direct", f"id={sent[0]['offsetId']}")
            [line] = sides.at(names, *words)
            assert line["answer"]["consumeResult"] == "CR_SUCCESS"


def test_a_reset_lets_a_running_member_begin_again(sides: Sides, messages: str) -> None:
    group = sides.new("reset_group")
    with sides.beside("push", messages, group, 16, "seconds=60") as running:
        time.sleep(8)
        for names in sides.each:
            [line] = sides.at(names, "admin", messages, group, "reset")
            assert set(line["answer"].values()) == {0}
        for one in running:
            assert len(bodies(one.result(90))) == 16
