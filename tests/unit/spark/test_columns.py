"""Which DataFrames the sink takes."""

import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dataproxy.errors import ConfigError
from dataproxy.spark.columns import ABSENT, ColumnPlan, plan_columns

TEXT = StringType()
ALL_GIVEN = {"group_given": True, "stream_given": True}


def schema(**columns):
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


@pytest.mark.parametrize("name", ["value", "body", "VALUE", "Body"])
@pytest.mark.parametrize("kind", [TEXT, BinaryType()])
def test_one_body_column_is_enough(name, kind):
    assert plan_columns(schema(**{name: kind}), **ALL_GIVEN) == ColumnPlan(value=0)


def test_all_columns_are_found_where_they_are():
    plan = plan_columns(
        schema(attrs=MapType(TEXT, TEXT), stream_id=TEXT, dt=TimestampType(), Value=BinaryType(), group_id=TEXT),
        group_given=False,
        stream_given=False,
    )
    assert plan == ColumnPlan(attrs=0, stream_id=1, dt=2, value=3, group_id=4)


def test_options_override_the_columns_of_group_and_stream():
    plan = plan_columns(schema(value=TEXT, group_id=TEXT, stream_id=TEXT), **ALL_GIVEN)
    assert (plan.group_id, plan.stream_id) == (ABSENT, ABSENT)


def test_milliseconds_are_a_data_time():
    assert plan_columns(schema(value=TEXT, dt=LongType()), **ALL_GIVEN).dt == 1


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": IntegerType()}, ["'value'", "int", "string or binary", "to_json"]),
        ({"value": TEXT, "dt": TimestampNTZType()}, ["'dt'", "timestamp_ntz", "timestamp or bigint"]),
        ({"value": TEXT, "dt": TEXT}, ["'dt'", "string", "timestamp or bigint"]),
        ({"value": TEXT, "group_id": BinaryType()}, ["'group_id'", "binary", "takes string"]),
        ({"value": TEXT, "attrs": MapType(TEXT, LongType())}, ["'attrs'", "map<string,bigint>", "map<string,string>"]),
        ({"value": TEXT, "attr": MapType(TEXT, TEXT)}, ["'attr'", "perhaps 'attrs' is meant"]),
        ({"value": TEXT, "msg_id": LongType()}, ["'msg_id'", "bigint", "takes string"]),
        ({"value": TEXT, "qqqq": TEXT}, ["'qqqq'", "group_id"]),
        ({"value": TEXT, "body": TEXT}, ["'value'", "'body'", "same column"]),
        ({"stream_id": TEXT}, ["no column 'value'", "'stream_id'"]),
        ({}, ["no column 'value'"]),
    ],
)
def test_refused_schemas_say_why(columns, words):
    with pytest.raises(ConfigError) as caught:
        plan_columns(schema(**columns), **ALL_GIVEN)
    for word in words:
        assert word in str(caught.value)


def test_a_column_that_comes_twice_is_refused():
    twice = schema(value=TEXT).add("VALUE", TEXT)
    with pytest.raises(ConfigError, match="same column"):
        plan_columns(twice, **ALL_GIVEN)


@pytest.mark.parametrize(("given", "missing"), [("group", "streamId"), ("stream", "groupId")])
def test_group_and_stream_must_come_from_somewhere(given, missing):
    with pytest.raises(ConfigError, match=missing):
        plan_columns(schema(value=TEXT), group_given=given == "group", stream_given=given == "stream")
