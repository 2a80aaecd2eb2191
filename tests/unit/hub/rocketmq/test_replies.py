"""Replies to messages: by which connection a client gets them, and what becomes of those that nobody takes."""

import gc
import tracemalloc

import pytest

from dataproxy.wire.rocketmq.codes import Code
from tests.support.playedremoting import PlayedHub

SENT = {"a": "repliers", "b": "DefaultCluster_REPLY_TOPIC", "c": "TBW102", "d": 4, "e": -1, "f": 0, "g": 1, "h": 0}


@pytest.fixture
def hub():
    return PlayedHub()


def reply(hub, client="127.0.0.1@1", *, connection=9, bits=0, **more):
    text = f"REPLY_TO_CLIENT\x01{client}\x02MSG_TYPE\x01reply"
    return hub.ask(Code.SEND_REPLY_MESSAGE_V2, b"r", connection=connection, bits=bits, **{**SENT, "i": text, **more})


def asked(hub):
    """Return (connection, opaque) of the reply that was passed on last."""
    return next((to, opaque) for to, code, opaque, *_ in reversed(hub.remoting.sent) if code == 326)


def take(hub, code=0):
    hub.remoting.answer_to(*asked(hub), code)
    hub.settle()


def test_a_client_is_found_by_its_id_in_whatever_group_it_produces(hub):
    hub.beat("", producers=("one", "two"))
    call = reply(hub)
    assert call.answers == []
    take(hub)
    code, fields, _, _ = call.answered
    assert (code, fields["queueId"], fields["msgId"]) == (0, "0", "0")
    hub.ask(Code.UNREGISTER_CLIENT, clientID="127.0.0.1@1", producerGroup="one")
    assert reply(hub).answers == []
    hub.ask(Code.UNREGISTER_CLIENT, clientID="127.0.0.1@1", producerGroup="two")
    assert reply(hub).answered[0] == 1


def test_a_connection_that_says_another_id_is_found_by_the_new_one_alone(hub):
    hub.beat("", producers=("one",))
    hub.beat_push(1, {}, client="renamed", producers=("one",))
    assert reply(hub).answered[0] == 1
    assert reply(hub, "renamed").answers == []


def test_a_consumer_alone_gets_no_replies(hub):
    hub.beat("g")
    assert reply(hub).answered[0] == 1


def test_the_newer_of_two_connections_gets_it_until_it_ends(hub):
    hub.beat_push(1, {}, client="c", producers=("one",))
    hub.beat_push(2, {}, client="c", producers=("one", "two"))
    reply(hub, "c")
    assert asked(hub)[0] == 2
    hub.remoting.end(2)
    hub.settle()
    reply(hub, "c")
    assert asked(hub)[0] == 1
    hub.remoting.end(1)
    hub.settle()
    assert reply(hub, "c").answered[0] == 1


def test_who_replies_hears_that_it_was_not_taken_in_time(hub):
    hub.beat("", producers=("one",))
    call = reply(hub)
    hub.pass_time(2.4)
    assert call.answers == []
    hub.pass_time(0.2)
    code, fields, remark, _ = call.answered
    assert (code, fields, "has not answered in time" in remark) == (1, {}, True)
    take(hub)  # too late


def test_a_reply_of_one_way_is_passed_on_and_not_answered(hub):
    hub.beat("", producers=("one",))
    call = reply(hub, bits=2)
    take(hub)
    assert call.answers == []
    assert reply(hub, "nobody", bits=2).answers == []


def test_nothing_of_replies_is_stored_and_plain_messages_do_not_go_there(hub):
    hub.beat("", producers=("one",))
    reply(hub)
    take(hub)
    assert not hub.messages(SENT["b"])
    assert hub.send(SENT["b"]).answered[0] == 16


def test_too_long_a_reply_is_refused(hub):
    hub.beat("", producers=("one",))
    text = f"REPLY_TO_CLIENT\x01127.0.0.1@1\x02x\x01{'y' * 32767}"
    assert reply(hub, i=text).answered[0] == 13
    assert reply(hub, e="x").answered[0] == 1


def test_a_message_that_asks_for_a_reply_gets_the_name_of_the_cluster(hub):
    hub.send("T", properties={"REPLY_TO_CLIENT": "c", "CLUSTER": "of somebody else"})
    hub.send("T")
    assert [one.properties.get("CLUSTER") for one in hub.messages("T")] == ["DefaultCluster", None]


def test_replies_that_nobody_answers_leave_nothing_behind(hub):
    hub.beat("", producers=("one",))

    def held(rounds):
        for _ in range(rounds):
            calls = [reply(hub) for _ in range(50)]
            hub.pass_time(3)
            assert {call.answered[0] for call in calls} == {1}
            hub.remoting.sent.clear()
        del calls
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = held(2)
        more = held(8) - before
    finally:
        tracemalloc.stop()
    assert more < 400 * 20, "bytes of what was never answered"
