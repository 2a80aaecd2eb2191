"""Transactions: who is asked when, and which ends count."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.hub.rocketmq.clients.actions import Check, Discard, Half
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.headers import EndTransaction
from tests.support.rocketclients import RocketHub, refusal


def half(hub: RocketHub, handle: int = 7, **more: Any) -> Half:
    """Return a half message of the group "p" that has just come, and add it."""
    one = Half(handle, handle + 100, more.pop("group", "p"), hub.now, **more)
    hub.registry.checks.add(one)
    return one


def end(hub: RocketHub, handle: int = 7, how: int = 8, **more: Any) -> Half | None:
    """End a transaction."""
    fields = {
        "producer_group": "p", "tran_state_table_offset": handle + 100, "commit_log_offset": handle,
        "commit_or_rollback": how, "msg_id": "m", **more,
    }  # fmt: skip
    return hub.registry.checks.end(EndTransaction(**fields))


def checked(hub: RocketHub, seconds: float) -> list[tuple[int, int, int]]:
    """Let time pass, and return who is asked: (connection, handle, which time)."""
    hub.wait(seconds)
    return [(one.connection, one.half.handle, one.half.checks) for one in hub.actions(Check)]


def producing(*clients: str) -> RocketHub:
    """Return a hub with producers of the group "p"."""
    hub = RocketHub(client=1e9)
    for connection, client in enumerate(clients, 1):
        hub.beat(connection, client, produces=["p"])
    return hub


def test_a_young_message_is_left_alone_and_then_asked_for_every_minute() -> None:
    hub = producing("a")
    half(hub)
    assert checked(hub, 5.9) == []
    assert checked(hub, 0.2) == [(1, 7, 1)]
    assert checked(hub, 59.0) == []
    assert checked(hub, 1.0) == [(1, 7, 2)]


def test_a_message_may_say_itself_for_how_long_it_is_left_alone() -> None:
    hub = producing("a")
    half(hub, immunity_s=30.0)
    assert checked(hub, 29.0) == []
    assert checked(hub, 1.1) == [(1, 7, 1)]


def test_the_producer_that_sent_is_asked() -> None:
    """RocketMQ asks any producer of the group, which may know nothing of the transaction."""
    hub = producing("a", "b", "c")
    half(hub, 7, connection=2, client_id="b")
    half(hub, 8, connection=3, client_id="c")
    assert checked(hub, 6.1) == [(2, 7, 1), (3, 8, 1)]


def test_a_producer_that_reconnected_is_found_by_its_id() -> None:
    hub = producing("a", "b", "c")
    half(hub, 7, connection=2, client_id="b")
    hub.close(2)
    hub.beat(9, "b", produces=["p"])
    assert checked(hub, 6.1) == [(9, 7, 1)]


def test_without_the_one_that_sent_the_others_are_asked_in_turn() -> None:
    hub = producing("a", "b", "c")
    for handle in (1, 2, 3, 4):
        half(hub, handle, connection=77, client_id="gone")
    assert [connection for connection, *_ in checked(hub, 6.1)] == [1, 2, 3, 1]


def test_a_message_whose_group_has_no_producer_is_asked_for_when_one_comes() -> None:
    """RocketMQ drops the round, and tries again in a minute."""
    hub = producing()
    half(hub)
    assert checked(hub, 600.0) == []
    hub.beat(4, "d", produces=["other"])
    assert checked(hub, 0.1) == []
    hub.beat(5, "e", produces=["p"])
    assert checked(hub, 0.1) == [(5, 7, 1)]
    assert checked(hub, 60.0) == [(5, 7, 2)]


def test_a_producer_that_is_dead_is_not_asked() -> None:
    hub = producing("a", "b")
    half(hub, 7, connection=1, client_id="a")
    hub.close(1)
    assert checked(hub, 6.1) == [(2, 7, 1)]
    hub.leave(2, producer="p")
    assert checked(hub, 120.0) == []


def test_after_fifteen_checks_a_message_is_put_aside() -> None:
    hub = producing("a")
    half(hub)
    hub.wait(6.0 + 14 * 60.0 + 1.0)
    assert len(hub.actions(Check)) == 15
    hub.wait(60.0)
    (found,) = hub.actions(Discard)
    assert isinstance(found, Discard)
    assert (found.half.handle, found.half.checks) == (7, 15)
    hub.wait(600.0)
    assert hub.actions() == []
    assert end(hub) is None
    hub.registry.checks.done(7)
    assert len(hub.registry.checks) == 0


def test_a_message_that_nobody_ever_ends_is_put_aside_at_last() -> None:
    hub = RocketHub(abandoned=1000.0)
    half(hub)
    hub.wait(960.0)
    assert hub.actions() == []
    hub.wait(120.0)
    assert [type(one) for one in hub.actions()] == [Discard]


def test_what_could_not_be_put_aside_is_tried_again() -> None:
    hub = RocketHub(abandoned=10.0)
    half(hub)
    hub.wait(70.0)
    hub.registry.checks.failed(7, hub.now)
    hub.actions()
    hub.wait(61.0)
    assert len(hub.actions(Discard)) == 1


@pytest.mark.parametrize("how", [8, 12])
def test_an_end_counts_once(how: int) -> None:
    hub = producing("a")
    one = half(hub)
    assert end(hub, how=how) == one
    assert end(hub, how=how) is None  # while it is worked off
    hub.registry.checks.done(7)
    assert end(hub, how=how) is None
    assert end(hub, how=20 - how) is None
    assert checked(hub, 600.0) == []
    assert hub.registry.checks.waiting() == ()


def test_an_end_that_is_not_known_changes_nothing() -> None:
    hub = producing("a")
    half(hub)
    assert end(hub, how=0) is None
    assert checked(hub, 6.1) == [(1, 7, 1)]


def test_an_end_that_could_not_be_stored_may_come_again() -> None:
    hub = producing("a")
    one = half(hub)
    assert end(hub) == one
    hub.registry.checks.failed(7, hub.now)
    assert end(hub) == one
    hub.registry.checks.failed(7, hub.now)
    assert checked(hub, 59.0) == []
    assert checked(hub, 1.1) == [(1, 7, 1)]
    hub.registry.checks.failed(12345, hub.now)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"producer_group": "other"}, "'other'"),
        ({"tran_state_table_offset": 1}, "tranStateTableOffset"),
        ({"commit_or_rollback": 5}, "commitOrRollback"),
    ],
)
def test_an_end_that_does_not_belong_to_its_message_is_refused(fields: dict[str, Any], named: str) -> None:
    hub = producing("a")
    one = half(hub)
    error = refusal(lambda: end(hub, **fields))
    assert (error.code, named in error.remark) == (Answer.SYSTEM_ERROR, True)
    assert end(hub) == one


def test_an_end_of_nothing_is_no_error() -> None:
    assert end(RocketHub(), 99) is None


def test_transactions_are_bounded_and_asked_some_at_a_time() -> None:
    hub = producing("a")
    hub.registry.checks._limits = type(hub.registry.checks._limits)(halves=600)
    for handle in range(600):
        hub.registry.checks.check_room()
        half(hub, handle)
    assert refusal(hub.registry.checks.check_room).code == Answer.SYSTEM_BUSY
    hub.now += 6.0
    counts = []
    for _ in range(4):
        hub.registry.tick(hub.now)
        counts.append(len(hub.actions(Check)))
    assert counts == [256, 256, 88, 0]
