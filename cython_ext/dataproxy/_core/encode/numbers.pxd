"""Integers and decimals as text."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.base.buf cimport Buf


cdef enum:
    WIDE_DIGITS = 40            # digits of a 128-bit number, rounded up


cdef int digits_of(uint64_t high, uint64_t low, uint8_t* to) noexcept nogil
cdef uint8_t* pair_of(uint64_t two) noexcept nogil
cdef int put_integer(Buf* out, int64_t v) noexcept nogil
cdef int put_scaled(Buf* out, uint64_t high, uint64_t low, int scale) noexcept nogil
