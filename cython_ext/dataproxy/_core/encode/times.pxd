"""Dates and times as text."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf


cdef enum TimeStyle:
    TIME_ISO = 0            # 2013-01-01T05:00:00.000-05:00, as Spark's to_json writes it
    TIME_ISO_MICROS = 1     # 2013-01-01T05:00:00.000000-05:00
    TIME_SQL = 2            # 2013-01-01 05:00:00
    TIME_SQL_MICROS = 3     # 2013-01-01 05:00:00.000000
    TIME_MILLIS = 4         # milliseconds since 1970 in UTC


ctypedef struct Zone:       # borrowed; offsets[i] seconds are added from starts[i] on
    const int64_t* starts   # in UTC seconds, rising; the first one is the beginning of time
    const int32_t* offsets
    int64_t n
    int64_t period_from     # from here on the last 400 years of the table repeat


cdef enum:
    KNOWN_DAYS = 4096       # days whose text is kept; a power of two


ctypedef struct DayText:    # one day with a year of four digits
    int32_t days            # after 1970-01-01
    uint8_t text[12]        # YYYY-MM-DD


cdef void days_forget(DayText* known) noexcept nogil
cdef int put_date(Buf* out, int64_t days, DayText* known) noexcept nogil
cdef int put_timestamp(Buf* out, int64_t micros, const Zone* zone, int style, DayText* known) noexcept nogil
cdef int put_coarse_timestamp(
    Buf* out, int64_t v, bint millis, const Zone* zone, int style, DayText* known,
) noexcept nogil
cdef int put_time_of_day(Buf* out, int64_t nanos) noexcept nogil
cdef int put_duration(Buf* out, int64_t v, int64_t units, int digits) noexcept nogil
