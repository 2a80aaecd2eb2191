"""One whole HTTP request, judged in the order of the reference server."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.wire.api cimport Request, ServerProfile


cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil
