"""Retention of the durable store by size and age."""

from libc.stdint cimport int64_t


cdef int64_t store_retain(void* store) noexcept nogil
