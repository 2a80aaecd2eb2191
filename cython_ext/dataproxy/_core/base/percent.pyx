"""Any bytes as the value of an attribute text, and back.

Locality: owner of the buffer.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL

cdef enum:
    AMPERSAND = 38
    EQUALS = 61
    PERCENT = 37

cdef const char* DIGITS = b"0123456789ABCDEF"


cdef inline bint _is_plain(uint8_t c) noexcept nogil:
    return 0x20 <= c < 0x7F and c != PERCENT and c != AMPERSAND and c != EQUALS


cdef size_t coded_size(Slice text) noexcept nogil:
    """Return the bytes of a text when it is coded."""
    cdef size_t i, n = text.n
    for i in range(text.n):
        if not _is_plain(text.p[i]):
            n += 2
    return n


cdef int put_coded(Buf* out, Slice text) noexcept nogil:
    """Append a text, coded."""
    cdef size_t i
    cdef uint8_t* to
    if buf_reserve(out, coded_size(text)) != ST_OK:
        return ST_NO_MEMORY
    to = out.p + out.n
    for i in range(text.n):
        if _is_plain(text.p[i]):
            to[0] = text.p[i]
            to += 1
        else:
            to[0] = PERCENT
            to[1] = <uint8_t>DIGITS[text.p[i] >> 4]
            to[2] = <uint8_t>DIGITS[text.p[i] & 15]
            to += 3
    out.n = <size_t>(to - out.p)
    return ST_OK


cdef int _digit(uint8_t c) noexcept nogil:
    if 48 <= c <= 57:
        return c - 48
    return c - 55 if 65 <= c <= 70 else -1


cdef int put_decoded(Buf* out, Slice text) noexcept nogil:
    """Append what a coded text means."""
    cdef size_t i = 0
    cdef uint8_t c
    if buf_reserve(out, text.n) != ST_OK:
        return ST_NO_MEMORY
    while i < text.n:
        c = text.p[i]
        if c == PERCENT:
            if i + 2 >= text.n or _digit(text.p[i + 1]) < 0 or _digit(text.p[i + 2]) < 0:
                return ST_PROTOCOL
            c = <uint8_t>(_digit(text.p[i + 1]) << 4 | _digit(text.p[i + 2]))
            i += 2
        out.p[out.n] = c
        out.n += 1
        i += 1
    return ST_OK
