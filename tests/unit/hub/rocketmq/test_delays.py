"""Messages for later: levels, what moves when, and what is left of it when the hub is killed."""

import pytest

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.delays import LEVELS_MS, delay_level, real_place
from dataproxy.hub.rocketmq.topics.table import SCHEDULE_TOPIC
from tests.support.playedremoting import PlayedHub


def test_a_message_with_a_level_waits_in_the_queue_of_its_level_and_then_moves():
    hub = PlayedHub()
    call = hub.send("T", b"later", queue=2, properties={"DELAY": 2, "KEYS": "k"})
    assert call.answered[0] == 0
    assert call.answered[1]["queueId"] == "2"  # the one that was asked for
    assert [one.properties["REAL_TOPIC"] for one in hub.messages(SCHEDULE_TOPIC, 1)] == ["T"]
    hub.pass_time(4.9, 7)
    assert hub.bodies("T", 2) == []
    hub.pass_time(0.2)
    [moved] = hub.messages("T", 2)
    assert (moved.body, moved.properties["KEYS"]) == (b"later", "k")
    assert "DELAY" not in moved.properties
    hub.pass_time(60, 60)
    assert hub.bodies("T", 2) == [b"later"]
    assert hub.service.delays.waiting() == {}


def test_each_level_has_its_time_and_what_is_beyond_the_last_gets_the_last():
    assert [ms // 1000 for ms in LEVELS_MS[:6]] == [1, 5, 10, 30, 60, 120]
    assert LEVELS_MS[-1] == 7_200_000
    assert [delay_level({"DELAY": text}) for text in ("0", "1", "18", "19", "-1", "x", "", "9" * 30)] == [
        0, 1, 18, 18, 0, 0, 0, 0,
    ]  # fmt: skip


def test_the_thread_sleeps_until_the_first_is_due():
    hub = PlayedHub()
    assert hub.service.delays.next_tick is None
    hub.send("T", properties={"DELAY": 3})
    hub.send("T", properties={"DELAY": 1})
    assert hub.service.delays.next_tick == pytest.approx(hub.service.now + 1)


def test_messages_of_one_level_keep_their_order_over_more_than_a_page():
    hub = PlayedHub()
    for i in range(200):
        hub.send("T", b"%d" % i, properties={"DELAY": 1})
    hub.pass_time(2)
    assert hub.bodies("T") == [b"%d" % i for i in range(200)]


def test_a_killed_hub_moves_what_waited_and_nothing_twice():
    hub = PlayedHub()
    hub.send("T", b"first", properties={"DELAY": 1})
    hub.send("T", b"second", properties={"DELAY": 2})
    hub.pass_time(1.5)
    assert hub.bodies("T") == [b"first"]
    hub.kill()
    hub.pass_time(2)
    assert hub.bodies("T") == [b"first"]
    hub.pass_time(2)
    assert hub.bodies("T") == [b"first", b"second"]


def test_a_hub_that_was_killed_while_messages_moved_loses_none():
    hub = PlayedHub()
    hub.send("T", b"m", properties={"DELAY": 1})
    hub.remoting.waiting = []
    hub.pass_time(2)
    assert len(hub.remoting.waiting) == 1  # on its way to the store, and lost
    hub.kill()
    hub.pass_time(0.1)
    assert hub.bodies("T") == [b"m"]


def test_what_the_store_refuses_is_tried_again():
    hub = PlayedHub()
    hub.send("T", b"m", properties={"DELAY": 1})
    hub.remoting.refuse = 2
    hub.pass_time(3, 3)
    assert hub.bodies("T") == []
    hub.remoting.refuse = 0
    hub.pass_time(2)
    assert hub.bodies("T") == [b"m"]


def test_what_there_is_no_room_for_is_tried_again_and_the_other_levels_move(monkeypatch):
    hub = PlayedHub()
    hub.send("T", b"first", properties={"DELAY": 1})
    hub.send("T", b"second", properties={"DELAY": 2})
    put, full = hub.service.appends.put, [True]

    def refuse(messages, done):
        if full[0] and any(b"first" in stored for *_, stored in messages):
            raise RefusedError(2, "no room")
        put(messages, done)

    monkeypatch.setattr(hub.service.appends, "put", refuse)
    hub.pass_time(6, 12)
    assert hub.bodies("T") == [b"second"]
    full[0] = False
    hub.pass_time(2, 4)
    assert hub.bodies("T") == [b"second", b"first"]


def test_a_clock_that_is_set_back_lets_nobody_wait_longer_than_the_level():
    hub = PlayedHub()
    hub.send("T", b"m", properties={"DELAY": 2})
    hub.pass_time(1)
    hub.send("T", b"next", properties={"DELAY": 2})
    hub.wall_ms -= 3_600_000
    hub.pass_time(4.1)
    assert hub.bodies("T") == [b"m"]
    hub.pass_time(1, 2)
    assert hub.bodies("T") == [b"m", b"next"]
    hub.send("T", b"stored by the new clock", properties={"DELAY": 2})
    hub.pass_time(4.9)
    assert hub.bodies("T") == [b"m", b"next"]
    hub.pass_time(0.2)
    assert hub.bodies("T")[2:] == [b"stored by the new clock"]


def test_a_clock_that_was_set_back_while_the_hub_was_down_lets_nobody_wait_longer_than_the_level():
    hub = PlayedHub()
    for i in range(100):
        hub.send("T", b"%d" % i, properties={"DELAY": 2})
    hub.wall_ms -= 3_600_000
    hub.kill()
    hub.pass_time(4.9)
    assert hub.bodies("T") == []
    hub.pass_time(0.2)
    assert len(hub.bodies("T")) == 100


def test_a_clock_that_is_set_forward_lets_messages_move_at_once_or_in_their_time():
    hub = PlayedHub()
    hub.send("T", b"m", properties={"DELAY": 2})
    hub.wall_ms += 3_600_000
    hub.pass_time(5.1)
    assert hub.bodies("T") == [b"m"]


def test_what_another_protocol_has_put_into_the_topic_is_passed_over(caplog):
    hub = PlayedHub()
    hub.send("T", b"before", properties={"DELAY": 1})
    log = hub.store.logs[SCHEDULE_TOPIC, 0]
    log.append(b"no message at all")
    from dataproxy.wire.rocketmq.messages import StoredMessage

    log.append(StoredMessage(SCHEDULE_TOPIC, 0, b"without a topic", stored_ms=hub.wall_ms).write())
    hub.send("T", b"behind", properties={"DELAY": 1})
    hub.pass_time(3, 3)
    assert hub.bodies("T") == [b"before", b"behind"]
    assert "passed over" in caplog.text


@pytest.mark.parametrize(
    "properties",
    [{}, {"REAL_TOPIC": "a b"}, {"REAL_TOPIC": "T", "REAL_QID": "-1"}, {"REAL_TOPIC": "T", "REAL_QID": "5000"}],
)
def test_properties_that_name_no_place(properties):
    assert real_place(properties) is None
