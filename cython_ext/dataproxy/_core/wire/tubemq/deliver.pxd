"""Packs as a broker writes them: messages whose payloads lie in two places, in one pass into the slices of a frame."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.tubemq.get cimport Got


ctypedef struct TubeParts:
    int64_t id
    int32_t checksum
    int32_t flag
    Slice head              # what the payload begins with
    Slice body              # the rest of it


cdef int32_t parts_checksum(const TubeParts* m) noexcept nogil
cdef size_t parts_size(const TubeParts* m) noexcept nogil
cdef int put_pack(Buf* out, uint32_t serial, const Got* g, const TubeParts* parts, size_t n) noexcept nogil
