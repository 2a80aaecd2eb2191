"""A column of each Arrow type as JSON, of whole arrays and of slices."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from dataproxy import Producer
from dataproxy.hub import Hub

MOMENT = datetime(2024, 7, 1, 12, 30, 1, 250_000, tzinfo=UTC)
#: A value of each type, and what it is in JSON; ... where a null is left out.
TYPES = {
    "null": (pa.array([None], pa.null()), ...),
    "u64": (pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
    "u32": (pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
    "u16": (pa.array([2**16 - 1], pa.uint16()), 2**16 - 1),
    "u8": (pa.array([255], pa.uint8()), 255),
    "i8": (pa.array([-128], pa.int8()), -128),
    "i16": (pa.array([-(2**15)], pa.int16()), -(2**15)),
    "half": (pa.array([0.5], pa.float16()), Decimal("0.5")),
    "nan": (pa.array([math.nan]), "NaN"),
    "dec": (
        pa.array([Decimal("-12345678901234567.123")], pa.decimal128(38, 3)),
        Decimal("-12345678901234567.123"),
    ),
    "dec32": (pa.array([Decimal("-1.5")], pa.decimal32(5, 2)), Decimal("-1.50")),
    "dec64": (pa.array([Decimal("99.25")], pa.decimal64(12, 2)), Decimal("99.25")),
    "wide": (pa.array(["x" * 20], pa.large_string()), "x" * 20),
    "view": (pa.array(["a text of more than twelve"], pa.string_view()), "a text of more than twelve"),
    "short": (pa.array(["view"], pa.string_view()), "view"),
    "bin": (pa.array([b"\xff\x00"]), "/wA="),
    "binview": (pa.array([b"\xff\x00" * 10], pa.binary_view()), "/wD/AP8A/wD/AP8A/wD/AP8A/wA="),
    "fixed": (pa.array([b"abc"], pa.binary(3)), "YWJj"),
    "date64": (pa.array([date(2020, 1, 1)], pa.date64()), "2020-01-01"),
    "time": (pa.array([time(1, 2, 3, 4500)], pa.time64("us")), "01:02:03.0045"),
    "berlin": (pa.array([MOMENT], pa.timestamp("ms", "Europe/Berlin")), "2024-07-01T14:30:01.250+02:00"),
    "fixed_zone": (pa.array([MOMENT], pa.timestamp("ns", "+05:30")), "2024-07-01T18:00:01.250+05:30"),
    "naive": (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us")), "2024-07-01T12:30:01.250"),
    "seconds": (pa.array([MOMENT.replace(microsecond=0)], pa.timestamp("s", "UTC")), "2024-07-01T12:30:01.000Z"),
    "span": (pa.array([timedelta(days=-1, milliseconds=5)], pa.duration("ms")), "-PT86399.995S"),
    "list": (pa.array([[1, None, 3]]), [1, None, 3]),
    "wide_list": (pa.array([["a"]], pa.large_list(pa.string())), ["a"]),
    "list_view": (pa.array([[1, 2]], pa.list_view(pa.int32())), [1, 2]),
    "pair": (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), [1, 2]),
    "map": (pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int64())), {"k": 1, "l": None}),
    "struct": (pa.array([{"a": {"b": [{"c": "d"}]}}]), {"a": {"b": [{"c": "d"}]}}),
    "category": (pa.array(["red"]).dictionary_encode(), "red"),
    "categories": (pa.array([["red", "blue"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), ["red", "blue"]),
}


@pytest.fixture(scope="module")
def hub():
    with Hub() as hub:
        yield hub


def sent(hub, group, table, **options):
    with Producer(hub.target, group_id=group) as producer:
        assert producer.send_rows("s", table, **options).result(30).ok
    return [json.loads(record.body, parse_float=Decimal) for record in hub.records(group)]


@pytest.mark.parametrize("name", list(TYPES))
def test_a_value_a_null_and_a_slice_of_each_type(hub, name):
    value, expected = TYPES[name]
    null = pa.nulls(2, value.type)
    column = pa.concat_arrays([null, value, null, value]) if expected is not ... else pa.nulls(6)
    table = pa.table({"n": range(len(column)), "x": column}).slice(1)
    full = {"n": 2, "x": expected}
    assert sent(hub, f"g_{name}", table)[:2] == [{"n": 1}, full if expected is not ... else {"n": 2}]
    records = sent(hub, f"g_{name}_nulls", table, ignore_null_fields=False)
    assert [record["x"] for record in records] == [
        None if expected is ... else x for x in (None, expected, None, None, expected)
    ]


def test_all_types_in_one_row(hub):
    table = pa.table({name: value for name, (value, _) in TYPES.items()})
    expected = {name: value for name, (_, value) in TYPES.items() if value is not ...}
    assert sent(hub, "g_all", table) == [expected]


def test_categories_with_nulls_on_both_sides(hub):
    values = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.uint8()), pa.array(["x", None]))
    assert sent(hub, "g_both", pa.table({"n": [1, 2, 3, 4], "c": values}).slice(1)) == [
        {"n": 2},
        {"n": 3},
        {"n": 4, "c": "x"},
    ]


@pytest.mark.parametrize("form", ["csv", "kv"])
def test_a_category_is_masked_as_its_text(hub, form):
    table = pa.table({"a": pa.array(["x,y", "a&b", None]).dictionary_encode(), "n": [1, 2, 3]})
    with Hub() as own, Producer(own.target, group_id="g") as producer:
        producer.send_rows("s", table, form).result(30)
        bodies = [record.body for record in own.records("g")]
    csv, kv = [b"x\\,y,1", b"a&b,2", b",3"], [b"a=x,y&n=1", b"a=a\\&b&n=2", b"n=3"]
    assert bodies == (csv if form == "csv" else kv)
