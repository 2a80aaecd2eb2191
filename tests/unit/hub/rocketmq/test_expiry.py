"""Ends of connections, and of clients that are silent: one way out for all, and whoever stays is told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dataproxy.hub.clients import SCAN_S
from dataproxy.hub.rocketmq.clients.locks import Locks
from tests.support.rocketclients import RocketHub, queues


def test_the_end_of_a_connection_ends_all_its_roles_and_tells_the_rest() -> None:
    """The front node looks for a group with the name of an address, cleans one role alone, and tells nobody."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, ["p", "q"])
    hub.registry.register_filter_server(hub.peer(1), "10.0.0.9:1", hub.now)
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.close(1)
    assert hub.registry.members.names() == ("g",)
    assert hub.registry.producers.groups() == {}
    assert hub.registry.filter_servers() == ()
    assert hub.told() == [(2, "g")]
    hub.close(1)  # an error first, then the close
    assert hub.told() == []


def test_a_connection_that_never_sent_a_heartbeat_may_end() -> None:
    """The front node fails on the missing attribute of such a connection."""
    hub = RocketHub()
    hub.close(77)
    assert hub.actions() == []


def test_no_close_is_dropped_however_many_come_together() -> None:
    """RocketMQ drops events behind the ten thousandth, and keeps the clients for two minutes."""
    hub = RocketHub()
    for one in range(1, 12001):
        hub.beat(one, f"c{one}", produces=["p"])
    for one in range(1, 12001):
        hub.close(one)
    assert hub.registry.producers.groups() == {}
    assert hub.clients.snapshot(hub.now) == ()


def test_a_silent_client_is_out_after_two_minutes_and_a_scan_and_the_rest_is_told() -> None:
    """RocketMQ's scan removes without a notification; peers learn of it at their next turn, up to 20 s later."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.wait(60.0)
    hub.beat(2, "b", {"g": ["t"]})
    hub.wait(59.7)
    assert hub.registry.member_ids("g") == ("a", "b")
    assert hub.told(0.1 + SCAN_S + 0.2) == [(2, "g")]
    assert hub.registry.member_ids("g") == ("b",)


def test_a_silent_connection_is_closed_once_when_its_last_group_is_over() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, ["p"])
    hub.wait(122.0)
    assert hub.closing() == [1]
    hub.wait(200.0)
    assert hub.closing() == []
    hub.close(1)


def test_emptied_groups_of_producers_are_gone_by_the_scan_too() -> None:
    """In RocketMQ they stay behind for ever."""
    hub = RocketHub()
    hub.beat(1, "a", produces=["p"])
    hub.wait(122.0)
    assert hub.registry.producers.groups() == {}


def test_a_scan_cleans_all_that_a_close_cleans() -> None:
    """In RocketMQ and its front node the scan's path misses sessions and events."""
    ends = []
    for way in ("scan", "close"):
        hub = RocketHub()
        hub.beat(1, "a", {"g": ["t"]}, ["p"])
        hub.lock(1, "a", "g", *queues("t", 0, 1))
        hub.beat(2, "b", {"g": ["t"]})
        hub.told()
        for _ in range(3):
            hub.wait(40.0)
            hub.beat(2, "b", {"g": ["t"]})
            hub.told()
        if way == "close":
            hub.close(1)
        hub.wait(3.0)
        told = hub.told()
        ends.append((hub.registry.members.names(), hub.registry.producers.groups(),
                     hub.registry.snapshot(hub.now).locks, (2, "g") in told))  # fmt: skip
    assert ends[0] == ends[1] == (("g",), {}, (), True)


def test_time_is_monotonic_so_no_step_of_the_clock_ends_anybody() -> None:
    """RocketMQ takes the time of day: a step of the clock expires every client, or none ever."""
    hub = RocketHub()
    hub.now = 5.0
    hub.beat(1, "a", {"g": ["t"]})
    hub.wait(119.0)
    assert hub.registry.member_ids("g") == ("a",)


def test_an_end_that_fails_does_not_stop_the_scan(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """RocketMQ's timer of all tables ends silently with an Error."""
    hub = RocketHub()
    lost = Locks.lost

    def fails(self: Locks, group: str, connection: int, now: float) -> None:
        if connection == 1:
            raise MemoryError
        lost(self, group, connection, now)

    monkeypatch.setattr(Locks, "lost", fails)
    for one in (1, 2, 3):
        hub.beat(one, f"c{one}", {"g": ["t"]})
    with caplog.at_level(logging.ERROR, "dataproxy.hub.clients"):
        hub.wait(122.0)
    assert hub.registry.members.names() == ()
    assert len(caplog.records) == 1


@pytest.mark.parametrize("way", ["unregister", "close", "scan"])
def test_every_way_out_goes_through_one_removal(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocketMQ has a way of its own for each, and each has missed something."""
    hub = RocketHub()
    removed: list[Any] = []
    remove = type(hub.clients)._remove

    def noted(self: Any, kind: str, name: Any) -> Any:
        removed.append(name)
        return remove(self, kind, name)

    hub.beat(1, "a", {"g": ["t"]})
    monkeypatch.setattr(type(hub.clients), "_remove", noted)
    if way == "unregister":
        hub.leave(1, consumer="g")
    elif way == "close":
        hub.close(1)
    else:
        hub.wait(122.0)
    assert removed == [("g", 1)]
    assert hub.registry.members.names() == ()
