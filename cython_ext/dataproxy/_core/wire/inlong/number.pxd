"""Decimal numbers in attribute text."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.base.slice cimport Slice


cdef inline bint read_decimal(Slice s, int64_t* value) noexcept nogil:
    """Read the whole of ``s`` as a signed decimal; false when it is none or overflows."""
    cdef size_t i = 0
    cdef bint negative = False
    cdef uint64_t v = 0
    cdef uint64_t limit = <uint64_t>0x7FFFFFFFFFFFFFFF
    cdef uint8_t c
    if s.n > 0 and (s.p[0] == 45 or s.p[0] == 43):
        negative = s.p[0] == 45
        i = 1
    if i == s.n or s.n - i > 19:
        return False
    while i < s.n:
        c = <uint8_t>(s.p[i] - 48)
        if c > 9:
            return False
        v = v * 10 + c          # at most 19 digits: below 2**64
        i += 1
    if v > limit:
        return False
    value[0] = -<int64_t>v if negative else <int64_t>v
    return True


cdef inline size_t write_decimal(uint8_t* out, uint64_t v) noexcept nogil:
    """Write ``v`` at ``out`` (room for 20 bytes) and return the number of digits."""
    cdef uint8_t raw[20]
    cdef size_t n = 0
    cdef size_t i
    while True:
        raw[n] = <uint8_t>(48 + v % 10)
        n += 1
        v //= 10
        if v == 0:
            break
    for i in range(n):
        out[i] = raw[n - 1 - i]
    return n
