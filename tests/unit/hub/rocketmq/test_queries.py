"""Queries of messages by a key: what is looked at in which order, and that nobody waits for them."""

import pytest

from dataproxy.errors import StoreError
from dataproxy.wire.rocketmq.codes import Answer, Code
from dataproxy.wire.rocketmq.messages import StoredMessage
from tests.support.playedremoting import PlayedHub

LONG_MAX = 9223372036854775807


@pytest.fixture
def hub():
    return PlayedHub()


def begin(hub, key="k", topic="T", *, connection=1, bits=0, most=32, since=0, until=LONG_MAX, unique=False):
    """Put a query in and let the thread go round once."""
    more = {"_UNIQUE_KEY_QUERY": True} if unique else {}
    call = hub.remoting.ask(Code.QUERY_MESSAGE, connection=connection, bits=bits, topic=topic, key=key, maxNum=most,
                            beginTimestamp=since, endTimestamp=until, **more)  # fmt: skip
    hub.service.round()
    return call


def query(hub, *given, **more):
    """Return code and messages of the answer to a query."""
    call = begin(hub, *given, **more)
    hub.settle()
    code, _, remark, body = call.answered
    found = []
    while body:
        size = int.from_bytes(body[:4])
        found.append(StoredMessage.read(body[:size]))
        body = body[size:]
    return code, [one.body for one in found], remark


def fill(hub, n, *, queue=0, topic="T", body=b"", **properties):
    """Store messages, one a millisecond."""
    log = hub.store.logs.setdefault((topic, queue), [])
    for i in range(n):
        message = StoredMessage(topic, queue, body or b"%d" % i, properties, stored_ms=hub.wall_ms, queue_offset=i)
        log.append(message.write())
        hub.wall_ms += 1


def topic(hub, n=2):
    hub.ask(Code.UPDATE_AND_CREATE_TOPIC, topic="T", defaultTopic="TBW102", readQueueNums=n, writeQueueNums=n, perm=6,
            topicFilterType="SINGLE_TAG")  # fmt: skip


def test_a_query_looks_through_all_messages_and_others_are_served_meanwhile(hub):
    topic(hub)
    fill(hub, 1, KEYS="rare k")
    fill(hub, 5000)
    fill(hub, 5000, queue=1)
    call = begin(hub)
    assert (call.answers, len(hub.service.queries)) == ([], 1)
    other = hub.remoting.ask(Code.GET_MAX_OFFSET, topic="T", queueId=0)
    hub.service.round()
    assert (other.answered[1], call.answers) == ({"offset": "5001"}, [])
    hub.settle()
    assert (call.answered[0], StoredMessage.read(call.answered[3]).body) == (0, b"0")
    assert len(hub.service.queries) == 0


def test_no_more_messages_than_a_broker_gives_and_these_are_the_newest(hub):
    topic(hub, 1)
    fill(hub, 1000, KEYS="k")
    assert query(hub, most=5) == (0, [b"%d" % i for i in range(999, 994, -1)], "")
    assert len(query(hub, most=1000)[1]) == 64
    assert len(query(hub, most=-3)[1]) == 1
    assert query(hub, "U", unique=True)[0] == 22


def test_the_newest_of_all_queues_are_given(hub):
    topic(hub, 3)
    fill(hub, 700, KEYS="k", body=b"old")
    fill(hub, 600, queue=1, KEYS="none")
    fill(hub, 20, queue=2, KEYS="k", body=b"new")
    fill(hub, 20, queue=1, KEYS="k", body=b"newest")
    fill(hub, 300, queue=2)
    assert query(hub, most=50)[1] == [b"newest"] * 20 + [b"new"] * 20 + [b"old"] * 10


def test_an_id_is_found_alone_if_that_is_asked_for(hub):
    topic(hub, 1)
    fill(hub, 1, KEYS="one", UNIQ_KEY="two")
    fill(hub, 1, KEYS="two three", UNIQ_KEY="one")
    assert query(hub, "one")[1] == [b"0", b"0"]
    assert query(hub, "two", unique=True)[1] == [b"0"]
    assert query(hub, "three", unique=True)[0] == 22
    assert query(hub, "two three")[0] == 22
    assert query(hub, "wo")[0] == 22


def test_answers_fit_into_a_frame(hub):
    topic(hub, 1)
    fill(hub, 20, body=bytes(3 << 20), KEYS="k")
    code, bodies, remark = query(hub, most=64)
    assert (code, len(bodies), "not at all of them" in remark) == (0, 2, True)
    fill(hub, 1, body=bytes(9 << 20), KEYS="large")
    assert len(query(hub, "large")[1]) == 1


def test_a_query_ends_after_ten_seconds_with_what_it_has(hub):
    topic(hub, 1)
    fill(hub, 10_000, KEYS="old")
    fill(hub, 20, KEYS="new")
    first, second = begin(hub, "new"), begin(hub, "none")
    hub.at_us += 11_000_000
    hub.service.round()
    assert (first.answered[0], second.answered[0]) == (0, 22)
    assert "not at all of them" in first.answered[2]
    assert "can not find message" in second.answered[2]
    assert "not at all of them" in second.answered[2]


def test_queries_have_turns_and_bounds(hub):
    topic(hub, 1)
    fill(hub, 20_000)
    own = [begin(hub, connection=1) for _ in range(9)]
    assert [one.answers for one in own[:8]] == [[]] * 8
    assert own[8].answered[0] == Answer.SYSTEM_BUSY
    others = [begin(hub, connection=2 + i // 8) for i in range(57)]
    assert [bool(one.answers) for one in others] == [False] * 56 + [True]
    assert others[-1].answered[0] == Answer.SYSTEM_BUSY
    for connection in range(1, 9):
        hub.remoting.end(connection)
    hub.settle()
    assert len(hub.service.queries) == 0
    assert not any(one.answers for one in own[:8])
    assert query(hub)[0] == 22


def test_a_query_of_one_way_costs_nothing(hub):
    topic(hub, 1)
    call = begin(hub, bits=2)
    assert (call.answers, len(hub.service.queries)) == ([], 0)


def test_a_damaged_message_is_left_out(hub, monkeypatch, caplog):
    topic(hub, 1)
    fill(hub, 300, KEYS="k")
    hub.store.logs["T", 0][250] = b"\0\0\0\7 k "  # what is no message is none that is looked for
    read = hub.remoting.read

    def damaged(topic, queue, offset, most, *more):
        if offset == 290:
            raise StoreError("entry 290 is damaged")
        return [one for one in read(topic, queue, offset, most) if not offset < 290 <= one[0]]

    monkeypatch.setattr(hub.remoting, "read", damaged)
    assert query(hub, most=12)[1] == [b"%d" % i for i in range(299, 286, -1) if i != 290]
    assert len(query(hub, most=64)[1]) == 64
    assert "the message 290" in caplog.text


def test_a_store_that_cannot_be_read_is_told(hub, monkeypatch):
    topic(hub, 1)
    fill(hub, 3)

    def fails(*_):
        raise StoreError("no such file")

    monkeypatch.setattr(hub.remoting, "extent", fails)
    call = begin(hub)
    assert (call.answered[0], "no such file" in call.answered[2]) == (1, True)
    assert len(hub.service.queries) == 0


def test_messages_that_retention_drops_meanwhile_are_missing_and_no_more(hub):
    topic(hub, 1)
    fill(hub, 2000, KEYS="k")
    call = begin(hub, "none")
    del hub.store.logs["T", 0][:1990]
    hub.store.firsts["T", 0] = 1990
    hub.settle()
    assert call.answered[0] == 22
