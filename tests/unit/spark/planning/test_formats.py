"""Options of bodies, and which columns a body is made of."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from dataproxy.errors import ConfigError
from dataproxy.rows.bodies import RAW_FORMAT
from dataproxy.rows.zones import zone_table
from dataproxy.spark.planning.bodytypes import check_body_type
from dataproxy.spark.planning.columns import ABSENT, plan_columns
from dataproxy.spark.planning.formats import FORMAT_OPTIONS, read_body_options

TEXT = StringType()


def read(**given):
    return read_body_options({option.name: option.parse(given.get(option.name, option.default))
                              for option in FORMAT_OPTIONS})  # fmt: skip


def plan(columns, **options):
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    return plan_columns(schema, group_given=True, stream_given="stream_id" not in columns, body=read(**options))


@pytest.mark.parametrize(
    ("text", "mark"),
    [("|", "|"), ("\\t", "\t"), ("\\u0001", "\x01"), ("\\x1f", "\x1f"), ("124", "|"), ("09", "\t"), ("1", "1"),
     ("\\\\", "\\"), ("\t", "\t")],
)  # fmt: skip
def test_separators_can_be_named(text, mark):
    assert read(format="csv", separator=text, escape="~").separator == mark


@pytest.mark.parametrize(("form", "mark"), [("csv", ","), ("kv", "&")])
def test_each_format_has_its_own_separator(form, mark):
    assert read(format=form).separator == mark


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"separator": "ab"}, "'ab' is not one ASCII character"),
        ({"separator": "ż"}, "not one ASCII character"),
        ({"separator": "200"}, "not one ASCII character"),
        ({"quote": "\\\\"}, "both"),
        ({"separator": "\\"}, "both"),
        ({"nullText": "\\N"}, "nullText"),
        ({"timeZone": "Mars"}, "Mars"),
        ({"timestampFormat": "yyyy"}, "timestampFormat"),
    ],
)
def test_bad_options_are_refused(given, words):
    with pytest.raises(ConfigError, match=words):
        read(format="csv", **given)


def test_a_key_separator_matters_to_key_value_text_alone():
    assert read(format="csv", separator="=").separator == "="
    with pytest.raises(ConfigError, match="both"):
        read(format="kv", separator="=")


def test_columns_without_a_meaning_are_the_body():
    found = plan({"a": TEXT, "DT": TimestampType(), "value": TEXT, "stream_id": TEXT, "b": LongType()}, format="json")
    assert found.body == (0, 2, 4)
    assert (found.value, found.dt, found.stream_id) == (ABSENT, 1, 3)


def test_columns_can_be_named():
    columns = {"a": TEXT, "dt": IntegerType(), "stream_id": TEXT, "b": LongType()}
    found = plan(columns, format="csv", bodyColumns="B,dt,stream_id")
    assert found.body == (3, 1, 2)
    assert (found.dt, found.stream_id) == (ABSENT, 2)  # the type of dt is no data time


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("UTC", 0), ("Z", 0), ("+02:00", 7200), ("-0530", -19800), ("UTC+1", 3600), ("GMT-08:30:15", -30615)],
)
def test_time_zones_without_rules(name, seconds):
    starts, offsets, _ = zone_table(name)
    assert (len(starts), int.from_bytes(offsets, "little", signed=True)) == (8, seconds)


def test_names_of_three_letters_are_those_of_java():
    assert zone_table("PST") == zone_table("America/Los_Angeles")
    assert zone_table("MST") == zone_table("-07:00")


@pytest.mark.parametrize("name", ["+99:00", "Nowhere/Land", "../etc/passwd", "UTC+"])
def test_unknown_time_zones_are_refused(name):
    with pytest.raises(ConfigError, match="time zone"):
        zone_table(name)


def test_a_raw_body_has_no_encoder():
    assert RAW_FORMAT.encoder() is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (DayTimeIntervalType(), "column 'c' has type interval"),
        (ArrayType(DayTimeIntervalType()), r"column 'c\[\]' has"),
        (MapType(TEXT, DayTimeIntervalType()), "column 'c.value' has"),
        (StructType().add("x", DayTimeIntervalType()), "column 'c.x' has"),
    ],
)
def test_types_without_a_text_are_named(kind, words):
    with pytest.raises(ConfigError, match=words):
        check_body_type("c", kind)


@pytest.mark.parametrize("kind", [TEXT, StructType().add("a\0b", TEXT)], ids=["column", "field"])
def test_a_nul_in_a_name_is_refused(kind):
    name = "c" if isinstance(kind, StructType) else "a\0b"
    with pytest.raises(ConfigError, match="has a NUL character in its name"):
        plan({name: kind}, format="json")


def test_deep_nesting_is_refused():
    kind = TEXT
    for _ in range(80):
        kind = ArrayType(kind)
    with pytest.raises(ConfigError, match="deeper than 60"):
        check_body_type("c", kind)


@pytest.mark.parametrize(
    ("given", "is_told", "tells"),
    [
        ({"format": "csv"}, False, True),
        ({"format": "csv", "nullText": "?"}, True, True),
        ({"format": "csv", "nullText": ""}, True, False),
        ({"format": "kv"}, False, False),
        ({"format": "kv", "ignoreNullFields": "false"}, False, True),
        ({"format": "kv", "ignoreNullFields": "false", "nullText": ""}, True, False),
        ({"format": "json"}, False, False),
    ],
)
def test_nulls_are_told_from_values_unless_an_empty_text_is_given(given, is_told, tells):
    parsed = {option.name: option.parse(given.get(option.name, option.default)) for option in FORMAT_OPTIONS}
    assert read_body_options(parsed, null_given=is_told).tells_nulls is tells
