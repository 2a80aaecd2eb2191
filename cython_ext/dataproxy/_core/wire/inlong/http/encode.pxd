"""Requests of a client: a pack becomes one POST with a form, its messages joined by LF in the field ``body``."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.api cimport FamilyForm, FrameSpec


cdef enum:
    HOST_ROOM = 64          # bytes for the server's name: ``address`` writes it when the server is known
    REQUEST_HEAD_ROOM = 256


cdef int describe_lines(int number, FamilyForm* out) noexcept nogil
cdef size_t request_tail_room(const FrameSpec* spec) noexcept nogil
cdef int request_around(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil
cdef int put_ping(int kind, int64_t now_ms, Buf* out) noexcept nogil
cdef void put_host(uint8_t* request, size_t n, Slice server) noexcept nogil
cdef int name_nothing(
    const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends, Buf* out,
) noexcept nogil
