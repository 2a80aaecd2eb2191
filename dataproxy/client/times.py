"""Data times: what a caller may give, and what the wire can keep."""

from __future__ import annotations

from datetime import datetime

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import shown

__all__ = ["NO_TIME", "time_ms"]

#: Stands for "the message has no data time of its own" (client/batcher.pxd).
NO_TIME = -1
_LIMIT_MS = (1 << 32) * 1000  # type 7 counts seconds in 32 bits: until 2106
_FORMS = "give milliseconds since 1970 as int, or a datetime with a time zone"


def time_ms(dt: object) -> int:
    """Return a data time in milliseconds since 1970.  Raises InvalidMessageError."""
    if dt is None:
        return NO_TIME
    if isinstance(dt, datetime):
        if dt.tzinfo is None:
            raise InvalidMessageError(f"the data time {dt!r} has no time zone", code="BAD_TIME", hint=_FORMS)
        value = int(dt.timestamp() * 1000)
    elif isinstance(dt, int) and not isinstance(dt, bool):
        value = dt
    else:
        raise InvalidMessageError(
            f"a data time cannot be the {type(dt).__name__} {shown(dt)}", code="BAD_TIME", hint=_FORMS
        )
    if not 0 <= value < _LIMIT_MS:
        raise InvalidMessageError(
            f"the data time {shown(value)} ms is outside of 1970 to 2106",
            code="BAD_TIME",
            hint="are these seconds or microseconds? " + _FORMS if value > 0 else _FORMS,
        )
    return value
