"""Rows of the source: every column, of messages and of records out of containers."""

import datetime as dt
import logging

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from dataproxy._core.wire.inlong import message as inlong
from dataproxy.consumer.ranges.reader import Piece
from dataproxy.errors import ConfigError, RemoteProtocolError
from dataproxy.spark.shape import Shape
from dataproxy.spark.tubemq.columns import RAW_SCHEMA, raw_batch
from dataproxy.spark.tubemq.unpacked import INLONG_SCHEMA, Unpacker, inlong_columns
from tests.support.gotpacks import message, pack

UTC = dt.UTC


def rows(piece, zone="UTC", schema=RAW_SCHEMA):
    batch = raw_batch(piece, Shape(schema, RAW_SCHEMA, "the source"), zone)
    batch.validate(full=True)
    return batch


def arrow_schema(schema):
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Spark 4.0 and 4.1
        return to_arrow_schema(schema)


def test_every_column_of_a_message():
    made = pack(message(b"a", "$msgType$=x,$msgTime$=202402291234,k=v", 5), message(b"b", number=6), message(b"c"))
    batch = rows(Piece(made, 2, 280))
    assert batch.schema.equals(arrow_schema(RAW_SCHEMA))
    first, second = batch.to_pylist()
    assert first == {
        "topic": "t", "partition": "1:t:0", "pack_offset": 280, "index": 0, "offset": 280, "id": 5,
        "time": dt.datetime(2024, 2, 29, 12, 34, tzinfo=UTC),
        "attributes": [("$msgType$", "x"), ("$msgTime$", "202402291234"), ("k", "v")], "body": b"a",
    }  # fmt: skip
    assert (second["offset"], second["index"], second["time"], second["body"]) == (308, 1, None, b"b")
    assert rows(Piece(made, 3, None)).column("offset").to_pylist() == [None] * 3


@pytest.mark.parametrize(
    "text", ["202413010000", "20240229123", "2024022912345", "20240229123x", "\u0662" * 12, "", "-02402291234"]
)
def test_times_that_are_none(text):
    batch = rows(Piece(pack(message(b"a", f"$msgTime$={text},k=v")), 1, None))
    assert batch.column("time").to_pylist() == [None]


def test_times_of_a_zone_also_where_clocks_change():
    made = pack(*(message(b"a", f"$msgTime$={text}") for text in ("202407011200", "202403310230", "202410270230")))
    hours = [
        time.astimezone(UTC).strftime("%d %H:%M")
        for time in rows(Piece(made, 3, 0), "Europe/Berlin")["time"].to_pylist()
    ]
    assert hours == ["01 10:00", "31 00:59", "27 00:30"]


def test_some_columns_in_another_order():
    schema = StructType([StructField("body", BinaryType()), StructField("INDEX", IntegerType())])
    batch = rows(Piece(pack(message(b"a")), 1, 0), schema=schema)
    assert batch.schema.names == ["body", "INDEX"]
    for name, kind in (("body", StringType()), ("id", IntegerType()), ("value", BinaryType())):
        with pytest.raises(ConfigError, match=f"the source has no column '{name}'"):
            Shape(StructType([StructField(name, kind)]), RAW_SCHEMA, "the source")


# --- records of containers


def container(*bodies, version=1, **attrs):
    return inlong.encode(version, [({"groupId": "g", "streamId": "s", **attrs}, list(bodies))], create_time_ms=7000)


def unpacked(*found, skip=False):
    unpacker = Unpacker(skip_malformed=skip)
    made = pack(*found)
    batches = [*unpacker.add(Piece(made, len(made), None)), *unpacker.rest()]
    shape, rows = Shape(INLONG_SCHEMA, INLONG_SCHEMA, "the source"), []
    for batch in batches:
        shaped = shape.batch(inlong_columns(batch, "t"))
        shaped.validate(full=True)
        assert shaped.schema.equals(arrow_schema(INLONG_SCHEMA))
        rows += shaped.to_pylist()
    return rows, unpacker.skipped


def test_every_column_of_a_record():
    found, _ = unpacked(message(container(b"a", b"b", dt="5000", msgid="m1", city="Bonn")), message(container(b"c")))
    assert found[1] == {
        "group_id": "g", "stream_id": "s", "dt": dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), "msg_id": "m1",
        "attrs": [("city", "Bonn")], "body": b"b", "topic": "t", "partition": "1:t:0", "pack_offset": 280, "index": 0,
        "number": 1,
    }  # fmt: skip
    last = found[2]
    assert (last["body"], last["index"], last["number"], last["msg_id"]) == (b"c", 1, 0, None)
    assert last["dt"] == dt.datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)


@pytest.mark.parametrize("body", [b"plain text", container(b"a")[:-3], b""])
def test_what_is_no_container(body, caplog):
    good = [message(container(b"x")), message(container(b"y"))]
    with pytest.raises(RemoteProtocolError, match="message 1 of the pack at 280 of 1:t:0 is no container") as caught:
        unpacked(good[0], message(body, number=9), good[1])
    assert not caught.value.retriable
    assert dict(caught.value.details) == {"topic": "t", "partition": "1:t:0", "offset": 280, "index": 1, "id": 9}
    with caplog.at_level(logging.WARNING, "dataproxy"):
        found, skipped = unpacked(good[0], message(body), message(body), good[1], skip=True)
    assert ([row["body"] for row in found if row["body"] in (b"x", b"y")], skipped) == ([b"x", b"y"], 2)
    assert caplog.text.count("malformed=skip") == 1


def test_many_records_come_in_batches():
    unpacker = Unpacker(skip_malformed=False)
    made = pack(*(message(container(*[b"x"] * 700)) for _ in range(40)))
    sizes = [batch.num_rows for batch in [*unpacker.add(Piece(made, 40, None)), *unpacker.rest()]]
    assert sum(sizes) == 28_000
    assert max(sizes) <= 10_000
