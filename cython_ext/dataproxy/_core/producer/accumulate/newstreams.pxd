"""Streams of the rows of a record batch: found in the table, or made without Python."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef enum:                  # StreamNames.kind
    NAMES_NEW = 0
    NAMES_AS_BEFORE = 1     # the same as in the row before, not counting rows with null names
    NAMES_NULL = 2

cdef enum:
    NAMES_MOST = 64         # rows whose streams are looked for together; the size of RunTable.ahead


ctypedef struct StreamNames:    # of one row
    Slice group
    Slice stream
    int kind


ctypedef struct NewStreams:     # owned by one call
    Stream** items              # each with a reference
    int64_t n
    int64_t cap


cdef void newstreams_find(
    Batcher* b, NewStreams* made, const StreamNames* names, int n, Stream** out) noexcept nogil
cdef Stream* newstreams_again(Batcher* b, Slice group, Slice stream) noexcept nogil
cdef void newstreams_leave(Batcher* b, NewStreams* made) noexcept nogil
cdef void newstreams_free(NewStreams* made) noexcept nogil
