"""Attributes and times of messages of TubeMQ: from rows of tables, in each row's own text, and given back whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from dataproxy import AsyncProducer, Consumer, Producer
from dataproxy.errors import DeliveryExpired, InvalidMessageError
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS

WHEN = 1_700_000_000_000
MINUTE = datetime.fromtimestamp(WHEN / 1000).strftime("%Y%m%d%H%M")  # noqa: DTZ006 - the protocol has local time
TEXTS = pa.map_(pa.string(), pa.string())


def table(*attrs: dict[str, str] | None, **columns: Any) -> pa.Table:
    maps = pa.array([None if one is None else list(one.items()) for one in attrs], TEXTS)
    return pa.table({"n": list(range(len(attrs))), "attrs": maps, **columns})


def found(tube: TubeServer) -> list[dict[str, str]]:
    return [one.attributes for one in tube.stored("one")]


def test_all_attributes_of_a_row_arrive_and_are_filtered_by(tube: TubeServer) -> None:
    rows = table({"z": "1", "$msgType$": "new", "a": "2"}, None, {}, {"z": "é|&"})
    with Producer(tube.target) as producer:
        producer.send_rows("one", rows, attrs_column="attrs")
    assert found(tube) == [{"$msgType$": "new", "a": "2", "z": "1"}, {}, {}, {"z": "é|&"}]
    with Consumer(tube.target, group="g", topics={"one": ["new"]}) as consumer:
        pack = consumer.poll(SECONDS)
        assert pack is not None
        assert [record.body for record in pack] == [b'{"n":0}']


def test_columns_are_attributes(tube: TubeServer) -> None:
    rows = pa.table({"n": [1, 2], "shop": ["7", None], "$msgType$": ["x", "y"], "price": [1.5, 2.0]})
    with Producer(tube.target) as producer:
        producer.send_rows("one", rows, attrs_column=["shop", "$msgType$", "price"])
    assert found(tube) == [{"$msgType$": "x", "price": "1.5", "shop": "7"}, {"$msgType$": "y", "price": "2.0"}]


@pytest.mark.parametrize("times", [
    pa.array([WHEN, None]),
    pa.array([WHEN * 1000, None], pa.timestamp("us", "UTC")),
])  # fmt: skip
def test_the_time_of_a_row_is_an_attribute(tube: TubeServer, times: pa.Array) -> None:
    with Producer(tube.target) as producer:
        producer.send_rows("one", pa.table({"n": [1, 2], "t": times}), dt_column="t")
        producer.send_rows("one", table({"k": "v"}, {"$msgTime$": "202402291234"}, t=times), attrs_column="attrs",
                           dt_column="t")  # fmt: skip
    assert found(tube) == [{"$msgTime$": MINUTE}, {}, {"$msgTime$": MINUTE, "k": "v"}, {"$msgTime$": "202402291234"}]


def test_a_timestamp_of_1970_is_no_number_of_seconds(tube: TubeServer) -> None:
    times = pa.array([datetime(1970, 1, 20, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    with Producer(tube.target) as producer:
        producer.send_rows("one", pa.table({"n": [1], "t": times}), dt_column="t")
    assert found(tube)[0]["$msgTime$"].startswith("1970")


BAD: list[tuple[dict[str, str], str]] = [
    ({"k": "a,b"}, "'k'='a,b': its value holds ','"),
    ({"k": "a=b"}, "'k'='a=b': its value holds '='"),
    ({"a,b": "x"}, "its key holds ','"),
    ({"$msgType$": "a b"}, "no filter item"),
    ({"$msgType$": ""}, "no filter item"),
    ({"$msgTime$": "noon"}, "no time of a message"),
    ({"k": "x" * 40_000}, "the attributes take 40002 bytes"),
]


@pytest.mark.parametrize(("attrs", "what"), BAD)
def test_each_row_is_looked_at(tube: TubeServer, attrs: dict[str, str], what: str) -> None:
    good = {key: "202402291234" for key in attrs if "," not in key}
    with Producer(tube.target) as producer:
        with pytest.raises(InvalidMessageError) as caught:
            producer.send_rows("one", table(good, attrs), attrs_column="attrs")
        assert "row 1, column 'attrs'" in str(caught.value)
        assert what in str(caught.value)
        assert found(tube) == []
        done = producer.send_rows("one", table(good, attrs), attrs_column="attrs", bad_records="skip").result(SECONDS)
        assert (done.accepted, done.refused, done.refusals[0].row) == (1, 1, 1)
    assert found(tube) == [good]


def test_a_null_and_a_name_that_comes_twice(tube: TubeServer) -> None:
    rows = pa.table({"n": [0, 1], "attrs": pa.array([[("k", None)], [("k", "1"), ("k", "2")]], TEXTS)})
    with Producer(tube.target) as producer:
        done = producer.send_rows("one", rows, attrs_column="attrs", bad_records="skip").result(SECONDS)
    assert [one.reason.partition(": {")[0] for one in done.refusals] == [
        "row 0, column 'attrs': the attribute 'k' is null", "row 1, column 'attrs': the attribute 'k' comes twice",
    ]  # fmt: skip


@pytest.mark.parametrize("attrs", [
    {"dtMs": "noon"}, {"dtMs": "5"}, {"msgid": "1"}, {"_escaped": "k", "k": "%2C"}, {"_": "x"}, {"k": ""},
    {"$msgType$": "a", "a&b": "c&d"},
])  # fmt: skip
@pytest.mark.parametrize("of_stream", [True, False])
def test_undelivered_messages_have_the_attributes_that_they_were_given(attrs: dict[str, str], of_stream: bool) -> None:
    producer = Producer("tubemq://127.0.0.1:1", start="lazy", delivery_timeout=0.05)
    stream = producer.stream("one", attrs=attrs if of_stream else None)
    delivery = stream.send(b"x", attrs=None if of_stream else attrs)
    with pytest.raises(DeliveryExpired):
        delivery.result(SECONDS)
    (left,) = producer.undelivered()
    assert (left.stream_id, left.body, left.attrs, left.id) == ("one", b"x", attrs, delivery.id)
    producer.close(0)


async def send_some(target: str) -> None:
    async with AsyncProducer(target) as producer:
        await producer.send_rows("one", table({"a": "1", "b": "2"}), attrs_column="attrs")


def test_an_asynchronous_producer_sends_rows_with_attributes(tube: TubeServer) -> None:
    import asyncio

    asyncio.run(send_some(tube.target))
    assert found(tube) == [{"a": "1", "b": "2"}]


def test_ids_are_refused_in_words_of_tubemq(tube: TubeServer) -> None:
    rows = pa.table({"n": [1], "id": ["x"]})
    with Producer(tube.target) as producer:
        with pytest.raises(InvalidMessageError, match="TubeMQ has no place for ids"):
            producer.send("one", b"x", message_id="1")
        with pytest.raises(InvalidMessageError, match="TubeMQ has no place for ids"):
            producer.send_rows("one", rows, id_column="id")
