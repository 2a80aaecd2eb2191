"""Data times: the forms that a caller may give, and the range of the protocol."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import index
from typing import Any

from dataproxy.errors import InvalidMessageError
from dataproxy.numbers import NO_TIME
from dataproxy.problems import shown

__all__ = ["NO_TIME", "time_ms"]

_LIMIT_MS = (1 << 32) * 1000  # type 7 counts seconds in 32 bits: until 2106
_FORMS = "give milliseconds since 1970 as int, or a datetime with a time zone"
_NO_TIME_HINT = "leave dt out, or give None: then the time of sending is taken"
_LAST_YEAR = 2106 - 1970
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
# 2000 to 2106 in seconds.  Read as milliseconds these numbers are seven weeks of 1970, which nobody means.
_FIRST, _LAST = 946_684_800, 1 << 32
_UNITS = (
    (1, "seconds", "multiply by 1000"),
    (10**6, "microseconds", "divide by 1000"),
    (10**9, "nanoseconds", "divide by 1000000"),
)


def time_ms(dt: object) -> int:
    """Return a data time in milliseconds since 1970.

    ``dt`` is a whole number (also NumPy's) of milliseconds, a datetime with a time zone (a pandas Timestamp is one), or
    a NumPy datetime64, which counts from 1970 in UTC.  Raises InvalidMessageError.
    """
    if dt is None:
        return NO_TIME
    if isinstance(dt, datetime):
        if dt != dt:  # pandas' NaT is a datetime that differs from itself
            raise _not_a_time(dt)
        if dt.tzinfo is None:
            raise InvalidMessageError(f"the data time {dt!r} has no time zone", code="BAD_TIME", hint=_FORMS)
        value = (dt - _EPOCH) // _MS  # not timestamp(): its float is a millisecond early for one time in 170
    elif isinstance(dt, int) and not isinstance(dt, bool):
        value = dt
        _check_unit(value)
    elif type(dt).__module__ == "numpy":
        value = _numpy_ms(dt)
    else:
        raise _no_time(dt)
    if not 0 <= value < _LIMIT_MS:
        raise InvalidMessageError(
            f"the data time {shown(value)} ms is outside of 1970 to 2106", code="BAD_TIME", hint=_FORMS
        )
    return value


def _numpy_ms(dt: Any) -> int:
    """Return a NumPy value in milliseconds since 1970, without an import of NumPy."""
    if type(dt).__name__ == "datetime64":
        if dt != dt:  # NaT differs from itself
            raise _not_a_time(dt)
        years = int(dt.astype("datetime64[Y]").astype("int64"))
        if -1 <= years <= _LAST_YEAR:
            return int(dt.astype("datetime64[ms]").astype("int64"))
        raise InvalidMessageError(f"the data time {dt} is outside of 1970 to 2106", code="BAD_TIME", hint=_FORMS)
    if type(dt).__name__.startswith("bool"):
        raise _no_time(dt)
    try:
        value = index(dt)
    except TypeError:
        raise _no_time(dt) from None
    _check_unit(value)
    return value


def _not_a_time(dt: object) -> InvalidMessageError:
    return InvalidMessageError(f"the data time is {dt}, which is not a time", code="BAD_TIME", hint=_NO_TIME_HINT)


def _check_unit(value: int) -> None:
    """Raise InvalidMessageError for a number that is a time from 2000 to 2106 in another unit."""
    for scale, unit, way in _UNITS:
        if _FIRST * scale <= value < _LAST * scale:
            raise InvalidMessageError(
                f"dt={value} looks like {unit}; dt is milliseconds: {way}, or give a datetime",
                code="BAD_TIME",
                hint="a datetime needs a time zone",
            )


def _no_time(dt: object) -> InvalidMessageError:
    if isinstance(dt, float) and _FIRST <= dt < _LAST:  # a value of time.time()
        return InvalidMessageError(
            f"dt={dt!r} looks like seconds; dt is milliseconds, as int: int(1000 * seconds), or give a datetime",
            code="BAD_TIME",
            hint="a datetime needs a time zone",
        )
    return InvalidMessageError(
        f"a data time cannot be the {type(dt).__name__} {shown(dt)}", code="BAD_TIME", hint=_FORMS
    )
