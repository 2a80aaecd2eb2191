"""Errors of a table's rows in words: each names row, column and value, and what to do."""

from __future__ import annotations

from typing import Any, Final

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import id_problem

__all__ = ["row_error"]

_LONG: Final = 120  # characters of a row that is shown
_WORDS: Final = {
    "like_null": (
        "BAD_BODY",
        "a value reads like a null, of which null_text is the text",
        "set null_text to a text that no value has, or null_text='' if nobody has to tell them apart",
    ),
    "mark": (
        "BAD_BODY",
        "a value holds a character that separates values and that nothing can mask",
        "set escape, or take another separator",
    ),
    "no_name": (
        "BAD_NAME",
        "the name is null, and there is no other one for such rows",
        "fill it, or give send_rows the name that rows without one go to",
    ),
    "null": (
        "BAD_BODY",
        "all columns of the body are null, so that there is none",
        "filter such rows out, set null_value='skip' for the producer, or null_text",
    ),
    "empty": (
        "EMPTY_BODY",
        "the body is empty",
        "filter such rows out, or set empty_value='skip' for the producer",
    ),
    "line": (
        "BAD_BODY",
        "the body holds a line feed, which message_type=3 cannot carry",
        "use message_type=7 or 5",
    ),
    "time": (
        "BAD_TIME",
        "the data time is outside of 1970 to 2106",
        "give milliseconds or a timestamp; a null stands for the time of sending",
    ),
    "twice": ("BAD_ATTRIBUTE", "an attribute is there twice", "keep one of the two"),
    "attrs": ("BAD_ATTRIBUTE", "an attribute cannot travel", "values are ASCII without '&' and '='"),
}


def row_error(kind: str, row: int, column: str | None, columns: bytes | None, facts: dict[str, Any]) -> Any:
    """Return the error for a row, which counts from 0, and its column, if one is to blame.

    ``columns`` is what to show of the row, as JSON.  ``facts`` has how many messages of the call were accepted, and
    for some kinds ``error``, ``size``, ``limit`` or ``value``.
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
        what = f"a body of {facts['size']} bytes does not fit a frame of {facts['limit']} bytes"
        details |= {"size": facts["size"], "limit": facts["limit"]}
    elif kind == "key":
        code, hint = "BAD_KEY", "give keys of 1 to 1024 bytes, or null where the order does not matter"
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
