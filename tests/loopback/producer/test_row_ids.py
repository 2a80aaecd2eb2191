"""Ids of the rows of record batches: stable over replays, new where a block has other content, readable at the hub."""

import datetime as dt
import itertools
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproxy import InvalidMessageError, Producer
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub
from dataproxy.spark.writing.blocks import BLOCK_ROWS, whole_blocks

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
SHAPE = re.compile(r"run\.0\.[A-Za-z0-9_-]{6}[A-Za-z0-9_-]{11}")


def ids(columns, *, first_row=0, **options):
    """Send the columns as one batch; return the (body, id) pairs at the hub."""
    names = list(columns)
    at = {("value" if name == "value" else name): index for index, name in enumerate(names)}
    with Hub() as hub:
        with Producer(hub.target, group_id="g", **options) as producer:
            batch = pa.record_batch(columns)
            send_record_batch(producer, batch, **at, row_ids=b"run.0.", first_row=first_row, group="g", stream="s")
        groups = sorted({group for group, _ in hub.counts()})
        return [(record.body, record.message_id) for group in groups for record in hub.records(group)]


def test_a_replay_gives_the_same_ids_and_each_row_its_own():
    column = {"value": [b"a", b"bb", b"a", b"x" * 1000]}
    first = ids(column)
    assert first == ids(column)
    assert len({number for _, number in first}) == 4
    assert all(SHAPE.fullmatch(number) for _, number in first)


@pytest.fixture(scope="module")
def ids_of():
    """Return a function that sends rows as the sink does, cut at some rows; it returns the ids in the rows' order."""
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:

        def send(rows, cuts=(), kind=None):
            stream = f"s{len(hub.counts())}"
            batch = pa.record_batch({"value": pa.array(rows, kind or pa.binary())})
            ends = [0, *sorted(cuts), len(rows)]
            pieces = [batch.slice(first, last - first) for first, last in itertools.pairwise(ends)]
            at = 0
            for piece in whole_blocks(iter(pieces)):
                send_record_batch(producer, piece, value=0, row_ids=b"run.0.", first_row=at, group="g", stream=stream)
                at += piece.num_rows
            producer.flush()
            return [record.message_id for record in hub.records("g", stream)]

        yield send


def blocks(found):
    """Return the distinct digests, in their order."""
    return list(dict.fromkeys(name[-11:] for name in found))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 1200), st.data())
def test_batches_cut_anywhere_give_the_same_ids(ids_of, count, data):
    rows = [b"row %d" % (number // 3) for number in range(count)]  # neighbours are equal
    cuts = data.draw(st.lists(st.integers(0, count), max_size=12))
    found = ids_of(rows, cuts)
    assert found == ids_of(rows)
    assert len(set(found)) == count
    assert len(blocks(found)) == -(-count // BLOCK_ROWS)


def test_single_rows_make_the_same_blocks():
    pieces = [pa.record_batch({"value": [number]}) for number in range(600)]
    made = list(whole_blocks(iter(pieces)))
    assert [batch.num_rows for batch in made] == [256, 256, 88]
    assert [value for batch in made for value in batch.column(0).to_pylist()] == list(range(600))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 900), st.data())
def test_a_row_that_differs_changes_its_block_and_no_other(ids_of, count, data):
    rows = [b"row %d" % number for number in range(count)]
    at = data.draw(st.integers(0, count - 1))
    other = [*rows[:at], data.draw(st.sampled_from([b"x", b"row %d " % at, b"row"])), *rows[at + 1 :]]
    one, two = ids_of(rows), ids_of(other)
    changed = [number for number in range(count) if one[number] != two[number]]
    assert changed == [number for number in range(count) if number // BLOCK_ROWS == at // BLOCK_ROWS]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2), st.integers(0, 254), st.data())
def test_rows_that_change_places_change_their_block(ids_of, block, first, data):
    rows = [b"row %d" % number for number in range(3 * BLOCK_ROWS)]
    second = data.draw(st.integers(first + 1, 255))
    other = list(rows)
    one, two = block * BLOCK_ROWS + first, block * BLOCK_ROWS + second
    other[one], other[two] = other[two], other[one]
    before, after = blocks(ids_of(rows)), blocks(ids_of(other))
    assert [number for number in range(3) if before[number] != after[number]] == [block]


def test_a_row_more_is_another_block(ids_of):
    rows = [b"same"] * 300
    one, two = ids_of(rows), ids_of([*rows, b"same"])
    assert one[:256] == two[:256]
    assert not set(one[256:]) & set(two[256:])


def test_each_byte_and_the_length_of_a_body_count(ids_of):
    bodies = [b"\0" * size for size in range(1, 200)]
    bodies += [
        bytes(at) + b"\1" + bytes(size - at - 1)
        for size in (1, 3, 7, 8, 9, 16, 17, 33, 65, 97, 130)
        for at in range(size)
    ]
    rows = [row for body in bodies for row in [body] + [b"-"] * (BLOCK_ROWS - 1)]  # each is the first of a block
    assert len(blocks(ids_of(rows))) == len(bodies)


def test_a_batch_that_begins_inside_a_block_is_refused():
    with pytest.raises(ValueError, match="row 3 does not begin a block of 256 rows"):
        ids({"value": [b"a"]}, first_row=3)


def test_numbers_count_up_wherever_a_batch_begins():
    for first in (0, 256, 4096, 2**18 - 256, 2**36 - 512):
        found = [number[6:12] for _, number in ids({"value": [b"x"] * 300}, first_row=first)]
        expected = [
            "".join(DIGITS[row >> shift & 63] for shift in range(30, -1, -6)) for row in range(first, first + 300)
        ]
        assert found == expected


def test_rows_of_spans_of_time_that_take_turns_keep_their_stream_and_time():
    count, streams, spans = 600, 7, 3
    when = [1_700_000_000_000 + 1000 * (row % spans) for row in range(count)]
    columns = {
        "value": [b"%d" % row for row in range(count)],
        "stream_id": [f"s{row % streams}" for row in range(count)],
        "dt": pa.array(when, pa.timestamp("ms")),
    }
    with Hub() as hub:
        with Producer(hub.target, group_id="g", max_open_packs=2) as producer:
            send_record_batch(
                producer, pa.record_batch(columns), value=0, stream_id=1, dt=2, row_ids=b"run.0.", group="g"
            )
        found = {int(record.body): record for record in hub.records("g")}
    assert len({record.message_id for record in found.values()}) == len(found) == count
    assert all(found[row].stream_id == f"s{row % streams}" and found[row].dt_ms == when[row] for row in range(count))


def test_rows_that_are_left_out_take_their_number_with_them():
    rows = [b"a", None, b"b", b"", b"c", b"d"]
    kept = dict(ids({"value": rows}, null_value="skip", empty_value="skip"))
    assert {body: DIGITS.index(name[-12]) for body, name in kept.items()} == {b"a": 0, b"b": 2, b"c": 4, b"d": 5}
    assert len(blocks(kept.values())) == 1


def test_rows_that_are_left_out_count_in_their_block():
    one = ids({"value": [b"a", None]}, null_value="skip", empty_value="skip")
    two = ids({"value": [b"a", b""]}, null_value="skip", empty_value="skip")
    three = ids({"value": [b"a"]})
    assert len(blocks([name for found in (one, two, three) for _, name in found])) == 3


def test_another_order_gives_other_ids():
    one, other = dict(ids({"value": [b"a", b"b"]})), dict(ids({"value": [b"b", b"a"]}))
    assert not set(one.values()) & set(other.values())


@pytest.mark.parametrize(
    ("column", "left", "right"),
    [
        ("stream_id", ["s1", "s1"], ["s1", "s2"]),
        ("group_id", ["g1", "g1"], ["g1", "g2"]),
        ("dt", pa.array([1, 1], pa.timestamp("us")), pa.array([1, None], pa.timestamp("us"))),
        (
            "attrs",
            pa.array([[("k", "v")], [("k", "v")]], pa.map_(pa.string(), pa.string())),
            pa.array([[("k", "v")], [("k", "w")]], pa.map_(pa.string(), pa.string())),
        ),
    ],
    ids=["stream", "group", "time", "attributes"],
)
def test_every_column_that_is_sent_counts(column, left, right):
    base = {"value": [b"a", b"b"]}
    one, other = dict(ids({**base, column: left})), dict(ids({**base, column: right}))
    assert not set(one.values()) & set(other.values())
    assert {name[:-11] for name in one.values()} == {name[:-11] for name in other.values()}


def test_ids_stand_beside_attributes_and_exact_times():
    when = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)
    columns = {
        "value": [b"a"],
        "dt": pa.array([when], pa.timestamp("us", "UTC")),
        "attrs": pa.array([[("app", "web")]], pa.map_(pa.string(), pa.string())),
    }
    with Hub() as hub:
        with Producer(hub.target, group_id="g", exact_time=True) as producer:
            send_record_batch(
                producer, pa.record_batch(columns), value=0, dt=1, attrs=2, row_ids=b"run.0.", group="g", stream="s",
                exact_time=True,
            )  # fmt: skip
        (record,) = hub.records("g")
    assert SHAPE.fullmatch(record.message_id)
    assert record.attrs["app"] == "web"
    assert record.attrs["dtMs"] == str(int(when.timestamp() * 1000))
    assert record.dt_ms == int(when.timestamp() * 1000)


def test_a_prefix_that_cannot_travel_is_refused():
    with Hub() as hub, Producer(hub.target, group_id="g") as producer:
        batch = pa.record_batch({"value": [b"a"]})
        for prefix in (b"a b", b"a&", b"", b"x" * 200):
            with pytest.raises(InvalidMessageError):
                send_record_batch(producer, batch, value=0, row_ids=prefix, group="g", stream="s")
        assert producer.stats().accepted == 0
