"""Notifications: every change is told, what changes together is told once, and who shares nothing is not told."""

from __future__ import annotations

from dataproxy.hub.rocketmq.clients.actions import Send
from dataproxy.hub.rocketmq.clients.notices import Notices
from dataproxy.wire.rocketmq.bodies import SubscriptionGroup
from tests.support.rocketclients import RocketHub


def test_what_changes_together_is_told_once_to_each() -> None:
    """RocketMQ writes one notification for each member and change, of which most are lost under a storm."""
    hub = RocketHub()
    for one in range(1, 51):
        hub.beat(one, f"c{one}", {"g": ["t"]})
    assert hub.told() == [(one, "g") for one in range(1, 51)]


def test_a_change_is_told_within_the_window_however_many_follow_it() -> None:
    outbox: list[Send] = []
    notices = Notices(0.1, lambda group: (1,), outbox)  # type: ignore[arg-type]
    for step in range(20):
        notices.changed("g", step * 0.01)
        notices.tick(step * 0.01)
    assert [one.connection for one in outbox] == [1]
    assert len(notices) == 1
    notices.tick(0.1 + 0.19)
    assert (len(outbox), len(notices), notices.sent) == (2, 0, 2)
    assert notices.next_tick == float("inf")


def test_who_has_gone_meanwhile_is_not_told_and_who_has_come_is() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    hub.close(1)
    hub.beat(3, "c", {"g": ["t"]})
    assert hub.told() == [(2, "g"), (3, "g")]


def test_broadcasting_members_are_not_told() -> None:
    """They get all messages; RocketMQ of 4.x tells them of changes all the same."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, model="BROADCASTING")
    hub.beat(2, "b", {"g": ["t"]}, model="BROADCASTING")
    assert hub.told() == []


def test_a_group_whose_notifications_are_off_hears_nothing_however_its_members_go() -> None:
    """RocketMQ's path for the end of a connection takes no notice of the group's switch."""
    hub = RocketHub()
    hub.configs.update(SubscriptionGroup("g", notify_consumer_ids_changed_enable=False), 0)
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    hub.beat(3, "c", {"g": ["t"]})
    hub.close(1)
    hub.leave(2, consumer="g")
    assert hub.told() == []


def test_groups_without_a_configuration_are_told_also_if_none_is_created() -> None:
    """The front node reads the configuration twice, and fails on a null when groups are not created by themselves."""
    hub = RocketHub()
    hub.configs.auto_create = False
    hub.beat(1, "a", {"g": ["t"]})
    assert hub.told() == [(1, "g")]


def test_old_connections_of_a_member_are_told_too() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "a", {"g": ["t"]})
    hub.told()
    hub.beat(3, "b", {"g": ["t"]})
    assert hub.told() == [(1, "g"), (2, "g"), (3, "g")]
