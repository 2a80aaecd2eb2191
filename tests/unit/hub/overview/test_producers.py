"""Producers of DataProxy in the registry: they come, send and go, and ends that were not kept are not forgotten."""

from __future__ import annotations

from typing import Any

from dataproxy.hub.clients import End, Identity
from dataproxy.hub.overview.producers import Producers


def row(number: int, messages: int = 0, *, kind: str = "tcp", why: str | None = None, group: str = "b_app") -> Any:
    """Return a row of a server loop's list."""
    streams = ((group, "s"),) if messages else ()
    return number, kind, f"127.0.0.1:{number}", 1_000_000, 2_000_000, messages // 2, messages, streams, 0, why


class Lists:
    """The lists of the server loops, as a test sets them."""

    def __init__(self) -> None:
        self.there: list[Any] = []
        self.ended: list[Any] = []
        self.forgotten = self.asked = 0

    def producers(self) -> tuple[list[Any], list[Any], int]:
        """Return who is there, and once who has ended."""
        self.asked += 1
        ended, forgotten = self.ended, self.forgotten
        self.ended, self.forgotten = [], 0
        return self.there, ended, forgotten


def made() -> tuple[Producers, Lists, list[tuple[str, str, End | None]]]:
    told: list[tuple[str, str, End | None]] = []

    def hear(who: Identity, why: End | None) -> None:
        told.append((who.client, who.group, why))

    lists = Lists()
    return Producers(lists, hear), lists, told


def test_a_connection_comes_and_is_told_once() -> None:
    producers, lists, told = made()
    lists.there = [row(7)]
    (one,) = producers.follow(5.0)
    assert (one.protocol, one.address, one.since, one.seen) == ("dataproxy", "127.0.0.1:7", 1.0, 2.0)
    lists.there = [row(7, 10)]
    (one,) = producers.follow(6.0)
    assert (one.requests, one.messages, one.streams) == (5, 10, (("b_app", "s"),))
    assert told == [("127.0.0.1:7", "", None)]


def test_a_connection_that_ends_is_removed_with_what_it_was_last() -> None:
    producers, lists, told = made()
    lists.there = [row(7), row(8, kind="http")]
    assert [one.protocol for one in producers.follow(5.0)] == ["dataproxy", "http"]
    lists.there, lists.ended = [row(8, kind="http")], [row(7, 4, why="peer")]
    assert [one.number for one in producers.follow(6.0)] == [8]
    assert told[2:] == [("127.0.0.1:7", "b_app", End.CLOSED)]


def test_one_that_came_and_went_between_two_looks_is_told_as_both() -> None:
    producers, lists, told = made()
    lists.ended = [row(9, 2, why="reset")]
    assert producers.follow(5.0) == ()
    assert told == [("127.0.0.1:9", "b_app", None), ("127.0.0.1:9", "b_app", End.CLOSED)]


def test_ends_that_the_lists_had_no_room_for_are_found_by_who_is_there() -> None:
    producers, lists, told = made()
    lists.there = [row(1), row(2), row(3)]
    producers.follow(5.0)
    lists.there, lists.forgotten = [row(2)], 2
    producers.follow(6.0)
    assert sorted(who for who, _, why in told if why is End.CLOSED) == ["127.0.0.1:1", "127.0.0.1:3"]
    producers.follow(7.0)
    assert len(told) == 5


def test_the_lists_are_read_only_when_connections_have_changed() -> None:
    producers, lists, _ = made()
    producers.look((1, {"peer": 0}), 1.0)
    producers.look((1, {"peer": 0}), 2.0)
    assert lists.asked == 1
    producers.look((1, {"peer": 1}), 3.0)
    assert lists.asked == 2
