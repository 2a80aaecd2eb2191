"""Consumers of RocketMQ against a broker in plain Python: groups, retries, order, resets, bad answers, ends."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataproxy.errors import ClosedError, ConfigError, LocalProtocolError, RemoteProtocolError
from dataproxy.rocketmq import PullConsumer, PushConsumer, Queue, ReceivedMessage, RetryLater
from tests.support.rocketserver import Client, RocketServer


class Seen:
    """A listener that keeps what it got."""

    def __init__(self, then: Callable[[ReceivedMessage], object] | None = None) -> None:
        self.messages: list[ReceivedMessage] = []
        self._then, self._changed = then, threading.Condition()

    def __call__(self, messages: list[ReceivedMessage]) -> None:
        with self._changed:
            self.messages += messages
            self._changed.notify_all()
        if self._then is not None:
            for one in messages:
                self._then(one)

    def wait(self, n: int) -> list[ReceivedMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= n, 20), f"{len(self.messages)} of {n}"
            return list(self.messages)

    def bodies(self) -> list[bytes]:
        return [one.body for one in self.messages]


def push(server: RocketServer, listener: Callable[[list[ReceivedMessage]], object], **options: Any) -> PushConsumer:
    return PushConsumer(server.target, "g", options.pop("topics", "t"), listener, **{"begin": "first", **options})


def test_messages_come_and_offsets_are_told_at_the_end() -> None:
    with RocketServer({"t": 2}) as server:
        for n in range(100):
            server.put("t", n % 2, b"%d" % n, "TAGS\x01a\x02KEYS\x01k l\x02UNIQ_KEY\x01ID\x02n\x01\xc3")
        seen = Seen()
        with push(server, seen, batch=10) as consumer:
            seen.wait(100)
            assert {q.queue_id for q in consumer.assignment if q.topic == "t"} == {0, 1}
        assert sorted(map(int, seen.bodies())) == list(range(100))
        assert server.offsets[("g", "t", 0)] == server.offsets[("g", "t", 1)] == 50
        one = seen.messages[0]
        assert (one.tag, one.keys, one.id, one.broker, one.topic) == ("a", ("k", "l"), "ID", "b", "t")
        assert one.born_host == "127.0.0.1:1" and one.store_host == "127.0.0.1:2"
        assert not server.members["g"] and "t" in repr(one)


def test_members_share_and_take_over() -> None:
    with RocketServer({"t": 4}) as server, push(server, Seen()) as one:
        server.wait(lambda: sum(q.topic == "t" for q in one.assignment) == 4)
        with push(server, Seen()) as two:
            server.wait(lambda: len(server.members["g"]) == 2)
            for client in list(server.members["g"].values()):
                client.ask(40, {"consumerGroup": "g"}, one_way=True)
            server.wait(lambda: [sum(q.topic == "t" for q in c.assignment) for c in (one, two)] == [2, 2])
            assert not set(one.assignment) & set(two.assignment)
        for client in list(server.members["g"].values()):
            client.ask(40, {"consumerGroup": "g"}, one_way=True)
        server.wait(lambda: sum(q.topic == "t" for q in one.assignment) == 4)


def test_what_fails_is_sent_back_with_its_level() -> None:
    def fail(message: ReceivedMessage) -> None:
        if message.body == b"level":
            raise RetryLater(5)
        if message.body == b"error":
            raise ValueError("no")

    with RocketServer({"t": 1}) as server:
        for body in (b"level", b"fine", b"error"):
            server.put("t", 0, body)
        with push(server, Seen(fail), max_attempts=4) as consumer:
            server.wait(lambda: len(server.requests(36)) == 2)
            found = {fields["offset"]: fields for fields, _ in server.requests(36)}
            assert {offset: fields["delayLevel"] for offset, fields in found.items()} == {"1000": "5", "1002": "0"}
            assert {fields["maxReconsumeTimes"] for fields in found.values()} == {"4"}
            server.wait(lambda: consumer.counts()[1:4] == (1, 2, 2))
        assert server.offsets[("g", "t", 0)] == 3


@pytest.mark.parametrize("batch", [2, 8])
def test_what_a_listener_takes_out_of_its_list_comes_again_with_the_rest(batch: int) -> None:
    def fail(messages: list[ReceivedMessage]) -> None:
        while messages:
            if messages.pop(0).body == b"bad":
                messages.clear()
                raise ValueError("no")

    with RocketServer({"t": 1}) as server:
        for body in (b"fine", b"bad", b"fine"):
            server.put("t", 0, body)
        with push(server, fail, batch=batch) as consumer:
            tried = 2 if batch == 2 else 3
            server.wait(lambda: consumer.counts()[1:4] == (3 - tried, tried, tried))
        assert len(server.requests(36)) == tried


def test_an_orderly_listener_may_take_messages_out_of_its_list() -> None:
    seen = []

    def take(messages: list[ReceivedMessage]) -> None:
        while messages:
            seen.append(messages.pop(0).body)

    with RocketServer({"t": 1}) as server:
        for n in range(5):
            server.put("t", 0, b"%d" % n)
        with push(server, take, orderly=True, batch=2) as consumer:
            server.wait(lambda: consumer.counts().done == 5)
        assert seen == [b"0", b"1", b"2", b"3", b"4"]


def test_what_cannot_be_sent_back_is_sent_as_a_copy() -> None:
    def fail(message: ReceivedMessage) -> None:
        raise RetryLater

    with RocketServer({"t": 1}) as server:
        server.on[36] = lambda client, fields, body: (1, {"remark": "not found"}, b"")
        server.put("t", 0, b"x", "UNIQ_KEY\x01ID\x02n\x017", attempts=2)
        with push(server, Seen(fail)):
            server.wait(lambda: server.requests(310))
            [(fields, body)] = server.requests(310)[:1]
        text = fields["i"]
        assert fields["b"] == "%RETRY%g" and fields["a"] == "CLIENT_INNER_PRODUCER" and body == b"x"
        assert fields["j"] == "3" and fields["l"] == "16" and "DELAY\x015" in text and "RETRY_TOPIC\x01t" in text
        assert "n\x017" in text and "ORIGIN_MESSAGE_ID\x01" in text


def test_orderly_needs_locks_and_repeats_before_it_goes_on() -> None:
    failures = {b"1": 1}

    def fail(message: ReceivedMessage) -> None:
        if failures.pop(message.body, 0):
            raise ValueError("once")

    with RocketServer({"t": 2}) as server:
        server.locks[("g", "t", 1)] = "somebody"
        for n in range(3):
            server.put("t", 0, b"%d" % n)
            server.put("t", 1, b"other")
        seen = Seen(fail)
        with push(server, seen, orderly=True) as consumer:
            seen.wait(4)
            assert seen.bodies() == [b"0", b"1", b"1", b"2"] and seen.messages[2].attempts == 1
            assert [q.queue_id for q in consumer.assignment if q.topic == "t"] == [0]
            del server.locks[("g", "t", 1)]
            seen.wait(7)
        assert not server.locks and server.offsets[("g", "t", 0)] == 3


def test_broadcasting_keeps_its_offsets_here(tmp_path: Path) -> None:
    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"old")
        path = tmp_path / "kept" / "offsets.json"
        for body in (b"old", b"new"):
            seen = Seen()
            with push(server, seen, broadcasting=True, offsets_path=path):
                seen.wait(1)
            assert seen.bodies() == [body]
            server.put("t", 0, b"new")
        assert json.loads(path.read_text()) == {"t\tb\t0": 2}
        assert not server.requests(15) and not server.requests(38) and not server.requests(36)
        path.write_text("[]")
        with pytest.raises(ConfigError, match=r"offsets_path .* cannot be read"):
            push(server, seen, broadcasting=True, offsets_path=path)


def test_a_reset_moves_it_and_late_ends_do_not_move_it_back() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hang(message: ReceivedMessage) -> None:
        if message.body == b"2" and not entered.is_set():
            entered.set()
            leave.wait(20)

    with RocketServer({"t": 1}) as server:
        for n in range(3):
            server.put("t", 0, b"%d" % n)
        seen = Seen(hang)
        with push(server, seen) as consumer:
            assert entered.wait(20)
            [client] = [one for one in server.clients if one.id == consumer.client_id]
            body = b'{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:1}}'
            client.ask(220, {"topic": "t", "group": "g", "timestamp": 0, "isForce": "true"}, body, one_way=True)
            server.wait(lambda: server.offsets.get(("g", "t", 0)) == 1)
            leave.set()
            server.wait(lambda: seen.bodies().count(b"1") == 2 and seen.bodies().count(b"2") == 2)
        assert seen.bodies().count(b"0") == 1 and server.offsets[("g", "t", 0)] == 3


def test_brokers_can_ask_what_it_does() -> None:
    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"x")
        seen = Seen()
        with push(server, seen) as consumer:
            seen.wait(1)
            server.wait(lambda: consumer.counts().done == 1)
            [client] = [one for one in server.clients if one.id == consumer.client_id]
            status = client.ask(221, {"topic": "t", "group": "g"})
            assert status["code"] == 0 and b'"t\\"' in status["body"] and b":1" in status["body"]
            running = json.loads(client.ask(307, {"consumerGroup": "g", "clientId": consumer.client_id})["body"])
            assert running["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
            assert '{"brokerName":"b","queueId":0,"topic":"t"}' in running["mqTable"]
            direct = client.ask(309, {"consumerGroup": "g"}, server.store[("t", 0)][0])
            assert json.loads(direct["body"])["consumeResult"] == "CR_SUCCESS" and seen.bodies() == [b"x", b"x"]
            assert client.ask(307, {"consumerGroup": "other", "clientId": "c"})["code"] == 1
            assert client.ask(309, {"consumerGroup": "g"}, b"garbage")["code"] == 1
            assert client.ask(221, {"topic": "t"})["code"] == 1
            assert client.ask(999, {})["code"] == 3
            client.ask(220, {"topic": "t", "group": "g", "timestamp": 0, "isForce": "true"}, b"{{{", one_way=True)
            server.put("t", 0, b"y")
            seen.wait(3)


def test_bad_answers_to_pulls_lose_nothing() -> None:
    answers: list[Any] = [
        (0, {"suggestWhichBrokerId": 0, "minOffset": 0, "maxOffset": 1, "nextBeginOffset": 1}, b"no message"),
        (0, {"nextBeginOffset": 1}, b""), (1, {"remark": "oh"}, b""), (25, {}, b""), (215, {}, b""),
    ]  # fmt: skip

    def bad(client: Client, fields: dict[str, str], body: bytes) -> Any:
        with server.changed:
            if fields["topic"] == "t" and answers:
                return answers.pop()
        return server._code_11(client, fields, body)

    with RocketServer({"t": 1}) as server:
        server.on[11] = bad
        server.put("t", 0, b"broken", checksum=5)
        server.put("t", 0, b"x")
        server.put("t", 0, zlib.compress(b"packed"), sys_flag=1)
        server.put("t", 0, b"lz4", sys_flag=1 | 0x100)
        server.put("t", 0, b"not zlib", sys_flag=1)
        server.put("t", 0, zlib.compress(bytes(80 << 20)), sys_flag=1)
        seen = Seen()
        with push(server, seen) as consumer:
            seen.wait(5)
            assert consumer.counts().broken == 1
        by_offset = {one.offset: one for one in seen.messages}
        assert by_offset[1].body == b"x" and by_offset[2].body == b"packed"
        with pytest.raises(RemoteProtocolError, match="LZ4"):
            _ = by_offset[3].body
        assert by_offset[3].packed_body == b"lz4"
        with pytest.raises(RemoteProtocolError, match="no zlib"):
            _ = by_offset[4].body
        with pytest.raises(RemoteProtocolError, match="is larger than 67108864 bytes"):
            _ = by_offset[5].body


def test_an_offset_that_is_gone_and_a_connection_that_ends() -> None:
    with RocketServer({"t": 1}) as server:
        server.offsets[("g", "t", 0)] = 50
        server.put("t", 0, b"0")
        seen = Seen()
        with push(server, seen):
            server.wait(lambda: any(int(f["queueOffset"]) == 1 for f, _ in server.requests(11) if f["topic"] == "t"))
            for client in list(server.clients):
                client.cut()
            server.put("t", 0, b"1")
            assert [one.body for one in seen.wait(1)] == [b"1"]


def test_tags_are_compared_here_too() -> None:
    with RocketServer({"t": 1}) as server:
        for tag in ("a", "b", "c"):
            server.put("t", 0, tag.encode(), f"TAGS\x01{tag}")
        seen = Seen()
        with push(server, seen, topics={"t": "a || c"}):
            assert [one.body for one in seen.wait(2)] == [b"a", b"c"]
            [sub] = [f for f, _ in server.requests(11) if f["topic"] == "t"][:1]
            assert sub["subscription"] == "a || c" and sub["expressionType"] == "TAG"


def test_a_close_waits_for_its_listener_and_no_longer_than_it_may() -> None:
    entered, leave = threading.Event(), threading.Event()

    def hang(message: ReceivedMessage) -> None:
        entered.set()
        leave.wait(20)

    with RocketServer({"t": 1}) as server:
        server.put("t", 0, b"x")
        consumer = push(server, Seen(hang))
        assert entered.wait(20)
        consumer.close(timeout=0.1)
        leave.set()
        assert consumer.closed and server.offsets.get(("g", "t", 0), 0) == 0


def test_pulled_messages_are_committed_when_said() -> None:
    with RocketServer({"t": 1}) as server:
        for n in range(40):
            server.put("t", 0, b"%d" % n)
        with PullConsumer(server.target, "g", "t", begin="first") as consumer:
            first = consumer.poll(20)
            assert [int(one.body) for one in first] == list(range(32))
        assert server.offsets.get(("g", "t", 0), 0) == 0
        with PullConsumer(server.target, "g", "t", begin="first") as consumer:
            assert len(consumer.poll(20)) == 32
            consumer.commit()
            server.wait(lambda: server.offsets.get(("g", "t", 0)) == 32)
            assert len(consumer.poll(20)) == 8 and consumer.poll(0.01) == []
        with PullConsumer(server.target, "g", "t", auto_commit=True) as consumer:
            assert len(consumer.poll(20)) == 8
        assert server.offsets[("g", "t", 0)] == 40
        with pytest.raises(ClosedError):
            consumer.poll(1)


def test_chosen_queues_and_places() -> None:
    with RocketServer({"t": 2}) as server, PullConsumer(server.target, "g") as consumer:
        for n in range(10):
            server.put("t", 1, b"%d" % n)
        queues = consumer.queues("t")
        assert [q.queue_id for q in queues] == [0, 1] and consumer.last_offset(queues[1]) == 10
        consumer.assign({queues[1]: 7})
        assert [one.body for one in consumer.poll(20)] == [b"7", b"8", b"9"]
        consumer.seek(queues[1], 9)
        assert [one.body for one in consumer.poll(20)] == [b"9"]
        assert not server.members.get("g") and not server.offsets
        with pytest.raises(LocalProtocolError, match="is not read by this consumer"):
            consumer.seek(queues[0], 0)
        with pytest.raises(LocalProtocolError, match="is not a queue with an offset"):
            consumer.assign({queues[0]: -1})
        with pytest.raises(ConfigError, match="offset=-1"):
            consumer.seek(queues[1], -1)
        assert isinstance(queues[0], Queue)


def test_a_choice_is_the_one_that_was_given() -> None:
    with RocketServer({"t": 2}) as server, PullConsumer(server.target, "g", begin="first") as consumer:
        queues = consumer.queues("t")
        given: dict[Queue, int | None] = dict.fromkeys(queues)
        ask = server._code_14

        def change(*call: Any) -> Any:
            given.clear()
            return ask(*call)

        server.on[14] = change  # where the group is in a queue
        consumer.assign(given)
        assert consumer.assignment == queues


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topics": []}, "names none"), ({"topics": 3}, "topics 3"), ({"topics": {"t": 3}}, "is wanted of topic 't'"),
        ({"topics": {"t": "a | b"}}, "tags 'a | b'"), ({"begin": "middle"}, "begin='middle'"),
        ({"batch": 0}, "batch=0"), ({"threads": "x"}, "threads='x'"), ({"offsets_path": "x"}, "is for broadcasting"),
        ({"listener": 3}, "listener"),
    ],
)  # fmt: skip
def test_bad_options_are_named(options: dict[str, Any], text: str) -> None:
    listener = options.pop("listener", print)
    with pytest.raises(ConfigError, match=text):
        PushConsumer("rocketmq://127.0.0.1:1", "g", options.pop("topics", "t"), listener, **options)
