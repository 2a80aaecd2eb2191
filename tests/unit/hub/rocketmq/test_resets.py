"""Resets of offsets: whole or not at all, told to each member in its form, and never overwritten."""

from __future__ import annotations

from typing import Any

import pytest

from dataproxy.hub.rocketmq.clients.actions import Send
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.headers import ResetOffset
from dataproxy.wire.rocketmq.queues import read_offsets
from tests.support.rocketclients import KeptEpochs, RocketHub, queues, refusal


def consuming(*languages: str, topic: str = "t", epochs: KeptEpochs | None = None) -> RocketHub:
    """Return a hub with members "c1", "c2" ... of "g", which has confirmed 100 of each queue of 1000."""
    hub = RocketHub(epochs=epochs)
    for connection, language in enumerate(languages or ("JAVA",), 1):
        hub.peer(connection, language)
        hub.beat(connection, f"c{connection}", {"g": [topic]})
    hub.told()
    for queue in range(hub.queues.topics[topic]):
        hub.queues.offsets["g", topic, queue] = 100
        hub.queues.ends[topic, queue] = 1000
        hub.queues.times[topic, queue] = 40
    return hub


def reset(hub: RocketHub, timestamp: int = 5000, *, topic: str = "t", group: str = "g", force: bool = True) -> Any:
    """Reset the group, and return the offsets by the numbers of the queues."""
    found = hub.registry.reset(ResetOffset(topic, group, timestamp, force), hub.now)
    return {queue.queue_id: offset for queue, offset in found.items()}


def sent(hub: RocketHub) -> list[Any]:
    """Return the requests that tell members of a reset."""
    return [one for one in hub.actions(Send) if one.code == Code.RESET_CONSUMER_CLIENT_OFFSET]


def commits(hub: RocketHub, connection: int, offset: int, queue: int = 0) -> bool:
    """Let a connection commit, and tell whether it counts."""
    counts = hub.registry.admits_commit(connection, "g", "t", queue, offset, hub.now)
    if counts:
        hub.queues.offsets["g", "t", queue] = offset
    return counts


def test_offsets_are_set_at_the_hub_and_members_are_told() -> None:
    """RocketMQ's broker changes nothing: the members shall do it, ten seconds later."""
    hub = consuming()
    assert reset(hub) == dict.fromkeys(range(4), 40)
    assert {hub.queues.committed("g", "t", one) for one in range(4)} == {40}
    (told,) = sent(hub)
    assert read_offsets(told.body) == dict.fromkeys(queues("t", 0, 1, 2, 3), 40)


def test_each_member_is_told_in_its_own_form_and_by_a_command_of_its_own() -> None:
    """RocketMQ takes the form of the administrator's language, and sends one command with one number to all."""
    hub = consuming("JAVA", "CPP", "GO")
    reset(hub)
    java, cpp, go = sent(hub)
    assert [java.connection, cpp.connection, go.connection] == [1, 2, 3]
    assert java.body == go.body
    assert java.body.startswith(b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"t"}:40')
    assert cpp.body.startswith(b'{"offsetTable":[{')
    assert read_offsets(cpp.body) == read_offsets(java.body)


@pytest.mark.parametrize("force", [True, False])
def test_force_is_passed_on(force: bool) -> None:
    """RocketMQ tells every member that it is false."""
    hub = consuming()
    reset(hub, force=force)
    (told,) = sent(hub)
    assert told.header == ResetOffset("t", "g", 5000, force)


def test_without_force_a_group_goes_only_back() -> None:
    hub = consuming()
    hub.queues.times["t", 1] = 500
    assert reset(hub, force=False) == {0: 40, 1: 100, 2: 40, 3: 40}
    (told,) = sent(hub)
    assert set(read_offsets(told.body)) == set(queues("t", 0, 2, 3))  # a queue that stays is not disturbed
    assert reset(hub) == {0: 40, 1: 500, 2: 40, 3: 40}


def test_the_end_is_the_end() -> None:
    """A reset to "now" of RocketMQ is off by one."""
    hub = consuming()
    assert reset(hub, -1) == dict.fromkeys(range(4), 1000)


def test_an_offset_below_zero_is_zero() -> None:
    hub = consuming()
    hub.queues.times["t", 0] = -3
    assert reset(hub)[0] == 0


def test_a_queue_without_an_offset_is_reset_like_the_others() -> None:
    """One queue that was never committed makes RocketMQ refuse the whole reset."""
    hub = consuming()
    del hub.queues.offsets["g", "t", 2]
    assert reset(hub, force=False) == dict.fromkeys(range(4), 40)
    assert hub.queues.committed("g", "t", 2) == 40


def test_the_queues_that_are_read_are_reset() -> None:
    """RocketMQ goes over the queues that are written."""
    hub = consuming(topic="u")
    assert reset(hub, topic="u") == {0: 40, 1: 40}


def untouched(hub: RocketHub, call: Any, code: int) -> str:
    """Return the remark of a reset that is refused and changes nothing."""
    before = dict(hub.queues.offsets)
    error = refusal(call)
    assert error.code == code
    assert hub.queues.offsets == before
    assert sent(hub) == []
    assert commits(hub, 1, 101)
    return error.remark


def test_an_unknown_topic_changes_nothing() -> None:
    hub = consuming()
    assert "'nope'" in untouched(hub, lambda: reset(hub, topic="nope"), Answer.SYSTEM_ERROR)


def test_an_unknown_group_changes_nothing() -> None:
    hub = consuming()
    assert "'nobody'" in untouched(hub, lambda: reset(hub, group="nobody"), Answer.SYSTEM_ERROR)


def test_a_group_without_a_connected_member_is_not_on_line() -> None:
    hub = consuming()
    hub.close(1)
    assert "'g'" in untouched(hub, lambda: reset(hub), Answer.CONSUMER_NOT_ONLINE)


def test_a_time_that_is_none_changes_nothing() -> None:
    hub = consuming()
    assert "-2" in untouched(hub, lambda: reset(hub, -2), Answer.SYSTEM_ERROR)


def test_a_member_that_cannot_be_told_refuses_it_before_any_other_is_told() -> None:
    """RocketMQ has told the members before it, and answers with an error."""
    hub = consuming()
    hub.peer(2, version=27)
    hub.beat(2, "old", {"g": ["t"]})
    hub.told()
    assert "'old'" in untouched(hub, lambda: reset(hub), Answer.SYSTEM_ERROR)


def test_offsets_that_could_not_be_stored_are_told_to_nobody() -> None:
    hub = consuming()
    hub.queues.fails = True
    assert "the disk is full" in untouched(hub, lambda: reset(hub), Answer.SYSTEM_ERROR)


def test_a_late_commit_does_not_overwrite_a_reset() -> None:
    """In RocketMQ a commit under way overwrites it, and so do those of the ten seconds in which a client waits."""
    hub = consuming()
    reset(hub)
    assert not commits(hub, 1, 130)
    hub.wait(5.0)
    assert not commits(hub, 1, 130)
    hub.wait(5.0)
    assert commits(hub, 1, 40)  # now it has done what it was told
    assert commits(hub, 1, 72)
    assert commits(hub, 1, 104, queue=0)
    assert not commits(hub, 1, 130, queue=1)
    assert hub.registry.snapshot(hub.now).refused_commits == 3


def test_a_member_that_asks_where_to_begin_has_heard_of_it() -> None:
    hub = consuming("JAVA", "JAVA")
    reset(hub)
    hub.registry.offset_asked(2, "g", "t", 0)
    assert commits(hub, 2, 72)
    assert not commits(hub, 1, 130)
    assert not commits(hub, 2, 130, queue=1)


def test_a_member_that_comes_after_it_has_nothing_of_the_time_before() -> None:
    hub = consuming()
    for _ in range(61):
        hub.wait(10.0)
        hub.beat(1, "c1", {"g": ["t"]})
    reset(hub)
    hub.beat(2, "c2", {"g": ["t"]})
    assert commits(hub, 2, 72)
    assert not commits(hub, 1, 130)


def test_a_member_that_ignores_resets_does_not_overwrite_one_however_late() -> None:
    """Pull consumers take no notice of resets."""
    hub = consuming()
    reset(hub)
    for _ in range(20):
        hub.wait(30.0)
        hub.beat(1, "c1", {"g": ["t"]})
        assert not commits(hub, 1, 130)
    hub.registry.offset_asked(1, "g", "t", 0)
    assert commits(hub, 1, 72)


def test_a_client_that_reconnects_and_commits_before_its_heartbeat_is_late_too() -> None:
    hub = consuming()
    reset(hub)
    hub.wait(28.0)
    hub.beat(1, "c1", {"g": ["t"]})
    hub.close(1)
    hub.wait(20.0)
    assert not commits(hub, 9, 130)
    hub.beat(9, "c1", {"g": ["t"]})
    assert not commits(hub, 9, 130)
    assert commits(hub, 9, 40)


def test_a_client_that_was_lost_when_its_group_was_reset_is_late_when_it_comes_back() -> None:
    hub = consuming("JAVA", "JAVA")
    hub.close(1)
    hub.wait(2.0)
    reset(hub)
    sent(hub)
    hub.wait(300.0)
    hub.beat(9, "c1", {"g": ["t"]})
    assert [one.connection for one in sent(hub)] == [9]
    assert not commits(hub, 9, 130)
    assert commits(hub, 9, 40)


def test_behind_a_start_of_the_hub_a_new_client_may_be_one_of_the_hub_before() -> None:
    hub = consuming()
    reset(hub)
    sent(hub)
    hub.beat(2, "c2", {"g": ["t"]})
    assert [one.connection for one in sent(hub)] == [2]
    assert not commits(hub, 2, 130)
    hub.registry.offset_asked(2, "g", "t", 0)
    assert commits(hub, 2, 72)
    hub.close(2)
    hub.beat(3, "c2", {"g": ["t"]})
    assert commits(hub, 3, 104)
    assert [set(read_offsets(one.body)) for one in sent(hub)] == [set(queues("t", 1, 2, 3))]


def test_a_member_that_leaves_in_order_commits_no_more() -> None:
    hub = consuming()
    reset(hub)
    hub.leave(1, consumer="g")
    hub.beat(1, "c1", {"g": ["t"]}, version=2)
    assert commits(hub, 1, 72)


def test_two_clients_with_one_id_are_both_told_and_each_has_to_hear_of_it() -> None:
    hub = consuming()
    hub.beat(2, "c1", {"g": ["t"]})
    reset(hub)
    assert [one.connection for one in sent(hub)] == [1, 2]
    assert commits(hub, 1, 40)
    assert not commits(hub, 2, 130)


def test_a_member_that_reconnects_is_still_one_of_the_time_before_and_is_told_again() -> None:
    hub = consuming()
    hub.queues.times["t", 3] = 100
    reset(hub)
    sent(hub)
    commits(hub, 1, 40)
    hub.close(1)
    hub.wait(3.0)
    hub.beat(9, "c1", {"g": ["t"]})
    (again,) = sent(hub)
    assert again.connection == 9
    assert read_offsets(again.body) == dict.fromkeys(queues("t", 1, 2), 40)
    assert not commits(hub, 9, 130, queue=1)
    assert commits(hub, 9, 72, queue=0)


def test_a_connection_that_is_no_member_has_to_show_that_it_knows() -> None:
    """A client with a VIP channel commits there; whose the connection is cannot be told."""
    hub = consuming()
    reset(hub)
    hub.wait(60.0)
    hub.beat(1, "c1", {"g": ["t"]})
    for connection in (50, 51):
        assert not commits(hub, connection, 130)
    assert commits(hub, 50, 40)
    assert commits(hub, 50, 72)
    assert not commits(hub, 51, 130)
    hub.registry.offset_asked(51, "g", "t", 0)
    assert commits(hub, 51, 72)
    reset(hub, -1)
    assert not commits(hub, 51, 72)
    assert commits(hub, 51, 1000)
    hub.close(51)
    hub.close(50)
    assert hub.registry._resets._knowing == {}


def test_the_last_of_two_resets_counts() -> None:
    hub = consuming()
    reset(hub)
    reset(hub, -1)
    assert hub.queues.committed("g", "t", 0) == 1000
    assert not commits(hub, 1, 40)
    assert commits(hub, 1, 1000)


def test_broadcasting_members_are_told_and_the_hub_has_no_offsets_of_theirs() -> None:
    hub = RocketHub()
    hub.beat(1, "a", {"g": ["t"]}, model="BROADCASTING")
    hub.queues.offsets["g", "t", 0] = 5
    assert reset(hub) == dict.fromkeys(range(4), 0)
    assert len(sent(hub)) == 1
    assert hub.queues.offsets == {("g", "t", 0): 5}


def test_resets_leave_no_trace_when_all_members_know_them_or_have_gone() -> None:
    hub = consuming("JAVA", "JAVA")
    reset(hub)
    assert hub.registry.snapshot(hub.now).resets == 4
    for queue in range(4):
        commits(hub, 1, 40, queue)
        hub.registry.offset_asked(2, "g", "t", queue)
    for _ in range(62):
        hub.wait(10.0)
        hub.beat(1, "c1", {"g": ["t"]})
        hub.beat(2, "c2", {"g": ["t"]})
    assert hub.registry.snapshot(hub.now).resets == 0
    reset(hub, -1)
    hub.close(1)
    hub.close(2)
    hub.wait(620.0)
    assert hub.registry.snapshot(hub.now).resets == 0
    assert hub.registry._resets._lost == {}


def test_a_commit_of_who_does_not_own_the_queue_is_refused() -> None:
    hub = consuming("JAVA", "JAVA")
    hub.lock(1, "c1", "g", *queues("t", 0))
    assert not commits(hub, 2, 120)
    assert commits(hub, 1, 120)
    assert commits(hub, 2, 120, queue=1)
    assert not commits(hub, 1, -1)


@pytest.mark.parametrize("connection", [1, 50])
def test_what_an_earlier_reset_has_told_does_not_overwrite_the_last_one(connection: int) -> None:
    """A client obeys ten seconds after it was told, whatever has happened to it meanwhile.

    Java's does so in a thread of its own, for the queues that it has by then: it may have given up a queue since, have
    taken it again, and have asked where to begin.
    """
    hub = consuming()
    reset(hub)
    hub.wait(3.0)
    reset(hub, -1)
    hub.registry.offset_asked(connection, "g", "t", 0)
    assert not commits(hub, connection, 40)
    assert hub.queues.committed("g", "t", 0) == 1000
    assert commits(hub, connection, 1003)


def test_who_is_really_where_an_earlier_reset_was_says_so_again() -> None:
    hub = consuming()
    reset(hub, -1)
    reset(hub)
    hub.registry.offset_asked(1, "g", "t", 0)
    assert commits(hub, 1, 990)
    assert not commits(hub, 1, 1000)
    hub.wait(5.0)
    assert not commits(hub, 1, 1000)
    hub.wait(5.0)
    assert commits(hub, 1, 1000)
    assert commits(hub, 1, 1000)


# --- a hub that is started anew


def aged(hub: RocketHub, *clients: str) -> None:
    """Let the hub be old, so that nobody may come from a hub before it."""
    for _ in range(61):
        hub.wait(10.0)
        for connection, client in enumerate(clients, 1):
            hub.beat(connection, client, {"g": ["t"]})


def test_a_late_commit_does_not_overwrite_a_reset_of_before_a_start_of_the_hub() -> None:
    epochs = KeptEpochs()
    hub = consuming("JAVA", "JAVA", epochs=epochs)
    aged(hub, "c1", "c2")
    reset(hub)
    hub.start_again(epochs)
    assert not commits(hub, 21, 130)  # its heartbeat is still to come
    hub.beat(21, "c1", {"g": ["t"]})
    assert not commits(hub, 21, 130)
    (told,) = sent(hub)
    assert (told.connection, read_offsets(told.body)) == (21, dict.fromkeys(queues("t", 0, 1, 2, 3), 40))
    assert told.header == ResetOffset("t", "g", 5000, True)
    assert commits(hub, 21, 40)
    assert commits(hub, 21, 72)


def test_who_knew_of_a_reset_is_not_told_again_by_the_next_hub() -> None:
    """Else it would go back a second time."""
    epochs = KeptEpochs()
    hub = consuming("JAVA", "JAVA", epochs=epochs)
    aged(hub, "c1", "c2")
    reset(hub)
    for queue in range(4):
        commits(hub, 1, 40, queue)
    hub.wait(2.0)
    hub.start_again(epochs)
    hub.beat(21, "c1", {"g": ["t"]})
    hub.beat(22, "c2", {"g": ["t"]})
    assert [one.connection for one in sent(hub)] == [22]
    assert commits(hub, 21, 72)
    assert not commits(hub, 22, 130)


def test_of_a_reset_in_the_first_minutes_of_a_hub_the_next_one_knows_who_knows() -> None:
    epochs = KeptEpochs()
    hub = consuming(epochs=epochs)
    reset(hub)
    sent(hub)
    hub.registry.offset_asked(1, "g", "t", 0)
    hub.wait(2.0)
    hub.start_again(epochs)
    hub.beat(21, "c1", {"g": ["t"]})
    hub.beat(22, "of the hub before", {"g": ["t"]})
    assert [(one.connection, {queue.queue_id for queue in read_offsets(one.body)}) for one in sent(hub)] == [
        (21, {1, 2, 3}), (22, {0, 1, 2, 3}),
    ]  # fmt: skip


def test_what_is_kept_of_resets_ends_when_all_know_them_or_nobody_comes_back() -> None:
    epochs = KeptEpochs()
    hub = consuming(epochs=epochs)
    reset(hub)
    assert list(epochs.rows) == [("g", "t")]
    hub.start_again(epochs)
    for _ in range(62):
        hub.wait(10.0)
    assert len(hub.registry._resets) == 0
    assert epochs.rows == {}


@pytest.mark.parametrize("value", [[], {"x": [1, 2.0, 3, True, [], True, [], []]}, {"0": [1]}, {"0": None}, "x", 7])
def test_what_cannot_be_read_of_resets_is_left_out(value: Any) -> None:
    epochs = KeptEpochs()
    epochs.save("g", "t", value, 0.0)
    hub = RocketHub(epochs=epochs)
    assert hub.registry.snapshot(hub.now).resets == 0


# --- offsets that an operator sets


def move(hub: RocketHub, offsets: dict[int, int], *, topic: str = "t") -> None:
    hub.registry.move(ResetOffset(topic, "g", 5000, True), offsets, hub.now)


def test_offsets_of_single_queues_are_set_and_told_and_fenced() -> None:
    hub = consuming()
    move(hub, {0: 7, 2: 100})
    (told,) = sent(hub)
    assert read_offsets(told.body) == {queues("t", 0)[0]: 7}  # where it is already nothing changes
    assert [hub.queues.committed("g", "t", queue) for queue in range(4)] == [7, 100, 100, 100]
    assert not commits(hub, 1, 130)
    assert commits(hub, 1, 130, queue=2)
    assert hub.registry.snapshot(hub.now).resets_done == 1


def test_a_group_without_members_is_set_and_who_was_lost_is_late() -> None:
    hub = consuming()
    hub.close(1)
    hub.wait(2.0)
    move(hub, {0: 7})
    assert hub.queues.committed("g", "t", 0) == 7
    hub.beat(9, "c1", {"g": ["t"]})
    assert [one.connection for one in sent(hub)] == [9]
    assert not commits(hub, 9, 130)


def test_a_move_is_refused_whole() -> None:
    hub = consuming()
    assert "'nope'" in untouched(hub, lambda: move(hub, {0: 7}, topic="nope"), Answer.SYSTEM_ERROR)
    hub.queues.fails = True
    assert "the disk is full" in untouched(hub, lambda: move(hub, {0: 7}), Answer.SYSTEM_ERROR)
