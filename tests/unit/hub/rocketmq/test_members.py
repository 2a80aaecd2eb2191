"""Members of groups: what a heartbeat changes, who is told of it, and who leaves."""

from __future__ import annotations

import logging

import pytest

from dataproxy.hub.rocketmq.clients.actions import Subscribed
from dataproxy.wire.rocketmq.codes import Answer
from tests.support.rocketclients import RocketHub, refusal


def test_the_first_member_makes_its_group_and_every_further_one_is_told_to_all() -> None:
    hub = RocketHub()
    assert hub.beat(1, "a", {"g": ["t"]}) == ("g",)
    assert hub.told() == [(1, "g")]
    assert hub.beat(2, "b", {"g": ["t"]}) == ()
    assert hub.registry.member_ids("g") == ("a", "b")
    assert hub.told() == [(1, "g"), (2, "g")]


def test_a_heartbeat_that_says_the_same_tells_nobody() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.told()
    for _ in range(3):
        hub.wait(30.0)
        hub.beat(1, "a", {"g": ["t"]})
    hub.beat(1, "a", {"g": ["t"]}, version=9)  # a client raises the version after each rebalance
    assert hub.told() == []


def test_a_client_that_changes_its_id_on_a_connection_is_told() -> None:
    """RocketMQ logs a "[BUG]", refreshes the record that it has replaced, and tells no peer."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.beat(1, "c", {"g": ["t"]})
    assert hub.told() == [(1, "g"), (2, "g")]
    assert set(hub.registry.member_ids("g")) == {"b", "c"}
    hub.wait(100.0)
    hub.beat(1, "c", {"g": ["t"]})
    hub.wait(60.0)
    assert hub.registry.member_ids("g") == ("c",)


@pytest.mark.parametrize("model", ["CLUSTERING", "BROADCASTING"])
def test_a_member_that_changes_its_model_is_told(model: str) -> None:
    """RocketMQ lets the last writer overwrite model and type of the group, and counts it as no change."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, model={"CLUSTERING": "BROADCASTING"}.get(model, "CLUSTERING"))
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.beat(1, "a", {"g": ["t"]}, model=model)
    assert (2, "g") in hub.told()


def test_another_expression_of_a_topic_is_a_change_and_another_version_is_none() -> None:
    """RocketMQ stores a new expression, and nobody rebalances."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": {"t": "A"}})
    hub.told()
    hub.beat(1, "a", {"g": {"t": "A"}}, version=2)
    assert hub.told() == []
    hub.beat(1, "a", {"g": {"t": "A || B"}}, version=3)
    assert hub.told() == [(1, "g")]


def test_members_with_other_topics_do_not_erase_each_others() -> None:
    """A group of RocketMQ has one subscription: two members erase each other's topics at each heartbeat."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["u"]})
    hub.told()
    for _ in range(3):
        hub.wait(30.0)
        hub.beat(1, "a", {"g": ["t"]}, version=5)
        hub.beat(2, "b", {"g": ["u"]}, version=5)
        assert hub.told() == []
    assert hub.registry.subscription(1, "g", "t", 5).topic == "t"
    assert hub.registry.subscription(2, "g", "u", 5).topic == "u"
    assert set(hub.registry.consumer_connections("g").subscription_table) == {"t", "u"}


def test_members_that_want_different_things_are_reported() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": {"t": "*", "u": "A"}})
    hub.beat(2, "b", {"g": {"t": "*", "u": "B"}, "h": ["t"]})
    (g,) = [one for one in hub.registry.snapshot(hub.now).groups if one.name == "g"]
    assert g.disagreements == ("u",)


def test_a_pull_is_answered_by_the_members_own_subscription() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": {"t": "A"}}, version=3)
    hub.beat(2, "b", {"g": {"t": "B"}}, version=4)
    assert [hub.registry.subscription(one, "g", "t").sub_string for one in (1, 2)] == ["A", "B"]
    assert hub.registry.subscription(99, "g", "t").sub_string == "B"  # no member: the newest word of the group
    assert refusal(lambda: hub.registry.subscription(1, "g", "t", 4)).code == Answer.SUBSCRIPTION_NOT_LATEST
    assert refusal(lambda: hub.registry.subscription(1, "g", "u")).code == Answer.SUBSCRIPTION_NOT_EXIST
    assert refusal(lambda: hub.registry.subscription(1, "nobody", "t")).code == Answer.SUBSCRIPTION_NOT_EXIST


def test_a_topic_that_a_heartbeat_does_not_name_any_more_is_gone() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t", "u"]})
    hub.told()
    hub.beat(1, "a", {"g": ["t"]}, version=2)
    assert hub.told() == [(1, "g")]
    assert refusal(lambda: hub.registry.subscription(1, "g", "u")).code == Answer.SUBSCRIPTION_NOT_EXIST
    assert hub.registry.members.groups_of("u") == ()
    assert hub.registry.members.groups_of("t") == ("g",)


def test_an_older_version_of_a_subscription_is_ignored() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": {"t": "new"}}, version=7)
    hub.told()
    hub.beat(1, "a", {"g": {"t": "old"}}, version=6)
    assert hub.told() == []
    assert hub.registry.subscription(1, "g", "t").sub_string == "new"


def test_a_client_of_two_connections_is_one_member_and_its_newest_connection_counts() -> None:
    """RocketMQ lists the id twice (38), and clients then compute a wrong share."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.told()
    hub.beat(2, "a", {"g": ["t"]})
    assert hub.registry.member_ids("g") == ("a",)
    found = hub.registry.members.find("g", "a")
    assert found is not None
    assert found.peer.connection == 2
    assert hub.told() == []  # nobody's share is another one


def test_the_end_of_an_old_connection_leaves_the_client_on_its_new_one() -> None:
    """RocketMQ's index of clients loses the new connection when the old one ends."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, ["p"])
    hub.beat(2, "a", {"g": ["t"]}, ["p"])
    hub.told()
    hub.close(1)
    assert hub.registry.member_ids("g") == ("a",)
    assert hub.told() == []
    found = hub.registry.members.find("g", "a")
    assert found is not None
    assert found.peer.connection == 2
    assert hub.registry.producers.choose("p", 1, "a") == 2


def test_two_living_connections_with_one_id_are_two_clients_and_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """In RocketMQ containers with one id take each other's queues, and nothing says so."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "a", {"g": ["t"]})
    hub.beat(1, "a", {"g": ["t"]})  # under way when the client reconnected
    assert hub.registry.snapshot(hub.now).groups[0].twins == ()
    with caplog.at_level(logging.WARNING, "dataproxy.hub.rocketmq"):
        for _ in range(3):
            hub.wait(30.0)
            hub.beat(1, "a", {"g": ["t"]})
            hub.beat(2, "a", {"g": ["t"]})
    assert hub.registry.snapshot(hub.now).groups[0].twins == ("a",)
    assert len(caplog.records) == 1
    assert "10.0.0.1:50001" in caplog.text
    assert "10.0.0.1:50002" in caplog.text
    hub.close(1)
    assert hub.registry.snapshot(hub.now).groups[0].twins == ()


def test_a_connection_has_a_record_for_each_group_so_none_keeps_another_alive() -> None:
    """In RocketMQ all groups of a heartbeat share one record, and a group that was left lives as long as the other."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, ["p", "q"])
    for _ in range(5):
        hub.wait(30.0)
        hub.beat(1, "a", {"g": ["t"]}, ["p"])
    assert hub.registry.members.names() == ("g",)
    assert set(hub.registry.producers.groups()) == {"p"}
    assert hub.closing() == []  # the connection is alive


def test_every_group_of_a_heartbeat_has_what_is_its_own() -> None:
    """The front node fills one object in turn for every group: the last group and role win everywhere."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": {"t": "A"}, "h": {"u": "B"}}, ["p"])
    g, h = (hub.registry.members.at(name, 1) for name in "gh")
    assert g is not None
    assert h is not None
    assert (g.group, set(g.subscriptions), h.group, set(h.subscriptions)) == ("g", {"t"}, "h", {"u"})
    assert [one.peer.connection for one in hub.registry.producers.of("p")] == [1]


def test_a_client_that_only_produced_at_first_may_consume_later() -> None:
    """The front node's attribute of a connection is the first writer's: later groups never change it."""
    hub = RocketHub()
    hub.beat(1, "a", produces=["p"])
    assert hub.beat(1, "a", {"g": ["t"]}, ["p"]) == ("g",)
    assert hub.told() == [(1, "g")]
    hub.close(1)
    assert (hub.registry.members.names(), hub.registry.producers.groups()) == ((), {})


def test_unregistering_removes_one_group_at_once_and_tells_the_rest() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, ["p"])
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.leave(1, consumer="g")
    assert (hub.registry.member_ids("g"), hub.registry.member_ids("h")) == (("b",), ("a",))
    assert hub.told() == [(2, "g")]
    hub.leave(1, producer="p", consumer="h")
    assert hub.registry.producers.groups() == {}
    hub.leave(1)  # names nothing
    hub.leave(1, consumer="nobody", producer="nobody")
    assert hub.told() == []


def test_unregistering_tells_once() -> None:
    """The front node's unregistration notifies twice."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    hub.beat(2, "b", {"g": ["t"]})
    hub.told()
    hub.leave(1, consumer="g")
    hub.leave(1, consumer="g")
    hub.close(1)
    assert hub.told() == [(2, "g")]


def test_a_producer_that_leaves_one_group_stays_in_its_others() -> None:
    """RocketMQ drops the client from its index, even if it has other groups."""
    hub = RocketHub()
    hub.beat(1, "a", produces=["p", "q"])
    hub.leave(1, producer="p")
    assert hub.registry.producers.choose("q", 1, "a") == 1
    assert hub.registry.producers.choose("p", 1, "a") is None


def test_unregistering_from_another_connection_removes_nothing() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, ["p"])
    hub.leave(2, consumer="g", producer="p", client="a")
    assert hub.registry.member_ids("g") == ("a",)
    assert set(hub.registry.producers.groups()) == {"p"}


def test_a_late_heartbeat_does_not_bring_back_who_has_left() -> None:
    """A consumer of RocketMQ that was stopped registers again by a heartbeat under way, and holds queues for ever."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, version=5)
    hub.leave(1, consumer="g")
    assert hub.beat(1, "a", {"g": ["t"], "h": ["t"]}, version=5) == ()
    assert hub.registry.members.names() == ("h",)
    hub.beat(1, "a", {"h": ["t"]}, version=5)
    hub.wait(30.0)
    assert hub.registry.members.names() == ("h",)


def test_a_consumer_that_is_started_anew_on_the_connection_is_a_member_at_once() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, version=5)
    hub.leave(1, consumer="g")
    assert hub.beat(1, "a", {"g": ["t"]}, version=6) == ("g",)
    assert hub.registry.member_ids("g") == ("a",)


def test_a_heartbeat_that_was_refused_for_one_group_counts_when_it_comes_again() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": []})
    hub.leave(1, consumer="g")
    hub.beat(1, "a", {"g": []})
    assert hub.registry.members.names() == ()
    hub.wait(30.0)
    hub.beat(1, "a", {"g": []})
    assert hub.registry.member_ids("g") == ("a",)


def test_who_left_and_says_the_same_as_before_is_no_member_by_the_short_cut() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]})
    hub.leave(1, consumer="g")
    hub.wait(15.0)
    hub.beat(1, "a", {"g": ["t"], "h": ["t"]})  # the tombstone's time is over: it consumes again
    assert set(hub.registry.members.names()) == {"g", "h"}


def test_a_group_is_there_with_its_first_member_or_not_at_all() -> None:
    """In RocketMQ a new group without a connection may be detached by a scan, and its member with it for 30 s."""
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, ["p"])
    hub.leave(1, consumer="g", producer="p")
    assert (hub.registry.members.names(), hub.registry.producers.groups()) == ((), {})
    hub.wait(11.0)
    hub.beat(1, "a", {"g": ["t"]}, ["p"])
    assert (hub.registry.member_ids("g"), set(hub.registry.producers.groups())) == (("a",), {"p"})


def test_the_compiled_side_is_told_what_a_connection_wants() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]})
    (first,) = hub.actions(Subscribed)
    assert isinstance(first, Subscribed)
    assert (first.connection, first.group, set(first.subscriptions)) == (1, "g", {"t"})
    hub.beat(1, "a", {"g": ["t"]})
    assert hub.actions(Subscribed) == []
    hub.beat(1, "a", {"g": ["t"]}, version=2)
    (second,) = hub.actions(Subscribed)
    assert isinstance(second, Subscribed)
    assert second.subscriptions["t"].sub_version == 2
    hub.leave(1, consumer="g")
    assert hub.actions(Subscribed) == [Subscribed(1, "g", {})]


def test_an_unknown_group_has_no_list_of_members() -> None:
    """An empty list with a success makes a client give up all its queues."""
    hub = RocketHub()
    assert refusal(lambda: hub.registry.member_ids("g")).code == Answer.SYSTEM_ERROR
    hub.beat(1, "a", {"g": ["t"]})
    hub.close(1)
    assert refusal(lambda: hub.registry.member_ids("g")).code == Answer.SYSTEM_ERROR
