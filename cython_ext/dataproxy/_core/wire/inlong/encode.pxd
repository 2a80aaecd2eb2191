"""Requests of a client: data frames written around a body, heartbeats."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.wire.api cimport FamilyForm, FrameSpec


cdef enum:
    FRAME_HEAD_ROOM = 32        # the binary header of 25 bytes, the length of an LF item, rounded up


cdef int describe_family(int number, FamilyForm* out) noexcept nogil
cdef size_t frame_tail_room(const FrameSpec* spec) noexcept nogil
cdef int frame_around(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil
cdef int put_heartbeat(int kind, int64_t now_ms, Buf* out) noexcept nogil
