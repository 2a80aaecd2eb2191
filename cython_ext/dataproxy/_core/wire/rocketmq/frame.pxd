"""Frames: a header and a body behind their lengths."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct Frame:          # one whole frame, taken apart
    int form                    # HeaderForm
    Slice header
    Slice body


cdef int delimit_frame(const uint8_t* p, size_t n, size_t most, size_t* size) noexcept nogil
cdef Frame split_frame(const uint8_t* p, size_t n) noexcept nogil
