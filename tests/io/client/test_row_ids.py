"""Ids of the rows of record batches: stable over replays, new for other content, readable at the hub."""

import datetime as dt
import re

import pyarrow as pa
import pytest

from dataproxy import InvalidMessageError, Producer
from dataproxy._core.client.recordbatch import send_record_batch
from dataproxy.hub import Hub

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


def test_batches_cut_elsewhere_give_the_same_ids():
    rows = [b"%d" % number for number in range(10)]
    whole = ids({"value": rows})
    assert whole == ids({"value": rows[:3]}) + ids({"value": rows[3:]}, first_row=3)


def test_each_byte_and_the_length_of_a_body_count():
    bodies = [b"\0" * size for size in range(1, 200)]
    bodies += [
        bytes(at) + b"\1" + bytes(size - at - 1)
        for size in (1, 3, 7, 8, 9, 16, 17, 33, 65, 97, 130)
        for at in range(size)
    ]
    hashes = [number[-11:] for _, number in ids({"value": bodies})]
    assert len(set(hashes)) == len(bodies)


def test_numbers_count_up_wherever_a_batch_begins():
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for first in (0, 1, 62, 63, 64, 4095, 2**36 - 300):
        found = [number[6:12] for _, number in ids({"value": [b"x"] * 200}, first_row=first)]
        expected = [
            "".join(digits[row >> shift & 63] for shift in range(30, -1, -6)) for row in range(first, first + 200)
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
    whole = dict(ids({"value": [row or b"-" for row in rows]}))
    assert kept == {row: whole[row] for row in (b"a", b"b", b"c", b"d")}


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
    assert one[b"a"] == other[b"a"]
    assert one[b"b"] != other[b"b"]


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
