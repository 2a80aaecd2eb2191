"""Groups that begin at offsets which their members name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dataproxy.errors import ConfigError, GroupRefusedError
from tests.support.consumers import Opener, drain
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

INDEX = 28
KEYS = [f"1:three:{i}" for i in range(3)]


def filled(tube: TubeServer, n: int = 6) -> None:
    """Store messages, each of which is a pack, in one partition."""
    tube.settings.pack_bytes = 1
    for i in range(n):
        tube.put("one", b"%d" % i)


def test_a_group_begins_where_it_is_bound(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = opened(offsets={"1:one:0": 4 * INDEX}, session="s")
    assert drain(consumer, 2) == [b"4", b"5"]
    assert consumer.position() == {"1:one:0": 6 * INDEX}


def test_the_stored_offset_does_not_count(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    first = opened()
    drain(first, 4)
    first.close()
    again = opened(offsets={"1:one:0": INDEX}, session="s")
    assert drain(again, 1) == [b"1"]
    again.close()
    assert drain(opened(), 1) == [b"2"]  # and later the group goes on where it was


def test_an_offset_counts_once(tube: TubeServer, opened: Opener) -> None:
    filled(tube)
    consumer = opened(offsets={"1:one:0": 2 * INDEX}, session="s")
    assert drain(consumer, 2) == [b"2", b"3"]
    tube.stop_broker()
    tube.start_broker()
    assert set(drain(consumer, 2, distinct=True)) == {b"4", b"5"}


def test_nothing_is_given_before_all_members_are_there(tube: TubeServer, opened: Opener) -> None:
    first = opened("three", offsets={KEYS[0]: 0, KEYS[1]: 0}, session="s", members=2)
    first.wait_ready(SECONDS)
    assert first.poll(0.2) is None
    assert first.assignment() == []
    second = opened("three", offsets={KEYS[2]: 0}, session="s", members=2)
    assert eventually(lambda: first.assignment() == KEYS[:2] and second.assignment() == KEYS[2:])


@pytest.mark.parametrize(("larger", "winner"), [(False, 0), (True, 1)])
def test_two_members_that_name_a_partition(tube: TubeServer, opened: Opener, larger: bool, winner: int) -> None:
    for i in range(3):
        tube.put("three", b"%d" % i, partition=0)
    common: dict[str, Any] = {"session": "s", "members": 2, "larger_offset": larger}
    members = [
        opened("three", offsets={KEYS[0]: 0}, **common),
        opened("three", offsets={KEYS[0]: 2 * INDEX}, **common),
    ]
    assert eventually(lambda: sum(len(one.assignment()) for one in members) == 3)
    assert KEYS[0] in members[winner].assignment()
    assert drain(members[winner], 1)[0] == [b"0", b"2"][winner]


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({}, 424),
        ({"session": "t", "members": 2}, 427),
        ({"session": "s", "members": 2, "larger_offset": True}, 428),
        ({"session": "s", "members": 3}, 429),
    ],
)
def test_members_that_ask_for_other_things(tube: TubeServer, opened: Opener, other: dict[str, Any], code: int) -> None:
    opened(session="s", members=2).wait_ready(SECONDS)
    with pytest.raises(GroupRefusedError) as caught:
        opened(**other).wait_ready(SECONDS)
    assert caught.value.details["code"] == code


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"offsets": {"1:one:0": 0}}, "offsets is given without session"),
        ({"larger_offset": True}, "larger_offset is given without session"),
        ({"members": 2}, "members (2) is given without session"),
        ({"session": "a b"}, "session 'a b' is not a key"),
        ({"offsets": {"1:one:0": 27}, "session": "s"}, "offsets: 27 of '1:one:0' is no offset"),
        ({"offsets": {"one": 28}, "session": "s"}, "offsets: 'one' is not a partition"),
        ({"offsets": {"01:one:0": 28}, "session": "s"}, "offsets: '01:one:0' is not a partition"),
        ({"offsets": {"1:one:00": 28}, "session": "s"}, "offsets: '1:one:00' is not a partition"),
        ({"offsets": {"1:other:0": 28}, "session": "s"}, "offsets: '1:other:0' is a partition of 'other'"),
        ({"offsets": {"1:one:0": -28}, "session": "s"}, "offsets: -28 of '1:one:0' is no offset"),
        ({"offsets": {"1:one:0": 28.0}, "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": {"1:one:0": np.float64(28)}, "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": {"1:one:0": True}, "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": {5: 28}, "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": 5, "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": "1:one:0", "session": "s"}, "is not a mapping of partitions to offsets"),
        ({"offsets": "1:one:0=28,1:one:0=56", "session": "s"}, "has the partition '1:one:0' twice"),
    ],
)
def test_options_that_cannot_be(opened: Opener, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(**options)
    assert text in str(caught.value)


def test_offsets_of_numpy(opened: Opener) -> None:
    consumer = opened(offsets={"1:one:0": np.int64(28)}, session="s")
    assert dict(consumer.config.offsets) == {"1:one:0": 28}
    assert all(type(offset) is int for _, offset in consumer.config.offsets)


def test_offsets_as_text(opened: Opener) -> None:
    consumer = opened("three", offsets=" 1:three:0=28, 1:three:1=0 ", session="s")
    assert dict(consumer.config.offsets) == {KEYS[0]: 28, KEYS[1]: 0}
