"""Half messages in the store: how they are kept, ended, asked about, and found again after a kill."""

from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.topics.table import HALF_TOPIC, LOST_HALVES_TOPIC, OP_TOPIC
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.messages import StoredMessage
from dataproxy.wire.rocketmq.names import MessageId
from tests.support.playedremoting import PlayedHub

COMMIT, ROLL_BACK = 8, 12
HALF = {"TRAN_MSG": "true", "PGROUP": "tp", "UNIQ_KEY": "U1", "TAGS": "red"}


def make(**settings):
    hub = PlayedHub(**settings)
    hub.beat("", producers=["tp"])
    return hub


def half(hub, body=b"half", **properties):
    call = hub.send("T", body, queue=1, properties={**HALF, **properties})
    assert call.answered[0] == 0
    fields = call.answered[1]
    return int(fields["queueOffset"]), MessageId.read(fields["msgId"]).offset, fields


def end(hub, offset, handle, outcome, group="tp", bits=2, **more):
    return hub.ask(
        Code.END_TRANSACTION, bits=bits, producerGroup=group, tranStateTableOffset=offset, commitLogOffset=handle,
        commitOrRollback=outcome, msgId="U1", **more,
    )  # fmt: skip


def checks(hub):
    return [one for one in hub.remoting.sent if one[1] == Code.CHECK_TRANSACTION_STATE]


def test_a_half_message_is_seen_by_nobody_until_it_is_committed():
    hub = make()
    offset, handle, fields = half(hub)
    assert fields["queueId"] == "1"
    assert fields["transactionId"] == "U1"
    assert hub.bodies("T", 1) == []
    [stored] = hub.messages(HALF_TOPIC)
    assert stored.properties["REAL_TOPIC"] == "T"
    assert stored.sys_flag == 0
    end(hub, offset, handle, COMMIT)
    [message] = hub.messages("T", 1)
    assert message.properties == {"PGROUP": "tp", "UNIQ_KEY": "U1", "TAGS": "red"}
    assert (message.body, message.sys_flag, message.prepared_offset) == (b"half", 8, handle)


def test_an_end_that_waits_for_an_answer_gets_one_when_it_is_stored():
    hub = make()
    offset, handle, _ = half(hub)
    hub.remoting.waiting = []
    call = end(hub, offset, handle, COMMIT, bits=0)
    assert call.answers == []
    hub.remoting.store_now()
    hub.settle()
    assert (call.answered[0], hub.bodies("T", 1)) == (0, [b"half"])
    assert end(hub, offset, handle, COMMIT, bits=0).answered[0] == 0  # once more changes nothing
    offset, handle, _ = half(hub)
    hub.remoting.refuse = 2
    code, _, remark, _ = end(hub, offset, handle, ROLL_BACK, bits=0).answered
    assert (code, "asked again" in remark) == (1, True)


def test_a_message_that_is_rolled_back_never_comes():
    hub = make()
    offset, handle, _ = half(hub)
    end(hub, offset, handle, ROLL_BACK)
    hub.pass_time(1000, 100)
    assert hub.bodies("T", 1) == []
    assert checks(hub) == []


def test_an_end_that_comes_twice_late_or_for_others_does_nothing():
    hub = make()
    offset, handle, _ = half(hub)
    end(hub, offset, handle, COMMIT, group="others")
    end(hub, offset + 7, handle, COMMIT)
    end(hub, offset, handle + 1, COMMIT)
    end(hub, offset, handle, 0)
    assert hub.bodies("T", 1) == []
    for _ in range(3):
        end(hub, offset, handle, COMMIT)
    end(hub, offset, handle, ROLL_BACK)
    assert hub.bodies("T", 1) == [b"half"]
    hub.kill()
    end(hub, offset, handle, COMMIT)
    assert hub.bodies("T", 1) == [b"half"]


def test_two_commits_while_the_first_is_on_its_way_make_one_message():
    hub = make()
    offset, handle, _ = half(hub)
    hub.remoting.waiting = []
    end(hub, offset, handle, COMMIT)
    end(hub, offset, handle, COMMIT)
    hub.remoting.store_now()
    hub.settle()
    assert hub.bodies("T", 1) == [b"half"]


def test_a_committed_message_with_a_level_of_delay_waits_for_it():
    hub = make()
    offset, handle, _ = half(hub, DELAY=1)
    end(hub, offset, handle, COMMIT)
    assert hub.bodies("T", 1) == []
    hub.pass_time(1.1)
    assert hub.bodies("T", 1) == [b"half"]


def test_a_producer_is_asked_with_the_message_as_it_will_be():
    hub = make()
    offset, handle, _ = half(hub)
    hub.pass_time(5.9)
    assert checks(hub) == []
    hub.pass_time(0.2)
    [(connection, _, _, oneway, fields, body)] = checks(hub)
    assert (connection, oneway) == (1, True)
    assert fields["tranStateTableOffset"] == str(offset)
    assert fields["commitLogOffset"] == str(handle)
    assert fields["transactionId"] == "U1"
    message = StoredMessage.read(body)
    assert (message.topic, message.queue, message.queue_offset, message.handle) == ("T", 1, offset, handle)
    assert message.properties["TRANSACTION_CHECK_TIMES"] == "1"
    end(hub, offset, handle, COMMIT, fromTransactionCheck=True)
    assert hub.bodies("T", 1) == [b"half"]
    hub.pass_time(200, 20)
    assert len(checks(hub)) == 1


def test_a_message_may_say_itself_when_to_ask():
    hub = make()
    half(hub, CHECK_IMMUNITY_TIME_IN_SECONDS=30)
    hub.pass_time(29)
    assert checks(hub) == []
    hub.pass_time(2)
    assert len(checks(hub)) == 1


def test_what_nobody_ends_is_put_aside_after_so_many_checks():
    hub = make(limits=Limits(checks=3, check=10))
    half(hub)
    for _ in range(8):
        hub.beat("", producers=["tp"])
        hub.pass_time(10)
    assert len(checks(hub)) == 3
    assert hub.bodies(LOST_HALVES_TOPIC) == [b"half"]
    assert hub.service.transactions.open == 0


def test_a_killed_hub_asks_again_and_counts_on():
    hub = make(limits=Limits(checks=3, check=10))
    offset, handle, _ = half(hub)
    done, done_handle, _ = half(hub, b"ended")
    end(hub, done, done_handle, COMMIT)
    hub.pass_time(17, 17)
    assert len(checks(hub)) == 2
    hub.kill()
    assert hub.service.transactions.open == 1
    hub.beat("", producers=["tp"])
    hub.pass_time(6, 6)
    assert [StoredMessage.read(one[5]).properties["TRANSACTION_CHECK_TIMES"] for one in checks(hub)] == ["3"]
    end(hub, offset, handle, COMMIT)
    assert hub.bodies("T", 1) == [b"ended", b"half"]


def test_an_end_that_the_store_refuses_is_asked_for_again():
    hub = make(limits=Limits(check=10))
    offset, handle, _ = half(hub)
    hub.remoting.refuse = 2
    end(hub, offset, handle, COMMIT)
    hub.remoting.refuse = 0
    assert hub.bodies("T", 1) == []
    hub.pass_time(11, 11)
    assert len(checks(hub)) == 1
    end(hub, offset, handle, COMMIT)
    assert hub.bodies("T", 1) == [b"half"]


def test_a_start_reads_no_more_than_what_is_open():
    hub = make()
    for i in range(600):
        offset, handle, _ = half(hub, b"%d" % i)
        end(hub, offset, handle, ROLL_BACK)
    group = "RMQ_SYS_TRANS"
    assert hub.remoting.committed(group, HALF_TOPIC, 0) == 600
    assert hub.remoting.committed(group, OP_TOPIC, 0) == 600
    hub.kill()
    assert hub.service.transactions.open == 0


def test_one_that_stays_open_does_not_let_the_notes_of_others_be_forgotten():
    hub = make(limits=Limits(check=100_000, young=100_000))
    first, first_handle, _ = half(hub, b"open")
    for i in range(600):
        offset, handle, _ = half(hub, b"%d" % i)
        end(hub, offset, handle, COMMIT)
    hub.kill()
    assert hub.service.transactions.open == 1
    end(hub, first, first_handle, COMMIT)
    assert len(hub.bodies("T", 1)) == 601
    half(hub, b"another")
    hub.kill()
    assert hub.service.transactions.open == 1
    assert hub.remoting.committed("RMQ_SYS_TRANS", OP_TOPIC, 0) == 601


def test_messages_that_others_put_into_the_topics_do_no_harm(caplog):
    hub = make()
    offset, handle, _ = half(hub)
    hub.store.logs.setdefault((OP_TOPIC, 0), []).extend(
        [b"x", StoredMessage(OP_TOPIC, 0, b"done").write(), StoredMessage(OP_TOPIC, 0, b"done x").write()]
    )
    hub.store.logs[HALF_TOPIC, 0].append(b"y")
    hub.kill()
    hub.beat("", producers=["tp"])
    end(hub, offset, handle, COMMIT)
    assert hub.bodies("T", 1) == [b"half"]


def test_a_half_message_names_its_producers():
    hub = make()
    code, _, remark, _ = hub.send("T", properties={"TRAN_MSG": "true"}).answered
    assert (code, "PGROUP" in remark) == (13, True)


def test_a_half_message_needs_room(monkeypatch):
    hub = make(limits=Limits(halves=1))
    half(hub)
    call = hub.send("T", b"more", properties=HALF)
    assert call.answered[0] == 2
    assert "transactions have not ended" in call.answered[2]
