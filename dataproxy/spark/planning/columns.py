"""The sink's columns: their names, their types, and their places in a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, LongType, MapType, StringType, StructType, TimestampType

from dataproxy.errors import ConfigError
from dataproxy.rows.bodies import RAW, BodyOptions
from dataproxy.spark.planning.bodytypes import check_body_type, check_carried_type
from dataproxy.spark.planning.idcolumns import find_id_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["ABSENT", "BY_NAME", "ColumnPlan", "Meanings", "plan_columns"]

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
    key: int = ABSENT
    body: tuple[int, ...] = ()  # columns that a body is made from, if there is no `value`
    id_from: tuple[int, ...] = ()  # columns whose values identify a row


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
_KEY = _Column("string or binary", _is_body, "cast it to string; or leave the option ordering out")
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
    "key": _KEY,
}
_ROUTES = {name: column for name, column in _COLUMNS.items() if column is not _BODY}
_BODIES = ("value", "body")
_GIVEN = {"group_id": "groupId", "stream_id": "streamId"}
_NO_ORDER = (
    "to keep the order of rows with one key set the option ordering=key; else leave the column out, or send it as data"
    " by format=json, csv or kv"
)
_WAYS_OUT = (
    'to send it as data name the columns that route by the option columns (columns=none, or "columns=stream_id,'
    'dt=seen_at"), or set columnPrefix=_, with which _dt and _stream_id have a meaning and dt and stream_id have none'
)


@dataclass(frozen=True, slots=True)
class Meanings:
    """The columns with a meaning for the sink, by the option ``columns`` (None if it is not given) or by a prefix.

    The column ``key`` has a meaning only if ``ordered``: the name is so common that other writes have it as data.
    """

    columns: tuple[str, ...] | None = None
    prefix: str = ""
    ordered: bool = False

    @property
    def known(self) -> tuple[str, ...]:
        """Return the names of the sink's columns that can route here."""
        return tuple(name for name in _ROUTES if name != "key" or self.ordered)

    def by_name(self) -> dict[str, str]:
        """Return column name of the DataFrame (lower case) -> the sink's column that it stands for.

        Raises ConfigError for an unknown meaning, and for a meaning or a column that is named twice.
        """
        if self.columns is None:
            return {f"{self.prefix}{name}".lower(): name for name in self.known}
        found: dict[str, str] = {}
        for entry in self.columns if self.columns != ("none",) else ():
            meaning, _, column = (part.strip() for part in entry.partition("="))
            if meaning.lower() == "key" and not self.ordered:
                raise ConfigError(
                    f"option columns names {entry!r}, and without ordering=key no row has a key",
                    hint="set the option ordering=key, or take it out of columns, so that the column is data",
                )
            if meaning.lower() not in _ROUTES:
                near = get_close_matches(meaning.lower(), self.known, n=1)
                raise ConfigError(
                    f"option columns names {meaning!r}, which is not a column of the sink",
                    hint=f"did you mean {near[0]!r}?" if near else f"write none, or some of {', '.join(self.known)}",
                )
            name = (column or meaning).lower()
            if name in found or meaning.lower() in found.values():
                raise ConfigError(f"option columns names {entry!r} twice", hint="name each of them once")
            found[name] = meaning.lower()
        return found


BY_NAME = Meanings()
"""Each of the sink's columns has its own name in the DataFrame."""


def plan_columns(
    schema: StructType,
    *,
    group_given: bool,
    stream_given: bool,
    body: BodyOptions = RAW,
    meanings: Meanings = BY_NAME,
    id_from: Sequence[str] = (),
) -> ColumnPlan:
    """Check a DataFrame's schema and return the places of the sink's columns.

    With `group_given` or `stream_given` an option names the group or stream of all rows.  `body` are the options for
    bodies, `meanings` the columns that route a message, and `id_from` the columns that identify a row.  Names are
    compared without case.  Raises ConfigError for an unknown or repeated column, a wrong type, a missing ``value``,
    group, stream or key, and, if bodies are made from columns, for a column that is neither in the body nor read.
    """
    id_columns = find_id_columns(schema, id_from)
    routes = meanings.by_name()
    given = {name for name, is_given in (("group_id", group_given), ("stream_id", stream_given)) if is_given}
    _check_named(schema, meanings, routes, given)
    _check_key(meanings, routes, routes.values())
    if body.made:
        found, payload = _find_made(schema, body, routes, given)
    else:
        found, payload = _find_raw(schema, routes, {name.lower() for name in id_from}), ()
    _check_key(meanings, routes, found)
    for name, option in _GIVEN.items():
        if name in given:
            found.pop(name, None)
        elif name not in found:
            raise ConfigError(
                f"no {name.removesuffix('_id')} is given",
                hint=f'set the option "{option}" or add a column "{_spelled(routes, name)}"',
            )
    return ColumnPlan(**found, body=payload, id_from=id_columns)


def _spelled(routes: Mapping[str, str], meaning: str) -> str:
    """Return the name that a column with this meaning must have."""
    return next((name for name, of in routes.items() if of == meaning), meaning)


def _check_key(meanings: Meanings, routes: Mapping[str, str], found: Collection[str]) -> None:
    """Raise ConfigError if rows are to be ordered by key and no column ``found`` has the key."""
    if meanings.ordered and "key" not in found:
        raise ConfigError(
            "the option ordering=key is set, but no column holds the keys of rows",
            hint=f'add a column "{_spelled(routes, "key")}" or name one as columns="key=...", or leave ordering out',
        )


def _check_named(schema: StructType, meanings: Meanings, routes: Mapping[str, str], given: set[str]) -> None:
    """Raise ConfigError for columns named by the option ``columns`` that are missing or that an option overrides."""
    if meanings.columns is None:
        return
    there = {field.name.lower() for field in schema.fields}
    for name, meaning in routes.items():
        if name not in there:
            raise ConfigError(f"option columns names {name!r}, the columns are {schema.fieldNames()!r}")
        if meaning in given:
            raise ConfigError(
                f"options columns and {_GIVEN[meaning]} both name the {meaning.removesuffix('_id')} of a row",
                hint="keep one of them",
            )


def _check_type(name: str, kind: DataType, column: _Column, hint: str = "") -> None:
    if not column.accepts(kind):
        raise ConfigError(
            f"column {name!r} has type {kind.simpleString()}, the sink takes {column.types}", hint=hint or column.hint
        )


def _find_raw(schema: StructType, routes: Mapping[str, str], others: Collection[str]) -> dict[str, int]:
    """Return the places of the columns if one of them is the body; ``others`` are read and not sent."""
    found: dict[str, int] = {}
    has_body = any(field.name.lower() in _BODIES for field in schema.fields)
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        meaning = "value" if name in _BODIES else routes.get(name)
        if meaning is None and has_body and name not in others:
            raise _unknown(field.name, [*_BODIES, *routes], is_key=name == "key" and "key" not in routes.values())
        if meaning is None:
            continue
        _check_type(field.name, field.dataType, _COLUMNS[meaning])
        if meaning in found:
            raise ConfigError(
                f"columns {schema.fields[found[meaning]].name!r} and {field.name!r} are the same column of the sink",
                hint="keep one of them",
            )
        found[meaning] = index
    if "value" not in found:
        raise ConfigError(
            f"there is no column 'value' among {schema.fieldNames()!r}, and no format is set",
            hint='set the option "format" to "json", "csv" or "kv" to send whole rows, or name the body column "value"',
        )
    return found


def _find_made(
    schema: StructType, body: BodyOptions, routes: Mapping[str, str], given: set[str]
) -> tuple[dict[str, int], tuple[int, ...]]:
    """Return the places of the columns with a meaning, and those of the columns that the body is made from.

    ``given`` are meanings for which an option names one value for all rows.
    """
    found: dict[str, int] = {}
    wanted = [name.lower() for name in body.columns]
    places: dict[str, int] = {}
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        if name in places:
            raise ConfigError(
                f"columns {schema.fields[places[name]].name!r} and {field.name!r} have names that differ only in case",
                hint="rename one of them",
            )
        places[name] = index
        meaning = routes.get(name)
        if meaning is None:
            continue
        column = _ROUTES[meaning]
        if meaning in given:
            if not body.columns:  # else the user has named the columns of the body
                raise _neither(field.name, meaning)
        elif name not in wanted or column.accepts(field.dataType):
            hint = f"{_WAYS_OUT}, or name it in bodyColumns to send it as data; or {column.hint}"
            _check_type(field.name, field.dataType, column, hint)
            found[meaning] = index
    missing = [name for name in body.columns if name.lower() not in places]
    if missing:
        raise ConfigError(f"bodyColumns names {missing[0]!r}, the columns are {schema.fieldNames()!r}")
    payload = [places[name] for name in wanted] or [place for name, place in places.items() if name not in routes]
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


def _neither(name: str, meaning: str) -> ConfigError:
    """Return the error for a column that an option keeps from routing, and whose name keeps it out of the body."""
    option = _GIVEN[meaning]
    return ConfigError(
        f"column {name!r} would be lost: the option {option} names the {meaning.removesuffix('_id')} of all rows, and a"
        " column of this name is not part of the body",
        hint=f"{_WAYS_OUT}; to route by the column leave {option} out; otherwise drop the column",
    )


def _unknown(name: str, known: Sequence[str], *, is_key: bool) -> ConfigError:
    """Return the error for a column that the sink does not know, with the nearest name."""
    near = get_close_matches(name.lower(), known, n=1)
    if is_key:
        return ConfigError(f"column {name!r} has no meaning without the option ordering=key", hint=_NO_ORDER)
    advice = f"did you mean {near[0]!r}?" if near else f"the sink knows {', '.join(known)}"
    return ConfigError(
        f"column {name!r} is unknown to the sink",
        hint=f"{advice}; drop or rename the column, or set format=json, csv or kv to send whole rows",
    )
