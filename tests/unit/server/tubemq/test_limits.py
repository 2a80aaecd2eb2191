"""Flow rules at the hub's broker: which rule holds, what a minute and its slices may have, what a client is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.wire.tubemq.flow import read_flow_rules
from tests.support.reference.tubevectors import VECTORS

VECTOR = VECTORS["flow_control"]
MIB = 1 << 20
S = 1_000_000
FREE = 2**63 - 1  # no limit
ONE = (b"g", b"t", 0)


def wall(time: str) -> int:
    """Return a wall clock's ms at a time of the day in GMT+8."""
    hour, minute = map(int, time.split(":"))
    return int((datetime(2026, 11, 25, tzinfo=UTC) + timedelta(hours=hour - 8, minutes=minute)).timestamp() * 1000)


NOON = wall("12:00")


class Reading:
    """One group's reading of one partition, under rules of (first, last minute, backlog, bytes a minute, ms)."""

    def __init__(self, **rules: tuple[tuple[int, int, int, int, int], ...]) -> None:
        self.table = RegistrationsCore(b"0123456789abcdef", 3600 * S, 1 << 20)
        for name, some in rules.items():
            self.table.set_rules(None if name == "cluster" else name.encode(), some)
        assert self.table.take(*ONE, b"c", b"", 0)[0] == 200

    def ask(self, second: float, size: int = 0, *, backlog: int = 1 << 40, wall_ms: int = NOON) -> int:
        """Return what a pack may have, and read so much if it may have anything; below 0: the wait and 1 more."""
        return self.table.limit(*ONE, backlog, size, int(second * S), wall_ms)


def limited(bytes_a_minute: int = 12 * MIB, wait_ms: int = 700, backlog: int = 100) -> tuple[Any, ...]:
    """Return rules with one for the whole day."""
    return ((0, 1440, backlog, bytes_a_minute, wait_ms),)


def test_without_rules_there_is_no_limit() -> None:
    one = Reading()
    assert {one.ask(i / 10, 1 << 40) for i in range(1000)} == {FREE}


def test_nothing_is_limited_before_something_was_read() -> None:
    one = Reading(cluster=limited())
    assert one.ask(0, 500 * MIB) == FREE
    assert one.ask(0.1, 0) == MIB, "the first pack belongs to no minute"


def test_a_slice_has_a_twelfth_and_the_next_one_has_another() -> None:
    one = Reading(cluster=limited())
    one.ask(0)
    assert one.ask(1, MIB - 1) == MIB
    assert one.ask(1.1, 1) == MIB
    assert one.ask(1.2, 1) == -701
    assert one.ask(6.0) == -701, "five seconds belong to the slice, the last moment too"
    assert one.ask(6.000001, 5 * MIB) == MIB
    assert one.ask(6.1) == -701


def test_a_minute_has_its_limit_whatever_its_slices_leave() -> None:
    one = Reading(cluster=limited())
    one.ask(0)
    assert one.ask(1, 11 * MIB) == MIB, "one pack may be larger than its slice: a single large message is"
    assert one.ask(7, MIB) == MIB
    for second in (13, 30, 59.9, 61):
        assert one.ask(second) == -701
    assert one.ask(61.000001, MIB) == MIB, "the next minute"
    assert one.ask(62) == -701


@pytest.mark.parametrize("vector", VECTOR["data_limit"], ids=lambda v: f"{v['time']} {v['data_dlt']}")
@pytest.mark.parametrize("whose", ["cluster", "g"])
def test_the_vectors(vector: dict[str, Any], whose: str) -> None:
    one = Reading(**{whose: read_flow_rules(VECTOR["text"]).volume})
    how: dict[str, Any] = {"backlog": vector["data_dlt"], "wall_ms": wall(vector["time"])}
    assert one.ask(0, **how) == FREE
    result = vector["result"]
    if result is None:
        assert one.ask(1, 1 << 50, **how) == one.ask(2, **how) == FREE
        return
    allowed = result["bytes_per_minute"] // 12
    if not allowed:
        assert one.ask(1, **how) == -1 - result["freq_ms"]
        return
    assert one.ask(1, allowed, **how) == allowed
    assert one.ask(2, **how) == -1 - result["freq_ms"]


def test_a_rule_holds_to_the_minute() -> None:
    rules = ((8 * 60, 9 * 60, 100, 12, 300), (9 * 60 + 1, 10 * 60, 100, 24, 500))
    for time, allowed in (("07:59", FREE), ("08:00", 1), ("09:00", 1), ("09:01", 2), ("10:00", 2), ("10:01", FREE)):
        one = Reading(cluster=rules)
        one.ask(0)
        assert one.ask(1, wall_ms=wall(time)) == allowed, time
        one = Reading(cluster=rules)
        one.ask(0)
        assert one.ask(1, wall_ms=wall(time) + 59_999) == allowed, time


def test_a_backlog_has_to_be_larger() -> None:
    one = Reading(cluster=limited(12, backlog=100))
    one.ask(0)
    assert one.ask(1, backlog=100) == FREE
    assert one.ask(30, 1 << 30, backlog=101) == FREE, "the limit of a minute is chosen when it begins"
    assert one.ask(62, backlog=101) == 1


def test_rules_of_the_group_go_first() -> None:
    both = {"cluster": limited(24), "g": limited(12, backlog=1000), "other": limited(12 * MIB)}
    for backlog, allowed in ((1001, 1), (1000, 2)):
        one = Reading(**both)
        one.ask(0)
        assert one.ask(1, backlog=backlog) == allowed


def test_rules_that_change_count_from_the_next_minute_on() -> None:
    one = Reading(cluster=limited(12), g=limited(24), h=limited(36))
    one.ask(0)
    assert one.ask(1) == 2
    one.table.set_rules(b"g", limited(48))
    assert one.ask(2) == 2
    assert one.ask(62) == 4
    one.table.set_rules(b"g", ())
    assert one.ask(123) == 1
    one.table.set_rules(None, ())
    one.table.set_rules(b"nobody", ())
    assert one.ask(184) == FREE


def test_a_limit_of_nothing_stops_a_group() -> None:
    one = Reading(g=limited(0, 200))
    assert one.ask(0) == FREE
    assert {one.ask(i) for i in range(1, 200)} == {-201}


def test_a_registration_begins_anew() -> None:
    one = Reading(cluster=limited(12))
    one.ask(0)
    one.ask(1, 100)
    assert one.ask(2) == -701
    assert one.table.take(*ONE, b"c", b"", 2 * S)[0] == 200
    assert one.ask(3) == -701, "the same owner has not left"
    assert one.table.leave(*ONE, b"c", True, 3 * S) == 200
    assert one.table.take(*ONE, b"d", b"", 3 * S)[0] == 200
    assert one.ask(4) == FREE


def test_partitions_and_groups_have_limits_of_their_own() -> None:
    one = Reading(cluster=limited(12))
    one.ask(0)
    one.ask(1, 100)
    assert one.ask(2) == -701
    for other in ((b"g", b"t", 1), (b"h", b"t", 0)):
        assert one.table.take(*other, b"c", b"", 0)[0] == 200
        assert one.table.limit(*other, 1 << 40, 0, 2 * S, NOON) == FREE


def test_too_many_rules_are_no_set() -> None:
    with pytest.raises(ValueError, match="65 rules, at most 64"):
        RegistrationsCore(b"0123456789abcdef", S, 1 << 20).set_rules(None, limited() * 65)
