"""The attribute ``$msgTime$`` of messages."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice


cdef bint minute_of(Slice text, int64_t* out) noexcept nogil
