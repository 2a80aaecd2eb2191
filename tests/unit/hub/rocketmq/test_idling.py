"""Which queues members hold, and the alarm for those that hold some and do not pull."""

from __future__ import annotations

from typing import Any

from tests.support.rocketclients import RocketHub, queues

US = 1_000_000


class Watched:
    """A hub of members of "g" that wants "t" with messages, and what it tells."""

    def __init__(self, *clients: str, kind: str = "CONSUME_PASSIVELY", model: str = "CLUSTERING") -> None:
        self.hub = RocketHub()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.hub.registry._idling._alarms._told = lambda kind, **fields: self.told.append((kind, fields))
        self.pulled: dict[int, float] = {}
        self.kind, self.model, self.clients = kind, model, clients
        self.beat()
        for queue in range(4):
            self.hub.queues.offsets["g", "t", queue] = 90
            self.hub.queues.ends["t", queue] = 100

    def beat(self) -> None:
        for connection, client in enumerate(self.clients, 1):
            self.hub.beat(connection, client, {"g": ["t"]}, kind=self.kind, model=self.model)

    def pass_time(self, seconds: float, *pulling: int) -> list[str]:
        """Let time pass in which connections pull, and return the kinds of events of it."""
        before = len(self.told)
        for _ in range(int(seconds // 10)):
            self.hub.wait(10.0)
            self.beat()
            now = self.hub.now
            self.pulled |= dict.fromkeys(pulling, now)
            silent = [
                (connection, "g", "t", int(self.pulled.get(connection, 0.0) * US))
                for connection in range(1, 1 + len(self.clients))
                if self.pulled.get(connection, 0.0) < now - 90.0
            ]
            self.hub.registry.look_for_idle(silent, now)
        return [kind for kind, _ in self.told[before:]]


def test_a_member_that_does_not_pull_is_told_once_and_when_it_pulls_again() -> None:
    one = Watched("a", "b")
    assert one.pass_time(80, 1) == []
    assert one.pass_time(60, 1) == ["idle"]
    assert one.told[0][1] == {
        "protocol": "rocketmq", "group": "g", "client": "b", "topic": "t", "address": "10.0.0.1:50002",
        "queues": [2, 3], "behind": 20,
    }  # fmt: skip
    assert [found.client for found in one.hub.registry.idle()] == ["b"]
    assert one.pass_time(60, 1) == []
    assert one.pass_time(20, 1, 2) == ["pulls again"]
    assert one.hub.registry.idle() == ()


def test_a_member_with_nothing_to_read_or_no_queue_is_none() -> None:
    one = Watched("a", "b", "c", "d", "e")  # of 4 queues
    for queue in range(3):
        one.hub.queues.offsets["g", "t", queue] = 100
    assert one.pass_time(200) == ["idle"]
    assert one.told[0][1]["client"] == "d"


def test_a_group_that_has_changed_gives_its_members_time() -> None:
    one = Watched("a", "b")
    one.pass_time(80, 1, 2)
    one.clients = ("a", "b", "c")
    one.beat()
    assert one.pass_time(80, 1, 2) == []
    assert one.pass_time(40, 1, 2) == ["idle"]


def test_a_member_that_leaves_is_no_alarm_any_more() -> None:
    one = Watched("a", "b")
    one.pass_time(150, 1)
    one.hub.leave(2, consumer="g")
    one.clients = ("a",)
    assert one.pass_time(10, 1) == ["pulls again"]


def test_pull_consumers_and_broadcasting_members_decide_for_themselves() -> None:
    assert Watched("a", kind="CONSUME_ACTIVELY").pass_time(300) == []
    assert Watched("a", model="BROADCASTING").pass_time(300) == []


def test_who_has_locked_queues_holds_those_and_no_others() -> None:
    one = Watched("a", "b", kind="CONSUME_ACTIVELY")
    one.hub.lock(1, "a", "g", *queues("t", 3))
    assert one.hub.registry.holdings("g") == {"a": queues("t", 3), "b": ()}
    for _ in range(15):
        one.hub.lock(1, "a", "g", *queues("t", 3))
        one.pass_time(10)
    assert [(kind, fields["client"], fields["queues"]) for kind, fields in one.told] == [("idle", "a", [3])]


def test_members_divide_queues_as_their_clients_do() -> None:
    one = Watched("c", "a", "b")
    assert one.hub.registry.holdings("g") == {
        "a": queues("t", 0, 1), "b": queues("t", 2), "c": queues("t", 3),
    }  # fmt: skip
    assert one.hub.registry.holdings("nobody") == {}
