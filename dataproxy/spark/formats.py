"""The sink's options for bodies that are made of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy.config import Option
from dataproxy.errors import ConfigError
from dataproxy.rows.bodies import TIMES, BodyOptions, settle_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["FORMATS", "FORMAT_OPTIONS", "check_used", "read_body_options"]

FORMATS: Final = ("raw", "csv", "kv", "json")
_NAMES: Final = {
    "format": "format",
    "body_columns": "bodyColumns",
    "separator": "separator",
    "kv_separator": "kvSeparator",
    "escape": "escape",
    "quote": "quote",
    "line_separator": "lineSeparator",
    "null_text": "nullText",
    "ignore_null_fields": "ignoreNullFields",
    "timestamp_format": "timestampFormat",
    "time_zone": "timeZone",
}

FORMAT_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "format",
        "choice",
        "",
        "How a body is made: `raw` takes the column `value`, which is the default where there is one; `json`, `csv`"
        " (delimited text) and `kv` (key-value text) are made of all columns that the sink does not use itself.",
        choices=("", *FORMATS),
    ),
    Option(
        "bodyColumns",
        "names",
        (),
        "Columns of the body, in this order; columns that the sink uses may be named, too. By default all others.",
    ),
    Option("separator", "text", "", "Character between values (`csv`, default `,`) or entries (`kv`, default `&`)."),
    Option("kvSeparator", "text", "=", "Character between key and value."),
    Option("escape", "text", "\\", "Character before characters with a meaning; empty for none."),
    Option(
        "quote",
        "text",
        "",
        "The reader's quote character. It is escaped, too; without `escape` values with special characters are put"
        " in quotes.",
    ),
    Option(
        "lineSeparator",
        "text",
        "",
        "Set it if the reader splits a body into lines: the character is escaped (`csv`) or refused (`kv`).",
    ),
    Option(
        "nullText",
        "text",
        "",
        "Text of a null in `csv`, and in `kv` where nulls are not left out. In a column that may be null, a value equal"
        " to this text is a bad record, because readers could not tell it from a null; an empty text here allows"
        " such values.",
    ),
    Option("ignoreNullFields", "bool", True, "Leave nulls out of `json` objects and of `kv`."),
    Option(
        "timestampFormat",
        "choice",
        "iso",
        "`iso` (2013-01-01T05:00:00.000-05:00, as `to_json`), `iso_micros`, `sql` (2013-01-01 05:00:00), `sql_micros`,"
        " or `millis` since 1970.",
        choices=TIMES,
    ),
    Option("timeZone", "text", "", "Time zone of timestamps in bodies; by default the session's."),
)
"""Options that say what bodies are made of."""

# What has no effect on a format.
_IDLE: Final[dict[str, set[str]]] = {
    "raw": {option.name for option in FORMAT_OPTIONS},
    "json": {"separator", "kvSeparator", "escape", "quote", "lineSeparator", "nullText"},
    "csv": {"kvSeparator"},
    "kv": set(),
}


def check_used(form: str, given: Iterable[str]) -> None:
    """Raise ConfigError when an option was given that has no effect on the format."""
    form = form or "raw"
    idle = [name for name in given if name != "format" and name in _IDLE[form]]
    if idle:
        users = [other for other in FORMATS if idle[0] not in _IDLE[other]]
        raise ConfigError(
            f"option {idle[0]} has no effect on format={form}",
            hint=f"leave it out, or set the option format to {' or '.join(users)}",
        )


def read_body_options(own: Mapping[str, Any], *, null_given: bool = False) -> BodyOptions:
    """Return what the parsed options say about bodies; ``null_given`` tells that ``nullText`` is not a default.

    An empty ``nullText`` that was given says that nulls and empty texts may be written alike.
    Raises ConfigError for a separator that is not one ASCII character, for two equal ones, for `nullText` that holds
    one, and for an unknown time zone.
    """
    given = {name: own[option] for name, option in _NAMES.items()}
    return settle_body(given, null_given=null_given, say=_NAMES.__getitem__)
