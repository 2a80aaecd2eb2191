"""Requests of a producer: one message into one partition, framed where it lies."""

from libc.stdint cimport uint8_t

from dataproxy._core.wire.api cimport Admission, FamilyForm, FrameSpec


cdef int describe_message(int number, FamilyForm* out) noexcept nogil
cdef size_t request_room(const FrameSpec* spec) noexcept nogil
cdef int request_frame(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil
cdef void request_undo(uint8_t* buf, size_t n) noexcept nogil
cdef void request_place(uint8_t* request, int store, int partition, const Admission* admission) noexcept nogil
