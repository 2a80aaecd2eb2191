"""Locks of queues: one owner at any moment, leases, and what is left of an owner that has gone."""

from __future__ import annotations

import pytest

from dataproxy.hub.rocketmq.clients.actions import Holder
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.locks import Locks
from dataproxy.wire.rocketmq.codes import Answer
from dataproxy.wire.rocketmq.queues import Queue
from tests.support.rocketclients import RocketHub, queues, refusal

Q = queues("t", 0)[0]
A, B = Holder("a", 1, 0.0), Holder("b", 2, 0.0)


def orderly(*clients: str, **limits: float) -> RocketHub:
    """Return a hub with members of the group "g", on connections from 1."""
    hub = RocketHub(**limits)
    for connection, client in enumerate(clients, 1):
        hub.beat(connection, client, {"g": ["t"]})
    hub.told()
    return hub


def stay(hub: RocketHub, seconds: float, *members: tuple[int, str]) -> None:
    """Let time pass in which members send heartbeats."""
    for _ in range(int(seconds // 10)):
        hub.wait(10.0)
        for connection, client in members:
            hub.beat(connection, client, {"g": ["t"]})
    hub.wait(seconds % 10)


def test_a_queue_is_its_first_members_until_it_gives_it_back() -> None:
    hub = orderly("a", "b")
    assert hub.lock(1, "a", "g", *queues("t", 0, 1)) == queues("t", 0, 1)
    assert hub.lock(2, "b", "g", *queues("t", 1, 2)) == queues("t", 2)
    hub.unlock(2, "b", "g", *queues("t", 0, 1))  # another one's: it keeps them
    assert hub.lock(2, "b", "g", *queues("t", 0, 1)) == ()
    hub.unlock(1, "a", "g", *queues("t", 1, 3))
    assert hub.lock(2, "b", "g", *queues("t", 0, 1)) == queues("t", 1)


def test_a_lease_holds_for_a_minute_to_its_last_moment() -> None:
    locks = Locks(Limits(), 0.0)
    assert locks.lock("g", Q, A, 0.0)
    assert not locks.lock("g", Q, B, 60.0)
    assert locks.lock("g", Q, B, 60.001)
    assert not locks.lock("g", Q, A, 60.001)


def test_at_the_border_of_a_lease_only_one_of_two_is_told_yes() -> None:
    """RocketMQ refreshes "already mine" outside of its lock: at 60 s both are told "yes"."""
    for first, second in ((A, B), (B, A)):
        locks = Locks(Limits(), 0.0)
        locks.lock("g", Q, A, 0.0)
        answers = [locks.lock("g", Q, who, 60.5) for who in (first, second)]
        assert answers == [True, False]


def test_a_renewal_begins_the_lease_anew() -> None:
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    for _ in range(6):
        stay(hub, 20.0, (1, "a"), (2, "b"))
        assert hub.lock(1, "a", "g", Q) == (Q,)
        assert hub.lock(2, "b", "g", Q) == ()
    (found,) = hub.registry.snapshot(hub.now).locks
    assert (found.client_id, found.age_s > 100, found.granted_s) == ("a", True, 0.0)


def test_what_fails_is_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """RocketMQ answers "granted" when its thread is interrupted, and a batch that fails is a smaller result."""
    hub = orderly("a")

    def fails(topic: str) -> int:
        raise OSError(topic)

    monkeypatch.setattr(hub.queues, "read_queues", fails)
    with pytest.raises(OSError, match="t"):
        hub.lock(1, "a", "g", Q)
    assert hub.registry.snapshot(hub.now).locks == ()


def test_a_member_that_leaves_frees_its_queues_at_once() -> None:
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    hub.leave(1, consumer="g")
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_the_locks_of_a_connection_that_ended_are_free_when_its_client_has_given_them_up() -> None:
    """In RocketMQ they stay until the lease is over, and nobody is told then."""
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    stay(hub, 20.0, (1, "a"), (2, "b"))
    hub.close(1)
    assert hub.lock(2, "b", "g", Q) == ()
    assert hub.told() == [(2, "g")]
    hub.wait(11.7)
    assert hub.lock(2, "b", "g", Q) == ()  # "a" may still believe: it counts 30 s from the last answer
    hub.wait(0.2)
    assert hub.lock(2, "b", "g", Q) == (Q,)
    hub.wait(0.2)


def test_a_group_is_told_when_a_queue_of_who_has_gone_is_free() -> None:
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    hub.close(1)
    hub.told()
    assert hub.told(31.0) == []
    assert hub.told(1.5) == [(2, "g")]
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_the_grace_is_short_where_clients_give_up_at_once() -> None:
    hub = orderly("a", "b", belief=0.0)
    hub.lock(1, "a", "g", Q)
    hub.close(1)
    hub.wait(4.9)
    assert hub.lock(2, "b", "g", Q) == ()
    hub.wait(0.2)
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_the_locks_of_a_silent_member_end_with_it() -> None:
    hub = orderly("a", lease=10_000.0)
    hub.lock(1, "a", "g", Q)
    hub.wait(126.5)
    hub.beat(2, "b", {"g": ["t"]})
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_a_client_that_reconnects_has_its_queues_again() -> None:
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    hub.close(1)
    hub.wait(1.0)
    hub.beat(3, "a", {"g": ["t"]})
    assert hub.lock(3, "a", "g", Q) == (Q,)
    stay(hub, 40.0, (3, "a"), (2, "b"))
    assert hub.lock(2, "b", "g", Q) == ()


def test_a_client_whose_old_connection_ends_later_keeps_its_queues() -> None:
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    hub.beat(3, "a", {"g": ["t"]})
    hub.close(1)
    stay(hub, 40.0, (3, "a"), (2, "b"))
    assert hub.lock(2, "b", "g", Q) == ()
    assert hub.lock(3, "a", "g", Q) == (Q,)


def test_two_processes_with_one_id_do_not_share_a_lock() -> None:
    """The owner of a lock is an id in RocketMQ: two processes with one id have the same queue."""
    hub = orderly("a", "b")
    hub.lock(1, "a", "g", Q)
    hub.beat(3, "a", {"g": ["t"]})
    assert hub.lock(3, "a", "g", Q) == ()
    for _ in range(5):
        stay(hub, 20.0, (1, "a"), (3, "a"))
        assert hub.lock(1, "a", "g", Q) == (Q,)
        assert hub.lock(3, "a", "g", Q) == ()
    hub.unlock(3, "a", "g", Q)
    assert hub.registry.lock_owner("g", Q, hub.now) == ("a", 1)
    hub.close(1)
    hub.wait(1.0)
    assert hub.registry.lock_owner("g", Q, hub.now) == ("a", 1)
    assert hub.lock(3, "a", "g", Q) == ()  # it was there before the other was lost, so it is no reconnect
    hub.unlock(3, "a", "g", Q)
    assert hub.lock(2, "b", "g", Q) == ()


def test_a_client_may_lock_by_another_connection_than_its_heartbeats_come_by() -> None:
    """A client with a VIP channel asks for locks there, and sends heartbeats on its main connection."""
    hub = orderly("a", "b")
    assert hub.lock(50, "a", "g", Q) == (Q,)
    assert hub.registry.lock_owner("g", Q, hub.now) == ("a", 1)
    hub.close(50)
    stay(hub, 40.0, (1, "a"), (2, "b"))
    assert hub.lock(2, "b", "g", Q) == ()
    hub.unlock(51, "a", "g", Q)  # anybody could say so
    assert hub.lock(2, "b", "g", Q) == ()
    hub.unlock(1, "a", "g", Q)
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_who_is_no_member_or_says_it_is_another_gets_nothing() -> None:
    hub = orderly("a", "b")
    assert hub.lock(9, "z", "g", Q) == ()
    assert hub.lock(2, "a", "g", Q) == ()
    assert hub.lock(9, "a", "nobody", Q) == ()
    assert len(hub.registry.snapshot(hub.now).locks) == 0


def test_queues_that_are_not_there_are_not_locked() -> None:
    """RocketMQ keeps an entry for every name that was ever asked for."""
    hub = orderly("a")
    absent = (*queues("t", 4, -1), *queues("nope", 0), *queues("t", 0, broker="other"))
    assert hub.lock(1, "a", "g", *absent, Q) == (Q,)
    assert [one.queue for one in hub.registry.snapshot(hub.now).locks] == [Q]


def test_leases_that_are_over_leave_the_table() -> None:
    locks = Locks(Limits(), 0.0)
    for one in range(100):
        locks.lock(f"g{one}", Queue("b", one, "t"), A, 0.0)
    assert not locks.lock("g1", Queue("b", 1, "t"), B, 1.0)
    assert locks.tick(59.0) == ()
    assert set(locks.tick(71.0)) == {f"g{one}" for one in range(100)}
    assert len(locks) == 0
    assert not any((locks._groups, locks._owned, locks._orphans))


def test_locks_are_bounded_and_those_that_are_there_go_on() -> None:
    hub = orderly("a", "b", locks=3)
    assert hub.lock(1, "a", "g", *queues("t", 0, 1, 2)) == queues("t", 0, 1, 2)
    assert refusal(lambda: hub.lock(2, "b", "g", *queues("t", 3))).code == Answer.SYSTEM_BUSY
    assert hub.lock(1, "a", "g", *queues("t", 0, 1, 2)) == queues("t", 0, 1, 2)
    hub.unlock(1, "a", "g", *queues("t", 0))
    assert hub.lock(2, "b", "g", *queues("t", 3)) == queues("t", 3)
    hub.leave(1, consumer="g")
    assert hub.lock(2, "b", "g", *queues("t", 0, 1)) == queues("t", 0, 1)


def test_each_broadcasting_member_has_all_queues() -> None:
    """A broadcasting member of RocketMQ may be refused, and then never reads the queue."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, model="BROADCASTING")
    hub.beat(2, "b", {"g": ["t"]}, model="BROADCASTING")
    assert hub.lock(1, "a", "g", Q) == (Q,)
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_a_hub_that_has_just_started_may_wait_for_the_clients_of_an_earlier_one() -> None:
    """RocketMQ's table is volatile: after a restart a queue has two owners for up to 30 s."""
    hub = orderly("a", "b", quiet=30.0)
    assert hub.lock(2, "b", "g", Q) == ()
    hub.wait(30.0)
    assert hub.lock(2, "b", "g", Q) == (Q,)


def test_locks_of_one_group_are_nothing_to_another() -> None:
    hub = orderly("a")
    hub.beat(2, "b", {"h": ["t"]})
    assert hub.lock(1, "a", "g", Q) == hub.lock(2, "b", "h", Q) == (Q,)
    hub.leave(1, consumer="g")
    assert hub.registry.lock_owner("h", Q, hub.now) == ("b", 2)
