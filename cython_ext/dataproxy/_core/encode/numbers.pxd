"""Integers and decimals as text."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf


cdef enum:
    WIDE_DIGITS = 40            # digits of a 128-bit number, rounded up


cdef inline void put_pair(uint8_t* to, uint32_t v) noexcept nogil:
    """Write the two digits of a number below 100."""
    cdef uint32_t tens = v * 103 >> 10
    to[0] = <uint8_t>(48 + tens)
    to[1] = <uint8_t>(48 + v - 10 * tens)


cdef int digits_of(uint64_t high, uint64_t low, uint8_t* to) noexcept nogil
cdef int put_integer(Buf* out, int64_t v) noexcept nogil
cdef int put_scaled(Buf* out, uint64_t high, uint64_t low, int scale) noexcept nogil
