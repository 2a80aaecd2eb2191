"""Configurations of groups: defaults, changes, versions, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.groups.configs import GroupConfigs
from dataproxy.wire.rocketmq.bodies import SubscriptionGroup
from tests.support.rocketclients import Kept, refusal


def test_a_group_that_nobody_configured_has_the_defaults() -> None:
    configs = GroupConfigs(Kept())
    found = configs.get("g")
    assert found == SubscriptionGroup("g")
    assert found is not None
    assert (found.consume_enable, found.retry_queue_nums, found.retry_max_times) == (True, 1, 16)
    assert configs.all() == ()


def test_without_creation_by_itself_a_group_is_unknown_until_it_is_configured() -> None:
    configs = GroupConfigs(Kept(), auto_create=False)
    assert configs.get("g") is None
    assert configs.tells("g")
    configs.update(SubscriptionGroup("g"), 5)
    assert configs.get("g") == SubscriptionGroup("g")


def test_a_change_raises_the_version_and_is_there_after_a_restart() -> None:
    kept = Kept()
    configs = GroupConfigs(kept)
    changed = SubscriptionGroup("g", consume_enable=False, retry_max_times=-1, notify_consumer_ids_changed_enable=False)
    configs.update(changed, 1234)
    configs.update(SubscriptionGroup("h", retry_queue_nums=0), 1235)
    again = GroupConfigs(kept)
    assert again.get("g") == changed
    assert [one.group_name for one in again.all()] == ["g", "h"]
    assert (again.version.counter, again.version.timestamp) == (2, 1235)
    assert not again.tells("g")
    assert again.tells("h")


def test_what_could_not_be_kept_is_no_change() -> None:
    kept = Kept()
    configs = GroupConfigs(kept)
    kept.fails = True
    error = refusal(lambda: configs.update(SubscriptionGroup("g", retry_max_times=3), 1))
    assert "the disk is full" in error.remark
    assert configs.get("g") == SubscriptionGroup("g")
    assert configs.version.counter == 0


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"group_name": ""}, "groupName"),
        ({"group_name": "a@b"}, "groupName"),
        ({"group_name": "g" * 121}, "groupName"),
        ({"group_name": "g", "retry_queue_nums": -1}, "retryQueueNums"),
        ({"group_name": "g", "retry_queue_nums": 1 << 20}, "retryQueueNums"),
        ({"group_name": "g", "retry_max_times": -2}, "retryMaxTimes"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(fields: dict[str, Any], named: str) -> None:
    kept = Kept()
    configs = GroupConfigs(kept)
    assert named in refusal(lambda: configs.update(SubscriptionGroup(**fields), 1)).remark
    assert kept.data is None


def test_a_table_that_cannot_be_read_stops_the_start_and_is_not_overwritten() -> None:
    kept = Kept(b'{"dataVersion": 7}')
    with pytest.raises(RemoteProtocolError, match="configurations of groups"):
        GroupConfigs(kept)
    assert kept.data == b'{"dataVersion": 7}'
