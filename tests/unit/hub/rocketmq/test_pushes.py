"""Push sessions of a hub on a played listener; RocketMQ's front node, in its defects, is what the names speak of."""

import logging

import pytest

from dataproxy.hub.clients import End
from dataproxy.hub.overview.rocketmq import clients, groups
from dataproxy.hub.rocketmq import pushes
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.push.positions import Positions
from dataproxy.hub.rocketmq.topics.table import Topic
from dataproxy.wire.rocketmq.bodies import ConsumeFrom, PushSessions, SubscriptionGroup
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import ResetOffset
from dataproxy.wire.rocketmq.names import MessageId
from dataproxy.wire.rocketmq.queues import LockRequest, Queue
from tests.support.playedremoting import PlayedHub

SMALL = Limits(push_messages=4, push_age=30.0, push_tell=1.0, push_grace=60.0)


@pytest.fixture
def hub():
    return with_topic(PlayedHub(limits=SMALL))


def with_topic(hub):
    hub.service.topics.ensure("T", Topic(4, 4), hub.service.now)
    return hub


def fill(hub, n, *, queue=0, topic="T", begin=0, **more):
    for i in range(begin, begin + n):
        hub.send(topic, b"%d" % i, queue=queue, connection=99, **more)


def numbers(begin, end):
    return [b"%d" % i for i in range(begin, end)]


def members_told(hub):
    return sorted((connection, fields["consumerGroup"]) for connection, fields in hub.told(40))


def states(hub, connection):
    return [(fields["state"], fields["queueId"]) for to, fields in hub.told(353) if to == connection]


# --- pushing


def test_what_comes_is_pushed_up_to_the_bound_and_goes_on_with_acknowledgements(hub):
    assert hub.beat_push(1, {"g": {"T": [0]}}).answered[0] == 0
    assert hub.got(1) == []
    fill(hub, 10)
    assert hub.got(1) == numbers(0, 4)
    hub.acknowledge(1, 2)
    assert hub.got(1) == numbers(4, 6)
    hub.acknowledge(1, 6)
    assert hub.got(1) == numbers(6, 10)
    hub.acknowledge(1, 10)
    fill(hub, 1, begin=10)
    assert hub.got(1) == numbers(10, 11)
    assert hub.remoting.committed("g", "T", 0) == 10


def test_a_frame_says_what_it_is_about(hub):
    fill(hub, 3, properties={"TAGS": "a", "UNIQ_KEY": "u"})
    hub.beat_push(1, {"g": {"T": [0]}})
    [(fields, messages)] = hub.frames(1)
    number = fields.pop("session")
    assert fields == {
        "topic": "T", "queueId": "0", "queueOffset": "0", "consumerGroup": "g", "beginOffset": "0", "nextOffset": "3",
        "maxOffset": "3", "messageId": str(MessageId("127.0.0.1", 10911, messages[0].handle)),
    }  # fmt: skip
    assert messages[1].properties == {"TAGS": "a", "UNIQ_KEY": "u"} and messages[1].queue_offset == 1
    hub.acknowledge(1, 3)
    fill(hub, 1, begin=3)
    [(fields, _)] = hub.frames(1)
    assert (fields["session"], fields["beginOffset"], fields["nextOffset"]) == (number, "3", "4")


def test_a_group_gets_what_it_wants_and_the_rest_counts_as_read(hub):
    fill(hub, 2, properties={"TAGS": "a"})
    fill(hub, 2, properties={"TAGS": "b"}, begin=2)
    fill(hub, 1, properties={"TAGS": "a"}, begin=4)
    fill(hub, 2, properties={"TAGS": "b"}, begin=5)
    hub.beat_push(1, {"g": {"T": [0]}}, expression="a || c")
    frames = hub.frames(1)
    assert [one.body for _, messages in frames for one in messages] == [b"0", b"1", b"4"]
    assert [(int(fields["beginOffset"]), int(fields["nextOffset"])) for fields, _ in frames] == [(0, 7)]
    hub.acknowledge(1, 5)
    assert hub.remoting.committed("g", "T", 0) == 7
    fill(hub, 3, properties={"TAGS": "b"}, begin=7)
    assert hub.frames(1) == [] and hub.remoting.committed("g", "T", 0) == 10


def test_a_filter_is_looked_through_in_long_pages_and_stops_at_the_bound(hub):
    fill(hub, 200, properties={"TAGS": "b"})
    fill(hub, 6, properties={"TAGS": "a"}, begin=200)
    hub.beat_push(1, {"g": {"T": [0]}}, expression="a")
    [(fields, messages)] = hub.frames(1)
    assert (fields["beginOffset"], fields["nextOffset"], len(messages)) == ("0", "204", 4)
    hub.acknowledge(1, 204)
    assert hub.got(1) == numbers(204, 206)


def test_filters_of_sql_and_those_that_cannot_be_read(hub, caplog):
    for i in range(4):
        hub.send("T", b"%d" % i, properties={"n": i})
    hub.beat_push(1, {"g": {"T": [0]}}, expression="n >= 2", kind="SQL92")
    assert hub.got(1) == numbers(2, 4)
    with caplog.at_level(logging.WARNING):
        hub.beat_push(2, {"h": {"T": [0]}}, expression="n >", kind="SQL92")
    assert hub.got(2, "h") == [] and "not pushed to 'c2'" in caplog.text


def test_a_queue_that_is_not_there_yet_is_pushed_once_it_is(hub):
    hub.beat_push(1, {"g": {"New": [0, 700]}})
    hub.send("New", b"first")
    hub.pass_time(1.5)
    assert hub.got(1) == [b"first"]


def test_many_queues_that_are_not_there_are_looked_at_by_turns(hub, monkeypatch):
    monkeypatch.setattr(pushes, "_LOOKS", 4)
    hub.beat_push(1, {"g": {"T": [3], "U": list(range(10))}})
    looked = []
    start = hub.service.pushes._start
    monkeypatch.setattr(
        hub.service.pushes, "_start", lambda wish, now: looked.append(wish.place.queue) or start(wish, now)
    )
    hub.pass_time(3.3, 3)
    assert sorted(looked[:10]) == list(range(10)) and len(looked) == 12
    hub.service.topics.ensure("U", Topic(10, 10), hub.service.now)
    hub.pass_time(3.3, 3)
    assert hub.service.pushes.counts().sessions == 11


def test_a_member_that_pulls_is_not_pushed_to(hub):
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}}, pulls=True)
    assert hub.got(1) == [] and len(hub.service.pushes.counts()) == 7
    assert hub.service.pushes.counts().sessions == 0


def test_a_member_that_begins_to_be_pushed_to_and_one_that_ends(hub):
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}}, pulls=True)
    hub.beat_push(1, {"g": {"T": [0]}})
    assert hub.got(1) == numbers(0, 2)
    hub.beat_push(1, {"g": {"T": [0]}}, pulls=True)
    assert hub.service.pushes.counts().sessions == 0


def test_what_a_group_may_not_read_is_not_pushed(hub):
    fill(hub, 2)
    config = SubscriptionGroup("g", consume_enable=False)
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.write())
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.pass_time(3, 3)
    assert hub.got(1) == []
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g").write())
    hub.pass_time(1.5)
    assert hub.got(1) == numbers(0, 2)
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, config.write())
    fill(hub, 1, begin=2)
    assert hub.got(1) == []
    hub.service.topics.configure("T", Topic(4, 4, 2), hub.service.now)
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("g").write())
    hub.pass_time(1.5)
    assert hub.got(1) == []


def test_messages_that_retention_took_are_passed_over_and_said(hub, caplog):
    fill(hub, 3)
    hub.remoting.commit("g", "T", 0, 1)
    del hub.store.logs["T", 0][:2]
    hub.store.firsts["T", 0] = 2
    with caplog.at_level(logging.WARNING):
        hub.beat_push(1, {"g": {"T": [0]}})
    [(fields, messages)] = hub.frames(1)
    assert (fields["beginOffset"], fields["nextOffset"], [one.body for one in messages]) == ("1", "3", [b"2"])
    assert "1 messages of the queue 0 of 'T' are gone" in caplog.text


def test_a_store_that_fails_holds_up_that_queue_alone(hub, caplog, monkeypatch):
    fill(hub, 2)
    fill(hub, 2, queue=1)
    read = hub.remoting.read

    def fail(topic, queue, *more):
        if queue == 0:
            raise OSError("the disk is gone")
        return read(topic, queue, *more)

    monkeypatch.setattr(hub.remoting, "read", fail)
    with caplog.at_level(logging.WARNING):
        hub.beat_push(1, {"g": {"T": [0, 1]}})
        hub.pass_time(5, 5)
    assert hub.got(1) == numbers(0, 2)
    assert caplog.text.count("the disk is gone") == 1
    monkeypatch.undo()
    hub.pass_time(1.5)
    assert hub.got(1) == numbers(0, 2)


def test_messages_of_retry_topics_come_by_push_too(hub):
    """The front node's path for messages that come again fails on a header that is not there."""
    hub.beat_push(1, {"g": {"T": [0], "%RETRY%g": [0]}}, where=ConsumeFrom.LAST)
    fill(hub, 1)
    [(_, [message])] = hub.frames(1)
    fields = {"offset": message.handle, "group": "g", "delayLevel": 1, "originTopic": "T", "maxReconsumeTimes": 16}
    assert hub.ask(Code.CONSUMER_SEND_MSG_BACK, **fields).answered[0] == 0
    hub.pass_time(3, 6)
    [(fields, [again])] = hub.frames(1)
    assert (fields["topic"], again.body, again.properties["RETRY_TOPIC"]) == ("%RETRY%g", b"0", "T")


def test_a_client_may_ask_which_sessions_it_has(hub):
    fill(hub, 6)
    hub.beat_push(1, {"g": {"T": [0, 1]}})
    code, _, _, body = hub.ask(Code.PUSH_STATE, connection=1, consumerGroup="g").answered
    found = PushSessions.read(body)
    assert (code, found.max_messages) == (0, 4)
    assert [(one.queue_id, one.commit_offset, one.next_offset, one.messages, one.state) for one in found.sessions] == [
        (0, 0, 4, 4, "paused"), (1, 0, 0, 0, "flowing"),
    ]  # fmt: skip
    assert PushSessions.read(hub.ask(Code.PUSH_STATE, connection=2, consumerGroup="g").answered[3]).sessions == ()


def test_counts(hub):
    fill(hub, 5)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.acknowledge(2, 1)
    found = hub.service.stats()
    size = sum(len(one) for one in hub.store.logs["T", 0][:4])
    assert {name: value for name, value in found.items() if name.startswith("push_")} == {
        "push_sessions": 1, "push_frames": 1, "push_messages": 4, "push_bytes": size, "push_pauses": 1,
        "push_evictions": 0, "push_refused": 1,
    }  # fmt: skip


# --- where a group begins


@pytest.mark.parametrize(("where", "old", "expected"), [
    (ConsumeFrom.FIRST, True, numbers(0, 3)), (ConsumeFrom.LAST, True, []), (ConsumeFrom.LAST, False, numbers(0, 3)),
])  # fmt: skip
def test_a_new_group_begins_where_it_wants_and_in_a_new_topic_at_the_oldest_message(hub, where, old, expected):
    fill(hub, 3)
    if old:
        hub.pass_time(120, 4)
    hub.beat_push(1, {"g": {"T": [0]}}, where=where)
    assert hub.got(1) == expected
    assert hub.remoting.committed("g", "T", 0) == (0 if expected else 3)


def test_an_offset_that_was_agreed_counts_where_none_is_kept(hub):
    fill(hub, 4)
    hub.beat_push(1, {"g": {"T": [0]}}, begins={0: 2})
    assert hub.got(1) == numbers(2, 4)
    hub.remoting.end(1)
    hub.settle()
    hub.beat_push(2, {"g": {"T": [0]}}, begins={0: 3})
    assert hub.got(2) == numbers(2, 4)


def test_a_beginning_behind_the_end_is_the_end(hub):
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}}, begins={0: 10**12})
    assert hub.store.offsets["g", "T", 0] == 2
    hub.remoting.end(1)
    fill(hub, 3, begin=2)
    hub.beat_push(2, {"g": {"T": [0]}})
    assert hub.got(2) == numbers(2, 5)


def test_an_offset_is_created_once_whoever_comes_second():
    """Both the broker and an earlier front node read, and then write: the second start undoes the first commit."""
    hub = PlayedHub()
    positions = Positions(hub.remoting, "dataproxy")
    assert positions.create("dataproxy", "g", "T", 0, 5) == 5
    positions.commit("dataproxy", "g", "T", 0, 9)
    assert positions.create("dataproxy", "g", "T", 0, 5) == 9
    assert positions.table("dataproxy", "g", "T") == {0: 9}


def test_names_with_an_at_sign_are_kept_apart_and_survive():
    """The front node's keys are ``node@topic@group`` in one text: names with ``@`` are lost, and its copies look for
    others."""
    hub = PlayedHub()
    positions = Positions(hub.remoting, "n@1")
    positions.commit("n@1", "a@b", "c", 0, 1)
    positions.commit("n@1", "a", "b@c", 0, 2)
    hub.kill()
    positions = Positions(hub.remoting, "n@1")
    assert [positions.committed("n@1", *of, 0) for of in (("a@b", "c"), ("a", "b@c"), ("a", "b"))] == [1, 2, None]
    assert positions.table("n@1", "a@b", "c") == {0: 1}
    with pytest.raises(RefusedError, match="there is no node 'other'; the node here is n@1"):
        positions.committed("other", "a", "b", 0)
    with pytest.raises(RefusedError, match="at most 255"):
        positions.commit("n@1", "g" * 256, "b", 0, 1)


def test_no_room_for_another_offset_is_told(hub, caplog):
    fill(hub, 1)
    hub.remoting.create = lambda *_: -1
    hub.remoting.commit = lambda *_: False
    with caplog.at_level(logging.WARNING):
        hub.beat_push(1, {"g": {"T": [0]}})
        hub.pass_time(3, 3)
    assert hub.got(1) == [] and caplog.text.count("no room for offsets of the group 'g'") == 1
    with pytest.raises(RefusedError, match="no room"):
        Positions(hub.remoting, "n").commit("n", "g", "T", 0, 1)


# --- the front node's defects, by the numbers of its list


def test_1_members_are_told_of_a_new_member(hub):
    """Its registration reports a change only where there was no member before."""
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.pass_time(1)
    assert members_told(hub) == [(1, "g")]
    hub.beat_push(2, {"g": {"T": [1]}})
    hub.pass_time(1)
    assert members_told(hub) == [(1, "g"), (2, "g")]


def test_2_each_group_of_a_heartbeat_has_a_record_of_its_own(hub):
    """It fills one record in turn for all groups of a heartbeat, and the last group wins everywhere."""
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}, "h": {"T": [0]}}, producers=["p"])
    assert hub.got(1, "g") == hub.got(1, "h") == numbers(0, 2)
    hub.acknowledge(1, 2, group="h")
    assert (hub.remoting.committed("g", "T", 0), hub.remoting.committed("h", "T", 0)) == (0, 2)
    sessions = hub.service.pushes._sessions.find
    assert [(one.messages, one.acknowledged) for group in "gh" for one in sessions(1, group)] == [(2, 0), (0, 2)]


def test_3_a_later_heartbeat_counts_whatever_the_first_one_said(hub):
    """What the first heartbeat of a connection said is kept for ever: a producer's group is asked for offsets."""
    fill(hub, 6)
    hub.beat_push(1, {}, producers=["p"])
    hub.beat_push(1, {"g": {"T": [0]}}, producers=["p"])
    assert hub.got(1) == numbers(0, 4)
    hub.acknowledge(1, 4)
    assert hub.got(1) == numbers(4, 6)


def test_4_and_5_the_end_of_a_connection_ends_its_sessions_and_tells_the_rest(hub):
    """Ends of connections look for a group with the name of an address, and their objects never equal those of
    heartbeats: nothing is removed."""
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.beat_push(2, {"g": {"T": [0]}})
    hub.pass_time(1)
    hub.told(40)
    hub.got(1)
    hub.remoting.end(1)
    hub.settle()
    assert hub.got(2) == numbers(0, 2)
    hub.pass_time(1)
    assert members_told(hub) == [(2, "g")]
    hub.remoting.end(2)
    hub.settle()
    assert hub.service.pushes.counts().sessions == 0 and hub.remoting.followers == [0, 0, 0, 0]


def test_6_a_connection_that_never_sent_a_heartbeat_may_end(hub):
    """It fails on the record that such a connection does not have."""
    fill(hub, 1)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.remoting.end(77)
    hub.settle()
    assert hub.got(1) == numbers(0, 1)


def test_7_all_roles_of_a_connection_end_with_it(hub):
    """It cleans one role: a client that is a producer and a consumer stays in the other table."""
    hub.beat_push(1, {"g": {"T": [0]}}, producers=["p"])
    hub.remoting.end(1)
    hub.settle()
    assert hub.ask(Code.GET_PRODUCER_CONNECTION_LIST, producerGroup="p").answered[0] == 1
    assert hub.ask(Code.GET_CONSUMER_LIST_BY_GROUP, consumerGroup="g").answered[0] == 1


def test_8_the_end_of_silence_ends_sessions_and_tells_the_rest():
    """Its scan closes and removes, but sessions stay, and nobody is told."""
    hub = with_topic(PlayedHub())
    fill(hub, 2)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.got(1)
    for _ in range(4):
        hub.pass_time(29, 3)
        hub.beat_push(2, {"g": {"T": [0]}})
    hub.told(40)
    hub.pass_time(6, 6)
    assert hub.remoting.closed == [1]
    assert members_told(hub) == [(2, "g")] and hub.got(2) == numbers(0, 2)
    assert hub.service.pushes.counts().sessions == 1


def test_9_a_changed_subscription_ends_what_is_gone_and_begins_what_is_new(hub):
    """It records the queues of a connection once: added ones stay behind after the end, removed ones are wrong."""
    for queue in range(3):
        fill(hub, 1, queue=queue)
    hub.beat_push(1, {"g": {"T": [0, 1]}})
    hub.got(1)
    hub.beat_push(1, {"g": {"T": [1, 2]}}, version=2)
    assert [fields["queueId"] for fields, _ in hub.frames(1)] == ["2"]
    fill(hub, 1, queue=0, begin=1)
    assert hub.frames(1) == []
    hub.remoting.end(1)
    hub.settle()
    assert hub.service.pushes.counts().sessions == 0 and hub.remoting.followers == [0, 0, 0, 0]


def test_10_sessions_that_end_while_others_are_pushed_hold_up_nobody(hub):
    """Its sets are changed while pushes go through them, and the others of the queue get nothing."""
    for connection in range(1, 6):
        hub.beat_push(connection, {f"g{connection}": {"T": [0]}})
    for connection in (2, 4):
        hub.remoting.end(connection)
    fill(hub, 2)
    assert [hub.got(one, f"g{one}") for one in (1, 3, 5)] == [numbers(0, 2)] * 3


@pytest.mark.parametrize("model", ["CLUSTERING", "BROADCASTING"])
def test_11_a_new_group_of_a_long_queue_is_not_slow(hub, model):
    """Without an offset it takes -1 for the place of a group, and closes every new consumer behind message 1,024."""
    hub.send("T")
    hub.store.firsts["T", 0] = 5000
    hub.pass_time(120, 4)
    hub.beat_push(1, {"g": {"T": [0]}}, model=model, where=ConsumeFrom.LAST)
    fill(hub, 1)
    assert hub.got(1) == numbers(0, 1)
    assert hub.remoting.closed == [] and hub.service.pushes.counts().pauses == 0


def test_12_a_group_that_shares_gets_each_message_once_and_whole(hub):
    """It pushes to all connections of a queue, whatever their groups, and the bare body without properties."""
    fill(hub, 3, properties={"KEYS": "k"})
    for connection in (1, 2):
        hub.beat_push(connection, {"g": {"T": [0]}})
        hub.beat_push(10 + connection, {"b": {"T": [0]}}, model="BROADCASTING", client="same")
    [(fields, messages)] = hub.frames(1)
    assert [one.properties["KEYS"] for one in messages] == ["k"] * 3 and fields["messageId"]
    assert hub.got(2) == []
    assert hub.got(11, "b") == hub.got(12, "b") == numbers(0, 3)
    hub.acknowledge(11, 3, group="b")
    assert hub.remoting.committed("b", "T", 0) == -1


def test_13_every_push_has_a_number_of_its_own_and_who_is_evicted_has_left_before(hub):
    """It writes one command to all, and closes slow consumers in its loop while they are still members."""
    fill(hub, 6)
    for connection in (1, 2):
        hub.beat_push(connection, {f"g{connection}": {"T": [0]}})
    opaques = [one[2] for one in hub.remoting.sent if one[1] == 352]
    assert len(set(opaques)) == len(opaques) == 2
    hub.beat_push(3, {"g1": {"T": [0]}})
    for _ in range(8):
        hub.pass_time(8, 16)
        hub.acknowledge(2, 4, group="g2")
        hub.acknowledge(2, 6, group="g2")
        hub.beat_push(3, {"g1": {"T": [0]}})
    assert hub.remoting.closed == [1]
    assert hub.got(3, "g1") == numbers(0, 4)
    assert hub.service.registry.member_ids("g1") == ("c3",)


def test_15_pauses_and_evictions_are_counted_and_said(hub, caplog):
    """It says of a closed consumer that metrics are to be done."""
    events, gone = [], []
    hub.service.clients.told = lambda who, why: gone.append((who.client, why)) if why else None
    hub.service.pushes._say = lambda kind, **said: events.append((kind, said["client"], said["messages"]))
    fill(hub, 6)
    hub.beat_push(1, {"g": {"T": [0]}})
    with caplog.at_level(logging.WARNING):
        hub.pass_time(70, 280)
    counts = hub.service.pushes.counts()
    assert (counts.pauses, counts.evictions) == (1, 1)
    assert "to 'c1' of the group 'g' is paused: 4 messages" in caplog.text
    assert "is evicted: 4 messages" in caplog.text and "the group goes on at offset 0" in caplog.text
    assert states(hub, 1) == [("paused", "0"), ("evicted", "0")]
    assert events == [("push paused", "c1", 4), ("push evicted", "c1", 4)]
    assert gone == [("c1", End.EVICTED)]


def test_17_a_group_that_is_not_configured_is_not_pushed_to_and_harms_nobody(hub):
    """It reads the configuration twice, and fails where there is none."""
    fill(hub, 1)
    hub.service.registry.configs.auto_create = False
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.remoting.end(1)
    hub.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, SubscriptionGroup("h").write())
    hub.beat_push(2, {"h": {"T": [0]}})
    assert hub.got(1) == [] and hub.got(2, "h") == numbers(0, 1)


def test_18_leaving_is_told_once_and_ends_a_session_once(hub):
    """It tells the members twice, and removes the session twice."""
    fill(hub, 2)
    for connection in (1, 2):
        hub.beat_push(connection, {"g": {"T": [0]}})
    hub.pass_time(1)
    hub.told(40)
    hub.ask(Code.UNREGISTER_CLIENT, connection=1, clientID="c1", consumerGroup="g")
    hub.pass_time(1)
    assert members_told(hub) == [(2, "g")] and hub.got(2) == numbers(0, 2)


# --- slow members, and wrong ones


def test_a_slow_member_is_paused_told_evicted_and_its_group_goes_on_where_it_was(hub):
    fill(hub, 8)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.acknowledge(1, 2)
    hub.pass_time(2, 8)
    assert states(hub, 1) == [("paused", "0")]
    assert hub.got(1) == numbers(0, 6)[:4] + numbers(4, 6)
    hub.pass_time(60, 240)
    assert states(hub, 1) == [("evicted", "0")]
    assert hub.remoting.closed == [1] and hub.remoting.cut == []
    refused = hub.beat_push(1, {"g": {"T": [0]}}).answered
    assert refused[0] == 1 and "was evicted" in refused[2]
    hub.beat_push(2, {"g": {"T": [0]}}, client="c1")
    assert hub.got(2) == numbers(2, 6)
    hub.pass_time(6, 12)
    assert hub.remoting.cut == [1]
    hub.remoting.end(1)
    hub.pass_time(6, 12)
    assert hub.remoting.cut == [1]


def test_an_evicted_connection_that_ends_in_order_is_not_cut(hub):
    fill(hub, 8)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.pass_time(62, 248)
    assert hub.remoting.closed == [1]
    hub.remoting.end(1)
    hub.pass_time(10, 10)
    assert hub.remoting.cut == []


def test_a_pause_that_ends_is_told(hub):
    fill(hub, 8)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.pass_time(2, 8)
    hub.acknowledge(1, 4)
    assert states(hub, 1) == [("paused", "0"), ("resumed", "0")]
    assert hub.got(1) == numbers(0, 8)


def test_an_operator_sees_who_is_paused(hub):
    def seen():
        return {row["client"]: (row["queues"], row["lag"], row["state"]) for row in clients(hub.service, (), 10)}

    fill(hub, 8)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.beat_push(2, {"g": {"T": [1]}})
    assert seen() == {"c1": (1, 8, "reading"), "c2": (1, 0, "reading")}
    hub.pass_time(2, 8)
    assert seen() == {"c1": (1, 8, "paused"), "c2": (1, 0, "reading")}
    (group,) = groups(hub.service, ["g"])
    assert [(one["client"], one["state"]) for one in group["members"]] == [("c1", "paused"), ("c2", "reading")]
    hub.acknowledge(1, 4)
    assert seen() == {"c1": (1, 4, "reading"), "c2": (1, 0, "reading")}


def test_fast_members_get_everything_while_one_stalls(hub):
    for queue in range(4):
        fill(hub, 40, queue=queue)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.beat_push(2, {"g": {"T": [1, 2]}})
    hub.beat_push(3, {"b": {"T": [0, 3]}}, model="BROADCASTING")
    got = {1: 0, 2: 0, 3: 0}
    for _ in range(30):
        for connection, group in ((1, "g"), (2, "g"), (3, "b")):
            for fields, messages in hub.frames(connection, group):
                got[connection] += len(messages)
                if connection != 1:
                    hub.acknowledge(connection, int(fields["nextOffset"]), int(fields["queueId"]), group=group)
    assert got == {1: 4, 2: 80, 3: 80}


def test_acknowledgements_of_others_and_of_what_was_not_pushed_are_refused(hub):
    fill(hub, 8)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.beat_push(2, {"g": {"T": [1]}})
    code, _, remark, _ = hub.acknowledge(2, 3).answered
    assert (code, "is pushed to 'c1'" in remark) == (1, True)
    assert hub.acknowledge(99, 3).answered[0] == 1
    code, _, remark, _ = hub.acknowledge(1, 5).answered
    assert (code, "up to 4 can be" in remark) == (1, True)
    hub.remoting.pulled = [(2, "g", "T", 0, 4)]
    hub.pass_time(1)
    assert hub.remoting.committed("g", "T", 0) == 0
    assert hub.acknowledge(1, 4).answered[0] == 0
    assert hub.remoting.committed("g", "T", 0) == 4


def test_too_many_sessions_of_one_connection_are_refused_or_left_out(caplog):
    hub = PlayedHub(limits=Limits(pushes=3))
    fill(hub, 1)
    code, _, remark, _ = hub.beat_push(1, {"g": {"T": [0, 1, 2, 3]}}).answered
    assert (code, "names 4 queues that are to be pushed; expected 3" in remark) == (1, True)
    hub.beat_push(1, {"g": {"T": [0, 1]}})
    with caplog.at_level(logging.WARNING):
        hub.beat_push(1, {"h": {"T": [0, 1]}})
    assert hub.service.pushes.counts().sessions == 3 and "1 queues of the group 'h' are not pushed" in caplog.text


def test_queues_for_which_there_was_no_room_are_pushed_once_there_is(caplog):
    hub = with_topic(PlayedHub(limits=Limits(all_pushes=3)))
    hub.beat_push(1, {"g": {"none": [0, 1, 2]}})
    fill(hub, 2)
    with caplog.at_level(logging.WARNING):
        assert hub.beat_push(2, {"h": {"T": [0, 1]}}).answered[0] == 0
        hub.pass_time(5, 5)
    assert hub.got(2, "h") == [] and caplog.text.count("2 queues of the group 'h' are not pushed") == 1
    hub.beat_push(1, {"g": {"none": [0, 1]}}, version=2)
    hub.pass_time(1.1)
    assert hub.got(2, "h") == numbers(0, 2)
    hub.remoting.end(2)
    hub.remoting.end(1)
    hub.settle()
    assert hub.service.pushes.counts().sessions == 0 and not hub.service.pushes._short


def test_a_reset_begins_anew_at_the_new_offset(hub):
    fill(hub, 4)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.acknowledge(1, 4)
    [(before, _)] = hub.frames(1)
    fields = {"topic": "T", "group": "g", "timestamp": 0, "isForce": True}
    assert hub.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, **fields).answered[0] == 0
    [(after, messages)] = hub.frames(1)
    assert after["session"] != before["session"] and after["beginOffset"] == "0"
    assert [one.body for one in messages] == numbers(0, 4)
    hub.acknowledge(1, 3)
    assert hub.remoting.committed("g", "T", 0) == 0
    hub.acknowledge(1, 0)
    hub.acknowledge(1, 4)
    assert hub.remoting.committed("g", "T", 0) == 4


def test_an_operator_that_sets_offsets_begins_sessions_anew(hub):
    fill(hub, 4)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.acknowledge(1, 4)
    hub.got(1)
    hub.service.registry.move(ResetOffset("T", "g", 0, True), {0: 2}, hub.service.now)
    hub.settle()
    assert hub.got(1) == numbers(2, 4)


def test_what_members_hold_is_what_they_say_and_is_no_alarm(hub):
    hub.beat_push(1, {"g": {"T": [0, 3]}})
    fill(hub, 1)
    registry = hub.service.registry
    assert registry.holdings("g") == {"c1": (Queue("dataproxy", 0, "T"), Queue("dataproxy", 3, "T"))}
    registry.lock(1, LockRequest("c1", "g", (Queue("dataproxy", 0, "T"),)), hub.service.now)
    registry.look_for_idle([(1, "g", "T", 0)], hub.service.now)
    registry.look_for_idle([(1, "g", "T", 0)], hub.service.now + 1000)
    assert registry.idle() == () and len(registry.holdings("g")["c1"]) == 2


def test_a_kill_of_the_hub_loses_nothing_that_is_not_acknowledged(hub):
    fill(hub, 6)
    hub.beat_push(1, {"g": {"T": [0]}})
    hub.acknowledge(1, 3)
    [(before, _), *_] = hub.frames(1)
    hub.wall_ms += 1
    hub.kill()
    hub.beat_push(1, {"g": {"T": [0]}})
    [(after, messages)] = hub.frames(1)
    assert [one.body for one in messages] == numbers(3, 6) and after["session"] != before["session"]
