"""V1 packs, and V0 frames beside them, as a server judges them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.wire.api cimport Request, ServerProfile


cdef int serve_either(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil
cdef int refuse_either(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil
cdef int tell_known_either(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil
cdef void misaddress_either(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil
