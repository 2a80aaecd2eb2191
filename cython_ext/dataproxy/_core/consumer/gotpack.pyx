"""Packs from answers that came as bytes: for readers that make each call themselves.

Locality: GIL, any thread; released while a pack is made.  Locks: none.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of, slice_text
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.consumer.tubepack cimport TubeItem, TubePack, tubepack_new
from dataproxy._core.wire.tubemq.get cimport Got, read_got
from dataproxy._core.wire.tubemq.payload cimport attribute_value

__all__ = ["find_first", "pack_minutes", "read_pack"]

cdef const char* TIME_KEY = "$msgTime$"

cdef enum:
    TIME_DIGITS = 12        # year, month, day, hour, minute


cdef TubePack* _made(const Got* got, list filters) except NULL:
    cdef Slice* items = <Slice*>malloc((len(filters) + 1) * sizeof(Slice))
    cdef TubePack* p = NULL
    cdef bytes one
    cdef int i, n = len(filters)
    if items == NULL:
        raise MemoryError("no memory for filters")
    for i in range(n):
        one = filters[i]
        items[i] = slice_of(<const char*>one, len(one))
    with nogil:
        p = tubepack_new(got, items, n)
        free(items)
    if p == NULL:
        raise MemoryError("no memory for a pack")
    return p


def read_pack(bytes answer not None, str topic not None, str partition not None, list filters not None):
    """Return (code, text, offset, end of the store, wait in ms, messages that came, pack or None) of an answer to GET.

    ``filters`` are bytes, of which the caller keeps the list unchanged.  Numbers that the broker did not give are -1.
    None: the bytes are no such answer.
    """
    cdef Got got
    cdef Pack pack = None
    if read_got(slice_of(<const char*>answer, len(answer)), &got) != ST_OK:
        return None
    if got.n:
        pack = Pack.make(_made(&got, filters), None, topic, partition)
    text = (<const char*>got.text.p)[:got.text.n].decode("utf-8", "replace") if got.text.n else ""
    return (got.code, text, max(got.offset, -1), max(got.max_offset, -1), max(got.wait_ms, -1), got.n, pack)


def find_first(Pack pack not None, Pack other not None):
    """Return where ``pack`` has the first message of ``other``, -1: nowhere.

    Messages are the same if id, attributes and body are: ids alone are unique only while one broker runs.
    """
    cdef TubeItem* items = pack.pack.items
    cdef TubeItem* wanted = other.pack.items
    cdef int64_t i, n = pack.pack.n, found = -1
    if other.pack.n == 0:
        return -1
    with nogil:
        for i in range(n):
            if (items[i].id == wanted.id and slice_equals(items[i].attribute, wanted.attribute)
                    and slice_equals(items[i].body, wanted.body)):
                found = i
                break
    return found


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


cdef bint _minute_of(Slice text, int64_t* out) noexcept nogil:
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


def pack_minutes(Pack pack not None):
    """Return (times, bits, number of nulls) of the attribute ``$msgTime$`` of all messages, as buffers of Arrow.

    Times are microseconds since 1970 of a clock without a zone, 64 bits each; a bit is set where there is one.
    """
    cdef int64_t n = pack.pack.n, i, minute = 0, missing = 0
    cdef bytes values = PyBytes_FromStringAndSize(NULL, n * 8)
    cdef bytes bits = PyBytes_FromStringAndSize(NULL, (n + 7) // 8)
    cdef int64_t* value = <int64_t*>PyBytes_AS_STRING(values)
    cdef uint8_t* bit = <uint8_t*>PyBytes_AS_STRING(bits)
    cdef Slice text
    with nogil:
        memset(bit, 0, <size_t>((n + 7) // 8))
        for i in range(n):
            value[i] = 0
            if (attribute_value(pack.pack.items[i].attribute, slice_text(TIME_KEY), &text)
                    and _minute_of(text, &minute)):
                value[i] = minute * 60000000
                bit[i // 8] |= <uint8_t>(1 << (i % 8))
            else:
                missing += 1
    return values, bits, missing
