"""Tables through a producer into a hub: bodies, routes, policies, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataproxy import BatchDelivered, Producer
from dataproxy.errors import InvalidMessageError
from dataproxy.hub import Hub

ROWS = [
    {"id": 1, "name": "Ada", "price": 1.5, "day": date(2024, 2, 29), "ok": True},
    {"id": 2, "name": 'quote " comma , line \n', "price": None, "day": None, "ok": False},
    {"id": 2**53 + 1, "name": "", "price": -0.001, "day": date(1969, 12, 31), "ok": None},
    {"id": -7, "name": "Zoë 北京 🚲 more than twelve bytes", "price": 1e300, "day": date(1, 1, 1), "ok": True},
]
AS_JSON = [
    {"id": 1, "name": "Ada", "price": 1.5, "day": "2024-02-29", "ok": True},
    {"id": 2, "name": 'quote " comma , line \n', "ok": False},
    {"id": 2**53 + 1, "name": "", "price": -0.001, "day": "1969-12-31"},
    {"id": -7, "name": "Zoë 北京 🚲 more than twelve bytes", "price": 1e300, "day": "0001-01-01", "ok": True},
]


@pytest.fixture(scope="module")
def hub():
    with Hub() as hub:
        yield hub


@pytest.fixture
def group(request):
    return f"g_{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def send(hub, group):
    """Send a table and return the records that the hub has then, in order."""

    def send(table, *args, producer=None, stream="s", **options):
        with Producer(hub.target, group_id=group, **(producer or {})) as one:
            result = one.send_rows(stream, table, *args, **options).result(30)
        assert result.ok
        return list(hub.records(group))

    return send


def bodies(records):
    return [record.body for record in records]


def tables(rows):
    """Return the same rows as a table of each library, and in the forms that Arrow has for them."""
    arrow = pa.Table.from_pylist(rows)
    halves = pa.concat_tables([arrow.slice(0, 1), arrow.slice(1)])
    padded = pa.concat_tables([arrow.slice(1, 1), arrow, arrow.slice(0, 1)]).combine_chunks()
    frame = pl.DataFrame(rows)
    return {
        "pyarrow": arrow,
        "chunks": halves,
        "slice": padded.slice(1, len(rows)),
        "batch": arrow.to_batches()[0],
        "reader": pa.RecordBatchReader.from_batches(arrow.schema, halves.to_batches()),
        "capsules": arrow.to_batches()[0].__arrow_c_array__(),
        "polars": frame,
        "polars slice": pl.concat([frame[2:], frame], rechunk=True)[len(rows) - 2 :],
        "polars chunks": pl.concat([frame[:2], frame[2:]], rechunk=False),
        "duckdb": duckdb.connect().from_arrow(arrow),
    }


@pytest.mark.parametrize("kind", list(tables(ROWS)))
def test_a_table_of_any_library_becomes_one_json_object_a_row(send, kind):
    assert [json.loads(body) for body in bodies(send(tables(ROWS)[kind]))] == AS_JSON


def test_a_pandas_frame_is_sent_without_its_index(send):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})
    records = send(frame[frame["a"] > 1])  # its index is a column of its own, __index_level_0__
    assert [json.loads(body) for body in bodies(records)] == [{"a": 2, "b": "y"}, {"a": 3}]


def test_an_index_of_pandas_is_sent_where_it_is_named(send):
    frame = pd.DataFrame({"a": [1, 2]}, index=[7, 9])
    records = send(frame, body_columns=["a", "__index_level_0__"])
    assert [json.loads(body) for body in bodies(records)] == [
        {"a": 1, "__index_level_0__": 7},
        {"a": 2, "__index_level_0__": 9},
    ]


def test_kv_text(send):
    records = send(pa.table({"a": ["x&y", None], "b": [1, 2]}), "kv")
    assert bodies(records) == [b"a=x\\&y&b=1", b"b=2"]


def test_options_of_bodies(send):
    table = pa.table({"t": pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), "n": [None]})
    records = send(table, timestamp_format="sql", time_zone="Asia/Tokyo", ignore_null_fields=False)
    assert json.loads(records[0].body) == {"t": "2024-01-01 09:00:00", "n": None}


CELLS = {
    "i": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    "f": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    "s": st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    "b": st.one_of(st.none(), st.booleans()),
    "l": st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text('ab"\\,\n', max_size=15)), max_size=4)),
    "o": st.one_of(
        st.none(),
        st.fixed_dictionaries({"p": st.one_of(st.none(), st.integers(0, 9)), "q": st.text("x√", max_size=14)}),
    ),
}  # fmt: skip
SCHEMA = pa.schema([
    ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("l", pa.list_(pa.string())),
    ("o", pa.struct([("p", pa.int64()), ("q", pa.string())])),
])  # fmt: skip


@pytest.mark.parametrize("library", ["pyarrow", "polars", "views"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=12), data=st.data())
def test_json_means_what_the_table_holds(library, rows, data):
    table = pa.Table.from_pylist(rows, SCHEMA)
    start = data.draw(st.integers(0, len(rows) - 1))
    if library == "views":
        table = table.set_column(2, "s", table["s"].cast(pa.string_view()))
    part = table.slice(start) if library != "polars" else pl.from_arrow(table)[start:]
    with Hub() as own, Producer(own.target, group_id="g") as producer:
        assert producer.send_rows("s", part, ignore_null_fields=False).result(30).ok
        sent = bodies(own.records("g"))
    assert [json.loads(body) for body in sent] == rows[start:]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(*[st.text('a,"\n\\Ü ', max_size=14)] * 3), min_size=1, max_size=8))
def test_csv_is_read_by_the_csv_module(rows):
    table = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    with Hub() as own, Producer(own.target, group_id="g") as producer:
        producer.send_rows("s", table, "csv", null_text="").result(30)
        lines = [record.body.decode() for record in own.records("g")]
    read = [None if "\n" in line else read_csv(line) for line in lines]
    for want, got, line in zip(rows, read, lines, strict=True):
        assert got == list(want) or (got is None and unmasked(line) == list(want))


def read_csv(line):
    """Return the fields of one line by Python's own reader."""
    return next(csv.reader(io.StringIO(line), escapechar="\\", quoting=csv.QUOTE_NONE, strict=True))


def unmasked(line):
    """Return the fields of one line whatever they hold: a backslash masks the next character."""
    fields, i = [""], 0
    while i < len(line):
        if line[i] == "\\":
            i += 1
            fields[-1] += line[i]
        elif line[i] == ",":
            fields.append("")
        else:
            fields[-1] += line[i]
        i += 1
    return fields


def test_columns_that_route_are_no_part_of_the_body(send, hub, group):
    table = pl.DataFrame({
        "kind": ["s_a", "s_b", None, "s_a"],
        "at": [datetime(2024, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(4)],
        "uid": ["id-1", "id-2", "id-3", "id-4"],
        "app": ["web", None, "web", "ios"],
        "n": [1, 2, 3, 4],
    }, schema_overrides={"kind": pl.Categorical})  # fmt: skip
    records = send(table, stream="s_rest", stream_column="kind", dt_column="at", id_column="uid", attrs_column=["app"])
    seen = {r.message_id: (r.stream_id, r.dt_ms, r.attrs.get("app"), json.loads(r.body)) for r in records}
    assert seen == {
        "id-1": ("s_a", 1704067200000, "web", {"n": 1}),
        "id-2": ("s_b", 1704067201000, None, {"n": 2}),
        "id-3": ("s_rest", 1704067202000, "web", {"n": 3}),
        "id-4": ("s_a", 1704067203000, "ios", {"n": 4}),
    }


def test_groups_by_column_and_a_stream_by_column_alone(hub, group):
    table = pa.table({"g": [f"{group}_a", None], "s": ["s1", "s2"], "n": [1, 2]})
    with Producer(hub.target, group_id=group) as producer:
        assert producer.send_rows(None, table, group_column="g", stream_column="s").result(30).delivered == 2
    assert [(r.stream_id, r.body) for r in hub.records(f"{group}_a")] == [("s1", b'{"n":1}')]
    assert [(r.stream_id, r.body) for r in hub.records(group)] == [("s2", b'{"n":2}')]


def test_attributes_of_a_map_and_of_columns_of_any_simple_type(send):
    maps = pa.array([[("app", "web")], None], pa.map_(pa.string(), pa.string()))
    records = send(pa.table({"n": [1, 2], "m": maps}), attrs_column="m")
    assert {r.body: r.attrs.get("app") for r in records} == {b'{"n":1}': "web", b'{"n":2}': None}
    records = send(pa.table({"n": [3], "code": [42], "ok": [True]}), attrs_column=["code", "ok"])
    assert (records[-1].attrs["code"], records[-1].attrs["ok"]) == ("42", "true")


@pytest.mark.parametrize("column", ["m", ["a b"]])
def test_attributes_of_any_text_with_escapes(send, column):
    maps = pa.array([[("a b", "ü & é")]], pa.map_(pa.string(), pa.string()))
    table = pa.table({"n": [1], "m" if column == "m" else "a b": maps if column == "m" else ["ü & é"]})
    records = send(table, attrs_column=column, producer={"attribute_escape": "percent"})
    assert records[0].attrs["a b"] == "ü & é"


def test_rows_of_one_key_keep_their_order(send):
    table = pa.table({"k": pa.array(["a", "b"] * 500).dictionary_encode(), "n": range(1000)})
    records = send(table, key_column="k", producer={"ordering": "key", "batch_messages": 7})
    order = [json.loads(record.body)["n"] for record in records]  # of each key alone
    assert [n for n in order if n % 2 == 0] == list(range(0, 1000, 2))
    assert [n for n in order if n % 2] == list(range(1, 1000, 2))


def test_the_result_is_that_of_a_batch(hub, group):
    table = pa.table({"u": [f"id{n}" for n in range(20_000)], "n": range(20_000)})  # more than one part
    heard = []
    with Producer(hub.target, group_id=group) as producer:
        batch = producer.send_rows("s", table, id_column="u", on_delivery=heard.append)
        assert len(batch) == 20_000
        assert batch.ids() == table["u"].to_pylist()
        assert batch.result(30) == BatchDelivered(20_000, 20_000, 0, ())
    assert sorted(one.delivered.id for one in heard) == sorted(table["u"].to_pylist())  # packs come in any order
    assert {(one.group_id, one.stream_id) for one in heard} == {(group, "s")}


def test_on_delivery_names_the_stream_of_each_row(hub, group):
    table = pa.table({"s": ["s_a", "s_b", "s_b", "s_c"] * 50, "u": [str(n) for n in range(200)], "n": range(200)})
    heard = []
    with Producer(hub.target, group_id=group) as producer:
        producer.send_rows(None, table, stream_column="s", id_column="u", on_delivery=heard.append).result(30)
    assert {one.delivered.id: one.stream_id for one in heard} == dict(
        zip(table["u"].to_pylist(), table["s"].to_pylist(), strict=True)
    )


def test_nulls_and_empties_follow_the_producers_policies(hub, group):
    table = pa.table({"a": ["x", None, ""]})
    with Producer(hub.target, group_id=group, null_value="skip", empty_value="skip") as producer:
        assert producer.send_rows("s", table, "kv").result(30).accepted == 2  # a= is something
        assert producer.send_rows("s", table, "csv").result(30) == BatchDelivered(1, 1, 2, ())
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError, match=r"row 1.*all columns of the body are null"):
            producer.send_rows("s", table, "csv")
        assert producer.report().accepted == 0
