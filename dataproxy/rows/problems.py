"""Error texts for a table's rows: each names row, column and value, and says what to do."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import id_problem

__all__ = ["row_error"]

_LONG: Final = 120  # characters of a row that is shown
_WORDS: Final = {
    "like_null": (
        "BAD_BODY",
        "a value equals null_text, so readers would take it for a null",
        "set null_text to a text that no value has, or to '' if readers need not tell them apart",
    ),
    "mark": (
        "BAD_BODY",
        "a value contains a separator and cannot be escaped",
        "set escape, or use another separator",
    ),
    "no_name": (
        "BAD_NAME",
        "the name is null, and no default is given",
        "fill it, or give send_rows a name for such rows",
    ),
    "null": (
        "BAD_BODY",
        "all columns of the body are null",
        "remove such rows, set the producer's null_value='skip', or set null_text",
    ),
    "empty": (
        "EMPTY_BODY",
        "the body is empty",
        "remove such rows, or set the producer's empty_value='skip'",
    ),
    "line": (
        "BAD_BODY",
        (
            "the body contains a line feed, which frames of lines (message_type 3 and 2, joined_lines) do not allow;"
            " over HTTP it must also be UTF-8 and not blank"
        ),
        "use message_type=7 or 5, over protocol='tcp'",
    ),
    "time": (
        "BAD_TIME",
        "the data time is outside of 1970 to 2106",
        "give milliseconds or a timestamp; null means the time of sending",
    ),
    "twice": ("BAD_ATTRIBUTE", "an attribute is given twice", "keep one of them"),
    "attrs": ("BAD_ATTRIBUTE", "an attribute is not allowed", "use ASCII values without '&' and '='"),
}


def row_error(kind: str, row: int, column: str | None, columns: bytes | None, facts: dict[str, Any]) -> Any:
    """Return the error for a row, which counts from 0, and its faulty column, None without one.

    ``columns`` is the row as JSON, to be shown.  ``facts`` has the number of accepted messages of the call, and for
    some kinds ``error``, ``size``, ``limit`` or ``value``.
    """
    accepted = facts.get("accepted", 0)
    details: dict[str, Any] = {"row": row, "item": row, "column": column, "accepted": accepted}
    hint: str | None
    if kind == "other":
        found = facts["error"]
        code, what, hint = found.code, found.message, found.hint
    elif kind == "id":
        found = id_problem(facts["value"])
        code, what, hint = found.code, found.message, found.hint
    elif kind == "large":
        code, hint = "BODY_TOO_LARGE", "send fewer columns, or raise max_frame_bytes if the proxies take larger frames"
        what = f"a body of {facts['size']} bytes does not fit into a frame of {facts['limit']} bytes"
        details |= {"size": facts["size"], "limit": facts["limit"]}
    elif kind == "key":
        code, hint = "BAD_KEY", "give keys of 1 to 1024 bytes, or null if the order does not matter"
        what = "the key is empty" if not facts["size"] else f"a key of {facts['size']} bytes is over 1024 bytes"
    else:
        code, what, hint = _WORDS[kind]
    where = f"row {row}" if column is None else f"row {row}, column {column!r}"
    partly = f"; {accepted} messages of rows before it were accepted" if accepted else ""
    return InvalidMessageError(f"{where}: {what}{_said(columns)}{partly}", code=code, hint=hint, details=details)


def _said(columns: bytes | None) -> str:
    """Return the row's columns for a message, shortened."""
    if not columns:
        return ""
    text = columns.decode("utf-8", "replace")
    return f": {text}" if len(text) <= _LONG else f": {text[:_LONG]}... ({len(text)} characters)"
