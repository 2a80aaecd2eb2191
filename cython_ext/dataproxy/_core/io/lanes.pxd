"""Lanes of one executor: which pack may be sent, and which waits for its predecessor."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.io.link cimport LinkPool


cdef bint lane_enter(LinkPool* pool, Pack* p) noexcept nogil
cdef bint lanes_advance(LinkPool* pool, int64_t now_us) noexcept nogil
cdef void lanes_abort(LinkPool* pool, int code) noexcept nogil
