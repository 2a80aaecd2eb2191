"""Filters of pulls by tags, as streams of the store."""

from libc.stdint cimport int32_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.rocketmq.waits cimport Pulls


cdef enum FilterConst:
    TAGS_MOST = 256             # of one expression


# Take an expression ("a || b", "*") apart: 0, or the code that refuses it.
cdef int32_t filter_expression(Pulls* f, Slice expression) noexcept nogil
cdef int32_t filter_tags(Pulls* f) noexcept nogil               # the same of what is in `tags` already
cdef bint filter_takes(const Pulls* f, Slice stream, Slice properties) noexcept nogil
