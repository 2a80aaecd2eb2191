"""Answers of a broker to a producer."""

from libc.stdint cimport uint8_t

from dataproxy._core.wire.api cimport WireEvent


cdef int reply_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
cdef int read_reply(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil
