"""Which positions are to be written to ZooKeeper, and which are stored there: without threads."""

from __future__ import annotations

import logging

import pytest

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.zookeeper.nodes import Nodes, Place
from dataproxy.hub.zookeeper.offsets import Unwritten, load
from tests.support.zooplay import ZooPlay

NODES = Nodes("/tubemq", 1)
A, B = Place("g", "t", 0), Place("g", "t", 1)


def table(most: int = 1 << 20) -> RegistrationsCore:
    return RegistrationsCore(b"0123456789abcdef", 30_000_000, most)


# --- the registrations


def test_what_has_changed_is_told_once() -> None:
    of = table()
    assert of.changed() == []
    of.take(b"g", b"t", 0, b"c", b"", 0)
    assert of.changed() == []  # no position yet
    of.begin(b"g", b"t", 0, 0, -1, 0, 560)
    assert of.changed() == [(b"g", b"t", 0, 0)]
    of.book(b"g", b"t", 0, 56, matched=True, manual=False)
    assert of.changed() == []  # read and not confirmed
    of.commit(b"g", b"t", 0, b"c", consumed=True, now_us=0)
    assert of.changed() == [(b"g", b"t", 0, 56)]
    assert of.changed() == []


def test_many_positions_are_told_while_the_table_grows() -> None:
    of = table(1 << 30)
    for i in range(10_000):
        of.restore(b"g%d" % i, b"topic", i % 7, 28 * i)
    found = of.changed()
    assert sorted(found) == sorted((b"g%d" % i, b"topic", i % 7, 28 * i) for i in range(10_000))
    of.restore(b"g5000", b"topic", 5000 % 7, 1)
    assert of.changed() == [(b"g5000", b"topic", 5000 % 7, 1)]


# --- what is still to be written


def test_the_newest_position_of_a_place_is_written() -> None:
    some = Unwritten()
    some.add([(A, 28), (B, 28)])
    some.add([(A, 56)])
    assert some.first(5) == [(A, 56), (B, 28)]
    some.written(A, 28)  # the end of an earlier write, and a newer position waits
    assert some.first(1) == [(A, 56)]
    some.written(A, 56)
    assert some.first(5) == [(B, 28)]


def test_what_is_refused_waits_behind_the_others() -> None:
    some = Unwritten()
    some.add([(A, 28), (B, 28)])
    some.failed(A)
    assert some.first(1) == [(B, 28)]
    some.failed(Place("nobody", "t", 0))
    assert len(some) == 2


# --- what is stored


def test_positions_are_read_of_this_broker() -> None:
    zoo = ZooPlay()
    zoo.nodes = {
        NODES.path(A): b"17-28",
        NODES.path(B): b"56",
        NODES.path(Place("g/h", "t/..", 4)): b"0-84",
        Nodes("/tubemq", 2).path(Place("g", "t", 2)): b"0-112",
        "/tubemq/consumers-v3/g/ids/c": b"x",
        "/tubemq/consumers-v3/empty": b"",
        "/tubemq/brokers/1": b"",
    }
    assert load(zoo, NODES) == {A: 28, B: 56, Place("g/h", "t/..", 4): 84}


def test_nothing_is_stored_yet() -> None:
    assert load(ZooPlay(), NODES) == {}


def test_a_node_that_holds_no_position_is_told(caplog: pytest.LogCaptureFixture) -> None:
    zoo = ZooPlay()
    zoo.nodes = {NODES.path(A): b"rubbish", NODES.path(B): b"0-28"}
    with caplog.at_level(logging.WARNING, "dataproxy.hub.zookeeper"):
        assert load(zoo, NODES) == {B: 28}
    assert NODES.path(A) in caplog.text and "rubbish" in caplog.text
