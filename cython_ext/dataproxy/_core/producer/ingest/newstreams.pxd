"""Streams that a record batch names for the first time, made without Python."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.batcher cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream


ctypedef struct NewStreams:     # owned by one call
    Stream** items              # each with a reference
    int64_t n
    int64_t cap


cdef Stream* newstreams_make(Batcher* b, NewStreams* made, Slice group, Slice stream) noexcept nogil
cdef void newstreams_leave(Batcher* b, NewStreams* made) noexcept nogil
cdef void newstreams_free(NewStreams* made) noexcept nogil
