"""Which columns may say which row a row is."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dataproxy.errors import ConfigError
from dataproxy.rows.bodies import BodyOptions
from dataproxy.spark.planning.columns import plan_columns
from dataproxy.spark.planning.idcolumns import find_id_columns

TEXT = StringType()
GIVEN = {"group_given": True, "stream_given": True}
EXACT = [BinaryType, BooleanType, ByteType, DateType, IntegerType, LongType, ShortType, StringType, TimestampNTZType]


def schema(*columns):
    made = StructType()
    for name, kind in columns:
        made.add(name, kind)
    return made


@pytest.mark.parametrize("kind", [*EXACT, TimestampType])
def test_exact_types_are_taken_in_the_order_of_the_option(kind):
    assert find_id_columns(schema(("value", TEXT), ("a", kind()), ("B", LongType())), ["b", "A"]) == (2, 1)


@pytest.mark.parametrize("kind", [DoubleType(), DecimalType(5, 2), NullType(), ArrayType(TEXT), StructType()])
def test_others_are_refused_with_the_way_out(kind):
    with pytest.raises(ConfigError, match=r"idFrom names 'a', of type .* cast it to string"):
        find_id_columns(schema(("a", kind)), ["a"])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["b"], r"option idFrom names 'b', the columns are \['value', 'a', 'A'\]"),
        (["_metadata.row_index"], r'add it by select\("\*", "_metadata.row_index"\) and name it as idFrom=row_index'),
        (["a"], "option idFrom names 'a', and another column has the same name"),
        (["value", "VALUE"], "option idFrom names 'VALUE', and another column has the same name"),
    ],
)
def test_a_column_has_to_be_there_once(names, text):
    with pytest.raises(ConfigError, match=text):
        find_id_columns(schema(("value", TEXT), ("a", TEXT), ("A", TEXT)), names)


def test_without_a_format_they_are_read_and_not_sent():
    columns = schema(("value", TEXT), ("key", BinaryType()), ("offset", LongType()))
    plan = plan_columns(columns, **GIVEN, id_from=("offset", "key"))
    assert (plan.value, plan.id_from, plan.key, plan.body) == (0, (2, 1), -1, ())
    with pytest.raises(ConfigError, match="column 'key' has no meaning without the option ordering=key"):
        plan_columns(columns, **GIVEN, id_from=("offset",))


def test_with_a_format_they_stay_in_the_body_and_may_route():
    columns = schema(("stream_id", TEXT), ("offset", LongType()), ("a", TEXT))
    plan = plan_columns(
        columns, group_given=True, stream_given=False, body=BodyOptions("json"), id_from=("stream_id", "offset")
    )
    assert (plan.stream_id, plan.body, plan.id_from) == (0, (1, 2), (0, 1))
    named = plan_columns(columns, **GIVEN, body=BodyOptions("json", columns=("a",)), id_from=("offset",))
    assert (named.body, named.id_from) == ((2,), (1,))
