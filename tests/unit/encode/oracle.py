"""What bodies must look like, said a second time in plain Python."""

import base64
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

__all__ = ["columns", "java_number", "json_object", "plain", "split_csv", "split_kv"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_1, YEAR_10000 = -62135596800, 253402300800

_LEAVES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(18, 2),
    pa.decimal128(38, 18), pa.decimal128(9, 0), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(),
    pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "America/Los_Angeles"),
    pa.timestamp("ms", "UTC"), pa.timestamp("ns"), pa.time64("us"), pa.null(),
]  # fmt: skip
_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
TYPES = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.tuples(st.sampled_from([pa.string(), pa.int32(), pa.date32(), pa.bool_(), pa.binary()]), inner).map(
            lambda pair: pa.map_(*pair)
        ),
        st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(pa.struct),
    ),
    max_leaves=4,
)


def values(kind):
    """Return a strategy for the values of an Arrow type, nulls included."""
    return st.none() | present(kind)


def present(kind):
    """Return a strategy for the values of an Arrow type that are not null."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        bound = 2 ** (kind.bit_width - 1)
        return st.integers(-bound, bound - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width, allow_subnormal=False)  # of the smallest Java shows two digits
    if pa.types.is_decimal(kind):
        bound = 10**kind.precision - 1
        return st.integers(-bound, bound).map(lambda v: Decimal((v < 0, tuple(map(int, str(abs(v)))), -kind.scale)))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return st.text(max_size=20)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return st.binary(max_size=10)
    if pa.types.is_date(kind):
        return st.dates()
    if pa.types.is_time(kind):
        return st.times()
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return st.integers(-(2**63), 2**63 - 1)
        units = {"ms": 1000, "us": 1000000}[kind.unit]
        return st.integers((YEAR_1 + 86400) * units, (YEAR_10000 - 86400) * units)
    if pa.types.is_map(kind):
        return st.lists(st.tuples(present(kind.key_type), values(kind.item_type)), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    if pa.types.is_null(kind):
        return st.none()
    return st.lists(values(kind.value_type), max_size=3)


@st.composite
def columns(draw, max_columns=4):
    """Draw a record batch, sometimes a slice of a longer one."""
    kinds = draw(st.lists(TYPES, min_size=1, max_size=max_columns))
    rows = draw(st.integers(0, 6))
    arrays = [pa.array([draw(values(kind)) for _ in range(rows)], type=kind) for kind in kinds]
    batch = pa.record_batch(arrays, names=[f"c{n}" for n in range(len(kinds))])
    start = draw(st.integers(0, rows))
    return batch.slice(start)


def java_number(v, float32=False):
    """Return a float as Java's toString writes it."""
    if v != v:
        return "NaN"
    if v in (float("inf"), float("-inf")):
        return "Infinity" if v > 0 else "-Infinity"
    if v == 0:
        return "-0.0" if str(v)[0] == "-" else "0.0"
    text = str(np.float32(v)) if float32 else repr(v)
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    first = exponent + len(digits) - 1
    if 1e-3 <= abs(v) < 1e7:
        plain_text = f"{Decimal(text):f}"
        if "." not in plain_text:
            plain_text += ".0"
        while plain_text.endswith("0") and not plain_text.endswith(".0"):
            plain_text = plain_text[:-1]
        return plain_text
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{first}"


def _decimal(v):
    """Return a decimal as Java's BigDecimal.toString writes it."""
    sign, digits, exponent = v.as_tuple()
    adjusted = exponent + len(digits) - 1
    if exponent <= 0 and adjusted >= -6:
        return f"{v:f}"
    text = "".join(map(str, digits))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}E{adjusted:+d}" if adjusted else f"{'-' if sign else ''}{mantissa}"


def _time(v, kind):
    """Return a timestamp, a number since 1970, as to_json writes it."""
    units = {"ms": 1000, "us": 1000000, "ns": 1000000000}[kind.unit]
    micros = v * 1000000 // units
    if kind.tz is None:
        return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat("T", "milliseconds")
    utc = EPOCH + timedelta(microseconds=micros)
    local = utc.astimezone(ZoneInfo(kind.tz))
    text = local.replace(tzinfo=None).isoformat("T", "milliseconds")
    seconds = int(local.utcoffset().total_seconds())
    if seconds == 0:
        return text + "Z"
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    tail = f":{seconds % 60:02d}" if seconds % 60 else ""
    return f"{text}{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}{tail}"


def _text(v, kind):
    """Return a value that is no container as plain text, and whether JSON quotes it."""
    if pa.types.is_boolean(kind):
        return ("true" if v else "false"), False
    if pa.types.is_integer(kind):
        return str(v), False
    if pa.types.is_floating(kind):
        text = java_number(v, kind.bit_width == 32)
        return text, text[-1].isalpha()
    if pa.types.is_decimal(kind):
        return _decimal(v), False
    if pa.types.is_date(kind):
        return v.isoformat(), True
    if pa.types.is_time(kind):
        return (v.isoformat("microseconds").rstrip("0") if v.microsecond else v.isoformat("seconds")), True
    if pa.types.is_timestamp(kind):
        return _time(v, kind), True
    if isinstance(v, bytes):
        return base64.b64encode(v).decode(), True
    return v, True


def json_text(text):
    """Return text as a JSON string with the escapes of Spark."""
    return '"' + "".join(_ESCAPES.get(c, f"\\u{ord(c):04X}" if c < " " else c) for c in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_value(v, kind, nulls=False):
    """Return a value as JSON."""
    if v is None:
        return "null"
    if pa.types.is_map(kind):
        pairs = [(_text(key, kind.key_type)[0], json_value(item, kind.item_type, nulls)) for key, item in v]
        return "{" + ",".join(f"{json_text(key)}:{item}" for key, item in pairs) + "}"
    if pa.types.is_struct(kind):
        return json_object([(field.name, v[field.name], field.type) for field in kind], nulls)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "[" + ",".join(json_value(item, kind.value_type, nulls) for item in v) + "]"
    text, quoted = _text(v, kind)
    return json_text(text) if quoted else text


def json_object(fields, nulls=False):
    """Return (name, value, type) as a JSON object."""
    shown = [f"{json_text(name)}:{json_value(v, kind, nulls)}" for name, v, kind in fields if nulls or v is not None]
    return "{" + ",".join(shown) + "}"


def plain(v, kind, nulls=False):
    """Return a value as text of a delimited format."""
    if pa.types.is_nested(kind):
        return json_value(v, kind, nulls)
    return _text(v, kind)[0]


def split_csv(text, separator, escape, quote):
    """Split delimited text as a reader of InLong's Sort does."""
    fields, field, state = [], "", ""
    for c in text:
        if state == "escaped":
            field, state = field + c, ""
        elif state == "quoted":
            field, state = (field, "") if c == quote else (field + c, state)
        elif c == separator:
            fields.append(field)
            field = ""
        elif c == escape:
            state = "escaped"
        elif c == quote:
            state = "quoted"
        else:
            field += c
    return [*fields, field]


def split_kv(text, entry, joint, escape, quote):
    """Split key-value text as a reader of InLong's Sort does; no key is masked."""
    found = {}
    if not text:
        return found
    for part in _unmasked_split(text, entry, escape, quote):
        key, _, value = part.partition(joint)
        found[key] = split_csv(value, None, escape, quote)[0]
    return found


def _unmasked_split(text, separator, escape, quote):
    parts, part, state = [], "", ""
    for c in text:
        if state == "escaped":
            part, state = part + c, ""
            continue
        if c == separator and state == "":
            parts.append(part)
            part = ""
            continue
        if c == quote:
            state = "" if state == "quoted" else "quoted"
        elif c == escape and state == "":
            state = "escaped"
        part += c
    return [*parts, part]
