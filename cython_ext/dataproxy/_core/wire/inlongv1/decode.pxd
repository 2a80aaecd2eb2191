"""Replies of a V1 server."""

from libc.stdint cimport uint8_t

from dataproxy._core.wire.api cimport WireEvent


cdef int find_v1(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
cdef int read_v1_reply(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil
cdef int code_of_result(int result) noexcept nogil
cdef int result_of_code(int code) noexcept nogil
