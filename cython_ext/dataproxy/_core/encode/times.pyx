"""Dates and times of the proleptic Gregorian calendar as text; a time zone is a table of its changes.

Locality: the owner of the buffer and of the table of days, without the GIL.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.numbers cimport put_integer, put_pair, put_scaled
from dataproxy._core.encode.texts cimport add, room

cdef enum:                      # constants for the compiler, which then divides by multiplying
    DAY = 86400
    MICRO = 1000000
    ERA_DAYS = 146097           # 400 years, after which the calendar repeats
    EPOCH_SHIFT = 719468        # days from 0000-03-01 to 1970-01-01
    LONGEST = 48                # bytes of a timestamp's text
    FIRST_SHORT = -719528       # 0000-01-01
    LAST_SHORT = 2932896        # 9999-12-31

cdef int64_t ERA_SECONDS = 12622780800
cdef int64_t DAY_NANOS = 86400000000000


cdef inline int64_t _floor(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t q = a // b
    return q - 1 if a % b < 0 else q


cdef inline uint8_t* _two(uint8_t* p, uint32_t v) noexcept nogil:
    put_pair(p, v)
    return p + 2


cdef uint8_t* _fraction(uint8_t* p, int64_t v, int digits) noexcept nogil:
    """Write ``v`` with leading zeros."""
    cdef int i
    for i in range(digits - 1, -1, -1):
        p[i] = <uint8_t>(48 + v % 10)
        v //= 10
    return p + digits


cdef uint8_t* _year(uint8_t* p, int64_t year) noexcept nogil:
    """Write a year with four digits at least; signed below zero and above 9999."""
    cdef int digits = 4
    cdef int64_t bound = 10000
    if 0 <= year <= 9999:
        return _two(_two(p, <uint32_t>year // 100), <uint32_t>year % 100)
    p[0] = 45 if year < 0 else 43
    year = -year if year < 0 else year
    while year >= bound:
        digits += 1
        bound *= 10
    return _fraction(p + 1, year, digits)


cdef uint8_t* _date(uint8_t* p, int64_t days) noexcept nogil:
    """Write the day that is ``days`` after 1970-01-01."""
    cdef int64_t z = days + EPOCH_SHIFT
    cdef int64_t era = _floor(z, ERA_DAYS)
    cdef uint32_t day = <uint32_t>(z - era * ERA_DAYS)                          # of the era
    cdef uint32_t year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    cdef uint32_t month
    day -= 365 * year + year // 4 - year // 100                                 # of a year that begins in March
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    p = _year(p, year + era * 400 + (1 if month <= 2 else 0))
    p[0] = 45
    p = _two(p + 1, month)
    p[0] = 45
    return _two(p + 1, day + 1)


cdef void days_forget(DayText* known) noexcept nogil:
    """Make a table of ``KNOWN_DAYS`` that knows no day."""
    cdef int32_t i
    for i in range(KNOWN_DAYS):
        known[i].days = i + 1           # a day whose slot is another one, so it is never found here


cdef inline uint8_t* _day(uint8_t* p, int64_t days, DayText* known) noexcept nogil:
    """Write a day, from the table where it is known; up to two bytes more than its text are written."""
    cdef DayText* day = &known[days & (KNOWN_DAYS - 1)]
    if day.days != days:
        if not FIRST_SHORT <= days <= LAST_SHORT:
            return _date(p, days)
        _date(day.text, days)
        day.days = <int32_t>days
    memcpy(p, day.text, 12)
    return p + 10


cdef uint8_t* _clock(uint8_t* p, uint32_t second) noexcept nogil:
    """Write a second of a day."""
    p = _two(p, second // 3600)
    p[0] = 58
    p = _two(p + 1, second // 60 % 60)
    p[0] = 58
    return _two(p + 1, second % 60)


cdef int32_t _offset(const Zone* zone, int64_t second) noexcept nogil:
    """Return what is added to UTC at ``second``."""
    cdef int64_t low = 0, high = zone.n, middle
    if zone.n == 1:
        return zone.offsets[0]
    if second >= zone.period_from:
        second = zone.period_from - ERA_SECONDS + (second - zone.period_from) % ERA_SECONDS
    while high - low > 1:
        middle = (low + high) // 2
        if zone.starts[middle] <= second:
            low = middle
        else:
            high = middle
    return zone.offsets[low]


cdef uint8_t* _put_offset(uint8_t* p, int32_t offset) noexcept nogil:
    if offset == 0:
        p[0] = 90
        return p + 1
    p[0] = 45 if offset < 0 else 43
    if offset < 0:
        offset = -offset
    p = _two(p + 1, <uint32_t>offset // 3600)
    p[0] = 58
    p = _two(p + 1, <uint32_t>offset // 60 % 60)
    if offset % 60:
        p[0] = 58
        p = _two(p + 1, <uint32_t>offset % 60)
    return p


cdef int put_date(Buf* out, int64_t days, DayText* known) noexcept nogil:
    """Append a date as YYYY-MM-DD; ST_OK or ST_NO_MEMORY."""
    if room(out, LONGEST) != ST_OK:
        return ST_NO_MEMORY
    out.n = <size_t>(_day(out.p + out.n, days, known) - out.p)
    return ST_OK


cdef int put_timestamp(Buf* out, int64_t micros, const Zone* zone, int style, DayText* known) noexcept nogil:
    """Append a point in time; without a zone it is a local time and no offset is written.  ST_OK or ST_NO_MEMORY."""
    cdef int64_t fraction = micros % MICRO
    if style == TIME_MILLIS:
        return put_integer(out, _floor(micros, 1000))
    return _put_moment(out, _floor(micros, MICRO), fraction + (MICRO if fraction < 0 else 0), zone, style, known)


cdef int put_coarse_timestamp(
    Buf* out, int64_t v, bint millis, const Zone* zone, int style, DayText* known,
) noexcept nogil:
    """Append a timestamp in seconds, or ``millis``: those beyond the year 292,277 have no microseconds of 64 bits.

    ST_OK or ST_NO_MEMORY.
    """
    cdef int64_t fraction
    cdef int failed
    if style == TIME_MILLIS:
        failed = put_integer(out, v)
        if not millis and v != 0:
            failed |= add(out, b"000", 3)
        return ST_NO_MEMORY if failed else ST_OK
    if not millis:
        return _put_moment(out, v, 0, zone, style, known)
    fraction = v % 1000
    return _put_moment(out, _floor(v, 1000), 1000 * (fraction + (1000 if fraction < 0 else 0)), zone, style, known)


cdef int _put_moment(
    Buf* out, int64_t second, int64_t fraction, const Zone* zone, int style, DayText* known,
) noexcept nogil:
    """Append a second of UTC and its microseconds as text.  ST_OK or ST_NO_MEMORY."""
    cdef int64_t days = _floor(second, DAY), clock = second % DAY       # no product: the first second is near the end
    cdef int32_t offset = 0
    cdef uint8_t* p
    if room(out, LONGEST) != ST_OK:
        return ST_NO_MEMORY
    if clock < 0:
        clock += DAY
    if zone != NULL:
        offset = _offset(zone, second)
        clock += offset
        if not 0 <= clock < DAY:
            days += _floor(clock, DAY)
            clock -= _floor(clock, DAY) * DAY
    p = _day(out.p + out.n, days, known)
    p[0] = 84 if style <= TIME_ISO_MICROS else 32
    p = _clock(p + 1, <uint32_t>clock)
    if style != TIME_SQL:
        p[0] = 46
        p[1] = <uint8_t>(48 + <uint32_t>fraction // 100000)
        p = _two(p + 2, <uint32_t>fraction // 1000 % 100)
        if style != TIME_ISO:
            p = _fraction(p, fraction % 1000, 3)
    if zone != NULL and style <= TIME_ISO_MICROS:
        p = _put_offset(p, offset)
    out.n = <size_t>(p - out.p)
    return ST_OK


cdef int put_time_of_day(Buf* out, int64_t nanos) noexcept nogil:
    """Append a time of day with as much of a fraction as it has; ST_OK or ST_NO_MEMORY."""
    cdef int64_t second, fraction
    cdef int digits = 9
    cdef uint8_t* p
    nanos -= _floor(nanos, DAY_NANOS) * DAY_NANOS
    second = nanos // 1000000000
    fraction = nanos % 1000000000
    if room(out, LONGEST) != ST_OK:
        return ST_NO_MEMORY
    p = _clock(out.p + out.n, <uint32_t>second)
    if fraction:
        while fraction % 10 == 0:
            fraction //= 10
            digits -= 1
        p[0] = 46
        p = _fraction(p + 1, fraction, digits)
    out.n = <size_t>(p - out.p)
    return ST_OK


cdef int put_duration(Buf* out, int64_t v, int64_t units, int digits) noexcept nogil:
    """Append a length of time, ``units`` of which are a second, as PT93784.5S (ISO 8601); ST_OK or ST_NO_MEMORY.

    ``digits`` is how many decimals a unit takes; zeros at the end are left out.
    """
    cdef uint64_t size = <uint64_t>0 - <uint64_t>v if v < 0 else <uint64_t>v
    cdef uint64_t fraction = size % <uint64_t>units
    if room(out, LONGEST) != ST_OK:
        return ST_NO_MEMORY
    if v < 0:
        out.p[out.n] = 45
        out.n += 1
    memcpy(out.p + out.n, b"PT", 2)
    out.n += 2
    if put_scaled(out, 0, size // <uint64_t>units, 0) != ST_OK or room(out, LONGEST) != ST_OK:
        return ST_NO_MEMORY
    if fraction:
        while fraction % 10 == 0:
            fraction //= 10
            digits -= 1
        out.p[out.n] = 46
        out.n = <size_t>(_fraction(out.p + out.n + 1, <int64_t>fraction, digits) - out.p)
    out.p[out.n] = 83
    out.n += 1
    return ST_OK
