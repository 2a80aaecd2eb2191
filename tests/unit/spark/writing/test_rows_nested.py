"""Rows of Python against record batches: the same values at every depth, in every zone, across changes of the clock."""

import datetime as dt
import os
import time
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.rows.zones import zone_table
from dataproxy.spark.writing.rows import check_row_types, rows_to_batches

MACHINES = ["UTC", "America/New_York", "Europe/Warsaw", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca"]
SECOND = 1_000_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
YEAR_2, YEAR_9999 = -62_104_000_000 * SECOND, 253_402_200_000 * SECOND  # what datetimes of any zone can hold

LEAVES = st.sampled_from(
    [
        TimestampType(),
        TimestampType(),
        TimestampNTZType(),
        DateType(),
        StringType(),
        LongType(),
        DoubleType(),
        BinaryType(),
        BooleanType(),
        DecimalType(20, 3),
    ]
)
KEYS = st.sampled_from([StringType(), LongType(), DateType(), TimestampNTZType()])


def nested(inner):
    fields = st.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: StructType([StructField(f"f{number}", kind) for number, kind in enumerate(kinds)])
    )
    return st.one_of(inner.map(ArrayType), st.builds(MapType, KEYS, inner), fields)


KINDS = st.recursive(LEAVES, nested, max_leaves=4)


@pytest.fixture
def machine(monkeypatch):
    """Return a function that moves this process to a zone."""

    def move(zone):
        monkeypatch.setitem(os.environ, "TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def moments(zone):
    """Return a strategy for microseconds that is fond of the hours around changes of a zone's clock."""
    near = [start for start in memoryview(zone_table(zone)[0]).cast("q") if start > -(10**10)] or [0]
    beside = st.builds(lambda start, after: start * SECOND + after, st.sampled_from(near),
                       st.integers(-7200 * SECOND, 7200 * SECOND))  # fmt: skip
    return beside | st.integers(YEAR_2, YEAR_9999) | st.sampled_from([YEAR_2, YEAR_9999, 0, -1])


def is_repeated(zone, micros):
    """Tell whether the clock of a zone shows this moment twice."""
    place = ZoneInfo(zone)
    wall = (EPOCH + dt.timedelta(microseconds=micros)).astimezone(place)
    return wall.replace(fold=0).utcoffset() != wall.replace(fold=1).utcoffset()


def values(kind, zone):
    """Return a strategy for values as Spark keeps them inside: numbers for moments, dicts for maps."""
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        present = moments(zone)
    elif isinstance(kind, ArrayType):
        present = st.lists(values(kind.elementType, zone), max_size=3)
    elif isinstance(kind, MapType):
        present = st.dictionaries(values(kind.keyType, zone).filter(lambda key: key is not None),
                                  values(kind.valueType, zone), max_size=3)  # fmt: skip
    elif isinstance(kind, StructType):
        present = st.tuples(*(values(field.dataType, zone) for field in kind.fields))
    else:
        present = {
            DateType: st.integers(-700_000, 2_900_000),
            StringType: st.text(max_size=5),
            LongType: st.integers(-(2**63), 2**63 - 1),
            DoubleType: st.floats(allow_nan=False),
            BinaryType: st.binary(max_size=4),
            BooleanType: st.booleans(),
            DecimalType: st.integers(-(10**20) + 1, 10**20 - 1).map(lambda number: Decimal(number).scaleb(-3)),
        }[type(kind)]
    return st.none() | present


def to_arrow(kind, value):
    """Return a value as Arrow takes it."""
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [to_arrow(kind.elementType, item) for item in value]
    if isinstance(kind, MapType):
        return [(to_arrow(kind.keyType, key), to_arrow(kind.valueType, item)) for key, item in value.items()]
    if isinstance(kind, StructType):
        return tuple(to_arrow(field.dataType, item) for field, item in zip(kind.fields, value, strict=True))
    return value


def arrow_batch(schema, rows):
    """Return the record batch that Spark hands to an Arrow writer."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    columns = [
        pa.array([to_arrow(field.dataType, row[place]) for row in rows], type=wanted.field(place).type)
        for place, field in enumerate(schema.fields)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def bodies(batch):
    """Return what the sink makes of a batch's rows."""
    encoder = BodyEncoder("json", range(batch.num_columns), zone_table=zone_table, times="iso_micros")
    return encoder.texts(batch)


@st.composite
def tables(draw):
    zone = draw(st.sampled_from(MACHINES))
    schema = StructType(
        [StructField(f"c{n}", kind) for n, kind in enumerate(draw(st.lists(KINDS, min_size=1, max_size=3)))]
    )
    rows = draw(st.lists(st.tuples(*(values(field.dataType, zone) for field in schema.fields)), min_size=1, max_size=5))
    return zone, schema, rows


def found_moments(kind, value):
    """Return the moments of a value, at any depth."""
    if value is None:
        return []
    if isinstance(kind, TimestampType):
        return [value]
    if isinstance(kind, ArrayType):
        return [moment for item in value for moment in found_moments(kind.elementType, item)]
    if isinstance(kind, MapType):
        return [moment for item in value.values() for moment in found_moments(kind.valueType, item)]
    if isinstance(kind, StructType):
        return [m for field, item in zip(kind.fields, value, strict=True) for m in found_moments(field.dataType, item)]
    return []


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_noon_in_an_array_a_struct_and_a_map_stays_noon(machine, zone):
    machine(zone)
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    local = noon.astimezone().replace(tzinfo=None)
    kinds = {"a": ArrayType(TimestampType()), "s": StructType().add("t", TimestampType()),
             "m": MapType(StringType(), TimestampType())}  # fmt: skip
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    (batch,) = rows_to_batches([([local], (local,), {"k": local})], schema)
    assert batch.to_pylist() == [{"a": [noon], "s": {"t": noon}, "m": [("k", noon)]}]


def test_the_end_of_time_by_which_tables_mean_never(machine):
    machine("America/New_York")
    schema = StructType([StructField("until", TimestampType())])
    (batch,) = rows_to_batches([(dt.datetime.max,)], schema)  # noqa: DTZ901 - Spark's have none
    assert batch.column(0).cast("int64").to_pylist() == [253_402_318_799_999_999]  # five hours into the year 10000


@pytest.mark.parametrize(
    ("kind", "is_taken"),
    [
        (MapType(TimestampType(), LongType()), False),
        (ArrayType(MapType(StructType().add("t", TimestampType()), LongType())), False),
        (MapType(TimestampNTZType(), LongType()), True),
        (MapType(StringType(), TimestampType()), True),
        (StructType().add("key", TimestampType()), True),
    ],
)
def test_maps_whose_keys_python_would_merge_are_refused(kind, is_taken):
    schema = StructType([StructField("col", kind)])
    if is_taken:
        check_row_types(schema)
    else:
        with pytest.raises(ConfigError, match=r"'col.*' is a map with timestamps among its keys"):
            check_row_types(schema)


@settings(deadline=None, max_examples=60)
@given(drawn=tables())
def test_rows_are_the_batches_that_arrow_writers_get(drawn):
    zone, schema, rows = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TZ", zone)
        time.tzset()
        (batch,) = rows_to_batches([schema.fromInternal(row) for row in rows], schema)  # as Spark makes rows
    time.tzset()
    expected = arrow_batch(schema, rows)
    assert batch.equals(expected)
    assert bodies(batch) == bodies(expected)


@settings(deadline=None, max_examples=60)
@given(drawn=tables())
def test_rows_of_connect_are_the_same_or_refused(drawn):
    zone, schema, rows = drawn
    expected = arrow_batch(schema, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TZ", zone)
        time.tzset()
        made = ArrowTableToRowsConversion.convert(pa.Table.from_batches([expected]), schema)
        if any(is_repeated(zone, micros) for row in rows for micros in found_moments(schema, row)):
            with pytest.raises(InvalidMessageError, match="occurs twice"):
                list(rows_to_batches(made, schema, has_folds=False))
        else:
            (batch,) = rows_to_batches(made, schema, has_folds=False)
            assert batch.equals(expected)
    time.tzset()


def test_a_time_of_connect_that_could_mean_two_hours_is_refused(monkeypatch):
    schema = StructType([StructField("t", TimestampType())])
    once, twice = dt.datetime(2024, 10, 27, 1, 30), dt.datetime(2024, 10, 27, 2, 30)  # noqa: DTZ001 - local times
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        (batch,) = rows_to_batches([Row(t=once)], schema, has_folds=False)
        assert batch.column(0).to_pylist() == [once.astimezone(dt.UTC)]
        with pytest.raises(InvalidMessageError, match=r"2024-10-27 02:30:00 .* occurs twice"):
            list(rows_to_batches([Row(t=twice)], schema, has_folds=False))
    time.tzset()
