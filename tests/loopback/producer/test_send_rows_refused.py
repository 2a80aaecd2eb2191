"""Tables with rows that cannot be sent, tables that are none, and tables in an event loop."""

from __future__ import annotations

import asyncio
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dataproxy import AsyncProducer, BatchDelivered, Producer
from dataproxy.errors import BufferFullError, ClosedError, ConfigError, InvalidMessageError
from dataproxy.hub import Hub


@pytest.fixture(scope="module")
def hub():
    with Hub() as hub:
        yield hub


@pytest.fixture
def group(request):
    return f"g_{abs(hash(request.node.nodeid)):x}"


def bodies(records):
    return [record.body for record in records]


BAD = pa.table({"a": ["x", "y,z", "w"], "n": [1, 2, 3]})


def test_a_bad_row_ends_the_call_before_anything_is_accepted(hub, group):
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError) as caught:
            producer.send_rows("s", BAD, "csv", escape="")
        assert producer.report().accepted == 0
    text = str(caught.value)
    assert "row 1, column 'a'" in text and '{"a":"y,z"}' in text and "set escape" in text
    assert (caught.value.details["row"], caught.value.details["column"]) == (1, "a")


def test_a_polars_column_of_python_objects_is_refused(hub, group):
    """Polars hands out their addresses in memory as if they were the values."""
    table = pl.DataFrame({"n": [1, 2], "o": [object(), object()]}, schema={"n": pl.Int64, "o": pl.Object})
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError, match="column 'o' of the Polars table has the type Object") as caught:
            producer.send_rows("s", table)
        assert caught.value.code == "BAD_COLUMN" and producer.report().accepted == 0
        producer.send_rows("s", table.drop("o")).result(30)
    assert bodies(hub.records(group)) == [b'{"n":1}', b'{"n":2}']


def test_bad_rows_are_left_out_and_named(hub, group):
    with Producer(hub.target, group_id=group) as producer:
        result = producer.send_rows("s", BAD, "csv", escape="", bad_records="skip").result(30)
    assert result[:5] == (2, 2, 0, (), 1)
    assert [(r.row, r.code) for r in result.refusals] == [(1, "BAD_BODY")]
    assert bodies(hub.records(group)) == [b"x,1", b"w,3"]


def test_bad_rows_are_kept_in_a_file(hub, group, tmp_path):
    folder = tmp_path / "bad"
    with Producer(hub.target, group_id=group) as producer:
        producer.send_rows("s", BAD, "csv", escape="", bad_records=str(folder)).result(30)
        producer.send_rows("s", BAD.slice(2), "csv", escape="", bad_records=str(folder)).result(30)
    (file,) = folder.iterdir()
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["row"], line["code"], line["columns"]) == (1, "BAD_BODY", {"a": "y,z", "n": 2})


def test_a_call_that_fails_leaves_no_file_behind(hub, group, tmp_path):
    table = pa.table({"a": ["x,y"] * 3, "n": range(3)})
    with Producer(hub.target, group_id=group, buffer_bytes="64KiB", batch_bytes="16KiB", on_full="raise") as producer:
        good = pa.table({"a": ["x,y"] + ["z" * 1000] * 100, "n": range(101)})
        with pytest.raises(BufferFullError):
            producer.send_rows("s", good, "csv", escape="", bad_records=str(tmp_path))
        assert producer.report().accepted == 0
        assert producer.send_rows("s", table, "csv", escape="", bad_records="skip").result(30).accepted == 0
    assert list(tmp_path.iterdir()) == []


REFUSED = {
    "stream is null": ({"s": ["a", None], "n": [1, 2]}, {"stream_column": "s"}, None, 1, "s", "BAD_NAME"),
    "stream cannot travel": ({"s": ["a", "a&b"], "n": [1, 2]}, {"stream_column": "s"}, None, 1, "s", "BAD_NAME"),
    "time in seconds": ({"t": [10**12, 17 * 10**8], "n": [1, 2]}, {"dt_column": "t"}, "s", 1, "t", "BAD_TIME"),
    "time before 1970": ({"t": [0, -1], "n": [1, 2]}, {"dt_column": "t"}, "s", 1, "t", "BAD_TIME"),
    "id is null": ({"u": ["a", None], "n": [1, 2]}, {"id_column": "u"}, "s", 1, "u", "BAD_ID"),
    "id with a blank": ({"u": ["a", "a b"], "n": [1, 2]}, {"id_column": "u"}, "s", 1, "u", "BAD_ID"),
    "reserved attribute": ({"n": [1, 2], "dt": [None, "x"]}, {"attrs_column": ["dt"]}, "s", 1, "dt", "BAD_ATTRIBUTE"),
    "attribute of any text": ({"n": [1, 2], "a": ["x", "ü"]}, {"attrs_column": ["a"]}, "s", 1, "a", "BAD_ATTRIBUTE"),
    "body too large": ({"a": ["x", "y" * 3_000_000]}, {}, "s", 1, None, "BODY_TOO_LARGE"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_row_that_is_refused_is_named_with_its_column(hub, group, case):
    columns, options, stream, row, column, code = REFUSED[case]
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError) as caught:
            producer.send_rows(stream, pa.table(columns), **options)
        assert (caught.value.code, caught.value.details["row"], caught.value.details["column"]) == (code, row, column)
        assert f"row {row}" in str(caught.value) and caught.value.hint
        assert producer.report().accepted == 0
        result = producer.send_rows(stream, pa.table(columns), bad_records="skip", **options).result(30)
    assert (result.accepted, result.refused, result.refusals[0].row) == (1, 1, row)


def test_a_map_with_a_reserved_attribute_and_one_with_a_bad_value(hub, group):
    for entry in [("groupId", "mine"), ("a", "ü")]:
        maps = pa.array([[("a", "x")], [entry]], pa.map_(pa.string(), pa.string()))
        with Producer(hub.target, group_id=group) as producer:
            with pytest.raises(InvalidMessageError) as caught:
                producer.send_rows("s", pa.table({"n": [1, 2], "m": maps}), attrs_column="m")
            assert (caught.value.code, caught.value.details["row"]) == ("BAD_ATTRIBUTE", 1)
            assert f"attribute '{entry[0]}'='{entry[1]}'" in str(caught.value)


COUNTED = pa.table({"a": [1], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})


@pytest.mark.parametrize(
    ("table", "options", "error", "words"),
    [
        ([1, 2], {}, InvalidMessageError, "neither __arrow_c_stream__"),
        (pl.Series([1]), {}, InvalidMessageError, "single column"),
        (pa.chunked_array([[1]]), {}, InvalidMessageError, "single column"),
        (pa.table({"a": [1]}), {"stream_colum": "a"}, ConfigError, "stream_column"),
        (pa.table({"a": [1]}), {"format": "xml"}, ConfigError, "json, csv, kv"),
        (pa.table({"a": [1]}), {"separator": ";"}, ConfigError, "no effect"),
        (pa.table({"a": [1]}), {"format": "csv", "separator": ";;"}, ConfigError, "one ASCII character"),
        (pa.table({"a": [1]}), {"format": "csv", "escape": ","}, ConfigError, "both"),
        (pa.table({"a": [1]}), {"bad_records": "ignore"}, ConfigError, "neither fail nor skip"),
        (pa.table({"a": [1]}), {"bad_records": "s3://b/bad"}, ConfigError, "local files"),
        (pa.table({"a": [1]}), {"body_columns": ["b"]}, InvalidMessageError, "no such column"),
        (pa.table({"a": [1]}), {"body_columns": [1]}, ConfigError, "a name or a list"),
        (pa.table({"a": [1]}), {"body_columns": []}, ConfigError, "names no column"),
        (pa.table({"a": [1]}), {"format": "csv", "separator": ""}, ConfigError, "separator is empty"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, InvalidMessageError, "one name and one type"),
        (COUNTED, {"attrs_column": "m"}, InvalidMessageError, r"values of the Arrow type 'l'.*map<string,string>"),
        (pa.table({"a": ["x"]}), {"id_column": "a"}, InvalidMessageError, "left for the body"),
        (pa.table({"a": [1]}), {"id_column": "a"}, InvalidMessageError, "int64"),
        (pa.table({"a": [1], "t": pa.array([0], pa.timestamp("us"))}), {"dt_column": "t"}, InvalidMessageError, "zone"),
        (pa.table([[1], [2]], names=["a", "a"]), {}, InvalidMessageError, "2 columns are called 'a'"),
        (pa.table({"a=b": [1]}), {"format": "kv"}, ConfigError, "cannot be a key"),
        (pa.table({"a": [1], "k": ["x"]}), {"key_column": "k"}, InvalidMessageError, "ordering"),
        (pa.table({"a": [1], "l": [[1]]}), {"attrs_column": ["l"]}, InvalidMessageError, "attribute"),
        (pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), {}, InvalidMessageError, "cast it"),
        (pa.table({"a": [1]}), {"time_zone": "Mars/Base"}, ConfigError, "unknown on this machine"),
        (pa.table({"a": [1]}), {"group_id": 5}, ConfigError, "group_id is a text"),
    ],
)  # fmt: skip
def test_wrong_inputs_are_refused_in_words(hub, group, table, options, error, words):
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises((error, ConfigError), match=words):
            producer.send_rows("s", table, **options)
        with pytest.raises(InvalidMessageError, match="a stream's name is text"):
            producer.send_rows(None, pa.table({"a": [1]}))
        assert producer.report().accepted == 0


def test_a_table_whose_library_lacks_a_package(hub, group):
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    with (
        Producer(hub.target, group_id=group) as producer,
        pytest.raises(ConfigError, match="pip install pyarrow") as caught,
    ):
        producer.send_rows("s", Frame())
    assert caught.value.code == "MISSING_PACKAGE"


def test_the_advice_of_one_library_is_not_given_for_another(hub, group):
    class Relation:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("division by zero in line 1")

    with (
        Producer(hub.target, group_id=group) as producer,
        pytest.raises(InvalidMessageError, match="division by zero") as caught,
    ):
        producer.send_rows("s", Relation())
    assert "astype" not in str(caught.value)


def test_a_column_of_several_types_is_an_error_of_ours(hub, group):
    with (
        Producer(hub.target, group_id=group) as producer,
        pytest.raises(InvalidMessageError, match=r"gave no Arrow data: ArrowInvalid.*astype"),
    ):
        producer.send_rows("s", pd.DataFrame({"a": [1, "x"]}))


def test_an_attribute_that_is_there_twice_is_refused_before_a_server_does(hub, group):
    maps = pa.array([[("a", "x"), ("b", "y")], [("a", "x"), ("a", "y")]], pa.map_(pa.string(), pa.string()))
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError, match="row 1, column 'm': an attribute is given twice"):
            producer.send_rows("s", pa.table({"n": [1, 2], "m": maps}), attrs_column="m")
        result = producer.send_rows("s", pa.table({"n": [1, 2], "m": maps}), attrs_column="m", bad_records="skip")
        assert result.result(30)[:5] == (1, 1, 0, (), 1)


def test_a_folder_that_cannot_be_written_ends_the_call_before_anything_is_accepted(hub, group, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(ConfigError, match="no file can be written to this folder"):
            producer.send_rows("s", BAD, "csv", escape="", bad_records=str(tmp_path / "file" / "bad"))
        assert producer.report().accepted == 0


def test_an_empty_table_is_an_empty_batch(hub, group):
    with Producer(hub.target, group_id=group) as producer:
        for table in (pa.table({"a": pa.array([], pa.int64())}), pl.DataFrame({"a": []}), pd.DataFrame({"a": []})):
            assert producer.send_rows("s", table).result(5) == BatchDelivered(0, 0, 0, ())


def test_an_error_behind_the_first_piece_says_how_many_are_accepted(hub, group):
    wide = "x" * 5000
    rows = 10_000  # 50 MB: a piece is accepted, then comes the bad row
    table = pl.DataFrame({"a": [wide] * (rows + 1), "s": ["s"] * rows + [None]})
    with Producer(hub.target, group_id=group, delivery_timeout=110) as producer:
        with pytest.raises(InvalidMessageError, match=f"row {rows}.*were accepted") as caught:
            producer.send_rows(None, table, stream_column="s")
        accepted = caught.value.details["accepted"]
        assert 0 < accepted <= rows
        assert producer.report().accepted == accepted
        assert producer.flush(100).delivered == accepted


def test_the_plain_call_in_an_event_loop(hub, group):
    async def main():
        async with AsyncProducer(hub.target, group_id=group) as producer:
            result = await producer.send_rows("s", pl.DataFrame({"n": range(30_000)}), on_delivery=None)
            with pytest.raises(InvalidMessageError, match="no such column"):
                await producer.send_rows("s", pl.DataFrame({"n": [1]}), dt_column="t")
            with pytest.raises(ConfigError, match="no option 'formt'"):
                await producer.send_rows("s", pl.DataFrame({"n": [1]}), formt="csv")
            return result

    assert asyncio.run(main()) == BatchDelivered(30_000, 30_000, 0, ())
    assert sorted(int(json.loads(body)["n"]) for body in bodies(hub.records(group))) == list(range(30_000))


def test_a_small_buffer_makes_a_table_wait_and_loses_nothing(hub, group):
    async def main():
        async with AsyncProducer(hub.target, group_id=group, buffer_bytes="256KiB", batch_bytes="32KiB") as producer:
            return await producer.send_rows("s", pa.table({"n": range(50_000)}))

    assert asyncio.run(main()).delivered == 50_000


def test_null_rows_of_a_struct_are_refused(hub, group):
    rows = pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))
    with (
        Producer(hub.target, group_id=group) as producer,
        pytest.raises(InvalidMessageError, match="null as a whole"),
    ):
        producer.send_rows("s", rows)


def test_a_reader_that_fails_halfway(hub, group):
    schema = pa.schema([("n", pa.int64())])

    def batches():
        yield pa.record_batch([[1, 2]], schema=schema)
        raise ValueError("the disk is gone")

    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError, match="the disk is gone"):
            producer.send_rows("s", pa.RecordBatchReader.from_batches(schema, batches()))
        assert producer.report().accepted == 0


def interrupted():
    yield pa.record_batch([["x"]], names=["a"])
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["send_rows", "send_arrow"])
def test_ctrl_c_in_a_reader_stays_ctrl_c(hub, group, call):
    with Producer(hub.target, group_id=group) as producer, pytest.raises(KeyboardInterrupt):
        getattr(producer, call)("s", reader(interrupted()))


WIDE = pa.record_batch([["x" * 50_000] * 100], names=["a"])  # 5 MB: seven are more than a piece


def reader(batches):
    return pa.RecordBatchReader.from_batches(WIDE.schema, batches)


def fails_after(count):
    for _ in range(count):
        yield WIDE
    raise ValueError("the disk is gone")


@pytest.mark.parametrize("call", ["send_rows", "send_arrow"])
def test_a_reader_that_fails_behind_the_first_piece_says_how_many_are_accepted(hub, group, call):
    with Producer(hub.target, group_id=group, delivery_timeout=110) as producer:
        with pytest.raises(InvalidMessageError, match="the disk is gone") as caught:
            getattr(producer, call)("s", reader(fails_after(9)))
        accepted = caught.value.details["accepted"]
        assert 0 < accepted <= 900
        assert f"{accepted} messages of this call were accepted" in str(caught.value)
        assert producer.report().accepted == accepted
        assert producer.flush(100).delivered == accepted
    assert hub.counts()[group, "s"].records == accepted


@pytest.mark.parametrize("call", ["send_rows", "send_arrow"])
def test_a_reader_that_fails_at_once_says_that_none_is_accepted(hub, group, call):
    with Producer(hub.target, group_id=group) as producer:
        with pytest.raises(InvalidMessageError, match="the disk is gone") as caught:
            getattr(producer, call)("s", reader(fails_after(0)))
        assert caught.value.details["accepted"] == 0
        assert "were accepted" not in str(caught.value)


@pytest.mark.parametrize("call", ["send_rows", "send_arrow"])
def test_a_producer_that_is_closed_behind_the_first_piece_says_how_many_are_accepted(hub, group, call):
    producer = Producer(hub.target, group_id=group, delivery_timeout=110, close_timeout=100)

    def batches():
        for number in range(20):
            if number == 9:
                producer.close()
            yield WIDE

    with pytest.raises(ClosedError) as caught:
        getattr(producer, call)("s", reader(batches()))
    accepted = caught.value.details["accepted"]
    assert 0 < accepted == producer.report().delivered == hub.counts()[group, "s"].records
    assert f"{accepted} messages of this call were accepted" in str(caught.value)
