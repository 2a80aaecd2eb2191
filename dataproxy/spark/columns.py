"""The sink's columns: which there may be, of which types, and where they are in a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, LongType, MapType, StringType, StructType, TimestampType

from dataproxy.errors import ConfigError
from dataproxy.spark.bodytypes import check_body_type, check_carried_type
from dataproxy.spark.formats import RAW, BodyOptions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ABSENT", "ColumnPlan", "plan_columns"]

ABSENT = -1
"""Index of a column that the DataFrame does not have, or that an option overrides."""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Where each column of the sink is in a DataFrame: an index, or ABSENT."""

    value: int = ABSENT
    group_id: int = ABSENT
    stream_id: int = ABSENT
    dt: int = ABSENT
    attrs: int = ABSENT
    msg_id: int = ABSENT
    body: tuple[int, ...] = ()  # columns that a body is made of, where there is no `value`


@dataclass(frozen=True, slots=True)
class _Column:
    """One column that the sink knows: the types it takes, in words, and the test of a type."""

    types: str
    accepts: Callable[[DataType], bool]
    hint: str


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType)


def _is_body(kind: DataType) -> bool:
    return isinstance(kind, (StringType, BinaryType))


def _is_time(kind: DataType) -> bool:
    return isinstance(kind, (TimestampType, LongType))


def _is_attrs(kind: DataType) -> bool:
    return isinstance(kind, MapType) and _is_text(kind.keyType) and _is_text(kind.valueType)


_BODY = _Column("string or binary", _is_body, 'cast it, or use to_json(struct("*")) for whole rows')
_NAME = _Column("string", _is_text, "cast it to string")
_TIME = _Column("timestamp or bigint (milliseconds)", _is_time, "cast it to timestamp")
_ATTRS = _Column("map<string,string>", _is_attrs, 'cast it to "map<string,string>"')
_COLUMNS = {
    "value": _BODY,
    "body": _BODY,
    "group_id": _NAME,
    "stream_id": _NAME,
    "dt": _TIME,
    "attrs": _ATTRS,
    "msg_id": _NAME,
}
_ROUTES = {name: column for name, column in _COLUMNS.items() if column is not _BODY}


def plan_columns(schema: StructType, *, group_given: bool, stream_given: bool, body: BodyOptions = RAW) -> ColumnPlan:
    """Check a DataFrame's schema and return where the sink's columns are.

    With `group_given` or `stream_given` an option names the group or stream and its column, if any, is not
    read.  `body` says what bodies are made of.  Names are compared without case.  Raises ConfigError for an unknown
    or repeated column, a wrong type, and a missing ``value``, group or stream.
    """
    found, payload = _find_made(schema, body) if body.made else (_find_raw(schema), ())
    if group_given:
        found.pop("group_id", None)
    elif "group_id" not in found:
        raise ConfigError("no group is named", hint='set the option "groupId" or add a column "group_id"')
    if stream_given:
        found.pop("stream_id", None)
    elif "stream_id" not in found:
        raise ConfigError("no stream is named", hint='set the option "streamId" or add a column "stream_id"')
    return ColumnPlan(**found, body=payload)


def _check_type(name: str, kind: DataType, column: _Column, hint: str = "") -> None:
    if not column.accepts(kind):
        raise ConfigError(
            f"column {name!r} has type {kind.simpleString()}, the sink takes {column.types}", hint=hint or column.hint
        )


def _find_raw(schema: StructType) -> dict[str, int]:
    """Return where the columns are when one of them is the body."""
    found: dict[str, int] = {}
    has_body = any(field.name.lower() in ("value", "body") for field in schema.fields)
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        column = _COLUMNS.get(name)
        if column is None and has_body:
            raise _unknown(field.name)
        if column is None:
            continue
        _check_type(field.name, field.dataType, column)
        key = "value" if name == "body" else name
        if key in found:
            raise ConfigError(
                f"columns {schema.fields[found[key]].name!r} and {field.name!r} are the same column of the sink",
                hint="keep one of them",
            )
        found[key] = index
    if "value" not in found:
        raise ConfigError(
            f"there is no column 'value' among {schema.fieldNames()!r}, and no format makes bodies of them",
            hint='set the option "format" to "json", "csv" or "kv" to send whole rows, or name the body column "value"',
        )
    return found


def _find_made(schema: StructType, body: BodyOptions) -> tuple[dict[str, int], tuple[int, ...]]:
    """Return where the columns with a meaning are, and the columns that the body is made of."""
    found: dict[str, int] = {}
    wanted = [name.lower() for name in body.columns]
    places: dict[str, int] = {}
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        if name in places:
            raise ConfigError(
                f"columns {schema.fields[places[name]].name!r} and {field.name!r} have one name, but for case",
                hint="rename one of them",
            )
        places[name] = index
        column = _ROUTES.get(name)
        if column is not None and (name not in wanted or column.accepts(field.dataType)):
            _check_type(
                field.name, field.dataType, column, f"{column.hint}, or name it in bodyColumns to send it as data"
            )
            found[name] = index
    missing = [name for name in body.columns if name.lower() not in places]
    if missing:
        raise ConfigError(f"bodyColumns names {missing[0]!r}, the columns are {schema.fieldNames()!r}")
    payload = [places[name] for name in wanted] or [place for name, place in places.items() if name not in _ROUTES]
    if not payload:
        raise ConfigError(
            f"no column of {schema.fieldNames()!r} is left for the body", hint="name columns by the option bodyColumns"
        )
    for field in schema.fields:
        check_carried_type(field.name, field.dataType)
    for place in payload:
        body.check_name(schema.fields[place].name)
        check_body_type(schema.fields[place].name, schema.fields[place].dataType)
    return found, tuple(payload)


def _unknown(name: str) -> ConfigError:
    """Return the error for a column that the sink does not know, naming the nearest one."""
    near = get_close_matches(name.lower(), _COLUMNS, n=1)
    advice = f"perhaps {near[0]!r} is meant" if near else f"the sink knows {', '.join(_COLUMNS)}"
    return ConfigError(
        f"column {name!r} is unknown to the sink",
        hint=f"{advice}; drop or rename the column, or set format=json, csv or kv to send whole rows",
    )
