"""Bodies that are made of columns, against an oracle in Python."""

import datetime as dt
import decimal
import json
import math
import struct
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.rows.zones import find_zone, zone_table
from tests.unit.encode.oracle import columns, java_number, json_object, plain, split_csv, split_kv


def encode(batch, form, **options):
    return BodyEncoder(form, range(batch.num_columns), zone_table=zone_table, **options).texts(batch)


def one(values, kind, form="csv", **options):
    return encode(pa.record_batch([pa.array(values, kind)], names=["a"]), form, **options)


def rows_of(batch):
    """Return each row as (name, value, type); timestamps as numbers since 1970."""
    arrays = [numbers(array, field.type) for array, field in zip(batch.columns, batch.schema, strict=True)]
    return [
        [(field.name, array[row], field.type) for array, field in zip(arrays, batch.schema, strict=True)]
        for row in range(batch.num_rows)
    ]


def numbers(array, kind):
    return [value(item, kind) for item in array]


def value(scalar, kind):
    """Return a scalar's value; Python has no nanoseconds, so that timestamps stay numbers."""
    if not scalar.is_valid:
        return None
    if pa.types.is_timestamp(kind):
        return scalar.value
    if pa.types.is_map(kind):
        return [(value(pair["key"], kind.key_type), value(pair["value"], kind.item_type)) for pair in scalar.values]
    if pa.types.is_struct(kind):
        return {field.name: value(scalar[n], field.type) for n, field in enumerate(kind)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [value(item, kind.value_type) for item in scalar.values]
    return scalar.as_py()


@settings(max_examples=50)
@given(columns(), st.booleans())
def test_json_is_what_the_oracle_says(batch, nulls):
    made = encode(batch, "json", leave_nulls_out=not nulls)
    assert [text.decode() for text in made] == [json_object(row, nulls) for row in rows_of(batch)]
    for text in made:
        json.loads(text)


@settings(max_examples=50)
@given(columns(), st.sampled_from([",", "|", "\t", "-", ":", "1", "e"]), st.sampled_from(["\\", "~", "0", ""]),
       st.sampled_from(["", '"', "'"]))  # fmt: skip
def test_delimited_text_reads_back(batch, separator, escape, quote):
    made = encode(batch, "csv", separator=separator, escape=escape, quote=quote, null_text="")
    for text, row in zip(made, rows_of(batch), strict=True):
        wanted = ["" if v is None else plain(v, kind) for _, v, kind in row]
        if text is None:
            marks = {quote} if quote else {separator}
            assert not escape
            assert any(marks & set(field) for field in wanted)
        else:
            assert split_csv(text.decode(), separator, escape or None, quote or None) == wanted
            if escape:
                assert text.decode() == separator.join(
                    "".join(escape + c if c in (separator, escape, quote) else c for c in field) for field in wanted
                )


@settings(max_examples=50)
@given(columns(), st.sampled_from([("&", "="), ("|", ":"), (",", "-")]), st.sampled_from(["\\", ""]), st.booleans())
def test_key_value_text_reads_back(batch, marks, escape, nulls):
    entry, joint = marks
    made = encode(batch, "kv", separator=entry, joint=joint, escape=escape, quote='"', leave_nulls_out=not nulls)
    for text, row in zip(made, rows_of(batch), strict=True):
        wanted = {name: "" if v is None else plain(v, kind, nulls) for name, v, kind in row if nulls or v is not None}
        if text is None:
            assert not escape
            assert any('"' in field for field in wanted.values())
        else:
            assert split_kv(text.decode(), entry, joint, escape or None, '"') == wanted


@given(st.lists(st.floats() | st.integers(0, 2**64 - 1).map(lambda v: struct.unpack("<d", struct.pack("<Q", v))[0])))
@example([1e7, 9999999.999999998, 1e-3, 9.999999999999998e-4, 1e22, 1e23, 2**-44, 2.0**1023, 1.7976931348623157e308])
@example([math.nan, math.inf, -math.inf, 0.0, -0.0, 2.2250738585072014e-308, 123456789.0, 100.0, 0.5])
def test_doubles_have_the_shortest_text(numbers):
    numbers = [v for v in numbers if not 0 < abs(v) < 1e-320]
    assert [text.decode() for text in one(numbers, pa.float64())] == [java_number(v) for v in numbers]


@given(st.lists(st.floats(width=32)))
@example([16777216.0, 3.4028234663852886e38, 1.1754943508222875e-38, 0.10000000149011612])
def test_floats_have_the_shortest_text(numbers):
    numbers = [v for v in numbers if not 0 < abs(v) < 1e-43]
    assert [text.decode() for text in one(numbers, pa.float32())] == [java_number(v, True) for v in numbers]


def test_short_decimals_and_their_neighbours_have_the_shortest_text():
    edges = [0.001, 0.002, 0.01, 0.1, 1.0, 9.999, 10.0, 4999.995, 9999999.0, 9999999.999, 10000000.0]
    plain = [part / 1000 for whole in (0, 7, 12345, 9999999) for part in range(whole * 1000, whole * 1000 + 1000)]
    doubles = [number for number in [*edges, *plain] if number]
    doubles += [math.nextafter(number, towards) for number in doubles for towards in (0.0, math.inf)]
    doubles += [-number for number in doubles]
    assert [text.decode() for text in one(doubles, pa.float64())] == [java_number(number) for number in doubles]


def test_every_power_of_two_and_of_ten():
    numbers = [2.0**n for n in range(-1060, 1024)] + [float(f"1e{n}") for n in range(-319, 309)]
    assert [text.decode() for text in one(numbers, pa.float64())] == [java_number(v) for v in numbers]
    numbers = [2.0**n for n in range(-140, 128)]
    assert [text.decode() for text in one(numbers, pa.float32())] == [java_number(v, True) for v in numbers]


@given(st.lists(st.integers(1, 5000).map(lambda v: struct.unpack("<d", struct.pack("<Q", v))[0]), min_size=1))
def test_the_smallest_doubles_read_back(numbers):
    assert [float(text) for text in one(numbers, pa.float64())] == numbers
    assert one([5e-324, 1e-323], pa.float64()) == [b"4.9E-324", b"9.9E-324"]  # two digits, as in Java
    assert one([1e-45], pa.float32()) == [b"1.4E-45"]


@pytest.mark.parametrize("scale", range(39))
def test_decimals_of_every_scale(scale):
    digits = [0, 1, -1, 9, 10, -12345678901234567890, 10**18, 10**18 - 1, 10**37, 10**38 - 1, -(10**38) + 1]
    with decimal.localcontext(prec=60):
        values = [Decimal(v).scaleb(-scale) for v in digits]
        made = one(values, pa.decimal128(38, scale))
    for value_, text in zip(values, made, strict=True):
        assert Decimal(text.decode()) == value_
        assert text.decode().upper() == str(value_).upper()  # Python's layout is Java's


@given(st.binary(max_size=40))
def test_broken_text_becomes_replacement_characters(raw):
    array = pa.StringArray.from_buffers(1, pa.py_buffer(struct.pack("<2i", 0, len(raw))), pa.py_buffer(raw))
    made = encode(pa.record_batch([array], names=["a"]), "json")
    assert json.loads(made[0])["a"] == raw.decode("utf-8", "replace")


ZONES = ["America/Los_Angeles", "Europe/Warsaw", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca", "+05:30"]


@given(st.sampled_from(ZONES), st.integers(-62135596800 + 86400, 253402300800 - 86400))
@example("Europe/Warsaw", 1679792399)
@example("Europe/Warsaw", 1679792400)
@example("Europe/Warsaw", 2**33)
def test_timestamps_in_time_zones(name, second):
    text = one([second], pa.timestamp("s", name))[0].decode()
    zone = find_zone(name)
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second)
    if isinstance(zone, ZoneInfo) and second >= 14831769600:  # year 2440: the calendar repeats after 400 years
        shift = (1 + (second - 14831769600) // 12622780800) * 12622780800
        offset = (moment - dt.timedelta(seconds=shift)).astimezone(zone).utcoffset()
        local = moment.replace(tzinfo=None) + offset
    else:
        local = moment.astimezone(zone).replace(tzinfo=None)
    assert text.startswith(local.isoformat("T", "milliseconds"))
    assert dt.datetime.fromisoformat(text) == moment


@pytest.mark.parametrize(
    ("times", "zoned", "local"),
    [
        ("iso", "2013-01-01T05:00:00.123-08:00", "2013-01-01T13:00:00.123"),
        ("iso_micros", "2013-01-01T05:00:00.123456-08:00", "2013-01-01T13:00:00.123456"),
        ("sql", "2013-01-01 05:00:00", "2013-01-01 13:00:00"),
        ("sql_micros", "2013-01-01 05:00:00.123456", "2013-01-01 13:00:00.123456"),
        ("millis", "1357045200123", "1357045200123"),
    ],
)
def test_styles_of_timestamps(times, zoned, local):
    micros = 1357045200123456
    assert one([micros], pa.timestamp("us", "America/Los_Angeles"), times=times) == [zoned.encode()]
    assert one([micros], pa.timestamp("us"), times=times) == [local.encode()]
    quoted = f'{{"a":{zoned}}}' if times == "millis" else f'{{"a":"{zoned}"}}'
    assert one([micros], pa.timestamp("us", "America/Los_Angeles"), "json", times=times) == [quoted.encode()]


ERA = 12622780800  # seconds of 400 years, after which the calendar repeats


def far_text(value, units, hours):
    """Return the local time of ``value`` units since 1970, ``hours`` east, by a year that Python knows."""
    local = value // units + hours * 3600
    eras = local // ERA
    near = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=local - eras * ERA, milliseconds=value % units)
    year = near.year + 400 * eras
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):04}"
    return shown + near.replace(tzinfo=None).isoformat("T", "milliseconds")[4:]


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["s", "ms"]))
@example(2**63 - 1, "s")  # what databases write for infinity
@example(-(2**63), "s")
@example(2**63 - 1, "ms")
@example(9223372036855, "s")
@example(-9223372036855, "s")
def test_times_that_microseconds_have_no_room_for_are_written_all_the_same(value, unit):
    units = {"s": 1, "ms": 1000}[unit]
    local, east = far_text(value, units, 0), far_text(value, units, 5)
    assert one([value], pa.timestamp(unit)) == [local.encode()]
    assert one([value], pa.timestamp(unit, "UTC")) == [f"{local}Z".encode()]
    assert one([value], pa.timestamp(unit, "+05:00")) == [f"{east}+05:00".encode()]
    assert one([value], pa.timestamp(unit, "UTC"), "json", times="millis") == [b'{"a":%d}' % (value * 1000 // units)]
    assert one([value], pa.timestamp(unit, "Europe/Warsaw"))[0].decode()[-6:] in ("+01:24", "+01:00", "+02:00")


def test_years_beyond_four_digits_are_signed():
    assert one([2932897], pa.date32()) == [b"+10000-01-01"]
    assert one([-719529], pa.date32()) == [b"-0001-12-31"]


def test_days_that_were_written_before_have_the_same_text():
    first, last = (dt.date.min - dt.date(1970, 1, 1)).days, (dt.date.max - dt.date(1970, 1, 1)).days
    days = [0, 1, -1, 4095, 4096, 4097, -4096, first, last]
    days += [day + 4096 * turn for turn in (0, 1, 0, 3, 0) for day in range(-3, 4)]
    wanted = [str(dt.date(1970, 1, 1) + dt.timedelta(day)) for day in days]
    encoder = BodyEncoder("csv", [0], zone_table=zone_table)
    for _ in range(2):
        batch = pa.record_batch([pa.array(days, pa.int32()).cast(pa.date32())], names=["a"])
        assert [text.decode() for text in encoder.texts(batch)] == wanted


def test_times_of_day():
    assert one([43200500000, 1], pa.time64("us")) == [b"12:00:00.5", b"00:00:00.000001"]
    assert one([43200], pa.time32("s")) == [b"12:00:00"]
    assert one([43200001], pa.time32("ms"), "json") == [b'{"a":"12:00:00.001"}']


@pytest.mark.parametrize("form", ["csv", "kv"])
def test_a_special_character_is_found_wherever_it_stands(form):
    options = {"separator": ",", "joint": "=", "escape": "\\", "quote": '"', "line_separator": "\n"}
    marks = ',\\"=' if form == "kv" else ',\\"\n'
    texts = ["x" * size for size in range(40)]
    texts += [
        "x" * at + mark + "x" * (size - at)
        for mark in [*marks, "é", "\0"]
        for size in (0, 6, 7, 20)
        for at in range(size + 1)
    ]
    wanted = ["".join("\\" + c if c in marks else c for c in text) for text in texts]
    if form == "kv":
        wanted = ["a=" + text for text in wanted]
    assert [text.decode() for text in one(texts, pa.string(), form, **options)] == wanted


def test_a_line_separator_is_escaped_or_refused():
    rows = ["a\nb", "c"]
    assert one(rows, pa.string(), line_separator="\n") == [b"a\\\nb", b"c"]
    assert one(rows, pa.string(), "kv", separator="&", line_separator="\n") == [None, b"a=c"]
    assert one(rows, pa.string()) == [b"a\nb", b"c"]


def test_nulls_have_a_text():
    batch = pa.record_batch([pa.array([None, 1]), pa.array(["", None])], names=["a", "b"])
    assert encode(batch, "csv", null_text="\\N") == [b"\\N,", b"1,\\N"]
    assert encode(batch, "kv", separator="&", null_text="?", leave_nulls_out=False) == [b"a=?&b=", b"a=1&b=?"]
    assert encode(batch, "kv", separator="&") == [b"b=", b"a=1"]


def test_columns_come_in_the_order_asked_for():
    batch = pa.record_batch([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "c"])
    assert BodyEncoder("csv", [2, 0], zone_table=zone_table).texts(batch) == [b"3,1"]


def test_types_without_a_text_are_refused():
    with pytest.raises(InvalidMessageError, match="column 'a' has the Arrow type 'tin', which has no form as text"):
        one([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(InvalidMessageError, match="column 'x' has the Arrow type 'd:50,2,256'"):
        one([{"x": Decimal(1)}], pa.struct([("x", pa.decimal256(50, 2))]))
    with pytest.raises(ConfigError, match="Mars"):
        one([1], pa.timestamp("us", "Mars/Olympus"))


def test_separators_are_single_ascii_characters():
    for text in ("ab", "ż"):
        with pytest.raises(ConfigError, match="not one ASCII character"):
            one(["a"], pa.string(), separator=text)


def test_other_columns_may_have_any_type():
    batch = pa.record_batch([pa.array([1], pa.duration("us")), pa.array([2])], names=["a", "b"])
    assert BodyEncoder("json", [1, 1], zone_table=zone_table).texts(batch) == [b'{"b":2,"b":2}']


def test_columns_that_are_not_there_are_refused():
    for column in (-1, 1):
        with pytest.raises(InvalidMessageError, match=f"there is no column {column} among 1"):
            BodyEncoder("csv", [column], zone_table=zone_table).texts(pa.record_batch([pa.array([1])], names=["a"]))
    with pytest.raises(InvalidMessageError):
        BodyEncoder("csv", [0], zone_table=zone_table).texts(pa.array([1]))


def test_a_batch_without_rows_has_no_bodies():
    assert one([], pa.string()) == []


@pytest.mark.parametrize(("null_text", "text"), [("", ""), ("?", "?"), ("true", True), ("7", 7)])
def test_a_value_that_reads_like_a_null_is_refused(null_text, text):
    batch = pa.record_batch([pa.array([text, None]), pa.array([1, 2])], names=["a", "b"])
    nothing = null_text.encode()
    assert encode(batch, "csv", null_text=null_text, tells_nulls=True) == [None, nothing + b",2"]
    assert encode(batch, "csv", null_text=null_text) == [nothing + b",1", nothing + b",2"]
    kept = {"null_text": null_text, "leave_nulls_out": False, "separator": "&"}
    assert encode(batch, "kv", tells_nulls=True, **kept) == [None, b"a=" + nothing + b"&b=2"]


def test_a_column_without_nulls_may_hold_any_text():
    schema = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int64())])
    batch = pa.record_batch([pa.array(["", "x"]), pa.array([1, None])], schema=schema)
    assert encode(batch, "csv", tells_nulls=True) == [b",1", b"x,"]


def test_an_empty_row_of_one_column_is_an_empty_body():
    batch = pa.record_batch([pa.array(["", None, "x"])], names=["a"])
    assert encode(batch, "csv", tells_nulls=True) == [b"", b"", b"x"]
