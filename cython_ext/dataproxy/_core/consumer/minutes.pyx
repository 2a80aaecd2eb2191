"""Times of messages, ``yyyyMMddHHmm``, as minutes since 1970.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice

cdef enum:
    TIME_DIGITS = 12        # year, month, day, hour, minute


cdef int64_t _days(int64_t year, int64_t month, int64_t day) noexcept nogil:
    """Return the days since 1970 of a day of the Gregorian calendar."""
    cdef int64_t y = year if month > 2 else year - 1        # years that begin in March: a leap day is their last
    cdef int64_t of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return 365 * y + y // 4 - y // 100 + y // 400 + of_year - 719468


cdef bint _leaps(int64_t year) noexcept nogil:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


cdef int64_t _number(const uint8_t* p, int n) noexcept nogil:
    cdef int64_t value = 0
    cdef int i
    for i in range(n):
        value = 10 * value + p[i] - 48
    return value


cdef bint minute_of(Slice text, int64_t* out) noexcept nogil:
    """Read yyyyMMddHHmm as minutes since 1970 of a clock without a zone; False: it is none."""
    cdef int64_t year, month, day, hour, minute, last
    cdef size_t i
    if text.n != TIME_DIGITS:
        return False
    for i in range(TIME_DIGITS):
        if text.p[i] < 48 or text.p[i] > 57:
            return False
    year, month, day = _number(text.p, 4), _number(text.p + 4, 2), _number(text.p + 6, 2)
    hour, minute = _number(text.p + 8, 2), _number(text.p + 10, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or hour > 23 or minute > 59:
        return False
    if month == 2:
        last = 29 if _leaps(year) else 28
    else:
        last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if day > last:
        return False
    out[0] = _days(year, month, day) * 1440 + hour * 60 + minute
    return True
