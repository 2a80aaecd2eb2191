"""Requests of TubeMQ's clients, as a server judges them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.wire.api cimport FrameMark, Request, ServerProfile


cdef int request_delimit(FrameMark* mark, const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out
) noexcept nogil
cdef int refuse_sent(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil
cdef int tell_nothing(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out
) noexcept nogil
cdef int tell_place(const uint8_t* reply, size_t n, uint32_t partition, uint64_t offset, Buf* out) noexcept nogil
cdef void misaddress_answer(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil
