"""The body of a row: one column unchanged, or several columns as JSON, delimited or key-value text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dataproxy._core.producer.ingest.columnar.bodies import BodyEncoder
from dataproxy.errors import ConfigError
from dataproxy.rows.zones import find_zone, zone_table

__all__ = ["RAW", "RAW_FORMAT", "TIMES", "BodyFormat", "BodyOptions", "settle_body"]

TIMES: Final = ("iso", "iso_micros", "sql", "sql_micros", "millis")
"""How a timestamp may be written."""

_SEPARATORS: Final = {"csv": ",", "kv": "&"}
_NAMED: Final = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}
_CODE: Final = re.compile(r"\\[ux]([0-9a-fA-F]{2,4})|([0-9]{2,3})")
_MARKS: Final = ("separator", "kv_separator", "escape", "quote", "line_separator")


@dataclass(frozen=True, slots=True)
class BodyOptions:
    """The options for bodies; `form` is empty if no format is named."""

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
        """Tell whether bodies are made from columns."""
        return self.form not in ("", "raw")

    def check_name(self, name: str) -> None:
        """Raise ConfigError for a column name that key-value text cannot hold: readers know no escapes in keys."""
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
        """Return the format with the session's time zone ``name``, unless the options name one."""
        return self if self.options.time_zone else replace(self, options=replace(self.options, time_zone=name))

    def encoder(self) -> BodyEncoder | None:
        """Return the encoder of a task; None if the body is a column."""
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
"""The body is a column, at the place in the column plan."""


def settle_body(own: Mapping[str, Any], *, null_given: bool, say: Callable[[str], str]) -> BodyOptions:
    """Return the options for bodies; ``null_given`` tells that ``null_text`` is not a default.

    ``own`` has a value for each field of `BodyOptions` by the names of Python's options (``kv_separator``,
    ``time_zone``), and ``say`` returns the user's name of such an option.  An empty ``null_text`` that was given allows
    that nulls and empty texts are written in the same way.
    Raises ConfigError for a separator that is not one ASCII character, for two equal ones, for a ``null_text`` that
    holds one, and for an unknown time zone.
    """
    form = own["format"]
    marks = {name: _mark(say(name), own[name]) for name in _MARKS}
    marks["separator"] = marks["separator"] or _SEPARATORS.get(form, ",")
    used = {name: mark for name, mark in marks.items() if mark and (name != "kv_separator" or form == "kv")}
    if form in _SEPARATORS:
        for name, mark in used.items():
            other = next((key for key, value in used.items() if value == mark), name)
            if other != name:
                raise ConfigError(
                    f"options {say(other)} and {say(name)} are both {mark!r}", hint="take different characters"
                )
        held = [mark for mark in used.values() if mark in own["null_text"]]
        if held:
            raise ConfigError(
                f"option {say('null_text')}={own['null_text']!r} holds {held[0]!r}", hint="take another text"
            )
    if own["time_zone"]:
        find_zone(own["time_zone"])
    writes_nulls = form == "csv" or (form == "kv" and not own["ignore_null_fields"])
    return BodyOptions(
        form=form,
        columns=tuple(own["body_columns"]),
        separator=marks["separator"],
        joint=marks["kv_separator"],
        escape=marks["escape"],
        quote=marks["quote"],
        line_separator=marks["line_separator"],
        null_text=own["null_text"],
        tells_nulls=writes_nulls and (bool(own["null_text"]) or not null_given),
        leave_nulls_out=own["ignore_null_fields"],
        times=own["timestamp_format"],
        time_zone=own["time_zone"],
    )


def _mark(name: str, text: str) -> str:
    r"""Return the character that a text names: itself, ``\t``, ``\u0001``, or its code, as in InLong's Manager."""
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
