"""Requests of a V1 client."""

from libc.stdint cimport uint8_t

from dataproxy._core.wire.api cimport FamilyForm, FrameSpec


cdef enum:
    PACK_HEAD_ROOM = 16         # u32 length, 00, version, tag and length of the messages: 11 bytes, rounded up


cdef int describe_v1(int number, FamilyForm* out) noexcept nogil
cdef size_t v1_tail_room(const FrameSpec* spec) noexcept nogil
cdef size_t arrange_items(const FrameSpec* spec, uint8_t* items, size_t n) noexcept nogil
cdef int frame_v1(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil
