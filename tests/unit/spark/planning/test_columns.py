"""Which DataFrames the sink takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from dataproxy.rows.bodies import BodyOptions
from dataproxy.spark.planning.columns import ABSENT, ColumnPlan, Meanings, plan_columns

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
        ({"value": TEXT, "attr": MapType(TEXT, TEXT)}, ["'attr'", "did you mean 'attrs'"]),
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


DATA = {"id": LongType(), "dt": LongType(), "stream_id": TEXT, "group_id": TEXT}
JSON = BodyOptions(form="json")


def body_of(plan, columns):
    """Return the names of a plan's body."""
    return [list(columns)[place] for place in plan.body]


@pytest.mark.parametrize(
    ("given", "column", "option"),
    [
        ({"group_given": True, "stream_given": False}, "group_id", "groupId"),
        ({"group_given": False, "stream_given": True}, "stream_id", "streamId"),
    ],
)
def test_a_column_that_an_option_overrides_is_not_lost(given, column, option):
    with pytest.raises(ConfigError) as caught:
        plan_columns(schema(**DATA), **given, body=JSON)
    for words in (f"column {column!r} would be lost", f"the option {option}", "columns=none", "columnPrefix=_"):
        assert words in str(caught.value)


@pytest.mark.parametrize("kind", [IntegerType(), TEXT, TimestampNTZType()])
def test_a_column_of_another_type_is_refused_with_both_ways_out(kind):
    with pytest.raises(ConfigError) as caught:
        plan_columns(schema(id=LongType(), dt=kind), **ALL_GIVEN, body=JSON)
    for words in ("'dt'", "timestamp or bigint", "columns=none", "columnPrefix=_", "cast it to timestamp"):
        assert words in str(caught.value)


def test_columns_none_makes_all_of_them_data():
    plan = plan_columns(schema(**DATA), **ALL_GIVEN, body=JSON, meanings=Meanings(("none",)))
    assert body_of(plan, DATA) == list(DATA)
    assert (plan.dt, plan.stream_id, plan.group_id) == (ABSENT, ABSENT, ABSENT)


def test_only_the_columns_that_are_named_have_a_meaning():
    columns = {**DATA, "seen_at": TimestampType()}
    named = Meanings(("Stream_ID", "dt = SEEN_AT"))
    plan = plan_columns(schema(**columns), group_given=True, stream_given=False, body=JSON, meanings=named)
    assert body_of(plan, columns) == ["id", "dt", "group_id"]
    assert (plan.stream_id, plan.dt) == (2, 4)


def test_with_a_prefix_other_names_are_data():
    columns = {**DATA, "_dt": TimestampType(), "_stream_id": TEXT}
    plan = plan_columns(
        schema(**columns), group_given=True, stream_given=False, body=JSON, meanings=Meanings(None, "_")
    )
    assert body_of(plan, columns) == list(DATA)
    assert (plan.dt, plan.stream_id) == (4, 5)
    with pytest.raises(ConfigError, match='add a column "_stream_id"'):
        plan_columns(schema(**DATA), group_given=True, stream_given=False, body=JSON, meanings=Meanings(None, "_"))


def test_raw_bodies_may_have_routes_of_other_names():
    columns = schema(value=TEXT, channel=TEXT, seen_at=TimestampType())
    plan = plan_columns(
        columns, group_given=True, stream_given=False, meanings=Meanings(("stream_id=channel", "dt=seen_at"))
    )
    assert (plan.value, plan.stream_id, plan.dt) == (0, 1, 2)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("steam_id",), "did you mean 'stream_id'"),
        (("none", "dt"), "names 'none', which is not a column of the sink"),
        (("dt=id", "dt"), "names 'dt' twice"),
        (("dt=id", "msg_id=id"), "names 'msg_id=id' twice"),
        (("dt=when",), r"names 'when', the columns are \['id'"),
        (("stream_id",), "options columns and streamId both name the stream"),
        (("dt=group_id",), "'group_id' has type string"),
    ],
)
def test_named_columns_are_checked(columns, words):
    with pytest.raises(ConfigError, match=words):
        plan_columns(schema(**DATA), **ALL_GIVEN, body=JSON, meanings=Meanings(columns))


ORDERED = Meanings(ordered=True)
RAW = BodyOptions()
NAMED = BodyOptions(form="json", columns=("key",))


def test_a_key_routes_where_rows_are_ordered_by_it_and_is_data_elsewhere():
    columns = {"id": LongType(), "Key": TEXT}
    assert body_of(plan_columns(schema(**columns), **ALL_GIVEN, body=JSON), columns) == ["id", "Key"]
    plan = plan_columns(schema(**columns), **ALL_GIVEN, body=JSON, meanings=ORDERED)
    assert (plan.key, body_of(plan, columns)) == (1, ["id"])
    both = BodyOptions(form="json", columns=("key", "id"))
    plan = plan_columns(schema(**columns), **ALL_GIVEN, body=both, meanings=ORDERED)
    assert (plan.key, body_of(plan, columns)) == (1, ["Key", "id"])
    assert plan_columns(schema(value=TEXT, key=BinaryType()), **ALL_GIVEN, meanings=ORDERED).key == 1
    prefixed = Meanings(None, "_", ordered=True)
    columns = {"key": TEXT, "_key": TEXT}
    plan = plan_columns(schema(**columns), **ALL_GIVEN, body=JSON, meanings=prefixed)
    assert (plan.key, body_of(plan, columns)) == (1, ["key"])
    named = Meanings(("key=_key",), ordered=True)
    assert plan_columns(schema(**columns), **ALL_GIVEN, body=JSON, meanings=named) == plan


@pytest.mark.parametrize(
    ("columns", "body", "meanings", "words"),
    [
        ({"value": TEXT, "key": TEXT}, RAW, Meanings(), ["'key'", "ordering=key", "leave the column out", "=json"]),
        ({"value": TEXT}, RAW, ORDERED, ["no column holds the keys", '"key"', '="key=..."', "leave ordering out"]),
        ({"value": TEXT, "key": TEXT}, RAW, Meanings(None, "_", ordered=True), ["did you mean '_key'"]),
        ({"value": TEXT, "key": LongType()}, RAW, ORDERED, ["bigint", "string or binary", "ordering out"]),
        ({"id": TEXT, "key": LongType()}, JSON, ORDERED, ["bigint", "columns=none", "columnPrefix=_", "ordering out"]),
        ({"id": TEXT, "key": LongType()}, NAMED, ORDERED, ["no column holds the keys"]),
        ({"id": TEXT, "key": TEXT}, JSON, Meanings(("none",), ordered=True), ["no column holds the keys"]),
        ({"id": TEXT, "key": TEXT}, JSON, Meanings(("key=id",)), ["'key=id'", "ordering=key", "out of columns"]),
    ],
)  # fmt: skip
def test_a_key_that_orders_nothing_or_is_missing_is_refused_with_both_ways_out(columns, body, meanings, words):
    with pytest.raises(ConfigError) as caught:
        plan_columns(schema(**columns), **ALL_GIVEN, body=body, meanings=meanings)
    for word in words:
        assert word in str(caught.value)


NAMES = st.sampled_from(["group_id", "stream_id", "dt", "attrs", "msg_id", "value", "id", "_dt", "_stream_id", "key"])
TYPES = st.sampled_from([TEXT, LongType(), IntegerType(), TimestampType(), MapType(TEXT, TEXT), BinaryType()])
MEANINGS = st.sampled_from(
    [
        Meanings(),
        Meanings(("none",)),
        Meanings(("dt",)),
        Meanings(("dt=id",)),
        Meanings(None, "_"),
        Meanings(ordered=True),
    ]
)


@given(st.dictionaries(NAMES, TYPES, min_size=1), st.booleans(), st.booleans(), MEANINGS)
def test_every_column_is_routing_or_body(columns, group_given, stream_given, meanings):
    try:
        plan = plan_columns(
            schema(**columns), group_given=group_given, stream_given=stream_given, body=JSON, meanings=meanings
        )
    except ConfigError:
        return
    routing = {plan.group_id, plan.stream_id, plan.dt, plan.attrs, plan.msg_id, plan.key} - {ABSENT}
    assert routing | set(plan.body) == set(range(len(columns)))
    assert not routing & set(plan.body)
