"""The registry of clients: time limits, scans, and ends that fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dataproxy.hub.clients import SCAN_S, Clients


class Ended:
    """Keeps the ends that it is told; some names fail."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any, float]] = []
        self.fails: set[str] = set()

    def __call__(self, name: str, value: Any, now: float) -> None:
        """Take an end."""
        self.told.append((name, value, now))
        if name in self.fails:
            raise RuntimeError(name)


def made(limit_s: float = 10.0) -> tuple[Clients, Ended]:
    """Return a registry with one kind."""
    clients, ended = Clients(), Ended()
    clients.add_kind("k", limit_s, ended)
    return clients, ended


def test_a_client_ends_when_it_was_silent_for_longer_than_its_limit() -> None:
    clients, ended = made()
    clients.register("k", "a", 1, 0.0)
    clients.scan(10.0)
    assert ended.told == []
    clients.scan(11.0)
    assert ended.told == [("a", 1, 11.0)]
    assert clients.count("k") == 0


def test_a_heartbeat_begins_the_time_anew() -> None:
    clients, ended = made()
    clients.register("k", "a", 1, 0.0)
    clients.register("k", "b", 2, 1.0)
    assert clients.update("k", "a", 9.0)
    clients.scan(12.0)
    assert [name for name, *_ in ended.told] == ["b"]
    assert [(name, until) for name, until, _ in clients.each("k")] == [("a", 19.0)]


def test_a_client_whose_time_is_over_is_unknown_before_a_scan_has_seen_it() -> None:
    clients, ended = made()
    clients.register("k", "a", 1, 0.0)
    assert not clients.update("k", "a", 10.5)
    assert not clients.update("k", "nobody", 0.0)
    clients.scan(10.5)
    assert [name for name, *_ in ended.told] == ["a"]


def test_who_leaves_is_not_ended_and_its_value_comes_back() -> None:
    clients, ended = made()
    clients.register("k", "a", 1, 0.0)
    assert clients.unregister("k", "a") == 1
    assert clients.unregister("k", "a") is None
    clients.scan(100.0)
    assert ended.told == []


def test_a_second_registration_takes_the_place_of_the_first() -> None:
    clients, ended = made()
    clients.register("k", "a", 1, 0.0)
    clients.register("k", "b", 1, 1.0)
    clients.register("k", "a", 2, 5.0)
    assert clients.value("k", "a") == 2
    clients.scan(12.0)
    assert [name for name, *_ in ended.told] == ["b"]


def test_a_scan_looks_once_a_second() -> None:
    clients, ended = made(0.1)
    clients.scan(0.0)
    clients.register("k", "a", 1, 0.0)
    clients.scan(SCAN_S / 2)
    assert ended.told == []
    assert clients.next_scan == SCAN_S
    clients.scan(SCAN_S)
    assert len(ended.told) == 1


def test_an_end_that_fails_is_logged_and_does_not_stop_the_scan(caplog: pytest.LogCaptureFixture) -> None:
    clients, ended = made()
    other = Ended()
    clients.add_kind("other", 5.0, other)
    for name in "abc":
        clients.register("k", name, None, 0.0)
    clients.register("other", "d", None, 0.0)
    ended.fails = {"a", "b"}
    with caplog.at_level(logging.ERROR, "dataproxy.hub.clients"):
        clients.scan(20.0)
    assert [name for name, *_ in ended.told] == ["a", "b", "c"]
    assert [name for name, *_ in other.told] == ["d"]
    assert [record.args for record in caplog.records] == [("k", "a"), ("k", "b")]


def test_who_is_told_of_an_end_finds_none_of_those_that_ended_with_it() -> None:
    clients = Clients()
    found: list[int] = []
    clients.add_kind("k", 1.0, lambda name, value, now: found.append(clients.count("k")))
    for name in "abc":
        clients.register("k", name, None, 0.0)
    clients.scan(5.0)
    assert found == [0, 0, 0]


def test_a_client_that_registers_anew_while_its_end_is_told_stays() -> None:
    clients = Clients()
    clients.add_kind("k", 1.0, lambda name, value, now: clients.register("k", name, "new", now))
    clients.register("k", "a", "old", 0.0)
    clients.scan(5.0)
    assert clients.value("k", "a") == "new"
