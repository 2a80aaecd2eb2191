"""Ids of rows by columns that say which row a row is: the same in any partition and place, equal neighbours apart."""

import base64
import datetime as dt
import itertools
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy import InvalidMessageError, Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy._core.producer.ingest.columnar.rowkeys import RowKeys
from dataproxy.hub import Hub

PREFIX = b"runs_run.17.~"
SHAPE = re.compile(r"runs_run\.17\.~[A-Za-z0-9_-]{21}[AQgw]")
TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary()]
TYPES += [pa.large_binary(), pa.string_view(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")]


def sent(hub, producer, stream, batch, keys, **columns):
    send_record_batch(producer, batch, value=0, row_ids=keys, group="g", stream=stream, **columns)
    producer.flush()
    return [record.message_id for record in hub.records("g", stream)]


def hashed(columns, **more):
    """Return the ids of rows in one stream."""
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        count = len(next(iter(columns.values())))
        batch = pa.record_batch({"value": ["x"] * count, **columns, **more})
        routes = {name: batch.schema.names.index(name) for name in more}
        keys = RowKeys(PREFIX, range(1, 1 + len(columns)))
        send_record_batch(producer, batch, value=0, row_ids=keys, group="g", stream="s", **routes)
        producer.flush()
        names = [(group, stream) for group, stream in hub.counts()]
        return {record.message_id for group, stream in names for record in hub.records(group, stream)}


def test_an_id_is_the_prefix_and_128_bits_of_base64url():
    found = hashed({"n": pa.array(range(500))})
    assert len(found) == 500
    assert all(SHAPE.fullmatch(name) for name in found)
    assert {len(base64.urlsafe_b64decode(name.partition("~")[2] + "==")) for name in found} == {16}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.data())
def test_ids_hang_on_the_values_and_on_equal_neighbours_alone(values, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5)))
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        batch = pa.record_batch({"value": ["x"] * len(values), "k": values})
        keys = RowKeys(PREFIX, [1])
        for first, last in itertools.pairwise([0, *cuts, len(values)]):
            found = sent(hub, producer, "s", batch.slice(first, last - first), keys)
    wanted = [(value, number) for value, run in itertools.groupby(values) for number, _ in enumerate(run)]
    by_name = dict(zip(found, wanted, strict=True))
    assert [by_name[name] for name in found] == wanted
    assert len(set(found)) == len(set(wanted))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_columns_of_every_exact_type_are_read_at_any_place(kind):
    day = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    some = {"int": [-1, 0, 1, 100], "bool": [True, False, True, True], "date": [day.date()] * 3 + [dt.date(1969, 1, 1)]}
    some["time"] = [day, day + dt.timedelta(microseconds=1), day, dt.datetime(1969, 1, 1, tzinfo=dt.UTC)]
    name = next((name for name in some if name in str(kind)), "text")
    values = some.get(name, ["", "a", "b", "longer than any view holds inside"])
    values = [value.encode() if "binary" in str(kind) else value for value in values] + [None]
    values = [value for value in values for _ in range(3)]  # at every place of a byte of bits
    batch = pa.record_batch({"value": ["x"] * len(values), "k": pa.array(values, kind)})
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        whole = sent(hub, producer, "s", batch, RowKeys(PREFIX, [1]))
        keys = RowKeys(PREFIX, [1])
        apart = [sent(hub, producer, "t", batch.slice(at, 1), keys)[-1] for at in range(len(values))]
        again = sent(hub, producer, "s", batch, RowKeys(PREFIX, [1]))[len(values) :]
    assert again == whole
    assert not set(whole) & set(apart), "the stream counts"
    assert [whole.index(name) for name in whole] == [apart.index(name) for name in apart]
    wanted = [(value, number) for value, run in itertools.groupby(values) for number, _ in enumerate(run)]
    assert [whole.index(name) for name in whole] == [wanted.index(pair) for pair in wanted]


def test_values_are_joined_so_that_no_others_read_the_same():
    pairs = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), (None, "abc"), ("abc", None), (None, None), ("", "")]
    pairs = [("a\x02b", "c"), *pairs, ("a", "b\x02c")]  # a text may hold what stands in front of one; no neighbours
    first, second = zip(*pairs, strict=True)
    assert len(hashed({"a": pa.array(first), "b": pa.array(second)})) == len(pairs)


def test_widths_of_numbers_make_no_difference():
    assert hashed({"a": pa.array([-5], pa.int8())}) == hashed({"a": pa.array([-5], pa.int64())})
    assert hashed({"a": pa.array([5], pa.int32())}) != hashed({"a": pa.array(["5"])})


def test_group_and_stream_count_also_where_a_column_has_them():
    plain = hashed({"k": pa.array([1])})
    assert hashed({"k": pa.array([1])}, group_id=pa.array(["g"]), stream_id=pa.array(["s"])) == plain
    assert hashed({"k": pa.array([1])}, stream_id=pa.array([None], pa.string())) == plain
    assert not hashed({"k": pa.array([1])}, stream_id=pa.array(["t"])) & plain
    assert not hashed({"k": pa.array([1])}, group_id=pa.array(["h"])) & plain


def test_neighbours_of_several_streams_are_counted_by_their_values_alone():
    """Rows of one origin that go to two streams in turn are as many messages."""
    found = hashed({"k": pa.array([1] * 6)}, stream_id=pa.array(["a", "b", "a", "b", "a", "a"]))
    assert len(found) == 6


def test_rows_that_are_left_out_are_counted():
    with Hub() as hub, Producer(hub.target, group_id="g", null_value="skip") as producer:
        batches = [
            pa.record_batch({"value": pa.array(rows), "k": [1, 1, 1]}) for rows in (["a", "b", "c"], ["a", None, "c"])
        ]
        names = [sent(hub, producer, "s", batch, RowKeys(PREFIX, [1])) for batch in batches]
    assert names[1][3:] == [names[0][0], names[0][2]]


def test_what_has_no_exact_form_and_a_bad_prefix_are_refused():
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        for column in (pa.array([1.5]), pa.array([[1]]), pa.array([1], pa.decimal128(5, 2)), pa.array([None])):
            batch = pa.record_batch({"value": ["x"], "k": column})
            with pytest.raises(InvalidMessageError):
                send_record_batch(producer, batch, value=0, row_ids=RowKeys(PREFIX, [1]), group="g", stream="s")
        assert producer.stats().accepted == 0
    for prefix in (b"a b", b"a&", b"", b"x" * 120):
        with pytest.raises(InvalidMessageError):
            RowKeys(prefix, [0])
