"""Bodies that are made of columns, against Spark's own functions with types and values that hypothesis draws."""

import itertools
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pyspark
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.unit.encode.oracle import java_number

ROWS = 30
ZONES = ["UTC", "America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca", "+05:30", "PST"]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
FLOATS = [pa.float32(), pa.float64()]
# Spark's own functions know times of day since 4.2.
TIMES = [pa.time64("ns")] if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2) else []
MOMENTS = [pa.date32(), *TIMES, pa.timestamp("us"), pa.timestamp("us", "UTC")]
DECIMALS = st.integers(1, 38).flatmap(lambda digits: st.integers(0, digits).map(lambda n: pa.decimal128(digits, n)))
LEAVES = st.sampled_from([*INTEGERS, *FLOATS, *MOMENTS, pa.bool_(), pa.string(), pa.binary()]) | DECIMALS
VOIDS = st.sampled_from([pa.null(), pa.struct([("v", pa.null())])])  # createDataFrame cannot carry them in lists
KEYS = st.sampled_from([pa.string(), pa.string(), pa.bool_(), *INTEGERS, *FLOATS]) | DECIMALS
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)  # Arrow's C interface ends them at 0
AWKWARD = ["", '"', "\\", "/", "\0\1\b\t\n\f\r\x1f\x7f\x80\u2028\ufeff\uffff", "żółw 🐢" * 5, "null", " x ", "x" * 40]
TEXTS = st.sampled_from(AWKWARD) | st.text(max_size=20)
# What to_csv writes in the same way: it quotes marks and what is empty, and strips what Java takes for blanks.
CSV_TYPES = st.sampled_from([*INTEGERS, *FLOATS, *MOMENTS, pa.bool_(), pa.string()]) | DECIMALS
CSV_TEXT = st.text(
    st.characters(codec="utf-8", min_codepoint=0x21, exclude_characters='"#\\,|?'), min_size=1, max_size=20
)
MIN64, MAX64 = -(2**63), 2**63 - 1

_streams = itertools.count()


def containers(inner):
    fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda field: field[0].lower())
    maps = st.tuples(KEYS, inner).map(lambda pair: pa.map_(*pair))
    return st.one_of(inner.map(pa.list_), maps, fields.map(pa.struct))


TYPES = LEAVES | VOIDS | containers(st.recursive(LEAVES, containers, max_leaves=3))


class Numbers(dict):
    """Numbers by their bits, of which a failed example shows none."""

    def __repr__(self):
        return "floats"


@pytest.fixture(scope="module")
def floats(spark):
    """Return numbers of 32 and 64 bits that this Java writes with no more digits than are needed."""
    chance = random.Random(1)
    doubles = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(300)]
    doubles += [chance.randrange(-(10**9), 10**9) / 10 ** chance.randrange(12) for _ in range(300)]
    doubles += [0.0, -0.0, 1e-3, 9.999999e-4, 1e7, 9999999.0, 2.0**53, 1.7976931348623157e308, 2.2250738585072014e-308]
    doubles += [float("nan"), float("inf"), float("-inf"), 3.4028234663852886e38, 1.1754943508222875e-38, 5e-324]
    found = Numbers()
    for kind, bits in (("float", 32), ("double", 64)):
        table = pa.table({"v": pa.array(doubles, pa.float64())})
        rows = spark.createDataFrame(table).selectExpr(f"cast(v as {kind}) as v").selectExpr("v", "cast(v as string) t")
        found[bits] = [row.v for row in rows.collect() if row.t == java_number(row.v, bits == 32)]
        assert len(found[bits]) > 300
    return found


def whole(low, high):
    """Return a strategy for integers that is fond of the ends."""
    return st.sampled_from([low, high, 0, -1 if low < 0 else 1]) | st.integers(low, high)


def present(kind, floats, texts=TEXTS):
    """Return a strategy for the values of an Arrow type that are not null, moments as integers."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        return whole(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if pa.types.is_floating(kind):
        return st.sampled_from(floats[kind.bit_width])
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return whole(-most, most).map(lambda v: Decimal((v < 0, tuple(map(int, str(abs(v)))), -kind.scale)))
    if pa.types.is_string(kind):
        return texts
    if pa.types.is_binary(kind):
        return st.binary(max_size=10)
    if pa.types.is_date(kind):
        return whole(-(2**31), 2**31 - 1) | st.integers(-800_000, 3_000_000)
    if pa.types.is_time(kind):
        return whole(0, 86_400_000_000 - 1).map(lambda micros: micros * 1000)
    if pa.types.is_timestamp(kind):
        return whole(MIN64, MAX64) | st.integers(-(10**17), 10**18) | st.integers(0, 4 * 10**15)
    if pa.types.is_map(kind):
        pairs = st.tuples(present(kind.key_type, floats), values(kind.item_type, floats))
        return st.lists(pairs, max_size=3, unique_by=lambda pair: str(pair[0]))
    if pa.types.is_struct(kind):
        return st.tuples(*(values(field.type, floats) for field in kind))
    return st.lists(values(kind.value_type, floats), max_size=3)


def values(kind, floats, texts=TEXTS):
    """Return a strategy for the values of an Arrow type, nulls included."""
    return st.none() if pa.types.is_null(kind) else st.none() | present(kind, floats, texts)


def array(items, kind):
    """Return an Arrow array; structs are tuples, since Python's dictionaries are not asked for the names here."""
    if pa.types.is_struct(kind) and len(kind):
        columns = [array([None if v is None else v[n] for v in items], kind[n].type) for n in range(len(kind))]
        mask = pa.array([v is None for v in items], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        pairs = [pair for v in items for pair in v or ()]
        keys, found = array([k for k, _ in pairs], kind.key_type), array([v for _, v in pairs], kind.item_type)
        return pa.MapArray.from_arrays(offsets(items), keys, found, type=kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            offsets(items), array([v for found in items for v in found or ()], kind.value_type), type=kind
        )
    return pa.array(items, kind)


def offsets(items):
    """Return where the parts of containers begin; one that is null has no offset."""
    ends = [0, *itertools.accumulate(len(v or ()) for v in items)]
    return pa.array([None if v is None else end for v, end in zip(items, ends, strict=False)] + ends[-1:], pa.int32())


@st.composite
def tables(draw, floats, kinds=TYPES, texts=TEXTS, most=6):
    """Draw a table whose last column is the rows' ids; each row puts some of the drawn values together."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    columns = {}
    for number, kind in enumerate(draw(st.lists(kinds, min_size=1, max_size=most))):
        drawn = draw(st.lists(values(kind, floats, texts), min_size=1, max_size=6))
        columns[f"c{number}{draw(NAMES)}"] = array([chance.choice(drawn) for _ in range(ROWS)], kind)
    columns["msg_id"] = pa.array([str(row) for row in range(ROWS)])
    return pa.table(columns)


PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # smaller examples would cost hundreds of jobs more
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
drawn = settings(max_examples=25, phases=PHASES, suppress_health_check=CHECKS)


def written(sink, df, **options):
    """Write a DataFrame; return the bodies by the rows' ids."""
    stream = f"{sink.stream}-{next(_streams)}"
    sink.write(df, streamId=stream, **options)
    return {record.message_id: record.body.decode() for record in sink.records(stream=stream)}


def compare(sink, df, function, options, **ours):
    """Write a DataFrame and compare each body with what Spark's function makes of the row."""
    names = ", ".join("`{}`".format(name.replace("`", "``")) for name in df.columns if name != "msg_id")
    given = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    rows = df.selectExpr("msg_id", f"{function}(struct({names}), map({given})) as v").collect()
    wanted = {row.msg_id: row.v for row in rows}
    assert len(wanted) == ROWS
    found = written(sink, df, **ours)
    assert found.keys() == wanted.keys()
    assert [(found[row], wanted[row]) for row in wanted if found[row] != wanted[row]] == []


@drawn
@given(st.data())
def test_json_is_that_of_to_json(spark, sink, floats, data):
    df = spark.createDataFrame(data.draw(tables(floats)))
    options = {
        "timeZone": data.draw(st.sampled_from(ZONES)),
        "ignoreNullFields": data.draw(st.sampled_from(["true", "false"])),
    }
    compare(sink, df, "to_json", options, format="json", **options)


@drawn
@given(st.data())
def test_delimited_text_is_that_of_to_csv(spark, sink, floats, data):
    df = spark.createDataFrame(data.draw(tables(floats, CSV_TYPES, CSV_TEXT)))
    zone, separator = data.draw(st.sampled_from(ZONES)), data.draw(st.sampled_from([",", "|", "\t"]))
    options = {"timeZone": zone, "nullValue": "?", "sep": separator}
    compare(sink, df, "to_csv", options, format="csv", timeZone=zone, nullText="?", separator=separator)
