"""Bodies of control messages: all that are in the vectors, the dialect and its bounds, and what is written."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.rocketmq import bodies, dialect, queues
from dataproxy.wire.rocketmq.bodies import ConsumeFrom, ConsumeType, Heartbeat, MessageModel, Subscription
from dataproxy.wire.rocketmq.queues import Queue
from tests.support.reference.rocketvectors import BY_NAME, CAPTURED, FRAMES, VECTORS, body_of, captured_body

REQUESTS: dict[int, Any] = {
    34: Heartbeat, 46: bodies.ClientCheck, 200: bodies.SubscriptionGroup, 41: queues.LockRequest,
    42: queues.LockRequest,
}  # fmt: skip
ANSWERS: dict[int, Any] = {
    38: bodies.ConsumerIds, 203: bodies.ConsumerConnections, 204: bodies.ProducerConnections, 105: bodies.Route,
    106: bodies.ClusterInfo, 307: bodies.RunningInfo, 309: bodies.ConsumeResult,
}  # fmt: skip
TABLES = {(220, None), (None, 222), (None, 221), (None, 223), (None, 41)}


def all_bodies() -> list[tuple[int, int | None, bytes]]:
    found = []
    for vector in [*FRAMES, *CAPTURED]:
        body = captured_body(vector) if "hex" in vector else body_of(vector)
        found.append((vector["code"], vector.get("in_reply_to_code"), body))
    return [one for one in found if one[2][:1] == b"{"]


def kind_of(code: int, answered: int | None) -> Any:
    return REQUESTS.get(code) if answered is None else ANSWERS.get(answered)


TYPED = [(kind_of(code, answered), body) for code, answered, body in all_bodies() if kind_of(code, answered)]


def test_every_body_of_the_vectors_is_read_by_somebody() -> None:
    left = {(None if answered else code, answered) for code, answered, _ in all_bodies() if not kind_of(code, answered)}
    assert left == TABLES
    assert {kind.__name__ for kind, _ in TYPED} == {kind.__name__ for kind in [*REQUESTS.values(), *ANSWERS.values()]}


@pytest.mark.parametrize(("kind", "body"), TYPED)
def test_every_body_is_read_and_written_as_json(kind: Any, body: bytes) -> None:
    record = kind.read(body)
    written = record.write()
    assert kind.read(written) == record
    known = json.loads(dialect.to_json(body))
    assert json.loads(written).keys() >= known.keys() or kind is bodies.RunningInfo
    if b"{{" not in body and b"{0:" not in body and b'"consumeType":1' not in body:
        assert written == body, "byte for byte as Java writes it"


def test_a_heartbeat_of_cpp_is_that_of_java() -> None:
    """Numbers of enums, numbers as texts, and half of the fields."""
    (body,) = [captured_body(one) for one in CAPTURED if one["code"] == 34 and "C++" in one["source"]]
    assert body.endswith(b"\n")
    beat = Heartbeat.read(body)
    assert beat.client_id == "9369-127.0.0.1@DEFAULT"
    (group,) = beat.consumer_data_set or ()
    assert (group.consume_type, group.message_model) == (ConsumeType.PUSH, MessageModel.CLUSTERING)
    assert group.consume_from_where is ConsumeFrom.LAST
    topic = Subscription("TopicCPP", sub_version=1795242805454)
    assert (group.subscription_data_set or ())[1] == topic
    assert (topic.expression_type, topic.tags_set, topic.class_filter_mode) == ("TAG", (), False)
    assert json.loads(beat.write())["consumerDataSet"][0]["consumeType"] == "CONSUME_PASSIVELY"


def test_lists_that_are_null_are_empty() -> None:
    beat = Heartbeat.read(b'{"clientID":"c","producerDataSet":null,"consumerDataSet":null,"more":{"a":[1]}}')
    assert (beat.producer_data_set, beat.consumer_data_set) == ((), ())
    one = Subscription.read(b'{"topic":"t","tagsSet":null,"codeSet":null,"expressionType":null}')
    assert one == Subscription("t")


def test_queues_that_are_pushed_are_in_a_subscription_only_if_it_names_them() -> None:
    """Brokers that know nothing of it are not shown it."""
    assert b"queue" not in Subscription("t").write()
    one = Subscription.read(b'{"topic":"t","queueIdSet":["3",1],"queueOffsetTable":{"3":"70",1:5}}')
    assert (one.pushed_queues, one.begins) == ((3, 1), {3: 70, 1: 5})
    assert Subscription.read(one.write()) == one
    for body in (b'{"topic":"t"}', b'{"topic":"t","queueIdSet":null,"queueOffsetTable":null}'):
        assert (Subscription.read(body).pushed_queues, Subscription.read(body).begins) == ((), {})


@pytest.mark.parametrize("number", [-1, 3])
def test_a_number_that_an_enum_has_not(number: int) -> None:
    body = (
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":%d,"messageModel":1,"consumeFromWhere":0}]}'
    )
    with pytest.raises(RemoteProtocolError, match=r"consume_type is -?[13]; expected 0 to 2.*consumerDataSet"):
        Heartbeat.read(body % number)


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (Heartbeat, b"{}", "clientID"),
        (Heartbeat, b'{"clientID":"a\xff"}', "at byte 14 it is no UTF-8"),
        (Heartbeat, b'{"clientID":5}', r"Expected `str`.*clientID"),
        (Heartbeat, b'{"clientID":"c","consumerDataSet":{}}', "consumerDataSet"),
        (Heartbeat, b'{"clientID":"c","producerDataSet":[{"groupName":{}}]}', r"producerDataSet\[0\].groupName"),
        (Subscription, b'{"topic":"t","subVersion":"12x"}', "subVersion"),
        (Subscription, b'{"topic":"t","subVersion":9223372036854775808}', "subVersion"),
        (Subscription, b'{"topic":"t","codeSet":[2147483648]}', "codeSet"),
        (Subscription, b'{"topic":"t","queueIdSet":[2147483648]}', "queueIdSet"),
        (Subscription, b'{"topic":"t","queueOffsetTable":{"x":1}}', "queueOffsetTable"),
        (queues.LockRequest, b'{"clientId":"c","consumerGroup":"g","mqSet":[{"topic":"t","queueId":0}]}', "brokerName"),
        (bodies.SubscriptionGroup, b'{"groupName":"g","retryQueueNums":"many"}', "retryQueueNums"),
    ],
)
def test_what_is_wrong_is_named(kind: Any, body: bytes, told: str) -> None:
    with pytest.raises(RemoteProtocolError, match=told) as caught:
        kind.read(body)
    assert not caught.value.retriable


def as_pairs(entries: list[Any]) -> list[tuple[Any, Any]]:
    return [(tuple(key.items()) if isinstance(key, dict) else key, value) for key, value in entries]


@pytest.mark.parametrize("vector", VECTORS["fastjson_maps"], ids=lambda v: v["text"][:40])
def test_maps_of_fastjson(vector: dict[str, Any]) -> None:
    pairs = json.loads(dialect.to_json(vector["text"].encode()), object_pairs_hook=list)
    found = []
    for key, value in pairs:
        found.append((tuple(json.loads(key, object_pairs_hook=list)) if key[0] == "{" else int(key), value))
    assert [(tuple(map(tuple, key)) if isinstance(key, tuple) else key, value) for key, value in found] == as_pairs(
        vector["entries"]
    )
    if vector["text"] != "{}" and "brokerName" in vector["text"]:
        table = queues.read_offsets(b'{"offsetTable":' + vector["text"].encode() + b"}")
        assert [
            ({"brokerName": q.broker_name, "queueId": q.queue_id, "topic": q.topic}, n) for q, n in table.items()
        ] == [(key, value) for key, value in vector["entries"]]


TABLE = {Queue("broker-a", 0, "TopicTest"): 0, Queue("broker-a", 1, "TopicTest"): 17}


def test_offsets_by_queues_in_all_forms() -> None:
    java, c = body_of(BY_NAME["reset_offset_to_java_client"]), body_of(BY_NAME["reset_offset_to_cpp_client"])
    assert queues.read_offsets(java) == queues.read_offsets(c) == TABLE
    assert queues.write_offsets(TABLE, objects=True) == java
    assert queues.write_offset_list(TABLE) == c
    written = queues.write_offsets(TABLE)
    assert json.loads(written)["offsetTable"]['{"brokerName":"broker-a","queueId":1,"topic":"TopicTest"}'] == 17
    assert queues.read_offsets(written) == TABLE


def test_states_of_members() -> None:
    one, all_ = body_of(BY_NAME["consumer_status_from_client"]), body_of(BY_NAME["consumer_status_admin_ok"])
    members = {"192.0.2.10@4711#123456789": TABLE}
    assert queues.read_own_offsets(one) == TABLE
    assert queues.read_member_offsets(all_) == members
    assert queues.write_own_offsets(TABLE, objects=True) == one
    assert queues.write_member_offsets(members, objects=True) == all_
    assert queues.read_own_offsets(queues.write_own_offsets(TABLE)) == TABLE
    assert queues.read_member_offsets(queues.write_member_offsets(members)) == members
    json.loads(queues.write_member_offsets(members))


def test_answers_to_locks() -> None:
    body = body_of(BY_NAME["lock_batch_partial_ok"])
    assert queues.read_locked(body) == (Queue("broker-a", 0, "TopicTest"),)
    assert queues.write_locked(queues.read_locked(body)) == body
    assert queues.read_locked(body_of(BY_NAME["lock_batch_none"])) == ()


def test_keys_that_are_no_queues() -> None:
    for key in (b'"x"', b"5", b'{"topic":"t"}', b"[1]", b'"{\\"x\\":' + b"[" * 500 + b']"', b'"' + b"k" * 1000 + b'"'):
        with pytest.raises(RemoteProtocolError, match="is no queue") as caught:
            queues.read_offsets(b'{"offsetTable":{' + key + b":1}}")
        assert len(str(caught.value)) < 500


def test_what_else_the_dialect_has() -> None:
    body = b"""{'a':'it\\'s "so" \\u0041\\n', b_1 : [1, 2,], $c:-1.5e3, -5:{}, true:null, "d":{"e":[{}]},}"""
    assert json.loads(dialect.to_json(body)) == {
        "a": 'it\'s "so" A\n', "b_1": [1, 2], "$c": -1500.0, "-5": {}, "true": None, "d": {"e": [{}]},
    }  # fmt: skip


def test_a_text_between_single_quotes_stays_one_text() -> None:
    body = rb"""{'a\\"b':'\\\'"\"'}"""
    assert json.loads(dialect.to_json(body)) == {'a\\"b': '\\\'""'}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "expected a value"),
        (b"{", "expected a key"),
        (b"[1 2]", "expected ',' or ']'"),
        (b'{"a" 1}', "expected ':'"),
        (b'{"a":1 "b"}', "expected ',' or '}'"),
        (b"[,]", "expected a value"),
        (b"[1,,2]", "expected a value"),
        (b"{}}", "expected the end"),
        (b"nothing", "expected a value"),
        (b'"open', "expected a value"),
        (b"'open", "expected a value"),
        (b"\xff", "no UTF-8"),
        (b"{{{1:2}:3}:4}", "a key without such keys inside"),
        (b"[" * 33 + b"]" * 33, "more than 32 levels"),
        (b"[" * 100_000, "more than 32 levels"),
        (b'{"a":' * 100_000, "more than 32 levels"),
        (b"{" * 100_000, "a key without such keys inside"),
        (b"[" + b"1," * (1 << 17) + b"1]", "more than 131072 values"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_bodies_that_are_refused(body: bytes, told: str) -> None:
    for read in (dialect.to_json, lambda data: dialect.read_body(object, data)):
        if read is not dialect.to_json and body == b"":
            continue
        with pytest.raises(RemoteProtocolError) as caught:
            read(body)
        assert told in str(caught.value)
        assert len(str(caught.value)) < 300


def test_a_body_of_more_than_4_mib_is_refused_unread() -> None:
    with pytest.raises(RemoteProtocolError, match="expected 4194304 at most"):
        Heartbeat.read(b" " * ((4 << 20) + 1))


def test_a_reference_is_refused() -> None:
    body = b'{"consumerTable":{},"messageQueueTable":{{"$ref":"$.consumerTable.c1.null"}:2}}'
    with pytest.raises(RemoteProtocolError, match=r"a reference \(\$ref\)"):
        queues.read_own_offsets(body)


def test_brackets_in_texts_are_no_levels() -> None:
    name = "[{" * 500 + '\\"'
    assert Heartbeat.read(b'{"clientID":"%s"}' % name.encode()).client_id == "[{" * 500 + '"'


BOMBS = {
    "escaped quotes": lambda n: b'{"clientID":"' + b'\\"' * (n // 2),
    "quotes": lambda n: b'"' * n,
    "single quotes": lambda n: b"{'" + b"\\'" * (n // 2),
    "levels": lambda n: b"[" * n,
    "pairs of brackets": lambda n: b"[" + b"[]," * (n // 3) + b"0]",
    "levels again and again": lambda n: b"[" + (b"[" * 31 + b"]" * 31 + b",") * (n // 63) + b"0]",
    "keys that are objects": lambda n: b"{" + b'{"a":1}:1,' * (n // 10) + b"}",
    "digits": lambda n: b'{"clientID":"c","subVersion":"' + b"9" * n + b'"}',
    "backslashes": lambda n: b'{"clientID":"' + b"\\" * n,
    "blanks": lambda n: b" " * n + b"x",
}


@pytest.mark.parametrize("shape", BOMBS)
def test_what_a_body_costs_grows_with_its_bytes_alone(shape: str) -> None:
    def cost(size: int) -> float:
        body, best = BOMBS[shape](size), 1e9
        for _ in range(3):
            begin = time.thread_time()
            with pytest.raises(RemoteProtocolError):
                bodies.Subscription.read(body)
            best = min(best, time.thread_time() - begin)
        return best / len(body)

    small, large = cost(1 << 12), cost(1 << 15)
    assert large < 8 * small + 1e-8


KEYS = st.builds(Queue, st.text(max_size=8), st.integers(-(2**31), 2**31 - 1), st.text(max_size=8))


@given(st.dictionaries(KEYS, st.integers(-(2**63), 2**63 - 1), max_size=4), st.booleans())
def test_any_offsets_come_back(table: dict[Queue, int], objects: bool) -> None:
    body = queues.write_offsets(table, objects=objects)
    assert queues.read_offsets(body) == table
    assert queues.read_own_offsets(queues.write_own_offsets(table, objects=objects)) == table


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_json_stays_what_it_is(value: Any, ascii_: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent).encode()
    assert json.loads(dialect.to_json(text)) == value


@given(st.data())
def test_no_bytes_break_the_reader(data: st.DataObject) -> None:
    _, body = data.draw(st.sampled_from(TYPED))
    changed = bytearray(body[:400])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(changed)))
        piece = data.draw(st.binary(max_size=2) | st.sampled_from([b"{", b"}", b"[", b'"', b"'", b"\\", b",", b":"]))
        changed[at : at + data.draw(st.integers(0, 3))] = piece
    for read in (
        Heartbeat.read,
        queues.read_offsets,
        queues.read_member_offsets,
        bodies.RunningInfo.read,
        dialect.to_json,
    ):
        with contextlib.suppress(RemoteProtocolError):
            read(bytes(changed))
