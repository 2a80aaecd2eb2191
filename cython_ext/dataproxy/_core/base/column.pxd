"""Columns in Arrow's memory layout, filled without a Python object for each value; one thread makes and reads them."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.buf cimport Buf


cdef class Memory:
    cdef Buf buf


cdef class Bytes:
    cdef Buf data
    cdef Buf ends               # int32: where each value ends in `data`, a 0 before the first

    # Append one value: ST_OK, ST_NO_MEMORY, or ST_LIMIT past 2 GiB.
    cdef int put(self, const void* p, size_t n) noexcept nogil
    cdef size_t count(self) noexcept nogil
    cdef int _room(self, size_t values) noexcept nogil
    cdef void _first(self) noexcept nogil
    cdef int _add_again(self, size_t values, size_t size, size_t times) noexcept nogil


cdef class Numbers:
    cdef Buf data
    cdef int width              # bytes of a value, 4 or 8
