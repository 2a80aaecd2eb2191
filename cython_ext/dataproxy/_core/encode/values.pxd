"""One value of a node as text."""

from libc.stdint cimport int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.encode.nodes cimport Node


ctypedef struct ValueStyle:
    int times               # TimeStyle
    bint leave_nulls_out    # of JSON objects


cdef bint is_wordy(const Node* node) noexcept nogil
cdef int put_plain(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
cdef int put_json(Buf* out, const Node* node, int64_t i, const ValueStyle* style) noexcept nogil
