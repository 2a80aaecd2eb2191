"""The packs into which one call put its messages: runs of messages that share a result."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport PackResult


ctypedef struct Segment:    # consecutive messages of one pack
    PackResult* pack_result  # holds a reference
    uint32_t first
    uint32_t count


ctypedef struct Segments:   # of the messages of one call
    Segment* items
    int64_t n
    int64_t cap
    int64_t messages


cdef int segments_add(Segments* g, PackResult* v, uint32_t first, uint32_t count) noexcept nogil
cdef void segments_free(Segments* g) noexcept nogil
