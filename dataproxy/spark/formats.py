"""What a row's body is made of: one column as it is, or several columns as JSON, delimited or key-value text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dataproxy._core.client.bodies import BodyEncoder
from dataproxy.config import Option
from dataproxy.errors import ConfigError
from dataproxy.spark.zones import find_zone, zone_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "FORMATS",
    "FORMAT_OPTIONS",
    "RAW",
    "RAW_FORMAT",
    "BodyFormat",
    "BodyOptions",
    "check_used",
    "read_body_options",
]

FORMATS: Final = ("raw", "csv", "kv", "json")
_TIMES: Final = ("iso", "iso_micros", "sql", "sql_micros", "millis")
_SEPARATORS: Final = {"csv": ",", "kv": "&"}
_NAMED: Final = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}
_CODE: Final = re.compile(r"\\[ux]([0-9a-fA-F]{2,4})|([0-9]{2,3})")

FORMAT_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "format",
        "choice",
        "",
        "How a body is made: `raw` takes the column `value`, which is the default where there is one; `json`, `csv`"
        " (delimited text) and `kv` (key-value text) are made of all columns that have no meaning of their own.",
        choices=("", *FORMATS),
    ),
    Option(
        "bodyColumns",
        "names",
        (),
        "Columns of the body, in this order; may name columns that have a meaning as well. By default all others.",
    ),
    Option("separator", "text", "", "Character between values (`csv`, default `,`) or entries (`kv`, default `&`)."),
    Option("kvSeparator", "text", "=", "Character between key and value."),
    Option("escape", "text", "\\", "Character in front of those that have a meaning; empty for none."),
    Option(
        "quote",
        "text",
        "",
        "The reader's quote character: it is escaped too, and without `escape` used to mask the others.",
    ),
    Option(
        "lineSeparator",
        "text",
        "",
        "Set it where the reader splits a body into lines: the character is escaped (`csv`) or refused (`kv`).",
    ),
    Option(
        "nullText",
        "text",
        "",
        "Text of a null in `csv`, and in `kv` where nulls are not left out. A value of that text is a bad record in a"
        " column that may be null, so that the two can be told apart, unless an empty text is given here.",
    ),
    Option("ignoreNullFields", "bool", True, "Leave nulls out of `json` objects and of `kv`."),
    Option(
        "timestampFormat",
        "choice",
        "iso",
        "`iso` (2013-01-01T05:00:00.000-05:00, as `to_json`), `iso_micros`, `sql` (2013-01-01 05:00:00), `sql_micros`,"
        " or `millis` since 1970.",
        choices=_TIMES,
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


@dataclass(frozen=True, slots=True)
class BodyOptions:
    """What the options say about bodies; `form` is empty where no format is named."""

    form: str = ""
    columns: tuple[str, ...] = ()
    separator: str = ","
    joint: str = "="
    escape: str = "\\"
    quote: str = ""
    line_separator: str = ""
    null_text: str = ""
    tells_nulls: bool = False
    leave_nulls_out: bool = True
    times: str = "iso"
    time_zone: str = ""

    @property
    def made(self) -> bool:
        """Tell whether bodies are made of columns."""
        return self.form not in ("", "raw")

    def check_name(self, name: str) -> None:
        """Raise ConfigError for a column name that key-value text cannot carry; readers do not unmask keys."""
        marks = {self.separator, self.joint, self.escape, self.quote, self.line_separator} - {""}
        if self.form == "kv" and (not name or marks & set(name)):
            raise ConfigError(
                f"the column {name!r} cannot be a key: it is empty or holds one of {sorted(marks)!r}",
                hint="rename it",
            )


RAW: Final = BodyOptions()
"""The body is a column."""


@dataclass(frozen=True, slots=True)
class BodyFormat:
    """The options with the places of the body's columns in a record batch."""

    options: BodyOptions = RAW
    columns: tuple[int, ...] = ()

    def in_zone(self, name: str) -> BodyFormat:
        """Return the format with a session's time zone, where the options name none and columns do not bring it."""
        return self if self.options.time_zone else replace(self, options=replace(self.options, time_zone=name))

    def encoder(self) -> BodyEncoder | None:
        """Return the encoder of a task; None where the body is a column."""
        options = self.options
        if not options.made:
            return None
        return BodyEncoder(
            options.form,
            self.columns,
            zone_table=lambda name: zone_table(options.time_zone or name),
            times=options.times,
            leave_nulls_out=options.leave_nulls_out,
            null_text=options.null_text,
            tells_nulls=options.tells_nulls,
            separator=options.separator,
            joint=options.joint,
            escape=options.escape,
            quote=options.quote,
            line_separator=options.line_separator,
        )


RAW_FORMAT: Final = BodyFormat()
"""The body is a column, at the place that the column plan says."""


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
    form = own["format"]
    marks = {name: _mark(name, own[name]) for name in ("separator", "kvSeparator", "escape", "quote", "lineSeparator")}
    marks["separator"] = marks["separator"] or _SEPARATORS.get(form, ",")
    used = {name: mark for name, mark in marks.items() if mark and (name != "kvSeparator" or form == "kv")}
    if form in _SEPARATORS:
        for name, mark in used.items():
            other = next((key for key, value in used.items() if value == mark), name)
            if other != name:
                raise ConfigError(f"options {other} and {name} are both {mark!r}", hint="take different characters")
        held = [mark for mark in used.values() if mark in own["nullText"]]
        if held:
            raise ConfigError(f"option nullText={own['nullText']!r} holds {held[0]!r}", hint="take another text")
    if own["timeZone"]:
        find_zone(own["timeZone"])
    return BodyOptions(
        form=form,
        columns=tuple(own["bodyColumns"]),
        separator=marks["separator"],
        joint=marks["kvSeparator"],
        escape=marks["escape"],
        quote=marks["quote"],
        line_separator=marks["lineSeparator"],
        null_text=own["nullText"],
        tells_nulls=_tells_nulls(own, null_given),
        leave_nulls_out=own["ignoreNullFields"],
        times=own["timestampFormat"],
        time_zone=own["timeZone"],
    )


def _tells_nulls(own: Mapping[str, Any], null_given: bool) -> bool:
    """Tell whether nulls are written, and a value must not read like one."""
    writes_nulls = own["format"] == "csv" or (own["format"] == "kv" and not own["ignoreNullFields"])
    return writes_nulls and (bool(own["nullText"]) or not null_given)


def _mark(name: str, text: str) -> str:
    r"""Return the character that a text names: itself, ``\t``, ``\u0001``, or its code as InLong's Manager has it."""
    mark = _NAMED.get(text, text)
    code = _CODE.fullmatch(text)
    if code:
        mark = chr(int(code[1], 16) if code[1] else int(code[2]))
    if len(mark) > 1 or mark > "\x7f":
        raise ConfigError(
            f"option {name}={text!r} is not one ASCII character",
            hint=r"give the character, \t or \u0001, or its code in two or three digits",
        )
    return mark
