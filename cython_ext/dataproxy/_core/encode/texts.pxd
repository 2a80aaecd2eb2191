"""Text inside of other text: JSON strings, base64, escaped delimited text."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


cdef enum:
    MARKS = 5               # special characters there can be: separator, joint, escape, quote, line separator


ctypedef struct Marks:          # the characters that mean something in delimited text
    bint special[256]           # to be escaped or quoted
    bint refused[256]           # cannot be represented
    uint64_t eight[MARKS]           # each special one, eight times; some may be there twice
    bint any_plain              # numbers, dates or names of values can hold a special one
    int escape                  # -1: none
    int quote


# As `buf_put` and `buf_put_u8`, but compiled into the loops that call them for every value.
cdef inline int add(Buf* out, const void* p, size_t n) noexcept nogil:
    """Append ``n`` bytes; ST_OK or ST_NO_MEMORY."""
    if n > out.cap - out.n and buf_reserve(out, n) != ST_OK:
        return ST_NO_MEMORY
    if n:
        memcpy(out.p + out.n, p, n)
    out.n += n
    return ST_OK


cdef enum:
    SPARE = 16              # bytes that `copy_short` may touch beyond what it copies


cdef inline int room(Buf* out, size_t n) noexcept nogil:
    """Make room for ``n`` bytes; ST_OK or ST_NO_MEMORY."""
    if n > out.cap - out.n:
        return buf_reserve(out, n)
    return ST_OK


cdef inline void copy_short(uint8_t* to, const uint8_t* p, size_t n) noexcept nogil:
    """Copy ``n`` bytes in steps of sixteen; up to SPARE bytes more are read and written."""
    memcpy(to, p, SPARE)
    while n > SPARE:
        to += SPARE
        p += SPARE
        n -= SPARE
        memcpy(to, p, SPARE)


cdef inline int add_u8(Buf* out, uint8_t v) noexcept nogil:
    """Append one byte; ST_OK or ST_NO_MEMORY."""
    if out.n == out.cap and buf_reserve(out, 1) != ST_OK:
        return ST_NO_MEMORY
    out.p[out.n] = v
    out.n += 1
    return ST_OK


cdef int put_json_text(Buf* out, const uint8_t* p, size_t n) noexcept nogil
cdef int put_base64(Buf* out, const uint8_t* p, size_t n) noexcept nogil
cdef bint put_unmarked(Buf* out, const uint8_t* p, size_t n, const Marks* marks) noexcept nogil
cdef int escape_from(Buf* out, size_t start, const Marks* marks) noexcept nogil
