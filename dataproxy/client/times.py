"""Data times: what a caller may give, and what the wire can keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dataproxy.errors import InvalidMessageError
from dataproxy.problems import shown

__all__ = ["NO_TIME", "time_ms"]

#: Stands for "the message has no data time of its own" (client/batcher.pxd).
NO_TIME = -1
_LIMIT_MS = (1 << 32) * 1000  # type 7 counts seconds in 32 bits: until 2106
_FORMS = "give milliseconds since 1970 as int, or a datetime with a time zone"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
# From 2000 to 2106 in each unit: nobody means the seven weeks of 1970 that these are as milliseconds.
_FIRST, _LAST = 946_684_800, 1 << 32
_UNITS = (
    (1, "seconds", "multiply by 1000"),
    (10**6, "microseconds", "divide by 1000"),
    (10**9, "nanoseconds", "divide by 1000000"),
)


def time_ms(dt: object) -> int:
    """Return a data time in milliseconds since 1970.  Raises InvalidMessageError."""
    if dt is None:
        return NO_TIME
    if isinstance(dt, datetime):
        if dt.tzinfo is None:
            raise InvalidMessageError(f"the data time {dt!r} has no time zone", code="BAD_TIME", hint=_FORMS)
        value = (dt - _EPOCH) // _MS  # timestamp() is a float, and a millisecond early for one in 170
    elif isinstance(dt, int) and not isinstance(dt, bool):
        value = dt
        _check_unit(value)
    else:
        raise _no_time(dt)
    if not 0 <= value < _LIMIT_MS:
        raise InvalidMessageError(
            f"the data time {shown(value)} ms is outside of 1970 to 2106", code="BAD_TIME", hint=_FORMS
        )
    return value


def _check_unit(value: int) -> None:
    """Raise InvalidMessageError for a number that is a time of our days in another unit."""
    for scale, unit, way in _UNITS:
        if _FIRST * scale <= value < _LAST * scale:
            raise InvalidMessageError(
                f"dt={value} looks like {unit}; dt is milliseconds: {way}, or give a datetime",
                code="BAD_TIME",
                hint="a datetime needs a time zone",
            )


def _no_time(dt: object) -> InvalidMessageError:
    if isinstance(dt, float) and _FIRST <= dt < _LAST:  # what time.time() gives
        return InvalidMessageError(
            f"dt={dt!r} looks like seconds; dt is milliseconds, as int: int(1000 * seconds), or give a datetime",
            code="BAD_TIME",
            hint="a datetime needs a time zone",
        )
    return InvalidMessageError(
        f"a data time cannot be the {type(dt).__name__} {shown(dt)}", code="BAD_TIME", hint=_FORMS
    )
