"""The meaning of a table's columns: columns for the body, and columns that route a row."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import InvalidMessageError
from dataproxy.rows.bodies import BodyFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dataproxy._core.producer.ingest.columnar.arrowtable import ArrowTable
    from dataproxy.rows.bodies import BodyOptions

__all__ = ["ABSENT", "RowPlan", "plan_rows"]

ABSENT: Final = -1
_TEXT: Final = frozenset({"u", "U", "vu", "z", "Z", "vz"})
_MAP: Final = frozenset({"+m", "+l"})
_INDEX: Final = re.compile(r"__index_level_\d+__")  # the index of a pandas DataFrame
_TYPES: Final = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "z": "binary", "Z": "large_binary",
    "u": "string", "U": "large_string", "tdD": "date32", "tdm": "date64", "+s": "struct", "+l": "list",
    "+L": "large_list", "+m": "map", "vu": "string_view", "vz": "binary_view", "tiM": "interval", "tiD": "interval",
    "tin": "interval",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The places of a table's columns: an index, or ABSENT."""

    body: BodyFormat
    group_id: int = ABSENT
    stream_id: int = ABSENT
    dt: int = ABSENT
    message_id: int = ABSENT
    key: int = ABSENT
    attr_map: int = ABSENT
    attrs: tuple[int, ...] = ()  # attributes in columns of their own

    @property
    def shown(self) -> tuple[int, ...]:
        """Return the columns that are shown of a row in errors and files of bad rows."""
        routes = (self.group_id, self.stream_id, self.dt, self.message_id, self.key, self.attr_map, *self.attrs)
        return tuple(sorted({*self.body.columns, *routes} - {ABSENT}))


def plan_rows(table: ArrowTable, own: Mapping[str, Any], body: BodyOptions) -> RowPlan:
    """Return the places of the columns that the settled options name; without names, all others are the body.

    Raises InvalidMessageError for a column that is missing, exists twice or has a wrong type, and ConfigError for a
    name that key-value text cannot hold.
    """
    names = table.names
    attrs = [_place(names, "attrs_column", name) for name in own["attrs_column"]]
    is_map = len(attrs) == 1 and table.formats[attrs[0]] in _MAP and not table.encoded[attrs[0]]
    plan = RowPlan(
        body=BodyFormat(body),
        group_id=_text(table, "group_column", own),
        stream_id=_text(table, "stream_column", own),
        dt=_time(table, own["dt_column"]),
        message_id=_text(table, "id_column", own),
        key=_text(table, "key_column", own),
        attr_map=attrs[0] if is_map else ABSENT,
        attrs=() if is_map else tuple(attrs),
    )
    for at in plan.attrs:
        if table.formats[at].startswith("+"):
            raise _wrong(
                "attrs_column", names[at], table.formats[at], "name a map of texts, or columns with single values"
            )
    routes = set(plan.shown)
    if body.columns:
        payload = [_place(names, "body_columns", name) for name in body.columns]
    else:
        payload = [at for at, name in enumerate(names) if at not in routes and not _INDEX.fullmatch(name)]
    if not payload:
        raise InvalidMessageError(
            f"no column of {list(names)!r} is left for the body",
            code="BAD_COLUMN",
            hint="name the columns of the body by body_columns",
        )
    for at in payload:
        _once(names, names[at])
        body.check_name(names[at])
    return replace(plan, body=BodyFormat(body, tuple(payload)))


def _once(names: Sequence[str], name: str) -> None:
    if names.count(name) > 1:
        raise InvalidMessageError(
            f"{names.count(name)} columns are called {name!r}",
            code="BAD_COLUMN",
            hint="rename one of them, or leave it out",
        )


def _place(names: Sequence[str], option: str, name: str) -> int:
    """Return the place of a column.  Raises InvalidMessageError."""
    if name not in names:
        near = get_close_matches(name, names, n=1)
        raise InvalidMessageError(
            f"{option} names {name!r}, but the table has no such column",
            code="BAD_COLUMN",
            hint=f"did you mean {near[0]!r}?" if near else f"the columns are {list(names)!r}",
        )
    _once(names, name)
    return names.index(name)


def _text(table: ArrowTable, option: str, own: Mapping[str, Any]) -> int:
    """Return the place of a column of texts, ABSENT if the option names none.  Raises InvalidMessageError."""
    name = own[option]
    if name is None:
        return ABSENT
    at = _place(table.names, option, name)
    if table.formats[at] not in _TEXT and not table.formats[at].startswith("w:"):
        raise _wrong(option, name, table.formats[at], "cast it to string")
    return at


def _time(table: ArrowTable, name: str | None) -> int:
    """Return the place of the column of data times, ABSENT if none is named.  Raises InvalidMessageError."""
    if name is None:
        return ABSENT
    at = _place(table.names, "dt_column", name)
    form = table.formats[at]
    if table.encoded[at] or not (form == "l" or form.startswith("ts")):
        raise _wrong("dt_column", name, form, "cast it to a timestamp with a time zone, or to int64 milliseconds")
    if form.startswith("ts") and form.endswith(":"):
        raise _wrong("dt_column", name, form, "give it a time zone: without one it does not name a point in time")
    return at


def _wrong(option: str, name: str, form: str, hint: str) -> InvalidMessageError:
    """Return the error for a column with a type that does not fit its meaning."""
    kind = _TYPES.get(form)
    if form.startswith("ts"):
        kind = "timestamp without a time zone" if form.endswith(":") else "timestamp"
    said = f"{kind} (Arrow {form!r})" if kind else f"Arrow {form!r}"
    return InvalidMessageError(f"{option}={name!r} has the type {said}", code="BAD_COLUMN", hint=hint)
