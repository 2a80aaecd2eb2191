"""What the hub's thread sets and server loops look at: topics, subscriptions, groups, and what pulls confirm."""

import pytest

from dataproxy._core.server.rocketmq.core import RemotingCore
from tests.native.probe_remoting import asked, commit, pulled, readable, route, wanted

ALL, TAGS, ASKED = 0, 1, 2
NONE, OLD = 24, 25


@pytest.fixture
def core():
    return RemotingCore(16, 1 << 20)


def test_which_queue_a_message_goes_to(core):
    assert route(core, b"T", 0) == -1
    core.set_topic("T", 3, 2, 6)
    assert [route(core, b"T", queue) for queue in range(4)] == [0, 1, 2, -1]  # 0 to the larger of both numbers
    assert [route(core, b"T", -1) for _ in range(5)] == [0, 1, 0, 1, 0]
    core.set_topic("T", 8, 8, 6)
    assert [route(core, b"T", -1) for _ in range(3)] == [1, 2, 3]  # who names none goes on where it was
    core.set_topic("T", 8, 0, 6)
    assert route(core, b"T", -1) == -1
    core.set_topic("T", 8, 8, 4)
    assert route(core, b"T", 0) == -1
    core.set_topic("T", 8, 8, 2)
    assert route(core, b"T", 7) == 7
    core.drop_topic("T")
    core.drop_topic("never")
    assert route(core, b"T", 0) == -1


def test_which_queue_is_read(core):
    assert readable(core, b"T", 0) == 17
    core.set_topic("T", 2, 8, 6)
    assert [readable(core, b"T", queue) for queue in (-1, 0, 1, 2)] == [1, 0, 0, 1]
    core.set_topic("T", 2, 8, 2)
    assert readable(core, b"T", 0) == 16


def test_names_and_numbers_of_topics_that_are_none(core):
    for given in (("", 1, 1, 6), ("x" * 128, 1, 1, 6), ("T", -1, 1, 6), ("T", 1, -1, 6)):
        with pytest.raises(ValueError):
            core.set_topic(*given)
    assert readable(core, b"T", 0) == 17


def test_subscriptions_are_those_of_one_connection_group_and_topic(core):
    core.subscribe(1, "g", "T", 5, ("a", "bc"))
    core.subscribe(1, "g", "U", 6, None)
    core.subscribe(1, "h", "T", 7, None, True)
    core.subscribe(2, "g", "T", 8, ())
    assert wanted(core, 1, b"g", b"T") == (0, TAGS, b"\0\1a\0\2bc")
    assert wanted(core, 1, b"g", b"U") == (0, ALL, b"")
    assert wanted(core, 1, b"h", b"T") == (0, ASKED, b"")
    assert wanted(core, 2, b"g", b"T") == (0, ALL, b"")
    for key in ((3, b"g", b"T"), (1, b"", b"T"), (1, b"g", b""), (2, b"g", b"U"), (1, b"gT", b"")):
        assert wanted(core, *key)[0] == NONE


def test_a_pull_with_a_newer_version_than_the_heartbeat_is_too_early(core):
    core.subscribe(1, "g", "T", 5, ("a",))
    assert [wanted(core, 1, b"g", b"T", version)[0] for version in (0, 5, 6)] == [0, 0, OLD]
    core.subscribe(1, "g", "T", 6, ("b",))
    assert wanted(core, 1, b"g", b"T", 6) == (0, TAGS, b"\0\1b")
    core.subscribe(1, "g", "T", 2, None)  # the newest says what counts, whatever its number
    assert wanted(core, 1, b"g", b"T", 2) == (0, ALL, b"")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ((1,), [(2, "g", "T")]), ((1, "g"), [(1, "h", "T"), (2, "g", "T")]),
        ((1, "g", "T"), [(1, "g", "U"), (1, "h", "T"), (2, "g", "T")]),
        ((1, None, "T"), [(1, "g", "U"), (2, "g", "T")]), ((3,), None), ((1, "x"), None),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_forgotten(core, given, left):
    every = [(1, "g", "T"), (1, "g", "U"), (1, "h", "T"), (2, "g", "T")]
    for connection, group, topic in every:
        core.subscribe(connection, group, topic, 1, None)
    core.unsubscribe(*given)
    there = [key for key in every if wanted(core, key[0], key[1].encode(), key[2].encode())[0] == 0]
    assert there == (every if left is None else left)


def test_members_that_pulled_nothing_are_told(core):
    core.subscribe(1, "g", "T", 1, None)
    core.subscribe(2, "g", "T", 1, None)
    pulled(core, 1, b"g", b"T", 500)
    pulled(core, 1, b"g", b"U", 900)  # of what it does not want, nothing is noted
    assert sorted(core.silent(500)) == [(2, "g", "T", 0)]
    assert sorted(core.silent(501)) == [(1, "g", "T", 500), (2, "g", "T", 0)]
    core.subscribe(1, "g", "T", 2, ("a",))  # a newer subscription is the same member
    assert (1, "g", "T", 500) in core.silent(501)
    core.unsubscribe(1)
    core.subscribe(1, "g", "T", 3, None)
    assert (1, "g", "T", 0) in core.silent(501)


def test_silent_members_are_told_up_to_a_number(core):
    for connection in range(10_100):
        core.subscribe(connection, "g", "T", 1, None)
    assert 10_000 <= len(core.silent(1)) <= 10_001


def test_a_tag_that_is_too_long_is_refused(core):
    with pytest.raises(ValueError):
        core.subscribe(1, "g", "T", 1, ("x" * 32768,))
    with pytest.raises(ValueError):
        core.subscribe(1, "g", "T", 1, ("",))
    assert wanted(core, 1, b"g", b"T")[0] == NONE


def test_groups_whose_pulls_the_thread_answers(core):
    assert not asked(core, b"g")
    core.hand_over("g", True)
    core.hand_over("g", True)
    assert (asked(core, b"g"), asked(core, b"h")) == (True, False)
    core.hand_over("h", False)
    core.hand_over("g", False)
    assert not asked(core, b"g")


def test_of_what_pulls_confirm_the_newest_is_told_once(core):
    commit(core, 1, b"g", b"T", 0, 10)
    commit(core, 2, b"g", b"T", 0, 12)
    commit(core, 1, b"g", b"T", 3, 5)
    commit(core, 1, b"", b"gT", 0, 7)  # names that make the same bytes together are others
    found = sorted(core.commits())
    assert found == [(1, "", "gT", 0, 7), (1, "g", "T", 3, 5), (2, "g", "T", 0, 12)]
    assert core.commits() == []
    commit(core, 1, b"g", b"T", 0, 12)  # is known
    assert core.commits() == []
    commit(core, 1, b"g", b"T", 0, 11)
    assert core.commits() == [(1, "g", "T", 0, 11)]


def test_more_than_there_is_room_for_is_lost_and_room_comes_back(core):
    for queue in range(65_536):
        commit(core, 1, b"g", b"T", queue, 1)
    commit(core, 1, b"g", b"U", 0, 1)
    assert len(core.commits()) == 65_536
    commit(core, 1, b"g", b"U", 0, 2)
    assert core.commits() == [(1, "g", "U", 0, 2)]
