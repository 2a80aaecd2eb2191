"""The registry of clients: time limits, scans, and ends that fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dataproxy.hub.clients import SCAN_S, Client, Clients, End, Identity


class Ended:
    """Keeps the ends that it is told; some names fail."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any, float]] = []
        self.why: list[End] = []
        self.fails: set[str] = set()

    def __call__(self, name: str, value: Any, now: float, why: End) -> None:
        """Take an end."""
        self.told.append((name, value, now))
        self.why.append(why)
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
    clients.add_kind("k", 1.0, lambda name, value, now, why: found.append(clients.count("k")))
    for name in "abc":
        clients.register("k", name, None, 0.0)
    clients.scan(5.0)
    assert found == [0, 0, 0]


def test_a_client_that_registers_anew_while_its_end_is_told_stays() -> None:
    clients = Clients()
    clients.add_kind("k", 1.0, lambda name, value, now, why: clients.register("k", name, "new", now))
    clients.register("k", "a", "old", 0.0)
    clients.scan(5.0)
    assert clients.value("k", "a") == "new"


def test_each_way_to_go_says_which_it_was() -> None:
    clients, ended = made()
    for connection, name in enumerate("abcd"):
        clients.register("k", name, connection, 0.0, connection)
    assert clients.end("k", "a", 1.0)
    assert not clients.end("k", "a", 1.0)
    assert clients.close(1, 2.0) == 1
    clients.register("k", "d", 3, 5.0, 3)
    clients.scan(11.0)
    clients.end_all("k", 12.0)
    assert [name for name, *_ in ended.told] == list("abcd")
    assert ended.why == [End.LEFT, End.CLOSED, End.SILENT, End.FORGOTTEN]
    assert not any(map(clients.has_connection, range(4)))


def test_the_end_of_a_connection_ends_all_its_clients_and_no_others() -> None:
    clients, ended = made()
    other = Ended()
    clients.add_kind("other", 5.0, other)
    clients.register("k", ("g", 1), "x", 0.0, 1)
    clients.register("other", ("g", 1), "y", 0.0, 1)
    clients.register("k", ("g", 2), "z", 0.0, 2)
    assert clients.close(1, 3.0) == 2
    assert clients.close(1, 3.0) == 0
    assert (ended.told, other.told) == ([(("g", 1), "x", 3.0)], [(("g", 1), "y", 3.0)])
    assert clients.count("k") == 1


def test_a_client_that_comes_back_on_another_connection_does_not_end_with_the_old_one() -> None:
    clients, ended = made()
    clients.register("k", "a", "old", 0.0, 1)
    clients.register("k", "a", "new", 1.0, 2)
    assert clients.close(1, 2.0) == 0
    assert clients.value("k", "a") == "new"
    assert clients.close(2, 3.0) == 1
    assert ended.told == [("a", "new", 3.0)]


def test_a_snapshot_has_the_clients_of_all_kinds_and_stays_as_it_was() -> None:
    clients, _ = made()
    clients.add_kind("w", 5.0, Ended(), lambda name, value: Identity("wire", "consumer", name, value, "10.0.0.1:7"))
    clients.register("k", "a", 1, 0.0)
    clients.register("w", "b", "g", 2.0)
    found = clients.snapshot(3.0)
    clients.unregister("w", "b")
    assert found == (
        Client(Identity("", "k", "a"), 3.0, 10.0),
        Client(Identity("wire", "consumer", "b", "g", "10.0.0.1:7"), 1.0, 5.0),
    )


def test_who_comes_and_goes_is_told_of_every_kind_and_by_every_way() -> None:
    told: list[tuple[str, str | None]] = []

    def hear(who: Identity, why: End | None) -> None:
        told.append((who.client, None if why is None else why.name))

    clients = Clients(hear)
    for kind in ("k", "l"):
        clients.add_kind(kind, 10.0, Ended())
    for kind, name in (("k", "a"), ("k", "b"), ("k", "c"), ("l", "d"), ("l", "e")):
        clients.register(kind, name, 1, 0.0, 7 if name == "c" else None)
    clients.register("k", "a", 2, 1.0)  # it is there already
    assert clients.total == 5
    assert told == [(name, None) for name in "abcde"]
    told.clear()
    clients.end("k", "a", 2.0)
    clients.unregister("l", "d")
    clients.unregister("l", "d")
    clients.close(7, 3.0)
    clients.scan(20.0)
    assert told == [("a", "LEFT"), ("d", "LEFT"), ("c", "CLOSED"), ("b", "SILENT"), ("e", "SILENT")]
