"""Errors of single messages, put into words once."""

from __future__ import annotations

from dataproxy.errors import InvalidMessageError

__all__ = ["body_type", "row_problem", "size_problem"]

_SPLIT = "split it, or raise max_frame_bytes if the proxies take larger frames (their max-msg-length)"


def _where(item: int | None) -> str:
    return "" if item is None else f" (item {item})"


def body_type(body: object, item: int | None = None) -> InvalidMessageError:
    """Return the error for a body that is not bytes-like."""
    details = {} if item is None else {"item": item, "accepted": 0}
    if isinstance(body, str):
        shown = body if len(body) <= 40 else body[:40] + "…"
        return InvalidMessageError(
            f"a body is bytes, not the text {shown!r}{_where(item)}",
            hint='encode it, e.g. text.encode("utf-8")',
            details=details,
        )
    hint = "None cannot be sent; leave it out" if body is None else "pass bytes, bytearray or memoryview"
    return InvalidMessageError(
        f"a body is bytes, not {type(body).__name__!r}{_where(item)}", hint=hint, details=details
    )


def size_problem(size: int, limit: int, item: int | None = None) -> InvalidMessageError:
    """Return the error for a body that is empty or too large."""
    if size == 0:
        return InvalidMessageError(
            f"a body is empty{_where(item)}", hint="the protocol has no empty message; leave it out"
        )
    return InvalidMessageError(
        f"a body of {size} bytes{_where(item)} is over the limit of {limit} bytes",
        hint=_SPLIT,
        details={"size": size, "limit": limit},
    )


def row_problem(item: int, problem: str, size: int, limit: int, accepted: int = 0) -> InvalidMessageError:
    """Return the error for one row of a batch; ``accepted`` messages of earlier chunks are on their way."""
    words = {
        "null": ("a value is null", "filter nulls out, or set null_value='skip'"),
        "empty": ("a body is empty", "leave it out, or set empty_value='skip' for Arrow data"),
        "large": (f"a body of {size} bytes is over the limit of {limit} bytes", _SPLIT),
        "line": ("a body holds a line feed, which message_type=3 cannot carry", "use message_type=7 or 5"),
    }
    what, hint = words[problem]
    partly = f"; {accepted} messages of earlier chunks were accepted" if accepted else ""
    return InvalidMessageError(
        f"{what} (item {item}){partly}",
        hint=hint,
        details={"item": item, "size": size, "limit": limit, "accepted": accepted},
    )
