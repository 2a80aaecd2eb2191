"""Arrow data of every type that holds bodies, and record batches with routing columns."""

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch

BODIES = [b"a", b"bb", b"ccc", b"a body that is longer than twelve bytes", b"e"]


@pytest.fixture
def producer(server):
    """Yield a producer; the server's notes start empty."""
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g", pack_seconds=1) as p:
        yield p


@pytest.mark.parametrize(
    "kind", ["binary", "string", "large_binary", "large_string", "binary_view", "string_view"], ids=str
)
@pytest.mark.parametrize("shape", ["array", "sliced", "chunked", "table", "batch", "sliced_table", "reader"])
def test_types_and_containers(server, producer, kind, shape) -> None:
    whole = pa.array(BODIES, pa.binary()).cast(getattr(pa, kind)())
    chunked = pa.chunked_array([whole[:2], whole[2:2], whole[2:]])
    data, expected = {
        "array": (whole, BODIES),
        "sliced": (whole[1:4], BODIES[1:4]),
        "chunked": (chunked, BODIES),
        "table": (pa.table({"value": chunked}), BODIES),
        "batch": (pa.record_batch({"value": whole}), BODIES),
        "sliced_table": (pa.table({"value": chunked})[1:4], BODIES[1:4]),
        "reader": (pa.table({"value": chunked}).to_reader(max_chunksize=2), BODIES),
    }[shape]
    got = producer.send_arrow("s", data).result(20)
    assert (got.ok, got.accepted) == (True, len(expected))
    assert server.bodies() == expected


def test_fixed_size_and_choice_of_column(server, producer) -> None:
    fixed = pa.array([b"ab", b"cd", b"ef"], pa.binary(2))
    producer.send_arrow("s", fixed[1:])
    producer.send_arrow("s", pa.table({"x": fixed, "y": [b"1", b"2", b"3"]}), column="y")
    producer.send_arrow("s", pa.table({"other": [1, 2, 3], "body": fixed}))
    producer.send_arrow("s", pa.table({"only": fixed[:1]}))
    producer.flush(20)
    assert server.bodies() == [b"cd", b"ef", b"1", b"2", b"3", b"ab", b"cd", b"ef", b"ab"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_string(), pa.binary_view(), pa.binary(2)], ids=str)
def test_nulls_and_empties_follow_their_options(server, kind) -> None:
    empty = [] if kind == pa.binary(2) else [b""]
    values = [b"aa", None, *empty, b"bb", None, b"cc"]
    data = pa.array(values, pa.binary() if kind != pa.binary(2) else kind).cast(kind)[1:]
    server.frames.clear()
    with dataproxy.Producer(server.target, group_id="g", null_value="skip", empty_value="skip") as p:
        got = p.send_arrow("s", data).result(20)
        assert (got.accepted, got.skipped) == (2, 2 + len(empty))
        p.flush(20)
    assert server.bodies() == [b"bb", b"cc"]
    with dataproxy.Producer(server.target, group_id="g") as p:
        with pytest.raises(dataproxy.InvalidMessageError, match="null") as caught:
            p.send_arrow("s", data)
        assert caught.value.details["item"] == 0
        assert p.stats().accepted == 0


@pytest.mark.parametrize(
    "data",
    [
        pa.array([1, 2]),
        pa.array([b"a", b"b"]).dictionary_encode(),
        pa.array([[b"a"]]),
        pa.table({"a": [b"x"], "b": [b"y"]}),
        pa.table({"value": [1.5]}),
        pa.array([b"ok", b""]),
        pa.array([b"ok", b"x" * (1 << 20)]),
        [b"list"],
        object(),
    ],
    ids=lambda d: str(getattr(d, "type", type(d).__name__)),
)
def test_refused_data(producer, data) -> None:
    with pytest.raises(dataproxy.InvalidMessageError) as caught:
        producer.send_arrow("s", data)
    assert caught.value.hint
    assert producer.stats().accepted == 0


@pytest.mark.parametrize("options", [{}, {"column": "value"}, {"id_column": "value", "column": "other"}])
def test_two_columns_of_one_name(producer, options) -> None:
    names = ["value", "value"] if "id_column" not in options else ["value", "value", "other"]
    table = pa.Table.from_arrays([pa.array([b"x"])] * len(names), names=names)
    with pytest.raises(dataproxy.InvalidMessageError, match=r"2 columns are called 'value'") as caught:
        producer.send_arrow("s", table, **options)
    assert caught.value.code == "BAD_COLUMN"


@pytest.mark.parametrize("given", [None, (), (1, 2), [1, 2], 5, (None, None), (1, 2, 3)])
@pytest.mark.parametrize("name", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_an_exporter_without_capsules(producer, given, name) -> None:
    data = type("Exporter", (), {name: lambda self: given})()
    with pytest.raises(dataproxy.InvalidMessageError, match=rf"{name} of 'Exporter' returned no") as caught:
        producer.send_arrow("s", data)
    assert caught.value.code == "BAD_COLUMN"


def test_a_missing_column_is_named(producer) -> None:
    with pytest.raises(dataproxy.InvalidMessageError, match="'nope'"):
        producer.send_arrow("s", pa.table({"a": [b"x"]}), column="nope")
    with pytest.raises(dataproxy.InvalidMessageError, match="single array"):
        producer.send_arrow("s", pa.array([b"x"]), column="a")


def test_an_error_in_a_later_chunk_says_what_was_accepted(server, producer) -> None:
    data = pa.chunked_array([pa.array([b"a", b"b"]), pa.array([b"c", b""])])
    with pytest.raises(dataproxy.InvalidMessageError, match=r"\b3\b") as caught:
        producer.send_arrow("s", data)
    assert caught.value.details["accepted"] == 2
    producer.flush(20)
    assert server.bodies() == [b"a", b"b"]


def test_a_consumed_reader_and_a_stream_that_fails(producer) -> None:
    def batches():
        yield pa.record_batch({"value": [b"a"]})
        raise ValueError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"value": pa.binary()}), batches())
    with pytest.raises(dataproxy.InvalidMessageError, match="the source broke"):
        producer.send_arrow("s", reader)
    assert producer.stats().accepted == 1


# --- record batches with routing columns

SCHEMA = ["value", "group_id", "stream_id", "dt", "attrs"]


def batch(rows: list[tuple], kinds: dict[str, pa.DataType] | None = None) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Return a record batch of rows (value, group, stream, dt, attrs) and its column numbers."""
    types = {
        "value": pa.binary(), "group_id": pa.string(), "stream_id": pa.string(), "dt": pa.timestamp("ms"),
        "attrs": pa.map_(pa.string(), pa.string()), **(kinds or {}),
    }  # fmt: skip
    columns = {name: pa.array([row[i] for row in rows]).cast(types[name]) if i < 4 else pa.array(
        [row[i] for row in rows], types[name]) for i, name in enumerate(SCHEMA)}  # fmt: skip
    return pa.record_batch(columns), {name: i for i, name in enumerate(SCHEMA)}


T0 = 1_577_836_800_000
ROWS = [
    (b"1", "g", "s1", T0 + 1000, [("a", "1")]),
    (b"2", "g", "s1", T0 + 1000, None),
    (b"3", "h", "s1", T0 + 2000, []),
    (b"4", "g", "s2", T0 + 1000, [("b", "2"), ("c", "")]),
    (b"5", "g", "s1", None, None),
]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
@pytest.mark.parametrize("first", [0, 2])
def test_rows_go_where_their_columns_say(server, producer, text, first) -> None:
    data, at = batch(ROWS, {"group_id": text, "stream_id": text})
    assert send_record_batch(producer, data[first:], **at) == (len(ROWS) - first, 0, 0, len(ROWS) - first)
    producer.flush(20)
    got = dict(server.messages())
    for body, group, stream, _, attrs in ROWS[first:]:
        assert (got[body]["groupId"], got[body]["streamId"]) == (group, stream)
        assert got[body].items() >= dict(attrs or []).items()
    assert len(got) == len(ROWS) - first


@pytest.mark.parametrize(
    ("kind", "factor"),
    [(pa.int64(), 1), (pa.timestamp("ms"), 1), (pa.timestamp("us"), 1000), (pa.timestamp("ns"), 10**6)],
)
def test_time_columns(server, producer, kind, factor) -> None:
    data = pa.record_batch({"v": pa.array([b"x"]), "dt": pa.array([1_577_836_801_234 * factor], pa.int64()).cast(kind)})
    send_record_batch(producer, data, value=0, dt=1, group="g", stream="s", exact_time=True)
    producer.flush(20)
    ((_, attrs),) = server.messages()
    assert attrs["dtMs"] == "1577836801234"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((None, "g", "s", None, None), "null"),
        ((b"", "g", "s", None, None), "empty"),
        ((b"x" * (1 << 20), "g", "s", None, None), "limit"),
        ((b"x", None, "s", None, None), "group_id"),
        ((b"x", "g", None, None, None), "stream_id"),
        ((b"x", "g&", "s", None, None), "&"),
        ((b"x", "g", "s" * 300, None, None), "256"),
        ((b"x", "g", "s", -5, None), "1970"),
        ((b"x", "g", "s", None, [("dt", "1")]), "reserved"),
        ((b"x", "g", "s", None, [("a=", "1")]), "="),
        ((b"x", "g", "s", None, [("a", "1&")]), "&"),
        ((b"x", "g", "s", None, [("", "1")]), "empty"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_bad_row_is_named_and_nothing_accepted(producer, row, what) -> None:
    data, at = batch([*ROWS, row, ROWS[0]])
    with pytest.raises(dataproxy.InvalidMessageError, match=what) as caught:
        send_record_batch(producer, data, **at)
    assert caught.value.details["item"] == len(ROWS)
    assert str(len(ROWS)) in caught.value.message
    assert producer.stats().accepted == 0


def test_the_error_of_an_attribute_has_its_value(producer) -> None:
    data, at = batch([*ROWS, (b"x", "g", "s", None, [("dt", "a value")])])
    with pytest.raises(dataproxy.InvalidMessageError, match="'dt'='a value': its key is reserved"):
        send_record_batch(producer, data, **at)


@pytest.mark.parametrize(
    ("unit", "count", "ms"),
    [("s", -(2**60), f"{-(2**60) * 1000:,}"), ("ms", -5, "-5"), ("us", 2**62, f"{2**62 // 1000:,}"), (None, -5, "-5")],
)
def test_a_data_time_out_of_range_is_told_in_milliseconds(producer, unit, count, ms) -> None:
    times = pa.array([0, count], pa.int64()) if unit is None else pa.array([0, count], pa.timestamp(unit))
    data = pa.record_batch([pa.array([b"1", b"2"]), times], names=["value", "dt"])
    with pytest.raises(dataproxy.InvalidMessageError, match=f"of row 1, {ms} ms after 1970, is outside of"):
        send_record_batch(producer, data, value=0, dt=1, group="g", stream="s")
    assert producer.stats().accepted == 0


def test_bad_rows_are_left_out_on_demand(server, producer) -> None:
    bad = [
        (None, "g", "s1", None, None), (b"", "g", "s1", None, None), (b"x" * (1 << 20), "g", "s1", None, None),
        (b"x", None, "s1", None, None), (b"x", "g&", "s1", None, None), (b"x", "g", "s1", -5, None),
        (b"x", "g", "s1", None, [("dt", "1")]), (b"x", "g", "s1", None, [("a", "1&")]),
    ]  # fmt: skip
    rows = [row for n in range(len(bad)) for row in (bad[n], *ROWS)]
    data, at = batch(rows)
    refused: list[tuple[int, str, str]] = []
    sent = len(bad) * len(ROWS)
    assert send_record_batch(producer, data, **at, refused=refused) == (sent, 0, 0, sent)
    producer.flush(20)
    assert sorted(body for body, _ in server.messages()) == sorted(row[0] for row in ROWS for _ in bad)
    assert [row for row, _, _ in refused] == [n * (len(ROWS) + 1) for n in range(len(bad))]
    assert [code for _, code, _ in refused] == [
        "BAD_BODY", "EMPTY_BODY", "BODY_TOO_LARGE", "BAD_NAME", "BAD_NAME", "BAD_TIME",
        "BAD_ATTRIBUTE", "BAD_ATTRIBUTE",
    ]  # fmt: skip


def test_rows_without_a_name_go_where_the_others_do_not(server, producer) -> None:
    data, at = batch([(b"1", None, "s", None, None), (b"2", "h", None, None, None), (b"3", None, None, None, None)])
    assert send_record_batch(producer, data, **at, group="lost", stream="found")[0] == 3
    producer.flush(20)
    places = {body: (attrs["groupId"], attrs["streamId"]) for body, attrs in server.messages()}
    assert places == {b"1": ("lost", "s"), b"2": ("h", "found"), b"3": ("lost", "found")}


def test_a_batch_without_rows_sends_nothing(producer) -> None:
    data, at = batch(ROWS)
    assert send_record_batch(producer, data[:0], **at) == (0, 0, 0, 0)


def test_wrong_column_types(producer) -> None:
    data, at = batch(ROWS)
    for name, column in (
        ("dt", pa.array(["x"] * 5)),
        ("attrs", pa.array(["x"] * 5)),
        ("group_id", pa.array([1] * 5)),
        ("value", pa.array([1] * 5)),
        ("stream_id", pa.array(["s"] * 5).dictionary_encode()),
    ):
        with pytest.raises(dataproxy.InvalidMessageError):
            send_record_batch(producer, data.set_column(at[name], name, column), **at)
    assert producer.stats().accepted == 0


def test_many_streams_in_turn(server, producer) -> None:
    rows = [(b"%d" % i, "g", f"s{i % 7}", None, None) for i in range(3000)]
    data, at = batch(rows)
    assert send_record_batch(producer, data, **at)[0] == 3000
    producer.flush(20)
    got = server.messages()
    assert sorted(body for body, _ in got) == sorted(row[0] for row in rows)
    assert all(attrs["streamId"] == f"s{int(body) % 7}" for body, attrs in got)
    assert len(server.frames) <= 14
