"""The errors for single messages: the one place with their texts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.numbers import OWN_ID_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any, TypeGuard

    from _typeshed import ReadableBuffer as Buffer

__all__ = [
    "body_type",
    "buffer_problem",
    "callback_problem",
    "checked_serializer",
    "id_problem",
    "is_count",
    "is_timedelta",
    "key_problem",
    "plain_text",
    "row_problem",
    "seconds",
    "serializer_batch_problem",
    "serializer_problem",
    "shown",
    "size_problem",
    "timeout_problem",
]

_BITS = 200  # a number with more bits is not shown with all its digits
_LONG = 80  # characters of a value that are shown
_ID_FORBIDDEN = "&=|"
#: result(True) does not mean one second, and "1" may be written without its unit; ``float`` takes all of them.
_NO_TIMES = (bool, str, bytes, bytearray, memoryview)
_SPLIT = (
    "split it, or raise max_frame_bytes if the proxies take larger frames (their max-msg-length), and buffer_bytes"
    " where that is smaller; with TubeMQ masters name the limit (maxMsgSize of the cluster or the topic)"
)


def plain_text(text: object) -> str:
    """Return the text that a ``str`` holds, without the ``__str__`` of a subclass (an ``Enum``)."""
    return str.__str__(text)


def shown(value: object) -> str:
    """Return a value as error texts show it: always short; Python refuses to print numbers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    if len(text) <= _LONG:
        return text
    size = len(plain_text(value)) if isinstance(value, str) else len(text)  # not of a text's quotes and escapes
    return f"{text[:60]}... ({size} characters)"


def is_count(value: object, most: int) -> bool:
    """Tell whether a value is a whole number from 0 to ``most``."""
    return isinstance(value, int) and 0 <= value <= most


def is_timedelta(value: object) -> TypeGuard[timedelta]:
    """Tell whether a value is a timedelta, without an import of ``datetime``: with a timedelta it is loaded already."""
    module = sys.modules.get("datetime")
    return module is not None and isinstance(value, module.timedelta)


def timeout_problem(value: object) -> ConfigError:
    """Return the error for a timeout that is negative, nan or not a number."""
    return ConfigError(
        f"a timeout is a number of seconds from 0 on, or a timedelta, not {shown(value)}",
        code="BAD_TIMEOUT",
        hint="0 asks without waiting, None takes the default",
    )


def seconds(value: object) -> float:
    """Return a timeout (a number or a timedelta) in seconds; infinity is allowed.  Raises ConfigError."""
    if isinstance(value, _NO_TIMES):
        raise timeout_problem(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        if not is_timedelta(value):
            raise timeout_problem(value) from None
        number = value.total_seconds()
    if not number >= 0.0:
        raise timeout_problem(value)
    return number


def callback_problem(value: object, name: str = "a callback") -> ConfigError:
    """Return the error for a callback that cannot be called."""
    return ConfigError(
        f"{name} is a function of one argument, not {value!r}", code="BAD_CALLBACK", hint="pass a callable"
    )


def checked_serializer(value: Callable[[Any], Buffer] | None) -> Callable[[Any], Buffer] | None:
    """Return a serializer, or None.  Raises ConfigError for a value that cannot be called."""
    if value is not None and not callable(value):
        raise callback_problem(value, "a serializer")
    return value


def serializer_problem(body: object, item: int | None, stream_id: str, found: object) -> InvalidMessageError:
    """Return the error for an object that the serializer did not turn into bytes: it raised or returned ``found``."""
    if isinstance(found, Exception):
        what, hint = f"raised {type(found).__name__}: {found}", "correct the object, or the serializer"
    else:
        what, hint = f"returned {type(found).__name__!r} and no bytes", "let it return bytes, e.g. text.encode()"
    number = "" if item is None else f"item {item}, "
    return InvalidMessageError(
        f"the serializer of stream {stream_id!r} {what} ({number}{type(body).__name__} {shown(body)})",
        code="SERIALIZER",
        hint=hint,
        details={"type": type(body).__name__, "item": item, "accepted": 0},
    )


def serializer_batch_problem(bodies: object) -> InvalidMessageError:
    """Return the error for a value that should be a batch of objects: it is a single object, or not a batch at all."""
    return InvalidMessageError(
        f"a batch is a sequence of objects, not one {type(bodies).__name__!r}",
        code="SERIALIZER",
        hint="give a list of objects; send a single one with send",
    )


def _where(item: int | None) -> str:
    return "" if item is None else f" (item {item})"


def body_type(body: object, item: int | None = None) -> InvalidMessageError:
    """Return the error for a body that is not bytes-like."""
    details = {} if item is None else {"item": item, "accepted": 0}
    if isinstance(body, str):
        shown = body if len(body) <= 40 else body[:40] + "…"
        return InvalidMessageError(
            f"a body is bytes, not the text {shown!r}{_where(item)}",
            code="BAD_BODY",
            hint='encode it, e.g. text.encode("utf-8")',
            details=details,
        )
    hint = "None cannot be sent; leave it out" if body is None else "pass bytes, bytearray or memoryview"
    return InvalidMessageError(
        f"a body is bytes, not {type(body).__name__!r}{_where(item)}", code="BAD_BODY", hint=hint, details=details
    )


def buffer_problem(reason: str, item: int | None = None) -> InvalidMessageError:
    """Return the error for an object whose buffer cannot be sent; ``reason`` says why."""
    return InvalidMessageError(
        f"{reason}{_where(item)}",
        code="BAD_BODY",
        hint="pass bytes or a list of them, view the array as bytes of a fixed width, or encode text: "
        "numpy.char.encode(a, 'utf-8')",
        details={} if item is None else {"item": item, "accepted": 0},
    )


def size_problem(size: int, limit: int, item: int | None = None) -> InvalidMessageError:
    """Return the error for a body that is empty or too large."""
    if size == 0:
        return InvalidMessageError(
            f"a body is empty{_where(item)}",
            code="EMPTY_BODY",
            hint="the protocol has no empty message; leave it out",
        )
    return InvalidMessageError(
        f"a body of {size} bytes{_where(item)} is over the limit of {limit} bytes",
        code="BODY_TOO_LARGE",
        hint=_SPLIT,
        details={"size": size, "limit": limit},
    )


def id_problem(value: object, item: int | None = None, accepted: int = 0) -> InvalidMessageError:
    """Return the error for a ``message_id`` that cannot be sent."""
    allowed = "use printable ASCII without blanks, '&', '=' and '|'"
    if value is None:
        what, hint = "a message id is null", "fill it, or send without ids: then each message gets an id"
    elif not isinstance(value, str):
        what, hint = f"a message id is text, not {type(value).__name__!r}", "give text, e.g. str(value)"
    elif not value:
        what, hint = "a message id is empty", "leave it out: then the message gets an id"
    elif len(value) > OWN_ID_MAX:
        what = f"the message id {value[:24]!r}... has {len(value)} characters"
        hint = f"at most {OWN_ID_MAX} are allowed; use a digest"
    else:
        bad = next((c for c in value if not "!" <= c <= "~" or c in _ID_FORBIDDEN), "")
        what, hint = f"the message id {value!r} holds {bad!r}", allowed
    partly = f"; {accepted} messages of earlier chunks were accepted" if accepted else ""
    return InvalidMessageError(
        f"{what}{_where(item)}{partly}",
        code="BAD_ID",
        hint=hint,
        details={"message_id": value} if item is None else {"message_id": value, "item": item, "accepted": accepted},
    )


def key_problem(key: object, size: int, limit: int) -> InvalidMessageError:
    """Return the error for a ``key`` of a wrong type (size 0 and not empty), or of ``size`` bytes."""
    hint = f"give bytes or text of 1 to {limit} bytes, or leave the key out if the order does not matter"
    if isinstance(key, str) and size == 0 and key:
        what, hint = f"the key {key!r} holds half of a surrogate pair", "give valid text, or bytes"
    elif size == 0 and not isinstance(key, str | bytes | bytearray):
        what, hint = f"a key is bytes or text, not {type(key).__name__!r}", "give bytes or text, e.g. str(key)"
    elif size == 0:
        what = "a key is empty"
    else:
        what, hint = f"a key of {size} bytes is over the limit of {limit} bytes", "give a digest of it"
    return InvalidMessageError(what, code="BAD_KEY", hint=hint, details={"size": size, "limit": limit})


def row_problem(item: int, problem: str, size: int, limit: int, accepted: int = 0) -> InvalidMessageError:
    """Return the error for one row of a batch; ``accepted`` messages of earlier chunks are already accepted."""
    words = {
        "null": ("BAD_BODY", "a value is null", "remove nulls, or set null_value='skip'"),
        "empty": ("EMPTY_BODY", "a body is empty", "leave it out, or set empty_value='skip' for Arrow data"),
        "large": ("BODY_TOO_LARGE", f"a body of {size} bytes is over the limit of {limit} bytes", _SPLIT),
        "line": (
            "BAD_BODY",
            (
                "a body contains a line feed, which frames of lines (message_type 3 and 2, joined_lines) do not allow;"
                " over HTTP it must also be UTF-8 and not blank"
            ),
            "use message_type=7 or 5, over protocol='tcp'",
        ),
    }
    code, what, hint = words[problem]
    partly = f"; {accepted} messages of earlier chunks were accepted" if accepted else ""
    return InvalidMessageError(
        f"{what} (item {item}){partly}",
        code=code,
        hint=hint,
        details={"item": item, "size": size, "limit": limit, "accepted": accepted},
    )
