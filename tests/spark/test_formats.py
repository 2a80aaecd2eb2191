"""Bodies that are made of columns, against Spark's own functions and against what was written."""

import json
import re

import pytest
from pyspark.errors import AnalysisException

VALUES = {
    "a_true": "id % 2 = 0",
    "b_byte": "cast(id % 100 - 50 as tinyint)",
    "c_short": "cast(id * 7 - 300 as smallint)",
    "d_int": "cast(id * 100003 - 5000000 as int)",
    "e_long": "id * 9007199254740993 - 1",
    "f_float": "cast(id / 7 as float)",
    "g_double": "(id - 20) / 3.0D * power(10, id % 40 - 20)",
    "h_special": "case id % 4 when 0 then double('NaN') when 1 then double('-Infinity') when 2 then -0D else 1e7D end",
    "i_decimal": "cast((id - 50) / 8 as decimal(18, 2))",
    "j_small": "cast((id - 50) / 1e9D as decimal(38, 20))",
    "k_text": "concat('żółw \"\\\\/', char(9), char(10), char(1), char(127), id)",
    "l_binary": "cast(cast(id as string) as binary)",
    "m_date": "date_add(date'1600-02-29', cast(id * 4001 as int))",
    "n_time": "timestamp_micros(id * 86400000000 * 700 - 2000000000000000 + id)",
    "o_local": "timestamp_ntz'2024-02-29 23:59:59.999999' + make_dt_interval(id)",
    "p_array": "array(id, null, -id)",
    "q_map": "map('k\"', id, 'n', null)",
    "r_struct": "named_struct('x', array(named_struct('y', null, 'z', date'2024-02-29')), 'n', cast(null as int))",
    "s_null": "if(id % 3 = 0, null, 'here')",
    "t_map": "map(cast(id as int), array(cast(id as decimal(5, 1))))",
}


@pytest.fixture
def df(spark):
    return spark.range(0, 100, 1, 2).selectExpr(*(f"{value} as {name}" for name, value in VALUES.items()))


@pytest.fixture(params=["UTC", "America/Los_Angeles", "PST"])
def zone(spark, request):
    """Let the session have a time zone."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def numbers(text):
    """Read JSON, floating point numbers by value: an old Java writes more digits than are needed."""
    return json.loads(text, parse_float=lambda digits: float(digits))


@pytest.mark.parametrize("nulls", [True, False])
def test_json_is_that_of_to_json(sink, df, zone, nulls):
    sink.write(df, format="json", ignoreNullFields=str(nulls).lower())
    option = f"map('ignoreNullFields', '{str(nulls).lower()}')"
    wanted = sorted(row.v for row in df.selectExpr(f"to_json(struct(*), {option}) as v").collect())
    found = [body.decode() for body in sink.bodies()]
    assert sorted(map(str, map(numbers, found))) == sorted(map(str, map(numbers, wanted)))
    exact = re.compile(r'"[fg]_\w+":[^,]+,')  # floating point numbers aside, it is the same text
    assert sorted(exact.sub("", text) for text in found) == sorted(exact.sub("", text) for text in wanted)


def test_delimited_text_is_that_of_to_csv(spark, sink, df, zone):
    names = [name for name in VALUES if name[0] in "abcdehijmnos"]  # no quoting, no containers
    some = df.select(*names)
    sink.write(some, format="csv", nullText="?")
    wanted = [row.v for row in some.selectExpr("to_csv(struct(*), map('nullValue', '?')) as v").collect()]
    assert [body.decode() for body in sink.bodies()] == sorted(wanted)


def test_text_is_escaped_by_inlongs_rules(spark, sink):
    df = spark.createDataFrame([("a|b", "c\\d", 1), (None, "=&", 2)], "x string, y string, n int")
    sink.write(df, format="csv", separator="|")
    assert sink.bodies() == [b"a\\|b|c\\\\d|1", b"|=&|2"]


def test_key_value_text(spark, sink):
    df = spark.createDataFrame([("a&b", "c=d", 1), (None, "\\", 2)], "x string, y string, n int")
    sink.write(df, format="kv")
    assert sink.bodies() == [b"x=a\\&b&y=c\\=d&n=1", b"y=\\\\&n=2"]


def test_columns_with_a_meaning_are_not_in_the_body(spark, sink):
    df = spark.range(3).selectExpr(
        "id", f"'{sink.stream}' as stream_id", "map('tier', 'x') as attrs", "timestamp_seconds(1700000000) as dt"
    )
    sink.write(df, without=("streamId",), format="json")
    assert sink.bodies() == [b'{"id":0}', b'{"id":1}', b'{"id":2}']
    assert {(record.attrs["tier"], record.dt_ms) for record in sink.records()} == {("x", 1700000000000)}


def test_the_body_s_columns_can_be_named(spark, sink):
    df = spark.range(2).selectExpr("id", "'x' as value", f"'{sink.stream}' as stream_id")
    sink.write(df, without=("streamId",), format="csv", bodyColumns="stream_id, VALUE,id", separator="\\t")
    assert sink.bodies() == [f"{sink.stream}\tx\t{number}".encode() for number in range(2)]


def test_timestamps_have_formats_and_zones(spark, sink):
    df = spark.sql("select timestamp'2013-07-01 05:00:00.123456 UTC' as t")
    sink.write(df, format="csv", timestampFormat="sql_micros", timeZone="Europe/Warsaw")
    assert sink.bodies() == [b"2013-07-01 07:00:00.123456"]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("id", {}, "there is no column 'value' .* set the option \"format\""),
        ("id", {"format": "xml"}, "'xml'"),
        (
            "id, interval 1 month as i",
            {"format": "json", "bodyColumns": "id"},
            "'i' has type interval month, which Spark",
        ),
        (
            "id, array(interval 1 day) as i",
            {"format": "json", "bodyColumns": "id", "badRecords": "./bad"},
            "files of bad",
        ),
        (
            "id, map('a', 'b') as attrs",
            {"format": "json", "messageType": "3"},
            "'attrs' cannot be sent with messageType=3",
        ),
        ("'a' as a", {"format": "raw"}, "no column 'value' among .*, and no format is set"),
        ("id, interval 1 day as i", {"format": "json"}, "column 'i' has type interval day, which cannot be sent"),
        ("id", {"format": "csv", "separator": "ab"}, "option separator='ab' is not one ASCII character"),
        ("id", {"format": "csv", "separator": "\\\\"}, "options escape and separator are both|separator and escape"),
        ("id", {"format": "csv", "nullText": "a,b"}, "nullText='a,b' holds ','"),
        ("id as `a=b`", {"format": "kv"}, "column 'a=b' cannot be a key"),
        ("id, id as ID", {"format": "json"}, "have names that differ only in case|COLUMN_ALREADY_EXISTS"),
        ("id, 'x' as stream_id", {"format": "json"}, "column .stream_id. would be lost: the option streamId"),
        ("'x' as msg_id", {"format": "json"}, "no column .* is left for the body"),
        ("id", {"format": "json", "bodyColumns": "nope"}, "bodyColumns names 'nope'"),
        ("id", {"format": "json", "timeZone": "Mars/Olympus"}, "Mars/Olympus"),
        ("id, 1 as dt", {"format": "json"}, "name it in bodyColumns to send it as data"),
        ("id", {"format": "json", "badRecords": "somewhere"}, "neither fail nor skip nor a path"),
    ],
)
def test_what_cannot_work_is_refused_before_any_task(spark, sink, columns, options, words):
    df = spark.sql(f"select {columns} from range(3)")
    with pytest.raises(AnalysisException, match=words):
        sink.write(df, **options)
