"""One whole frame from a client, judged."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.wire.api cimport Request, ServerProfile


cdef int serve_frame(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil
