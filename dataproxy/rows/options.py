"""The keyword options of ``send_rows``: names, types and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from dataproxy.errors import ConfigError
from dataproxy.problems import shown
from dataproxy.rows.bodies import TIMES, BodyOptions, settle_body

if TYPE_CHECKING:
    from dataproxy.outcomes import DeliveryResult

__all__ = ["FORMATS", "RowFormat", "RowOptions", "read_row_options"]

RowFormat = Literal["json", "csv", "kv"]
FORMATS: Final = ("json", "csv", "kv")


class RowOptions(TypedDict, total=False):
    """Options of ``send_rows``; docs/tables.md says what each does."""

    group_id: str | None
    body_columns: str | Sequence[str]
    group_column: str | None
    stream_column: str | None
    dt_column: str | None
    id_column: str | None
    key_column: str | None
    attrs_column: str | Sequence[str] | None
    bad_records: str
    separator: str
    kv_separator: str
    escape: str
    quote: str
    line_separator: str
    null_text: str
    ignore_null_fields: bool
    timestamp_format: Literal["iso", "iso_micros", "sql", "sql_micros", "millis"]
    time_zone: str
    on_delivery: Callable[[DeliveryResult], object] | None


_TEXTS: Final = {
    "separator": "",
    "kv_separator": "=",
    "escape": "\\",
    "quote": "",
    "line_separator": "",
    "null_text": "",
    "timestamp_format": "iso",
    "time_zone": "",
}
_NAMES: Final = ("group_column", "stream_column", "dt_column", "id_column", "key_column")
_IDLE: Final[dict[str, frozenset[str]]] = {
    "json": frozenset({"separator", "kv_separator", "escape", "quote", "line_separator", "null_text"}),
    "csv": frozenset({"kv_separator", "ignore_null_fields"}),
    "kv": frozenset(),
}
_KNOWN: Final = tuple(RowOptions.__annotations__)


def read_row_options(form: object, given: Mapping[str, Any]) -> tuple[dict[str, Any], BodyOptions]:
    """Return the options with their defaults, and the options for bodies.

    Raises ConfigError for an unknown name, a wrong type, a value that is not a choice, an option without effect on the
    format, and invalid separators.
    """
    if form not in FORMATS:
        raise ConfigError(f"format={shown(form)} is not among {', '.join(FORMATS)}", hint='the default is "json"')
    for name in given:
        if name not in _KNOWN:
            near = get_close_matches(name, [*_KNOWN, "format"], n=1)
            raise ConfigError(
                f"send_rows has no option {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(_KNOWN)}",
            )
    idle = [name for name in given if name in _IDLE[str(form)]]
    if idle:
        users = [other for other in FORMATS if idle[0] not in _IDLE[other]]
        raise ConfigError(
            f"option {idle[0]} has no effect on format={form!r}",
            hint=f"leave it out, or set format to {' or '.join(users)}",
        )
    own: dict[str, Any] = {name: given.get(name) for name in (*_NAMES, "group_id", "on_delivery")}
    for name in (*_NAMES, "group_id"):
        if own[name] is not None and not isinstance(own[name], str):
            raise ConfigError(f"option {name} is a text, not {shown(own[name])}", hint="give a name, or leave it out")
    for name, default in {**_TEXTS, "bad_records": "fail"}.items():
        own[name] = given.get(name, default)
        if not isinstance(own[name], str):
            raise ConfigError(f"option {name} is a text, not {shown(own[name])}", hint=f"the default is {default!r}")
    own["body_columns"] = _columns("body_columns", given.get("body_columns", ()))
    if "body_columns" in given and not own["body_columns"]:
        raise ConfigError("option body_columns names no column", hint="leave it out to send all that do not route")
    if given.get("separator") == "":
        raise ConfigError("option separator is empty", hint='leave it out for the default, "," or "&"')
    own["attrs_column"] = _columns("attrs_column", given.get("attrs_column") or ())
    own["ignore_null_fields"] = given.get("ignore_null_fields", True)
    if not isinstance(own["ignore_null_fields"], bool):
        raise ConfigError(
            f"option ignore_null_fields is True or False, not {shown(own['ignore_null_fields'])}",
            hint="the default is True",
        )
    if own["timestamp_format"] not in TIMES:
        raise ConfigError(
            f"option timestamp_format={own['timestamp_format']!r} is not among {', '.join(TIMES)}",
            hint="the default is 'iso'",
        )
    body = settle_body({**own, "format": form}, null_given="null_text" in given, say=str)
    return own, body


def _columns(name: str, value: object) -> tuple[str, ...]:
    """Return names of columns, given as one text or as several.  Raises ConfigError."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(one, str) for one in names):
        raise ConfigError(f"option {name} is a name or a list of names, not {shown(value)}", hint="name columns")
    if len(set(names)) != len(names):
        raise ConfigError(f"option {name} names a column twice: {shown(value)}", hint="name each once")
    return tuple(names)
